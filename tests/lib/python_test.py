"""The Python package dtap: runs, counts, and the wheel."""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import zipfile

import pytest

import harness
from harness import BUILD, TOP, run

PYTHON = "/usr/bin/python3"
MUSL = pathlib.Path(os.environ.get("DTAP_CACHE", "/var/cache/dtap")) / "musl/3.11/bin/python3"
ENV = {**os.environ, "PYTHONPATH": str(TOP / "python"), "DTAP_PROGRAM": str(BUILD / "dtap"), "PYTHONDONTWRITEBYTECODE": "1"}

# What is done in one process of its own.  The witness of counts is the interpreter's profile function.
PROGRAM = r'''
import collections, json, os, sys, threading
import dtap

class Shop:
    def total(self): return [price(n) for n in range(5)]

def price(n): return n

def stream():
    yield price(1)
    yield price(2)

def work():
    Shop().total()
    list(stream())
    thread = threading.Thread(target=price, args=(7,))
    thread.start()
    thread.join()

def entries():
    """Calls of functions of this file, by name; that of a generator once."""
    seen, met = collections.Counter(), set()
    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_filename == __file__ and id(frame) not in met:
            seen[frame.f_code.co_name] += 1
            if frame.f_code.co_flags & 0x20:
                met.add(id(frame))
    threading.setprofile(profile)
    sys.setprofile(profile)
    work()
    sys.setprofile(None)
    threading.setprofile(None)
    return seen

out = {"witness": entries()}
with dtap.calls() as counts:
    work()
    out["live"] = counts["price"]
    work()
out["all"] = {name.rpartition(".")[2].partition(":")[2] or name.partition(":")[2].rpartition(".")[2]: n
              for name, n in counts.items() if name.startswith("__main__:")}
out["strange"] = [name for name in counts if name.startswith(("dtap.", "json", "subprocess", "namedtuple_", "socket"))]
with dtap.calls("__main__:Shop.*", "stream") as counts:
    work()
out["some"] = dict(counts)
out["sums"] = [counts["Shop.total"], counts["__main__:stream"], counts["nosuch"]]

script = 'python$target:::function-entry /copyinstr(arg1) == "price"/ { printf("%s/%d", copyinstr(arg1), arg2); pystack(1); @ = count(); }'
with dtap.trace(os.getpid(), script, options={"place": "target"}) as t:
    work()
    t.stop()
    out["records"] = [(record.pid == os.getpid(), record.name, record.text, record.values[:2], "price" in record.values[2][0])
                      for record in t]
    out["row"] = [(row.keys, row.function, row.value) for row in t.rows()]
with dtap.trace(None, "BEGIN { trace($1); @[\"k\"] = quantize(5); exit(3); }", arguments=[8]) as t:
    out["values"] = [record.values for record in t]
    out["buckets"] = t.rows()[0].buckets
out["status"] = t.status
with dtap.trace(None, "BEGIN { trace(pid == $target); }", command=["sh", "-c", "exit 6"]) as t:
    list(t)
out["command"] = t.command_status
with dtap.trace(None, 'probe begin { printf("%d", 1 + 1) exit() }', language="stap") as t:
    out["stap"] = [record.text for record in t]
try:
    with dtap.trace(os.getpid(), "BEGIN { nosuch(); }"):
        pass
except dtap.Error as error:
    out["error"] = str(error)
out["children"] = [name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]
print(json.dumps(out))
'''


@pytest.mark.needs_bpf
def test_runs_and_counts(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    result = run([PYTHON, tmp_path / "program.py"], env=ENV)
    assert result.code == 0 and result.err == "", result
    out = json.loads(result.out)
    witness = out["witness"]
    assert out["live"] == witness["price"] and out["strange"] == []
    for name in ("price", "total", "stream", "work"):
        assert out["all"][name] == 2 * witness[name], (name, out)
    assert out["some"]["__main__:Shop.total"] == witness["total"] and out["some"]["__main__:stream"] == witness["stream"]
    assert not any("price" in name for name in out["some"])
    assert out["sums"] == [witness["total"], witness["stream"], 0]
    line = next(i for i, text in enumerate(PROGRAM.splitlines(), 1) if text.startswith("def price"))
    assert out["records"] == [[True, "function-entry", f"price/{line}", ["price", line], True]] * witness["price"]
    assert out["row"] == [[[], "count", witness["price"]]]
    assert out["values"] == [[8]] and [4, 1] in out["buckets"] and out["status"] == 3
    assert out["command"] == 6 and "".join(out["stap"]) == "2"
    assert "nosuch" in out["error"] and "line 1" in out["error"]


FIXTURE_TEST = """
import json

def test_counts(dtap_counts):
    with dtap_counts("json.encoder:*") as counts:
        json.dumps({}, indent=1)
    assert counts["JSONEncoder.encode"] == 1 and "json.encoder:JSONEncoder.encode" in counts

def test_is_wrong(dtap_counts):
    with dtap_counts("nosuch") as counts:
        pass
    assert counts["nosuch"] == 1
"""


@pytest.mark.needs_bpf
def test_fixture(tmp_path):
    (tmp_path / "counts_test.py").write_text(FIXTURE_TEST)
    result = run([PYTHON, "-m", "pytest", "-q", "-p", "dtap._pytest", "-p", "no:cacheprovider", tmp_path], env=ENV, cwd=tmp_path)
    assert "1 failed, 1 passed" in result.out and "assert 0 == 1" in result.out, result


@pytest.mark.needs_bpf
def test_book(tmp_path):
    """The examples of the page, as one program, with the test's names."""
    blocks = re.findall(r"^```python\n(.*?)^```", (TOP / "doc/book/python.md").read_text(), re.M | re.S)
    assert len(blocks) == 3
    order = "class Order:\n    def __init__(self, items): self.show = self.total\n    def total(self): pass\n"
    (tmp_path / "book.py").write_text("\n".join([order, *blocks, "test_the_total_is_computed_once(dtap.calls)"]))
    result = run([PYTHON, tmp_path / "book.py"], env=ENV)
    assert result.code == 0 and result.err == "", result
    assert result.out.startswith("1\n1 {")
    assert "'json.encoder:JSONEncoder.encode': 1" in result.out and result.out.count(" leaf:") == 2 and "calls ('leaf',) 2" in result.out, result


TYPES = """
import inspect, typing
import dtap
for name in dtap.__all__:
    thing = getattr(dtap, name)
    assert thing.__doc__, name
    members = [member for key, member in vars(thing).items() if not key.startswith("_")] if inspect.isclass(thing) else []
    for function in [thing, *members]:
        function = function.fget if isinstance(function, property) else function
        if inspect.isfunction(function):
            hints = typing.get_type_hints(function)
            assert function.__doc__ and set(inspect.signature(function).parameters) - {"self"} <= set(hints), function
            assert "return" in hints, function
assert dtap.__version__
print("typed")
"""


def test_typed(interp):
    """On each interpreter it is imported, and what is public has types and words."""
    shutil.copytree(TOP / "python/dtap", interp.dir / "dtap", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    result = run([*interp.argv, "-B", interp.add(TYPES, "types_of_dtap.py")])
    assert result.code == 0 and result.out == "typed\n", result


# --- the wheel --------------------------------------------------------------------------------------------

def wheel_of(tree, folder):
    folder.mkdir()
    subprocess.run([TOP / "tools/wheel", tree, folder], env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}, check=True)
    return next(folder.iterdir())


def check_wheel(wheel):
    """What PEP 427 and 600 want of it."""
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        record = next(name for name in names if name.endswith("/RECORD"))
        assert names[-1] == record and sorted(names) == sorted(
            row.split(",")[0] for row in files.read(record).decode().splitlines())
        tags = re.findall(r"^Tag: py3-none-(.*)$", files.read(record.replace("RECORD", "WHEEL")).decode(), re.M)
        assert wheel.name.endswith(f"-py3-none-{'.'.join(tags)}.whl") and all(tag.endswith(f"_{platform.machine()}") for tag in tags)
        assert files.getinfo("dtap/_program_files/bin/dtap").external_attr >> 16 & 0o111
        assert {"dtap/__init__.py", "dtap/py.typed"} <= set(names)
        assert {"dtap-agent.so", "dtap-agent-musl.so"} <= {os.path.basename(name) for name in names}


def check_installed(interp, site=None):
    """The command of the package and its API, in a process of the interpreter that has it, or by the folder @site."""
    env = {name: text for name, text in os.environ.items() if name not in ("DTAP_PROGRAM", "PYTHONPATH")}
    env.update({"PYTHONPATH": interp.inside(site)} if site else {}, PYTHONDONTWRITEBYTECODE="1")
    env["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + env.get("ASAN_OPTIONS", "")     # the agent is preloaded, too
    program = interp.add('import dtap\ndef f(): pass\nwith dtap.calls("f") as c: f(); f()\nprint(dtap.version(), c["f"])')
    result = run([*interp.argv, program], env=env)
    version = re.search(r"^  version: '(.*)',", (TOP / "meson.build").read_text(), re.M)[1]
    assert result.code == 0 and result.out.split() == [version, "2"], result
    result = run([*interp.argv, "-m", "dtap", "calls", "--json", "-c", f"{interp.argv[-1]} {program}", "nosuch"], env=env)
    assert result.code == 0 and "nothing was seen" in result.err, result


@pytest.mark.needs_bpf
@pytest.mark.interps("3.11")
def test_wheel(interp, tmp_path):
    """One whose program is that of this build."""
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--strip", "--destdir", tmp_path / "root"], check=True)
    tree = next((tmp_path / "root").rglob("bin/dtap")).parent.parent
    shutil.copy(TOP / "LICENSE", tree)
    wheel = wheel_of(tree, tmp_path / "wheel")
    check_wheel(wheel)
    with zipfile.ZipFile(wheel) as files:
        files.extractall(interp.dir / "site")
    (interp.dir / "site/dtap/_program_files/bin/dtap").chmod(0o755)
    check_installed(interp, interp.dir / "site")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The wheel as it is given to others; DTAP_WHEEL names one that is made."""
    if not shutil.which("clang"):
        pytest.skip("clang is not installed: tools/need packages")
    if os.environ.get("DTAP_WHEEL"):
        return pathlib.Path(os.environ["DTAP_WHEEL"])
    folder = tmp_path_factory.mktemp("package")
    subprocess.run([TOP / "tools/package", "wheel", folder], stdin=subprocess.DEVNULL, check=True, timeout=3000)
    return next(folder.iterdir())


@pytest.mark.nightly
@pytest.mark.needs_bpf
def test_package_is_installed(package, interp, tmp_path):
    """In a new virtual environment of each interpreter, by pip, without a network and a compiler."""
    check_wheel(package)
    assert run([*interp.argv, "-m", "venv", "--without-pip", interp.inside(interp.dir / "env")]).code == 0
    [site] = (interp.dir / "env").glob("lib/python*/site-packages")
    result = run([PYTHON, "-m", "pip", "install", "--quiet", "--no-index", "--no-compile", "--only-binary=:all:", "--platform",
                  re.search(r"manylinux\w+", package.name)[0], "--python-version", interp.version, "--target", site, package],
                 env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "HOME": str(tmp_path)})
    assert result.code == 0, result
    assert "from dtap._program import main" in (site / "bin/dtap").read_text()
    inside = harness.Interp(interp.version, [*interp.argv[:-1], interp.inside(interp.dir / "env/bin/python")])
    try:
        check_installed(inside)
    finally:
        inside.close()


@pytest.mark.nightly
@pytest.mark.needs_bpf
@pytest.mark.skipif(not MUSL.exists(), reason="no CPython on musl: sudo tools/pythons musl")
def test_package_on_musl(package, tmp_path):
    interp = harness.Interp("3.11", [str(MUSL)])
    try:
        with zipfile.ZipFile(package) as files:
            files.extractall(interp.dir / "site")
        (interp.dir / "site/dtap/_program_files/bin/dtap").chmod(0o755)
        check_installed(interp, interp.dir / "site")
    finally:
        interp.close()


@pytest.mark.nightly
def test_package_is_reproducible(package, tmp_path):
    subprocess.run([TOP / "tools/package", "wheel", tmp_path], stdin=subprocess.DEVNULL, check=True, timeout=3000)
    assert next(tmp_path.iterdir()).read_bytes() == package.read_bytes()
