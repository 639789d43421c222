"""cwd and root: what /proc says, below mounts, too."""
import os

import pytest

pytestmark = pytest.mark.needs_bpf

PROGRAM = """
import os, sys
def told():
    print(os.readlink(b"/proc/self/cwd").decode(), file=sys.stderr)
    os.getpgid(0)
os.chdir("/"); told()
os.chdir("/proc/self"); told()
os.chdir(sys.argv[1])
told()
for _ in range(20):
    os.mkdir("some directory")
    os.chdir("some directory")
told()
os.chroot(sys.argv[1])
os.getpgid(0)
os.chdir("/")
os.getpgid(0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
@pytest.mark.parametrize("strsize", [256, 1024])
def test_paths(dtrace, tmp_path, strsize):
    program, mounted = tmp_path / "walks.py", tmp_path / "m"
    mounted.mkdir()
    program.write_text(PROGRAM)
    result = dtrace("-q", "-x", f"strsize={strsize}", "-n", r"""
        syscall::getpgid:entry /pid == $target/ { printf("%s %s\n", cwd, root); @[cwd] = count(); }
        END { trunc(@, 0); }""", "-c",
        f"unshare -m sh -c 'mount -t tmpfs x {mounted} && exec /usr/bin/python3 -S {program} {mounted}'")
    deep = str(mounted) + 20 * "/some directory"
    told = [line for line in result.err.splitlines() if line.startswith("/")]
    assert result.code == 0 and len(told) == 4 and told[0] == "/" and told[3] == deep, result
    wanted = [f"{path[:strsize - 1]} /" for path in told] + [f"{deep[:strsize - 1]} {mounted}", f"{mounted} {mounted}"]
    assert result.out.splitlines() == wanted, result


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_mounted_files(dtrace, tmp_path):
    """The root of a mount has the name of its mount point: of a folder and a file that are mounted elsewhere, of a file system."""
    for name in "folder", "elsewhere", "memory":
        (tmp_path / name).mkdir()
    (tmp_path / "folder/inner").touch()
    (tmp_path / "file").touch()
    (tmp_path / "other").touch()
    names = [tmp_path / "elsewhere", tmp_path / "elsewhere/inner", tmp_path / "other", tmp_path / "memory"]
    (tmp_path / "opens.py").write_text("import ctypes, os, sys\nfor name in sys.argv[1:]: ctypes.CDLL(None).getpgid(os.open(name, 0))\n")
    mount = f"cd {tmp_path} && mount --bind folder elsewhere && mount --bind file other && mount -t tmpfs x memory"
    result = dtrace("-q", "-n", r"""syscall::getpgid:entry /pid == $target/ {
            this->fd = (int)arg0;
            printf("%s %s %s\n", fds[this->fd].fi_pathname, fds[this->fd].fi_dirname, fds[this->fd].fi_name);
        }""", "-c", f"unshare -m sh -c '{mount} && exec /usr/bin/python3 -S opens.py {' '.join(map(str, names))}'")
    assert result.out == "".join(f"{name} {name.parent} {name.name}\n" for name in names), result


def test_open_files(dtrace, tmp_path):
    """fds[].fi_pathname and d_path(): of files, of what is no file, of what is not open."""
    name = tmp_path / "some file"
    result = dtrace("-q", "-n", r"""
        syscall::getpgid:entry /pid == $target/ {
            this->fd = (int)arg0;
            printf("%s %s %s\n", fds[this->fd].fi_pathname, fds[this->fd].fi_dirname, fds[this->fd].fi_name);
        }
        syscall::getsid:entry /pid == $target/ {
            printf("%d\n", d_path(&curthread->fs->pwd) == cwd && d_path(&curthread->fs->root) == root);
        }""", "-c", f"/usr/bin/python3 -S -c 'import ctypes, os\nf = ctypes.CDLL(None).getpgid\n"
                    f"f(os.open(\"{name}\", os.O_CREAT))\nf(os.open(\"/\", 0))\nf(999)\nf(os.pipe()[0])\nos.getsid(0)'")
    assert result.out == f"{name} {tmp_path} {name.name}\n/ / /\n<none> <none> <none>\n<unknown> <unknown> \n1\n", result
