"""The agent in a running program: it comes and goes, and the program does not notice.

DTAP_KILLS and DTAP_ATTACHES in the environment say how often, for a long run.
"""
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

import harness
from harness import wait_until

DATA = pathlib.Path(__file__).parent / "data"
KILLS = int(os.environ.get("DTAP_KILLS", "5"))
ATTACHES = int(os.environ.get("DTAP_ATTACHES", "20"))
COUNT = "python$target:::function-entry { @[copyinstr(arg1)] = count(); }"
THREADS = 4

pytestmark = pytest.mark.needs_bpf


class Busy:
    """busy.py in an interpreter."""

    def __init__(self, interp, start, threads=THREADS):
        self.dir = interp.dir
        self.process = start(interp.argv_of(DATA / "busy.py", interp.inside(self.dir), threads))
        self.pid = int(wait_until(lambda: self.read("pid"), what="the target's start"))
        wait_until(lambda: self.calls(), what="the target's first calls")

    def read(self, name):
        try:
            return (self.dir / name).read_text()
        except FileNotFoundError:
            return ""

    def calls(self):
        return int(self.read("calls") or 0)

    def goes_on(self):
        before = self.calls()
        wait_until(lambda: self.calls() > before + 1000, what="progress of the target")

    def cpu_s(self):
        """Processor time used so far: calls a second of that do not depend on the machine's other work."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def speed(self):
        """Calls in a second of processor time: the middle one of three rounds."""
        rounds = []
        for _ in range(3):
            calls, cpu = self.calls(), self.cpu_s()
            time.sleep(0.5)
            wait_until(lambda: self.cpu_s() - cpu >= 0.5, what="half a second of processor time")
            rounds.append((self.calls() - calls) / (self.cpu_s() - cpu))
        return sorted(rounds)[1]

    def is_as_fast(self, before):
        """Measured up to ten times: the machine has other work."""
        return any(self.speed() > 0.8 * before for _ in range(10))

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def memory_kb(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"^RssAnon:\s+(\d+)", status, re.M).group(1))

    def stop(self):
        (self.dir / "stop").touch()
        result = wait_until(lambda: self.read("result"), what="the target's result")
        assert self.process.wait(timeout=harness.TIMEOUT_S) == 0
        return result


def attach(pid, *more, place):
    return harness.dtrace_start("-q", "-x", f"place={place}", "-p", pid, "-n", COUNT, *more)


needs_agent = pytest.mark.interps("3.11", "3.13", "3.14", "3.15")


@needs_agent
@pytest.mark.alone      # who traces the same marker, in whatever process, moves its semaphores
def test_attached(interp, start):
    """Events come, and when the tracer has gone nothing is left but the object."""
    target = Busy(interp, start)
    tracer = attach(target.pid, "-n", 'tick-20ms /!up/ { up = 1; printf("up\\n"); }', place="kernel")
    assert tracer.stdout.readline() == b"up\n", tracer.communicate()
    assert harness.agent_semaphores(target.pid)["function__entry"] == 1
    target.goes_on()
    tracer.send_signal(signal.SIGINT)
    result = harness.finish(tracer, tracer.args)
    rows = {key: int(value) for key, value in re.findall(r"^\s*(\S+) +(\d+)$", result.out, re.M)}
    assert result.code == 0 and result.err == "", result
    assert rows["add"] > 100 and rows["numbers"] > 100 and rows["fail"] > 5, result
    assert set(harness.agent_semaphores(target.pid).values()) == {0}
    assert target.stop().startswith("right, hooks [],")


@needs_agent
def test_message(interp, start):
    """Who supplies what is said once, in a line that begins with #, and not with -q."""
    target = Busy(interp, start, 1)
    for quiet in ([], ["-q"]):
        result = harness.dtrace(*quiet, "-p", target.pid, "-n", "python$target:::line { n++; }", "-n", "python$target:::function-* { n++; }",
                                "-n", "tick-100ms { exit(0); }")
        said = [line for line in result.err.splitlines() if line.startswith("#")]
        want = f"# dtrace: dtap's agent supplies line, function-entry and function-return of Python {interp.version}"
        assert result.code == 0 and said == ([] if quiet else [want]), result
    target.stop()


@pytest.mark.interps("3.11", "3.14")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls")
@pytest.mark.parametrize("action", ["80000000", "30000", "50001"])      # kill, trap, an error
def test_system_calls_it_must_not_make(interp, start, action):
    """A process that would be killed for a call of the agent's is not given it."""
    program = start(interp.argv_of(harness.TOP / "tests/agent/data/sandbox.py", action), stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    result = harness.finish(attach(program.pid, place="target"), [])
    want = r"would not survive \w+\(\), which dtap's agent needs" if action != "50001" else "socket pair"
    assert result.code == 1 and re.search(want, result.err), result
    assert program.communicate("\n", timeout=harness.TIMEOUT_S)[0] == "alive\n" and program.returncode == 0


@pytest.mark.parametrize("interval", [1000, 0.005])
def test_who_does_not_let_go(interp, start, interval):
    """
    A loop that gives the lock up to others each 1,000 seconds: the agent has it at once all the same, to install its hooks and to
    remove them.  Calls that the program's own code has pending run, too, in their order.
    """
    program = start(interp.argv_of("""
import ctypes, sys
CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
order, add = [], ctypes.pythonapi.Py_AddPendingCall
add.argtypes = [CALL, ctypes.c_void_p]
calls = [CALL(lambda _, n=n: order.append(n) or 0) for n in range(10)]
sys.setswitchinterval(float(sys.argv[1]))
before = sys.getswitchinterval()
def leaf(n):
    if n < 200000:
        return add(calls[n % 10], None) if n % 5000 == 4000 + n // 5000 % 10 else 0
print("ready", flush=True)
n = 0
while n < 200000 or not sys.stdin.isatty():
    leaf(n)
    n += 1
    if n == 200000:
        print(len(order), sum(a == b for a, b in zip(order, list(range(10)) * 4)), sys.getswitchinterval() == before, flush=True)
""", interval), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    for _ in range(5):
        result = harness.finish(attach(program.pid, "-n", "tick-50ms { exit(0); }", place="target"), [])
        assert result.code == 0 and result.err == "" and re.search(r"^ +leaf +[1-9]", result.out, re.M), result
    assert program.stdout.readline() == "40 40 True\n"
    wait_until(lambda: not any((harness.agent_semaphores(program.pid) or {"none": 0}).values()), what="semaphores at zero")


@needs_agent
@pytest.mark.slow
def test_killed(interp, start):
    """SIGKILL of the tracer at any moment."""
    target = Busy(interp, start)
    before = target.speed()
    for _ in range(KILLS):
        tracer = attach(target.pid, place=random.choice(["kernel", "target"]))
        time.sleep(random.expovariate(1 / 0.15))
        tracer.send_signal(random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        tracer.communicate()
        target.goes_on()
    wait_until(lambda: not any((harness.agent_semaphores(target.pid) or {"none": 0}).values()), what="semaphores at zero")
    time.sleep(1)
    fast = target.is_as_fast(before)
    result = target.stop()
    assert result.startswith("right, hooks [],"), result
    assert fast, f"no longer {before:.0f} calls a second"


@needs_agent
@pytest.mark.slow
def test_many_times(interp, start):
    """Attach and detach: no leak, the same speed."""
    target = Busy(interp, start)
    before, threads = target.speed(), target.threads()
    memory = []
    for i in range(ATTACHES):
        result = harness.finish(attach(target.pid, "-n", "tick-20ms { exit(0); }", place=("kernel", "target")[i % 2]), [i])
        assert result.code == 0 and result.err == "", result
        if i >= min(ATTACHES, 100) // 2:
            memory.append(target.memory_kb())
    wait_until(lambda: target.threads() == threads, what="the agent's thread gone")
    # A leak is in each step; each thread, and the interpreter, takes another megabyte once.
    steps = sorted(after - before for before, after in zip(memory, memory[1:]))
    fast = target.is_as_fast(before)
    files = {fd: os.readlink(f"/proc/{target.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{target.pid}/fd")}
    result = target.stop()
    assert result == "right, hooks [], files +2", files     # the agent's own, a pair
    assert steps[-THREADS - 2] < 100, f"kB more: {steps}"
    assert fast, f"no longer {before:.0f} calls a second"
