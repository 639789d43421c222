"""What a target writes to the memory that it shares with the tracer: the tracer goes on, says that something was corrupt,
and what the other processes told stays exact.

The attacker is a Python that forks (scribbler.py): it has a lane of its own, and the session's one segment mapped.
"""
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
from harness import wait_until  # noqa: E402

SIZES = dict(re.findall(r"sizeof\(struct (\w+)\) == (\d+)", (harness.TOP / "src/abi/segment.h").read_text()))
SCRIBBLER = f"IMAGE, DATA_HEADER = {SIZES['abi_image']}, {SIZES['abi_data']}\n" + \
    (pathlib.Path(__file__).parent / "scribbler.py").read_text()
PLACE = ("-q", "-x", "place=target")
# The scripts are about python*: in a pid namespace of its own nobody else's Python is that.
ALONE = ("unshare", "-pf", "--mount-proc", harness.DTRACE)
CALLS = 12000       # the child's; the parent makes some, too

# The process as a number of which chance does not make another's.
MANY = 0x9e3779b97f4a7c15
LEAF = 'python*:::function-entry /copyinstr(arg1) == "leaf"/'
COUNTS = f'{LEAF} {{ @[pid * {MANY:#x}, copyinstr(arg1)] = count(); }} END {{ printa("%llx %s %@d\\n", @); }}'
RECORDS = f'{LEAF} {{ printf("%llx %s\\n", pid * {MANY:#x}, copyinstr(arg1)); }}'

AGGREGATIONS = ("flip_keys", "no_nul", "states", "numbers", "noise")
STREAM = ("sizes", "indexes", "heads", "noise")

pytestmark = pytest.mark.interps("3.11", "3.14")


def child_of(result):
    found = re.search(r"^child (\d+) calls (\d+)$", result.err, flags=re.M)
    assert found, result
    return int(found[1]), int(found[2])


def as_told(pid):
    return f"{pid * MANY % (1 << 64):x} leaf"


def corrupt(result):
    """How many things were told to be corrupt."""
    return sum(int(n) for n in re.findall(r"(\d+) drops? \(corrupt data of a traced process\)", result.err))


def nothing_else(result):
    """No other loss, and no number that nobody can have counted."""
    for line in result.err.splitlines():
        if "drop" in line and "corrupt" not in line:
            assert int(re.search(r"(\d+) ", line)[1]) < 10 ** 6, result


@pytest.mark.parametrize("what", AGGREGATIONS)
def test_aggregations(interp, what):
    result = harness.run([*ALONE, *PLACE, "-n", COUNTS, "-c", interp.command(SCRIBBLER, what)])
    child, calls = child_of(result)
    assert result.code == 0, result
    assert re.findall(rf"^{as_told(child)} (\d+)$", result.out, flags=re.M) == [str(calls)], result
    if what in ("flip_keys", "no_nul"):
        assert corrupt(result), result
    if what != "noise":
        nothing_else(result)


@pytest.mark.parametrize("what", STREAM)
def test_records(interp, what):
    result = harness.run([*ALONE, *PLACE, "-n", RECORDS, "-c", interp.command(SCRIBBLER, what)])
    child, calls = child_of(result)
    assert result.code == 0, result
    assert result.out.splitlines().count(as_told(child)) == calls, result.err
    assert corrupt(result), result.err
    if what != "noise":
        nothing_else(result)


def test_future_records(interp, start):
    """They are held back by nobody's clock but the tracer's: others' are printed while the session goes on."""
    go_on, out = interp.dir / "go_on", interp.dir / "out"
    with open(out, "w") as file:
        tracer = start([*ALONE, *PLACE, "-x", "switchrate=10ms", "-n", RECORDS, "-c",
                        interp.command(SCRIBBLER, "future", interp.inside(go_on))], stdout=file, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: out.read_text().count(" leaf\n") > CALLS, what="the child's events")
    finally:
        go_on.touch()
        code = tracer.wait(harness.TIMEOUT_S)
    assert code == 0


def test_systemtap_says_it(interp):
    result = harness.stap("--place", "target", "-e", f'probe process("{interp.executable}").mark("function__entry") '
                          '{ if (user_string($arg2) == "leaf") printf("%d leaf\\n", pid()) }',
                          "-c", interp.command(SCRIBBLER, "sizes"))
    assert result.code == 0 and child_of(result), result
    assert re.search(r"^WARNING: \d+ records or keys of traced processes were corrupt and left out\.$", result.err, flags=re.M), \
        result.err
