"""The agent in more than one process: children of the command, and every Python there is.

Each test has the processes of a pid namespace to itself: a pattern such as python* would reach those of other tests.
"""
import pathlib
import re
import shutil

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
