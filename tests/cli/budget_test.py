"""-x budget.  The witness of whether a process is traced is its interpreter: its tools of sys.monitoring, or its evaluator."""
import re
import subprocess

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
LOST = r"\d+ drops? \(a process not traced for a while: see the budget option\)"


def told(child):
    child.stdin.write("\n")
    child.stdin.flush()
    return child.stdout.readline().split()


def ended(script):
    return [text.decode() for text in harness.interrupt(script)]


@pytest.mark.needs_root
@pytest.mark.alone      # other tests' scripts about every Python would hook it, too
def test_rests(interp, start):
    """
    What costs too much is taken out of the process, which is told: there is no hook and no event any more.  Where a machine is busy
    what hooks have cost the process before the script began can be too much already: then nothing is counted.
    """
    child = harness.running(start, interp, RESTS)
    script = harness.dtrace_start("-q", "-x", "budget=0.01%", "-p", child.pid, "-n", COUNT)
    assert told(child) == ["off", "False"]
    out, err = ended(script)
    counts = dict(re.findall(r"^ +(\w+) +(\d+)$", out, re.MULTILINE))
    assert "quiet" not in counts, (out, err)
    assert re.search(TOLD.format(child.pid), err) and re.search(LOST, err), err


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


IN_KERNEL = """
import ctypes, os, select, sys
getppid = ctypes.CDLL(None).getppid

def say(*words):
    print(*words, flush=True)
    return sys.stdin.readline()

def hot():
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(1000):
            getppid()
    sys.stdin.readline()

say("ready")
os.getsid(0)
hot()
for _ in range(1000):
    os.getpgid(0)
say("done")
"""

KERNEL = {
    "syscall": ("1%", "syscall::getppid:entry"),
    "pid": ("1%", "pid$target:libc*:getppid:entry"),
    "return": ("1%", "pid$target:libc*:getppid:return"),
    "profile": ("0.3%", "profile-4999"),
}
WATCH = r""" { @hot = count(); }
BEGIN { printf("ready\n"); }
syscall::getsid:entry /pid == $target/ { self->began = 1; }
syscall::getpgid:entry /pid == $target/ { @after = count(); }
syscall::getpgid:entry /self->began/ { @stale = count(); }
END { printa("hot %@d\n", @hot); printa("after %@d\n", @after); printa("stale %@d\n", @stale); }"""


def till_armed(tracer, armed):
    """Until the tracer has links of the kernel's, which keep its probes in place, or has none."""
    def links():
        return subprocess.run(["ls", "-l", f"/proc/{tracer.pid}/fd"], stdout=subprocess.PIPE, text=True).stdout.count("bpf_link")
    harness.wait_until(lambda: tracer.poll() is not None or bool(links()) == armed, what=f"armed: {armed}")
    assert tracer.poll() is None, tracer.communicate()


def in_kernel(start, interp, budget, probe):
    child = harness.running(start, interp, IN_KERNEL)
    script = harness.dtrace_start("-q", "-x", "budget=" + budget, "-x", "place=kernel", "-p", child.pid, "-n", probe + WATCH)
    assert script.stdout.readline() == b"ready\n"
    child.stdin.write("\n")
    child.stdin.flush()
    till_armed(script, False)
    return child, script


@pytest.mark.needs_bpf
@pytest.mark.alone      # every process of the machine is bounded
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("budget, probe", KERNEL.values(), ids=KERNEL)
def test_kernel_rests(budget, probe, interp, start):
    """What fires in the kernel does so in all processes: the whole script rests, and nothing of it is armed."""
    child, script = in_kernel(start, interp, budget, probe)
    assert told(child) == ["done"]
    out, err = ended(script)
    assert re.search(r"^hot [1-9]", out, re.MULTILINE) and "after" not in out, (out, err)
    assert re.search(rf"because of process \d+ nothing is traced for .* budget is {budget[:-1]} %", err) and re.search(LOST, err), err


@pytest.mark.needs_bpf
@pytest.mark.alone
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("probe", [KERNEL["syscall"][1], KERNEL["pid"][1]], ids=["syscall", "pid"])
def test_kernel_goes_on(probe, interp, start):
    """It is armed again, and what it knew of threads is forgotten."""
    child, script = in_kernel(start, interp, "20%", probe)
    till_armed(script, True)
    assert told(child) == ["done"]
    out, err = ended(script)
    assert "after 1000\n" in out and "stale" not in out, (out, err)


@pytest.mark.needs_bpf
@pytest.mark.interps("3.11")
def test_kernel_cost_is_told(interp, start, dtrace):
    child = harness.running(start, interp, IN_KERNEL)
    child.stdin.write("\n")
    child.stdin.flush()
    result = dtrace("-x", "showcost", "-p", child.pid, "-n", KERNEL["syscall"][1] + " /pid == $target/ { @ = count(); } "
                    "tick-300ms { exit(0); }")
    found = re.search(r"# dtrace: (\d+) events have cost the traced processes (0\.\d+) s, [\d.]+ ns each", result.err)
    assert result.code == 0 and found and int(found[1]) > 0.9 * int(result.out.split()[-1]) > 0 and float(found[2]) > 0, result
