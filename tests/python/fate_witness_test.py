"""The witness of tests/fate.py itself: it tells of crashes, of whoever's child, and of nothing else."""
import os
import signal
import subprocess
import sys

import pytest

import fate
import harness


@pytest.fixture
def watch(request):
    if not request.config.fate:
        pytest.skip("the kernel's process connector is for root in the first pid namespace")
    return request.config.fate


DIE = "import os, signal; os.kill(os.getpid(), signal.{})"
DIE_LATER = "import os, signal, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(.01)\nos.kill(os.getpid(), signal.SIGSEGV)"


@pytest.mark.dies("SIGSEGV")
@pytest.mark.parametrize("way", ["child", "grandchild", "orphan"])
def test_crash_is_told(watch, tmp_path, way):
    """With the words of who dies, which can be read before only."""
    go = tmp_path / "go"
    words = [sys.executable, "-c", DIE_LATER, str(go)]
    own = " ".join(words[:3])
    if way == "grandchild":
        words = ["sh", "-c", '"$@"; true', "sh", *words]
    if way == "orphan":     # nobody of ours waits for it
        words = ["sh", "-c", 'setsid "$@" & exit 0', "sh", *words]
    with subprocess.Popen(words):
        try:
            harness.wait_until(lambda: watch.knows(own))
        finally:
            go.touch()
    deaths = harness.wait_until(watch.deaths)
    assert [death.signal for death in deaths] == ["SIGSEGV"] and "os.kill" in str(deaths[0])


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGINT"])
def test_other_ends_are_no_crash(watch, name):
    subprocess.run([sys.executable, "-c", DIE.format(name)])
    subprocess.run(["false"])
    assert not watch.deaths()


def test_foreign_process_is_not_ours(watch):
    """One that another family starts: here of a second watch's point of view."""
    assert os.getpid() in watch._family and 1 not in watch._family
    assert signal.SIGSEGV in fate.CRASHES
