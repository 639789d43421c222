"""A program that closes all its descriptors, as one does that becomes a daemon: the agent's connection is among them."""
import signal
import subprocess
import time

import pytest

import harness
from agent.sessions_test import dice_of

PROGRAM = """
import os, sys, time
def leaf(): pass
print("ready", flush=True)
if WAITS: sys.stdin.readline()
for i in range(100): leaf()
os.closerange(3, 1 << 16)
for i in range(1500):
    leaf()
    time.sleep(0.001)
"""
SCRIPT = ('BEGIN { printf("armed\\n"); } python$target:::function-entry /copyinstr(arg1) == "leaf"/ { n++; } '
          'tick-10ms /n > 200/ { exit(0); } END { printf("%d\\n", n); }')
TOLD = "has closed the agent's connection, as programs do that close all their descriptors: it is connected again"


@pytest.mark.parametrize("place", [pytest.param("kernel", marks=pytest.mark.needs_bpf), "target"])
@pytest.mark.parametrize("started", [True, False], ids=["-c", "-p"])
def test_it_is_connected_again(interp, start, place, started):
    program = interp.argv_of(PROGRAM.replace("WAITS", str(not started)))
    options = ["-x", f"place={place}", "-x", "agent=always", "-qn", SCRIPT]
    if started:
        result = harness.dtrace(*options, "-c", " ".join(program))
    else:
        child = start(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        tracer = start([harness.DTRACE, *options, "-p", str(child.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert tracer.stdout.readline() == b"armed\n"
        child.stdin.write(b"go\n")
        child.stdin.flush()
        result = harness.finish(tracer, ["dtrace"])
        child.kill()
    # While the agent waits, the kernel keeps its connection open.
    assert result.code == 0 and (not result.err or TOLD in result.err), result
    assert int(result.out.split()[-1]) > 200, result


# Closes those of its descriptors whose numbers, in order, have a bit in MASK; then does something with its interpreter's lock.
CLOSER = """
import os, sys, time
def leaf(): pass
def busy():
    for i in range(100000): pass
then = {"nothing": lambda: None, "sleeps": lambda: time.sleep(0.02), "runs": busy, "holds": lambda: sum(range(1000000))}
print("ready", flush=True)
for line in sys.stdin:
    what, n, after = line.split()
    if what == "close":
        for i, fd in enumerate(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[3:]):
            if int(n) >> i % 16 & 1:
                try: os.close(fd)
                except OSError: pass
    for i in range(int(n) if what == "call" else 0): leaf()
    then[after]()
    print("done", flush=True)
"""
COUNTS = ('python$target:::function-entry /copyinstr(arg1) == "leaf"/ { n++; } BEGIN { told = -1; } '
          'tick-10ms /n != told/ { printf("%d\\n", n); told = n; }')
SAID = " is connected again", " is skipped until ", "was answered too late, and what came before that is not traced"
ROUNDS = 60 if harness.NIGHTLY else 8
ALL = 0xffff


class Tracer:
    def __init__(self, start, folder, number, pid, place):
        self.out = folder / f"{number}.out"
        self.child = start([harness.DTRACE, "-x", f"place={place}", "-x", "agent=always", "-x", "switchrate=10ms", "-qn", COUNTS,
                            "-o", self.out, "-p", pid], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        harness.wait_until(lambda: self.n() is not None, what="the tracer's first line")

    def n(self):
        lines = self.out.read_text().split() if self.out.exists() else []
        return int(lines[-1]) if lines else None

    def end(self):
        self.child.send_signal(signal.SIGINT)
        result = harness.finish(self.child, self.child.args)
        assert result.code == 0, result
        assert all(any(said in line for said in SAID) for line in result.err.splitlines()), result.err


def tell(child, *words):
    child.stdin.write(" ".join(str(word) for word in words) + "\n")
    child.stdin.flush()
    assert child.stdout.readline() == "done\n"


def counts_again(child, tracer):
    """
    The tracer counts ten calls, and neither more nor less, in the end: before that some may come by the old connection, as long as the
    agent waits at it, and some are missing while it is connected again.
    """
    def counts_ten():
        before = tracer.n()
        tell(child, "call", 10, "sleeps")
        soon = time.monotonic() + 0.2
        while tracer.n() < before + 10 and time.monotonic() < soon:
            time.sleep(0.005)
        return tracer.n() == before + 10

    harness.wait_until(counts_ten, what="ten calls that are counted")


@pytest.mark.parametrize("place", [pytest.param("kernel", marks=pytest.mark.needs_bpf), "target"])
def test_whatever_it_closes(interp, start, place):
    """At random: any of the agent's descriptors, whatever the program does next, while tracers come and go."""
    dice = dice_of("closes", interp.version, place)
    child = harness.running(start, interp, CLOSER)
    tracers = [Tracer(start, interp.dir, 0, child.pid, place)]
    for number in range(1, ROUNDS + 1):
        mask = dice.choice((ALL, dice.randrange(1, ALL), 1 << dice.randrange(8)))
        tell(child, "close", mask, dice.choice(("nothing", "sleeps", "runs", "holds")))
        if dice.random() < 0.5:
            tracers.append(Tracer(start, interp.dir, number, child.pid, place))
        for tracer in tracers:
            counts_again(child, tracer)
        if len(tracers) > 1 and dice.random() < 0.7:
            tracers.pop(dice.randrange(len(tracers))).end()
    for tracer in tracers:
        tracer.end()


# posix.register_at_fork is what the agent cannot do without.
REFUSING = """
import os, posix
del posix.register_at_fork
def leaf(): pass
print("ready", flush=True)
while not os.access(__file__ + ".stop", os.F_OK):
    for i in range(1000):
        leaf()
print("well")
"""


# Not this machine's own Python, which is held when it starts, and then brings the agent.
@pytest.mark.interps("3.9", "3.13", "3.14", "3.15")
@pytest.mark.alone
@pytest.mark.needs_root
def test_an_agent_that_cannot_work(interp, start):
    """It ends its connection, too, and is not connected again: that would stop the program again and again, for nothing."""
    messages, script = interp.dir / "messages", interp.add(REFUSING, "script.py")
    with messages.open("w") as file:
        tracer = start([harness.DTRACE, "-x", "agent=always", "-qn", 'BEGIN { printf("armed\\n"); } python*:::function-entry { n++; }'],
                       stdout=subprocess.PIPE, stderr=file, text=True)
    assert tracer.stdout.readline() == "armed\n"
    tracer.send_signal(signal.SIGSTOP)      # it comes when the program is ready
    child = start([*interp.argv, script], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    tracer.send_signal(signal.SIGCONT)
    said = f"the agent does not work in process {child.pid}"
    harness.wait_until(lambda: said in messages.read_text(), what="what it says of the agent")
    time.sleep(1)       # in which it was connected again some fifteen times
    (interp.dir / "script.py.stop").touch()
    out, _ = child.communicate(timeout=harness.TIMEOUT_S)
    assert (child.returncode, out) == (0, "well\n")
    tracer.send_signal(signal.SIGINT)
    tracer.communicate(timeout=harness.TIMEOUT_S)
    err = messages.read_text()
    assert tracer.returncode == 0 and err.count(said) == 1 and TOLD not in err, err
