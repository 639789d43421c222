"""-x budget.  The witness of whether a process is traced is its interpreter: its tools of sys.monitoring, or its evaluator."""
import re

import pytest

import harness

HOOKED = """
import ctypes, sys

if hasattr(sys, "monitoring"):
    def hooked():
        return any(sys.monitoring.get_tool(n) for n in range(6))
else:
    api = ctypes.pythonapi
    get = api._PyInterpreterState_GetEvalFrameFunc
    get.argtypes, get.restype = [ctypes.c_void_p], ctypes.c_void_p
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    main = api.PyInterpreterState_Get()
    own = get(main)
    def hooked():
        return get(main) != own

def leaf(): pass
def quiet(): pass

def till(state):
    while hooked() != state:
        for _ in range(1000):
            leaf()

def say(*words):
    print(*words, flush=True)
    sys.stdin.readline()

say("ready")
"""

RESTS = HOOKED + """
till(True)
till(False)
for _ in range(1000):
    quiet()
say("off", hooked())
"""

COUNT = "python$target:::function-entry { @[copyinstr(arg1)] = count(); }"
TOLD = r"process {} is not traced for 1 s or longer: that costs [\d.e+]+ % of its CPU time, and the budget is 0.01 %"
LOST = "1 drop (a process not traced for a while: see the budget option)"


def told(child):
    child.stdin.write("\n")
    child.stdin.flush()
    return child.stdout.readline().split()


def ended(script):
    return [text.decode() for text in harness.interrupt(script)]


@pytest.mark.needs_root
@pytest.mark.alone      # other tests' scripts about every Python would hook it, too
def test_rests(interp, start):
    """What costs too much is taken out of the process, which is told: there is no hook and no event any more."""
    child = harness.running(start, interp, RESTS)
    script = harness.dtrace_start("-q", "-x", "budget=0.01%", "-p", child.pid, "-n", COUNT)
    assert told(child) == ["off", "False"]
    out, err = ended(script)
    counts = dict(re.findall(r"^ +(\w+) +(\d+)$", out, re.MULTILINE))
    assert int(counts["leaf"]) > 0 and "quiet" not in counts
    assert re.search(TOLD.format(child.pid), err) and LOST in err, err


GOES_ON = HOOKED + """
def outer():
    till(True)
    till(False)
    till(True)

outer()
outer = till = None
say("on", hooked())
"""

STALE = """
python$target:::function-entry /copyinstr(arg1) == "outer"/ { self->began = timestamp; by[tid] = timestamp; }
python$target:::function-entry { @n[copyinstr(arg1)] = count(); @both[copyinstr(arg1), tid] = count(); }
python$target:::function-return /copyinstr(arg1) == "outer"/ { @ended = count(); }
python$target:::function-return /copyinstr(arg1) == "outer" && self->began/ { @stale = count(); }
"""


@pytest.mark.needs_root
@pytest.mark.alone
@pytest.mark.interps("3.13")
def test_goes_on(interp, start):
    """When it has evened out the script goes on; what it knew of a call that began before is forgotten."""
    child = harness.running(start, interp, GOES_ON)
    script = harness.dtrace_start("-q", "-x", "budget=20%", "-p", child.pid, "-n", STALE + """
        END { printa("ended %@d\\n", @ended); printa("stale %@d\\n", @stale); trunc(@n); trunc(@both); }""")
    assert told(child) == ["on", "True"]
    out, err = ended(script)
    assert "ended 1\n" in out and "stale" not in out, (out, err)
    assert "the budget is 20 %" in err


@pytest.mark.needs_root
@pytest.mark.interps("3.11")
def test_cost_is_told(interp, start, dtrace):
    child = harness.running(start, interp)
    result = dtrace("-x", "showcost", "-p", child.pid, "-x", "place=target", "-n", COUNT, "-n", "tick-200ms { exit(0); }")
    found = re.search(r"# dtrace: (\d+) events have cost the traced processes (0\.\d+) s, [\d.]+ ns each", result.err)
    counted = sum(int(n) for n in re.findall(r"^ +\w+ +(\d+)$", result.out, re.MULTILINE))
    assert result.code == 0 and found and int(found[1]) >= counted > 0 and float(found[2]) > 0, result


def test_mistakes(dtrace):
    for text in "1", "0%", "60%", "x":
        result = dtrace("-x", f"budget={text}", "-n", "BEGIN { exit(0); }")
        assert result.code == 1 and "a part such as 1%, from 0.01% to 50%, or none" in result.err, result


@pytest.mark.needs_bpf
def test_kernel(dtrace):
    result = dtrace("-x", "budget=1%", "-n", "syscall::read:entry { @ = count(); } tick-1ms { exit(0); }")
    assert result.code == 1 and "budget is for the target place: what programs in the kernel cost" in result.err, result
