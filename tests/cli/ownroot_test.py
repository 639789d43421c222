"""ownroot.py, which gives the tests a root that is a mount point, and the checkout a path that all users may go."""
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import harness

pytestmark = [pytest.mark.needs_root, pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")]

IN_CHROOT = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
import ownroot
def works(*options): return not subprocess.run(["unshare", *options, "true"], stderr=subprocess.DEVNULL).returncode
names = sorted(os.listdir("/")), os.stat("/").st_ino
print(ownroot.is_mount_point(), works("-m"), works("-r"))
ownroot.make_mount_point()
print(ownroot.is_mount_point(), works("-m"), works("-r"), names == (sorted(os.listdir("/")), os.stat("/").st_ino))
"""

HOME = """
import os, pathlib, subprocess, sys
sys.path.insert(0, sys.argv[1])
import ownroot
home = pathlib.Path(sys.argv[2])
def sees(folder): return not subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "cat", folder / "file"], capture_output=True).returncode
with ownroot.where_all_can(home) as there:
    print(there == home, sees(home), sees(there))
    above = there.parent
print(above == home.parent or not above.exists(), (home / "file").exists())
"""


def output(*argv):
    return subprocess.run([*map(str, argv)], stdout=subprocess.PIPE, text=True, check=True, timeout=harness.TIMEOUT_S).stdout


@pytest.mark.interps("3.13")
def test_chroot(interp):
    """Debian's, without mounts in it but /proc."""
    if not interp.root:
        pytest.skip("this interpreter is not in a root of its own")
    interp.add(pathlib.Path(harness.TOP, "tests/ownroot.py"))
    assert output(*interp.argv_of(IN_CHROOT, interp.inside(interp.dir))).splitlines() == ["False False False", "True True True True"]


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_home(mode):
    with tempfile.TemporaryDirectory(prefix="dtap-") as folder:
        above = pathlib.Path(folder)
        home = above / "checkout"
        home.mkdir()
        (home / "file").write_text("text\n")
        above.chmod(mode)
        can = mode == 0o755
        wanted = [f"{can} {can} True", "True True"]
        assert output("/usr/bin/python3", "-c", HOME, harness.TOP / "tests", home).splitlines() == wanted
