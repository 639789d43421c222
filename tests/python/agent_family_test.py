"""The agent in more than one process: children of the command, and every Python there is.

Each test has the processes of a pid namespace to itself: a pattern such as python* would reach those of other tests.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import harness

DATA = pathlib.Path(__file__).parent / "data"
COUNT = 'python*:::function-entry /copyinstr(arg1) == "leaf"/ { @ = count(); }'
ALONE = ["unshare", "--pid", "--mount-proc", "--fork"]

pytestmark = [pytest.mark.needs_bpf, pytest.mark.alone, pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")]


def alone(*args):
    return harness.run([*ALONE, harness.DTRACE, *args])


@pytest.mark.parametrize("options", [(), ("-x", "agent=always")], ids=["auto", "always"])
def test_forked(interp, options):
    kinds = ("forked", "pooled", "forked_from_thread")
    result = alone("-q", *options, "-n", COUNT, "-c", interp.command(DATA / "family.py", *kinds))
    assert result.code == 0 and result.err == "" and result.out.split() == ["1111"], result


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("options", [(), ("-x", "agent=always")], ids=["auto", "always"])
def test_executed(interp, options):
    """The environment hands the agent on.  (Not into another root, where its file is not.)"""
    kinds = ("executed", "by_shell", "forked")
    result = alone("-q", *options, "-n", COUNT, "-c", interp.command(DATA / "family.py", *kinds))
    assert result.code == 0 and result.err == "" and result.out.split() == ["1111"], result


LEAF = "def leaf(): pass\nleaf()\n"


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("place", ["kernel", "target"])
@pytest.mark.parametrize("before", ["env -i", "env LD_PRELOAD=", ""], ids=["no environment", "not preloaded", "capabilities"])
def test_not_handed_on(dtrace, interp, tmp_path, before, place):
    """The program that a wrapper starts without LD_PRELOAD, or whose file has capabilities, gets the agent nevertheless."""
    python = "/usr/bin/python3"
    if not before:
        python = tmp_path / "python"
        shutil.copy("/usr/bin/python3", python)
        harness.run(["/usr/sbin/setcap", "cap_net_raw+ep", python])
        before = "setpriv --reuid=nobody --regid=nogroup --clear-groups"
        for folder in (tmp_path, *tmp_path.parents[:2]):
            folder.chmod(0o755)
    command = f"{before} {python} -S -c '{LEAF}'"
    result = dtrace("-q", "-x", f"place={place}", "-n", COUNT.replace("python*", "python$target"), "-c", command)
    assert (result.code, result.err, result.out.split()) == (0, "", ["1"]), result
    script = 'probe process.mark("function__entry") { if (user_string($arg2) == "leaf") println("leaf") }'
    result = harness.stap("-w", f"--place={place}", "-e", script, "-c", command)
    assert (result.code, result.err, result.out.split()) == (0, "", ["leaf"]), result


LENT = """
import ctypes, os, re, subprocess
def leaf(): pass
leaf()
getenv, iterate = ctypes.CDLL(None).getenv, ctypes.CDLL(None).dl_iterate_phdr
getenv.restype = ctypes.c_char_p
class Loaded(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]
objects = []
note = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Loaded), ctypes.c_size_t, ctypes.c_void_p)(lambda found, *_: objects.append(found[0].name) or 0)
iterate(note, None)
child = subprocess.run(["/bin/sh", "-c", 'echo "$LD_PRELOAD"'], capture_output=True, text=True)
print(any(re.match(b"/proc/[0-9]+/fd/", name) for name in objects))
print(os.environ["LD_PRELOAD"].strip(), getenv(b"LD_PRELOAD").decode().strip(), child.stdout.strip(), child.stderr or "quiet",
      sum("dtap-agent" in os.path.realpath("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd")))
"""


@pytest.mark.interps("3.9", "3.13", "3.14", "3.15")
@pytest.mark.parametrize("how", ["lent", "another mount namespace", "another user", "another list"])
def test_under_another_root(interp, dtrace, how):
    """It has the agent from its first call on, by the tracer's descriptor if it may open that, and no trace of it in its environment or
    descriptors; its own list stays."""
    before, argv = [], list(interp.argv)
    if how == "another mount namespace":
        before = ["unshare", "-m"]
    elif how == "another user":
        argv[1:1] = ["--userspec=65534:65534"]
    elif how == "another list":
        argv[2:2] = ["env", "LD_PRELOAD=libm.so.6"]
    command = [*before, *argv, interp.add(LENT)]
    env = {**os.environ, "LD_PRELOAD": "libm.so.6", "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
    untraced = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    for place in "target", "kernel":
        result = dtrace("-q", "-x", "agent=always", "-x", f"place={place}", "-n", COUNT.replace("python*", "python$target"), "-c",
                        " ".join(command), env=env)
        lent, printed, count = result.out.split("\n")[0], *filter(None, result.out.split("\n")[1:])
        assert (result.code, result.err, lent, count.strip()) == (0, "", str(how != "another user"), "1"), result
        assert untraced.stdout.split("\n")[1] == printed, (untraced.stdout, result)


@pytest.mark.interps("3.13")
def test_session_ends_before_the_program_begins(interp, dtrace, start):
    """What is lent is there until the loader has opened it, however late that gets its processor."""
    for _ in range(2 * os.cpu_count()):
        start([sys.executable, "-c", "while True: pass"])
    for _ in range(3):
        result = dtrace("-q", "-n", "BEGIN { exit(0); } " + COUNT.replace("python*", "python$target"), "-c",
                        "nice -n 19 " + interp.command("print('ran')"))
        assert (result.code, result.err, result.out.split()[:1]) == (0, "", ["ran"]), result


def test_only_the_target(interp):
    """python$target is the command's process alone."""
    result = alone("-q", "-n", COUNT.replace("python*", "python$target"), "-c",
                   interp.command(DATA / "family.py", "forked", "pooled"))
    assert result.code == 0 and result.out.split() == ["1"], result


SEVERAL = r"""
for command in "$@"; do
    $command &
done
until [ $(cat /proc/[0-9]*/comm 2>/dev/null | grep -cx ticking) = $# ]; do sleep 0.05; done
"$DTRACE" -l -n 'python*:::function-entry'
exec "$DTRACE" -qn 'BEGIN { begin = timestamp; } python*:::function-entry /copyinstr(arg1) == "tick"/ { @[probemod] = count(); }
    tick-1s { printf("ms %d\n", (timestamp - begin) / 1000000); exit(0); }'
"""

TICKER = """
import ctypes, time
def tick():
    time.sleep(0.01)
ctypes.CDLL(None).prctl(15, b"ticking")     # PR_SET_NAME
while True:
    tick()
"""


def test_every_python(monkeypatch):
    """Those that run already get the agent if they need it; all are counted, and none twice."""
    interps = [harness.Interp(version, argv) for version, argv in harness.interpreters().items()
               if not isinstance(argv, str)]
    monkeypatch.setenv("DTRACE", str(harness.DTRACE))
    try:
        result = harness.run([*ALONE, "sh", "-c", SEVERAL, "sh", *(interp.command(TICKER) for interp in interps)])
        own = [pathlib.Path(interp.executable).name for interp in interps if interp.version == "3.9"]
    finally:
        for interp in interps:
            interp.close()
    listed = re.findall(r"^ +\d+ +python\d+ +(\S+) .*function-entry$", result.out, re.M)
    assert result.code == 0 and sorted(listed) == sorted(own + ["dtap-agent.so"] * (len(interps) - len(own))), result
    counts = {module: int(count) for module, count in re.findall(r"^ +(\S+) +(\d+)$", result.out, re.M)}
    assert set(counts) == set(listed), result
    most = int(re.search(r"^ms (\d+)$", result.out, re.M)[1]) / 10 * (len(interps) - len(own))
    assert 4 < counts["dtap-agent.so"] < 1.5 * most, result
