"""Packages: what is in them, that two builds are equal, that they serve a bare Debian; and what root does not run."""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness

TOP = harness.TOP
DEBIAN = TOP / "debian"
MUSL = pathlib.Path(os.environ.get("DTAP_CACHE", "/var/cache/dtap")) / "musl/3.11"
BINARIES = ("dtap", "dtap-compat", "libdtap0", "libdtap-dev")
RPMS = {"": "dtap", "compat": "dtap-compat", "libs": "libdtap0", "devel": "libdtap-dev"}
# What a package of a distribution leaves to a build with pandoc.
NOT_PACKAGED = "/share/doc/dtap/html/"


def patterns_of_debian():
    return {name: [line.split()[0] for line in (DEBIAN / f"{name}.install").read_text().splitlines()] for name in BINARIES}


def patterns_of_rpm():
    """{package: patterns}, with the macros of folders as Debian has them."""
    folders = {"_bindir": "usr/bin", "_prefix": "usr", "_libdir": "usr/lib/*", "_includedir": "usr/include",
               "_datadir": "usr/share", "_mandir": "usr/share/man", "soversion": "0"}
    found, package = {}, None
    for line in (TOP / "share/rpm/dtap.spec").read_text().splitlines():
        if line.startswith("%files"):
            package = RPMS[line[len("%files"):].strip()]
            found[package] = []
        elif line.startswith("%changelog"):
            package = None
        elif package and line and not line.startswith("%license"):
            path = re.sub(r"%\{(\w+)\}", lambda match: folders[match[1]], line.removeprefix("%doc "))
            found[package].append(path.lstrip("/"))
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The paths that an installation makes, as if the prefix were /usr."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--quiet", "--destdir", folder], check=True)
    paths = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return [re.sub(r"^usr/local/", "usr/", path) for path in paths if NOT_PACKAGED not in path]


@pytest.mark.parametrize("patterns", [patterns_of_debian, patterns_of_rpm])
def test_each_file_is_in_one_package(installed, patterns):
    """And each pattern has a file."""
    rows = {(name, pattern.replace("${DEB_HOST_MULTIARCH}", "*")) for name, those in patterns().items() for pattern in those}
    used = set()
    for path in installed:
        exact = re.sub(r"^usr/(lib/[^/]*-linux-gnu|lib64)/", "usr/lib/x86_64-linux-gnu/", path)
        those = {row for row in rows for end in ("", "/*") if fnmatch.fnmatch(exact, row[1] + end)}
        assert len({name for name, _ in those}) == 1, (path, those)
        used |= those
    assert rows - used == set()


def test_scripts_of_commands_are_executable():
    """As lintian wants those that begin with #!"""
    scripts = [path for path in (harness.TOP / "share/commands").rglob("*.d") if path.read_text().startswith("#!")]
    assert len(scripts) > 10 and [path for path in scripts if not os.access(path, os.X_OK)] == []


def test_versions_agree():
    version = re.search(r"^  version: '(.*)',", (TOP / "meson.build").read_text(), re.M)[1]
    assert re.match(r"dtap \((.*)\)", (DEBIAN / "changelog").read_text())[1] == version
    spec = (TOP / "share/rpm/dtap.spec").read_text()
    assert re.search(r"^Version: *(.*)", spec, re.M)[1] == version and f"- {version}-1\n" in spec


def test_compat_conflicts_with_the_owners_of_its_files():
    """With each package of this machine that has one of the files, as dpkg knows it."""
    if not shutil.which("dpkg-query"):
        pytest.skip("this machine has no dpkg")
    conflicts = re.search(r"^Package: dtap-compat\n(?:.+\n)*?Conflicts: (.*)", (DEBIAN / "control").read_text(), re.M)[1].split(", ")
    for line in (DEBIAN / "dtap-compat.install").read_text().splitlines():
        path = f"/{line}.gz" if "/man/" in line else f"/{line}"
        done = subprocess.run(["dpkg-query", "-S", path, path.replace("/include/", "/include/*/")], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        owners = {row.split(":")[0] for row in done.stdout.splitlines() if not row.startswith("diversion")}
        assert owners <= {*conflicts, "dtap-compat"}, (line, owners)


# --- root ------------------------------------------------------------------------------------------------

SCRIPT = ("dtrace", "-qn", "BEGIN { exit(0); }")
AGENT = ("dtrace", "-x", "agent=always", "-ln", "python$target:::line", "-c", "/usr/bin/python3 -c pass")


@pytest.fixture
def copy(tmp_path):
    """The program and its agent in folders of their own."""
    for folder in ("bin", "bin/agent"):
        (tmp_path / folder).mkdir(mode=0o755)
    shutil.copy(harness.BUILD / "dtap", tmp_path / "bin/dtap")
    shutil.copy(harness.BUILD / "src/agent/dtap-agent.so", tmp_path / "bin/agent/dtap-agent.so")
    return tmp_path / "bin"


@pytest.mark.needs_bpf
@pytest.mark.parametrize("what,mode,uid,gid,refused", [
    ("dtap", 0o755, 0, 0, False),
    ("dtap", 0o757, 0, 0, True),
    ("dtap", 0o775, 0, 65534, True),
    ("dtap", 0o775, 0, 0, False),
    ("dtap", 0o775, 65534, 65534, False),       # a user's own group
    (".", 0o777, 0, 0, True),
    (".", 0o1777, 0, 0, False),                 # the sticky bit
    (".", 0o775, 0, 65534, True),
])
def test_root_runs_no_file_of_others(copy, what, mode, uid, gid, refused):
    os.chown(copy / what, uid, gid)
    os.chmod(copy / what, mode)
    result = harness.run([copy / "dtap", *SCRIPT])
    path = (copy / what).resolve()
    if refused:
        assert result.code == 1 and f"others can write {path}: chmod go-w it" in result.err, result
    else:
        assert result.code == 0 and result.err == "", result
    other = harness.run(["setpriv", "--reuid=65533", "--clear-groups", copy / "dtap", "--version"])
    assert "refused for root" not in other.err, other


@pytest.mark.needs_root
@pytest.mark.parametrize("what,mode,refused", [("dtap-agent.so", 0o644, False), ("dtap-agent.so", 0o666, True), (".", 0o777, True)])
def test_root_loads_no_agent_of_others(copy, what, mode, refused):
    os.chmod(copy / "agent" / what, mode)
    result = harness.run([copy / "dtap", *AGENT])
    if refused:
        assert result.code and f"others can write {(copy / 'agent' / what).resolve()}" in result.err, result
    else:
        assert result.code == 0 and "line" in result.out, result


# --- the packages themselves -------------------------------------------------------------------------------

def package(kind, folder, *words):
    """tools/package; the files by name."""
    done = subprocess.run([TOP / "tools/package", kind, folder, *words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=3000, env={**os.environ, "DEB_BUILD_OPTIONS": "nocheck"}, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return {path.name: path for path in pathlib.Path(folder).iterdir()}


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed: tools/need packages")


def names_no_folder_of_the_build(path):
    data = path.read_bytes()
    assert b"dtap-package-" not in data


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    need("dpkg-buildpackage", "dh", "meson", "clang")
    return package("deb", tmp_path_factory.mktemp("debs"))


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    """The static program; DTAP_TARBALL names one that is made."""
    if os.environ.get("DTAP_TARBALL"):
        return pathlib.Path(os.environ["DTAP_TARBALL"])
    need("meson", "clang")
    found = package("static", tmp_path_factory.mktemp("static"))
    assert len(found) == 1
    return next(iter(found.values()))


@pytest.mark.nightly
def test_debian_packages_are_reproducible(debs, tmp_path):
    again = package("deb", tmp_path)
    assert set(again) == set(debs)
    for name, path in debs.items():
        if not name.endswith(".buildinfo") and not name.endswith(".changes"):     # these have the time of the build
            assert path.read_bytes() == again[name].read_bytes(), name


@pytest.mark.nightly
def test_lintian_is_silent(debs):
    need("lintian")
    changes = next(path for name, path in debs.items() if name.endswith(".changes"))
    done = subprocess.run(["lintian", "--allow-root", changes], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout + done.stderr == "", done.stdout + done.stderr


class Root:
    """A folder with a system of its own, mounted while it is there."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def run(self, *argv):
        """Run @argv in it, with mounts that end with the command."""
        inner = 'mount -t proc proc "$0/proc" && mount --bind /sys "$0/sys" && exec chroot "$0" "$@"'
        return harness.run(["unshare", "-m", "sh", "-c", inner, self.folder, *argv], timeout=600)


@pytest.fixture(params=["bookworm", "trixie"])
def bare(request, tmp_path):
    """A minimal Debian, as debootstrap makes it: nothing in it but what apt needs."""
    suite, folder = request.param, tmp_path / request.param
    need("debootstrap")
    if os.geteuid():
        pytest.skip("debootstrap needs root")
    done = subprocess.run(["debootstrap", "--variant=minbase", suite, folder, "http://deb.debian.org/debian"],
                          capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        pytest.skip(f"no Debian {suite}: {done.stdout.strip().splitlines()[-1]}")
    yield Root(folder)
    shutil.rmtree(folder)


@pytest.mark.nightly
@pytest.mark.needs_bpf
def test_in_a_bare_debian(debs, tarball, bare):
    root = bare
    for path in [*debs.values(), TOP / "tests/python/data/howto_call_stack.d", TOP / "tests/python/data/call_stack.py"]:
        shutil.copy(path, root.folder / "tmp")
    version = re.search(r"\((.*)\)", (DEBIAN / "changelog").read_text())[1]
    for words in (["update"], ["install", f"/tmp/dtap_{version}_amd64.deb", "python3"]):
        done = root.run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y", "--no-install-recommends", *words)
        assert done.code == 0, done
    script = ("-q", "-s", "/tmp/howto_call_stack.d", "-c", "python3 /tmp/call_stack.py")
    wanted = (TOP / "tests/python/data/howto_call_stack.out").read_text().splitlines()
    shutil.unpack_archive(tarball, root.folder / "opt")
    for command in (("dtap", "dtrace"), ("/opt/dtap-x86_64/bin/dtrace",)):
        done = root.run(*command, *script)
        assert done.code == 0 and harness.in_time_order(done.out) == wanted, done
    assert root.run("which", "dtrace").code != 0
    done = root.run("apt-get", "-qq", "-y", "install", f"/tmp/dtap-compat_{version}_amd64.deb")
    assert done.code == 0, done
    assert root.run("/usr/sbin/dtrace", *script).code == 0
    done = root.run("apt-get", "-qq", "-y", "--no-install-recommends", "--simulate", "install", "systemtap-sdt-dev")
    assert "Remv dtap-compat" in done.out, done


@pytest.mark.nightly
@pytest.mark.needs_bpf
def test_static_program_needs_nothing(tarball, tmp_path):
    """Equal in two builds, and at work in a root that has no file but its own; users come from /etc/passwd."""
    again = package("static", tmp_path / "again")
    assert again[tarball.name].read_bytes() == tarball.read_bytes()
    root = tmp_path / "root"
    shutil.unpack_archive(tarball, root)
    program = next(root.glob("*/bin/dtap"))
    names_no_folder_of_the_build(program)
    inside = f"/{program.relative_to(root)}"
    for folder in "etc", "proc", "sys":
        (root / folder).mkdir()
    (root / "etc/passwd").write_text("somebody:x:1234:1234::/:/bin/false\n")
    (root / "etc/services").write_text("odd 4321/tcp\n")
    result = Root(root).run(inside, "--version")
    assert result.code == 0 and result.out.startswith("dtap "), result
    result = Root(root).run(inside, "dtrace", "-qn", 'BEGIN { printf("%P %P\\n", 4321, 4322); exit(0); }')
    assert result.code == 0 and result.out.strip() == "odd 4322", result
    result = Root(root).run(inside, "calls", "--user", "nobody-of-that-name")
    assert "there is no user" in result.err, result


@pytest.mark.nightly
@pytest.mark.needs_bpf
@pytest.mark.skipif(not (MUSL / "bin/python3").exists(), reason="no CPython on musl: sudo tools/pythons musl")
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_in_a_root_of_musl_alone(tarball, tmp_path, place):
    """As in Alpine: no glibc, and nothing but the interpreter, its C library and the static program."""
    root = tmp_path / "root"
    for folder in "etc", "proc", "sys", "dev", "tmp", "lib":
        (root / folder).mkdir(parents=True)
    loader = pathlib.Path(f"/lib/ld-musl-{os.uname().machine}.so.1")
    shutil.copy(loader.resolve(), root / "lib" / loader.name)
    shutil.copytree(MUSL, root / str(MUSL).lstrip("/"), symlinks=True)
    shutil.unpack_archive(tarball, root / "opt")
    for name in "howto_call_stack.d", "call_stack.py":
        shutil.copy(TOP / "tests/python/data" / name, root / "tmp")
    [program] = root.glob("opt/*/bin/dtrace")
    done = Root(root).run(f"/{program.relative_to(root)}", "-q", "-x", f"place={place}", "-x", "agent=always", "-s", "/tmp/howto_call_stack.d", "-c",
                          f"{MUSL}/bin/python3 -S /tmp/call_stack.py")
    wanted = (TOP / "tests/python/data/howto_call_stack.out").read_text().splitlines()
    assert done.code == 0 and harness.in_time_order(done.out) == wanted, done


@pytest.mark.nightly
@pytest.mark.needs_bpf
@pytest.mark.interps("3.9", "3.11", "3.14")
def test_static_program_traces(tarball, interp, tmp_path):
    """Interpreters of glibc 2.31 and later."""
    shutil.unpack_archive(tarball, tmp_path)
    program = next(tmp_path.glob("*/bin/dtap"))
    for place in ("kernel", "target"):
        words = ["-x", f"place={place}", "-x", "agent=always", "-qn",
                 'python$target:::function-entry /copyinstr(arg1) == "f"/ { @ = count(); }']
        result = harness.run([program, "dtrace", *words, "-c", interp.command("def f(): pass\nfor i in range(7): f()")])
        assert result.code == 0 and result.out.strip() == "7", result


@pytest.mark.nightly
def test_rpm(tmp_path):
    need("rpmbuild")
    found = package("rpm", tmp_path, "--nodeps")
    assert sum(name.endswith(".x86_64.rpm") for name in found) == 4 and sum(name.endswith(".src.rpm") for name in found) == 1
