"""Bringing the agent into running processes and out again: at every kind of point, and what must not be disturbed.

attach.c does it; guest.c is a target that looks at all that could be spoilt; the interpreters are real.
"""
import ctypes
import itertools
import os
import pathlib
import platform
import random
import re
import select
import shutil
import signal
import subprocess
import time

import pytest

import harness
from agent.control_test import ask
from harness import wait_until

HERE = harness.BUILD / "tests/target"
ATTACH, GUEST, STANDIN = HERE / "attach", HERE / "guest", HERE / "standin.so"
AGENT = harness.BUILD / "src/agent/dtap-agent.so"
WAITS = pathlib.Path(__file__).parent / "data/waits.py"

pytestmark = [pytest.mark.needs_root,
              pytest.mark.skipif(platform.machine() != "x86_64", reason="attaching is for x86-64 only")]


def attach(pid, *args, agent=STANDIN, timeout=60):
    return harness.run([ATTACH, agent, pid, *args], timeout=timeout)


def attached(pid, *args, **kwargs):
    result = attach(pid, *args, **kwargs)
    assert result.code == 0 and "state" in result.out, result
    return result


def refused(pid, *words, **kwargs):
    result = attach(pid, **kwargs)
    assert result.code == 1, result
    for word in words:
        assert word in result.out, result


BUSY_GUESTS = ("regs", "malloc", "handler", "deep", "left")


@pytest.fixture
def guest(start):
    def guest(mode, program=GUEST, **kwargs):
        child = start([program, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **kwargs)
        assert child.stdout.readline() == "up\n"
        if mode not in BUSY_GUESTS:
            wait_until(lambda: harness.waits(child.pid), what="the wait that comes next")
        return child
    return guest


def state(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(") ", 1)[1][0]


def held_by(pid):
    """What could leak: descriptors, threads, mappings."""
    with open(f"/proc/{pid}/maps") as maps:
        return sorted(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), len(maps.readlines())


# --- the point is as it was found -------------------------------------------------------------------------

def test_registers_and_errno(guest):
    child = guest("regs")
    for _ in range(3):
        attached(child.pid)
        attach(child.pid, 20)
    time.sleep(0.2)
    assert child.poll() is None, child.stdout.read()


@pytest.mark.parametrize("mode, outcome, tenths", [
    ("read", "1 - ", 0), ("futex", "-1 Connection timed out ", 20), ("usleep", "0 - ", 20),
    # What waits with a time from now that the kernel alone knows ends as by a signal.
    ("poll", "-1 Interrupted system call ", 0), ("nanosleep", "-1 Interrupted system call ", 0)])
def test_waiting_call(guest, mode, outcome, tenths):
    child = guest(mode)
    said = attach(child.pid).out
    assert "attached" in said or f"process {child.pid} has ended" in said       # it may end at once
    if mode == "read":
        child.stdin.write("x")
    out = child.communicate(timeout=harness.TIMEOUT_S)[0]
    assert out.startswith(outcome) and int(out.split()[-1]) >= tenths, out


def test_signal_state(guest):
    child = guest("mask")
    attached(child.pid)
    child.send_signal(signal.SIGUSR1)
    assert child.communicate(timeout=harness.TIMEOUT_S)[0] == "usr1 0 usr2 1 int 0 stack 1\n"


def test_malloc_heavy(guest):
    child = guest("malloc")
    for _ in range(5):
        attached(child.pid)


def test_left_over(guest):
    """What sigaction() leaves on the stack is no signal's frame."""
    child = guest("left")
    for _ in range(5):
        attached(child.pid)


@pytest.mark.slow
@pytest.mark.parametrize("mode, reason", [
    ("mutex", "waits for a lock in the C library"), ("handler", "is in a signal handler"), ("deep", "is in a signal handler"),
    ("stack", "danger")])
def test_no_safe_point(guest, mode, reason):
    child = guest(mode)
    refused(child.pid, "no thread at a point", reason)
    assert child.poll() is None and state(child.pid) in "RS"


# --- interpreters ----------------------------------------------------------------------------------------

# What the main thread does.  What is imported is imported before it says "up".
DOING = {
    "busy": "while True:\n    sum(range(100))",
    "calls": "def f(n): return n and f(n - 1)\nwhile True: f(100)",
    "sleep": "import time; time.sleep(1000)",
    "select": "import select; select.select([0], [], [])",
    "poll": "import select; p = select.poll(); p.register(0); p.poll(1000000) and None\nwhile True: p.poll(1000)",
    "epoll": "import select; p = select.epoll(); p.poll(1000)",
    "read": "import sys; sys.stdin.read()",
    "lock": "import threading; l = threading.Lock(); l.acquire(); l.acquire()",
    "wait": "import os, time\nparent = os.getpid()\npid = os.fork()\n"
            "while not pid and os.getppid() == parent: time.sleep(0.1)\nif pid: os.waitpid(pid, 0)",
    "threads": "import threading, time\ndef f():\n    while True: time.sleep(0.001)\n"
               "for _ in range(40): threading.Thread(target=f, daemon=True).start()\nprint('up', flush=True)\nthreading.Event().wait()",
    "busy_threads": "import threading\ndef f():\n    while True: sum(range(100))\n"
                    "for _ in range(4): threading.Thread(target=f, daemon=True).start()\nprint('up', flush=True)\nf()",
    "extension": "import zlib\nd = bytes(10000000)\nprint('up', flush=True)\nwhile True: zlib.compress(d, 9)",
    "regex": "import re\nprint('up', flush=True)\nwhile True: re.match('(a*)*b', 'a' * 21)",
}


BUSY = ("busy", "calls", "busy_threads", "extension", "regex")


def run_python(start, argv_of, doing, before="", **kwargs):
    """A program that is where DOING has it; @argv_of makes a command of a script."""
    text = DOING[doing]
    imports, text = re.match(r"((?:import [^;\n]*(?:; |\n))?)(.*)", text, re.S).groups()
    script = before + imports.replace("; ", "\n") + ("" if "'up'" in text else "print('up', flush=True)\n") + text + "\n"
    child = start(argv_of(script), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **kwargs)
    assert child.stdout.readline() == "up\n"
    if doing not in BUSY:
        wait_until(lambda: harness.waits(child.pid), what="the wait that comes next")
    return child


def of_the_host(script):
    return ["/usr/bin/python3", "-c", script]


@pytest.mark.parametrize("doing", DOING)
@pytest.mark.interps("3.9", "3.14")
def test_main_thread_does(start, interp, doing):
    child = run_python(start, interp.argv_of, doing)
    fds = held_by(child.pid)[0]
    attached(child.pid)
    maps = held_by(child.pid)[2]
    result = attach(child.pid, 3)
    assert "3 of 3" in result.out
    wait_until(lambda: held_by(child.pid)[0] == fds, what="the descriptors of before")
    assert child.poll() is None and held_by(child.pid)[2] <= maps + 4


@pytest.mark.parametrize("doing", ["busy", "sleep", "busy_threads"])
def test_the_agent_itself(start, interp, doing):
    child = run_python(start, interp.argv_of, doing)
    attached(child.pid, agent=AGENT)
    result = attached(child.pid, agent=AGENT)
    assert f"ready {child.pid}" in result.out
    assert child.poll() is None


ROUNDS = r"""
import sys, threading, time
def f(n):
    s = 0
    for i in range(n): s += i
    return s
def speed():
    best = 1e9
    for _ in range(20):
        t = time.thread_time()
        f(20000)
        best = min(best, time.thread_time() - t)
    return best
while True:
    print(speed(), flush=True)
    reader = threading.Thread(target=sys.stdin.readline)
    reader.start()
    while reader.is_alive(): f(1000)
"""


@pytest.mark.slow
@pytest.mark.interps("3.9", "3.11", "3.13", "3.15")
def test_many_times(start, interp):
    """No leak, and the speed of before."""
    times = int(os.environ.get("DTAP_ATTACHES", 300 if interp.version == "3.13" else 100))
    child = start(interp.argv_of(ROUNDS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def speed():
        child.stdin.write("\n")
        child.stdin.flush()
        return float(child.stdout.readline())

    child.stdout.readline()
    attached(child.pid, agent=AGENT)
    before = min(speed() for _ in range(20))
    fds, threads, maps = held_by(child.pid)
    result = attach(child.pid, times, agent=AGENT, timeout=300)
    assert f"{times} of {times}" in result.out, result
    wait_until(lambda: speed() < 1.5 * before, what="the speed of before")

    def no_more():
        after = held_by(child.pid)      # with a thread that reads, or not
        return len(after[0]) <= len(fds) and after[1] <= threads + 1 and after[2] <= maps + 4

    wait_until(no_more, what=f"{len(fds)} descriptors, {threads} threads, {maps} mappings")


WORKERS = r"""
import sys, threading
stop, rounds = False, [0] * 6
def work(i):
    d = {}
    while not stop:
        s = 0
        for k in range(300):
            s += k * k
            d[k % 50] = str(s)
        assert d[49] == '8955050', d[49]
        rounds[i] += 1
threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
for t in threads: t.start()
print("up", flush=True)
sys.stdin.read()
stop = True
for t in threads: t.join()
print("right", all(rounds))
"""


@pytest.mark.slow
@pytest.mark.interps("3.9", "3.11", "3.14")
def test_tracer_is_killed(start, interp):
    """At any moment; the descriptors of the process are those of before and its threads work on."""
    child = start(interp.argv_of(WORKERS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n"
    attached(child.pid, agent=AGENT)
    fds = held_by(child.pid)[0]
    for _ in range(200):
        tracer = subprocess.Popen([ATTACH, AGENT, str(child.pid)], stdout=subprocess.DEVNULL)
        time.sleep(random.random() * 0.04)
        tracer.kill()
        tracer.wait()
        assert child.poll() is None
    wait_until(lambda: len(held_by(child.pid)[0]) <= len(fds), what="the descriptors of before")
    assert child.communicate(timeout=harness.TIMEOUT_S)[0] == "right True\n" and child.returncode == 0


SIGNALS = r"""
import select, signal, socket
here, there = socket.socketpair()
here.setblocking(False)
there.setblocking(False)
signal.set_wakeup_fd(there.fileno())            # a byte from each call of the handler
signal.signal(signal.SIGRTMIN, lambda *_: None)
print("up", flush=True)
n = 0
while n < 500:
    select.select([here], [], [])
    n += len(here.recv(1000))
print("all", n, flush=True)
"""


@pytest.mark.interps("3.11")
def test_signals_meanwhile(start, interp):
    """None is lost, and each ends the call that waits."""
    child = start(interp.argv_of(SIGNALS), stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n"
    tracers = 0
    for i in range(500):
        if i % 10 == 0:
            tracer = subprocess.Popen([ATTACH, STANDIN, str(child.pid)], stdout=subprocess.DEVNULL)
        os.kill(child.pid, signal.SIGRTMIN)
        time.sleep(0.001)
        if i % 10 == 9:
            tracers += tracer.wait() == 0
    assert child.communicate(timeout=harness.TIMEOUT_S)[0] == "all 500\n" and tracers > 10


def test_calls_of_other_threads(start):
    """Each that waits goes on as if nobody had attached."""
    child = start(["/usr/bin/python3", WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    threads, ended = child.stdout.readline().split(maxsplit=1)
    assert int(threads) >= 40 and ended == "[]\n"
    try:
        for _ in range(5):
            attached(child.pid)
            assert ask(child, "") == f"{threads} []"
    finally:
        child.stdin.close()         # it removes its queues
        assert child.wait(harness.TIMEOUT_S) == 0


def table_size(pid):
    return int(re.search(r"^FDSize:\s*(\d+)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def test_table_of_descriptors(start, interp):
    """It does not grow: threads that share it would wait in the kernel until each processor has left the old one."""
    child = run_python(start, interp.argv_of, "threads")
    size = table_size(child.pid)
    for _ in range(3):
        attached(child.pid, agent=AGENT)
    assert table_size(child.pid) == size


URGENT = r"""
import select, signal, socket, sys, threading
here, there = socket.socketpair()
there.setblocking(False)
signal.set_wakeup_fd(there.fileno())            # a byte from each call of the handler
signal.signal(signal.SIGURG, lambda *_: None)
main = threading.main_thread().ident
def send():
    for _ in sys.stdin:
        signal.pthread_kill(main, signal.SIGURG)
threading.Thread(target=send, daemon=True).start()
print("up", flush=True)
n = 0
while True:
    select.select([here], [], [])
    n += len(here.recv(1000))
    print(n, flush=True)
"""


@pytest.mark.interps("3.9", "3.11", "3.14")
def test_urgent_signals(start, interp):
    """The tracer uses SIGURG where the program ignores it: this one gets each of its own, and no other."""
    child = start(interp.argv_of(URGENT), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n"
    tracers, tracer = 0, None
    for i in itertools.count(1):
        if not tracer or tracer.poll() is not None:
            tracers += bool(tracer and tracer.returncode == 0)
            if i > 300 and tracers > 5:
                break
            tracer = start([ATTACH, random.choice((STANDIN, AGENT)), str(child.pid)], stdout=subprocess.DEVNULL)
        time.sleep(random.random() * 0.004)
        if i % 2:
            os.kill(child.pid, signal.SIGURG)
        else:
            child.stdin.write("send\n")
            child.stdin.flush()
        assert select.select([child.stdout], [], [], harness.TIMEOUT_S)[0], f"the {i}th was lost"
        assert child.stdout.readline() == f"{i}\n"
    assert tracers > 5


BLOCKED = r"""
import os, signal, sys
calls = []
signal.signal(signal.SIGURG, lambda *_: calls.append(1))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
if sys.argv[1] == "thread":
    signal.pthread_kill(__import__("threading").get_ident(), signal.SIGURG)
else:
    os.kill(os.getpid(), signal.SIGURG)
print("up", flush=True)
sys.stdin.readline()
print(signal.sigpending() == {signal.SIGURG}, len(calls), flush=True)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])
print(len(calls))
"""


@pytest.mark.parametrize("of", ["thread", "process"])
def test_urgent_signal_that_waits(start, of):
    """One that the program has blocked still waits behind the tracers."""
    child = start(["/usr/bin/python3", "-c", BLOCKED, of], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n"
    for agent in (STANDIN, STANDIN, AGENT):
        attached(child.pid, agent=agent)
    assert child.communicate("go\n", timeout=harness.TIMEOUT_S)[0] == "True 0\n1\n"


def test_interrupt_is_not_lost(start):
    """A SIGINT that comes while the agent is loaded interrupts the sleep that it found."""
    script = "import time\nprint('up', flush=True)\ntry: time.sleep(100)\nexcept KeyboardInterrupt: print('interrupted')"
    for i in range(10):
        child = start(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "up\n"
        wait_until(lambda: harness.waits(child.pid), what="the sleep")
        tracer = subprocess.Popen([ATTACH, STANDIN, str(child.pid)], stdout=subprocess.DEVNULL)
        time.sleep(0.002 * i)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=harness.TIMEOUT_S)[0] == "interrupted\n"
        tracer.wait()


# --- other processes -------------------------------------------------------------------------------------

def test_stopped_process(start):
    child = run_python(start, of_the_host, "sleep")
    child.send_signal(signal.SIGSTOP)
    wait_until(lambda: state(child.pid) == "T", what="the stop")
    tracer = start([ATTACH, STANDIN, child.pid], stdout=subprocess.PIPE, text=True)
    assert tracer.stdout.readline().startswith("attached")
    wait_until(lambda: state(child.pid) == "T", what="the stop of before")
    child.send_signal(signal.SIGCONT)
    assert f"ready {child.pid}" in tracer.communicate(timeout=harness.TIMEOUT_S)[0]
    assert state(child.pid) in "SR"


def test_stopped_at_no_safe_point(guest):
    child = guest("mutex")
    child.send_signal(signal.SIGSTOP)
    wait_until(lambda: state(child.pid) == "T", what="the stop")
    refused(child.pid, "SIGCONT")


@pytest.mark.interps("3.9", "3.11")
def test_another_user(start, interp):
    """The object's folder may be closed to it."""
    child = run_python(start, interp.argv_of, "sleep", before="import os; os.setgid(65534); os.setuid(65534)\n")
    attached(child.pid)


def test_closed_folder(start, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o700)
    agent = shutil.copy(STANDIN, tmp_path / "closed")
    child = run_python(start, of_the_host, "sleep", user=65534, group=65534, cwd="/")
    attached(child.pid, agent=agent)


def test_two_tracers(start):
    child = run_python(start, of_the_host, "busy")
    stays = start([ATTACH, STANDIN, child.pid, 0], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: stays.stdout.readline() == "staying\n", what="the first tracer")
    attached(child.pid)
    assert stays.communicate("x", timeout=harness.TIMEOUT_S)[0].count("gone") == 0


def test_at_the_same_time(start):
    child = run_python(start, of_the_host, "busy")
    tracers = [start([ATTACH, STANDIN, child.pid], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for tracer in tracers:
        assert "state" in tracer.communicate(timeout=harness.TIMEOUT_S)[0]


def test_process_ends(start):
    child = run_python(start, of_the_host, "busy")
    stays = start([ATTACH, STANDIN, child.pid, 0], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: stays.stdout.readline() == "staying\n", what="the tracer")
    child.kill()
    assert stays.stdout.readline() == f"gone {child.pid} \n"
    child.wait()
    refused(child.pid, "no such process")


@pytest.mark.parametrize("program, reason", [
    ("guest_static", "linked statically"), ("guest_old", "older than 3.8"), ("guest_pypy", "PyPy"),
    ("guest_free_threaded", "without a GIL")])
def test_wrong_kinds(guest, program, reason):
    child = guest("read", program=HERE / program)
    refused(child.pid, "cannot load dtap's agent", reason)


def test_no_python(start):
    child = start(["sleep", "100"])
    wait_until(lambda: harness.waits(child.pid), what="the sleep")
    refused(child.pid, "no CPython")


def test_zombie(start):
    child = start(["true"])
    wait_until(lambda: state(child.pid) == "Z", what="its end")
    refused(child.pid, "ended already")


FORKS = """
import ctypes, os, sys, threading

stop, bad = [], []

def forks():
    while not stop:
        pid = os.fork()
        if not pid:
            ctypes.CDLL("libc.so.6")
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if status:
            bad.append(status)

threads = [threading.Thread(target=forks) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
print("ready", flush=True)
for line in sys.stdin:
    print(bad, flush=True)
stop.append(1)
for thread in threads:
    thread.join()
"""


def agent_that_needs(interp, folder, needed):
    """An agent with other libraries, in the same folder."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-nostdlib", "-Wl,-e,agent_entry", "-I",
                    harness.TOP / "src", harness.TOP / "tests/target/standin.c", "-o", folder / "agent.so", "-Wl,--no-as-needed",
                    f"-Wl,-rpath,{interp.inside(folder)}", *needed], check=True)
    return folder / "agent.so"


def slow_to_load(interp):
    """An agent that needs 400 libraries, which take the loader a while, with data that nobody else must see meanwhile."""
    folder = interp.dir / "needed"
    folder.mkdir()
    subprocess.run(["as", "-", "-o", folder / "empty.o"], input=".section .note.GNU-stack\n", text=True, check=True)
    needed = [folder / f"libneeded{n}.so" for n in range(400)]
    for library in needed:
        subprocess.run(["ld", "-shared", "-soname", library.name, folder / "empty.o", "-o", library], check=True)
    return agent_that_needs(interp, folder, needed)


GOES_ON = """
import sys, threading, time

stop, longest = [], 0.0

def goes_on():
    global longest
    last = time.monotonic()
    while not stop:
        time.sleep(0.001)
        now = time.monotonic()
        longest, last = max(longest, now - last), now

thread = threading.Thread(target=goes_on)
thread.start()
print("ready", flush=True)
for line in sys.stdin:
    print(longest, flush=True)
stop.append(1)
thread.join()
"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs a C compiler")
@pytest.mark.interps("3.9", "3.13")
def test_loader_that_waits(interp, start):
    """As for a disk that is gone for a while: the thread that loads the agent waits, the others not as long."""
    waits_s = 8
    library = interp.dir / "libwaits.so"
    subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-x", "c", "-", "-o", library], check=True, text=True,
                   input=f"#include <unistd.h>\n__attribute__((constructor)) static void late(void) {{ sleep({waits_s}); }}\n")
    agent = agent_that_needs(interp, interp.dir, [library])
    child = start(interp.argv_of(GOES_ON), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    wait_until(lambda: harness.waits(child.pid), what="the main thread's wait")
    attached(child.pid, agent=agent)
    assert float(ask(child, "")) < waits_s * 3 / 4
    child.stdin.close()
    assert child.wait(harness.TIMEOUT_S) == 0


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs a C compiler")
@pytest.mark.interps("3.9", "3.11")
def test_forks_meanwhile(interp, start):
    """Children of other threads have a loader whose data is whole: with glibc 2.31 that of one that loads something ends them."""
    agent = slow_to_load(interp)
    for _ in range(3):
        child = start(interp.argv_of(FORKS, "3"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        attached(child.pid, agent=agent)
        assert ask(child, "") == "[]"
        child.stdin.close()
        assert child.wait(harness.TIMEOUT_S) == 0


ENDS_AMID_SETTING_UP = """
import sys, time, _frozen_importlib

def slow(name, *args, quick=_frozen_importlib.ModuleSpec, **more):
    if name == "gc":
        print("begins")
        time.sleep(0.3)
        print("goes on")
    return quick(name, *args, **more)

_frozen_importlib.ModuleSpec = slow
sys.modules.pop("gc", None)
sys.stdout.reconfigure(line_buffering=True)
print("ready")
sys.stdin.readline()
"""


def test_end_amid_set_up(interp, start):
    """The agent's thread is loading a module when the program ends, which frees what such a thread waits for: the end waits."""
    child = harness.running(start, interp, ENDS_AMID_SETTING_UP)
    tracer = start([ATTACH, AGENT, child.pid], stdout=subprocess.DEVNULL)
    assert child.stdout.readline() == "begins\n"
    out, _ = child.communicate("\n", timeout=harness.TIMEOUT_S)
    assert (out, child.returncode) == ("goes on\n", 0)
    tracer.wait(harness.TIMEOUT_S)


def test_killed_meanwhile(guest, start):
    """A process without memory has as much of it as the kernel's threads: none; it does not share it."""
    child = guest("mutex")
    tracer = start([ATTACH, STANDIN, child.pid], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: len(os.listdir(f"/proc/{tracer.pid}/task")) == 2, what="the look for a safe point")
    os.kill(child.pid, signal.SIGKILL)
    out = tracer.communicate(timeout=harness.TIMEOUT_S)[0]
    assert tracer.returncode == 1 and f"process {child.pid} has ended" in out, out


def test_traced_already(start):
    child = run_python(start, of_the_host, "sleep")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(0x4206, child.pid, None, None) == 0      # PTRACE_SEIZE
    refused(child.pid, f"traced by process {os.getpid()} already")


# --- created ---------------------------------------------------------------------------------------------

CHILDREN = r"""
import os, subprocess, sys
assert os.environ["KEPT"] == "1"
print("parent", os.getpid(), flush=True)
child = subprocess.Popen([sys.executable, "-c", "import os; print('child', os.getpid())"])
child.wait()
"""


def test_preload(interp):
    """The command and its children by exec, those under the tracer's root; nothing is on stderr."""
    result = harness.run([ATTACH, STANDIN, "-c", interp.command(CHILDREN)], env={**os.environ, "KEPT": "1"})
    assert result.code == 0 and result.err == "" and result.out.endswith("status 0\n"), result
    pids = dict(line.split()[:2] for line in result.out.splitlines() if line.split()[0] in ("parent", "child"))
    assert f"ready {pids['parent']} " in result.out and f"state {pids['parent']} " in result.out, result
    if not interp.root:
        assert f"ready {pids['child']} " in result.out, result


def test_folder_that_preload_cannot_name(tmp_path):
    (tmp_path / "a b").mkdir()
    agent = shutil.copy(STANDIN, tmp_path / "a b")
    result = harness.run([ATTACH, agent, "-c", "/usr/bin/python3 -c pass"])
    assert result.code == 0 and "state" in result.out and result.err == "", result


def test_preload_keeps_what_is_there(tmp_path):
    other = shutil.copy(STANDIN, tmp_path / "other.so")
    script = "print(open('/proc/self/maps').read().count('other.so') > 0, end=' ')\nimport os; print(os.environ['LD_PRELOAD'])"
    (tmp_path / "s.py").write_text(script)
    sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    result = harness.run([ATTACH, STANDIN, "-c", f"/usr/bin/python3 {tmp_path}/s.py"],
                         env={**os.environ, "LD_PRELOAD": other, "ASAN_OPTIONS": sanitizer})
    assert f"True {STANDIN}:{other}\n" in result.out, result


@pytest.mark.interps("3.11", "3.13", "3.14", "3.15")        # 3.9's C library has a libdl that is not empty
def test_empty_libdl(interp, start):
    """glibc's from 2.34 on, which programs have that were linked before; mapped before the C library and after it."""
    stubs = [interp.dir / name for name in ("libdl.so.2", "libdl-2.99.so")]
    for stub in stubs:
        subprocess.run(["gcc", "-shared", "-nostdlib", "-x", "c", "-", "-o", stub], input="void placeholder(void) { }", text=True, check=True)
    program = f"import ctypes\nctypes.CDLL('{interp.inside(stubs[1])}')\n" + harness.LOOP
    child = start([*interp.argv[:-1], "env", f"LD_PRELOAD={interp.inside(stubs[0])}", interp.argv[-1], interp.add(program)],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    result = harness.dtrace("-x", "place=target", "-x", "agent=always", "-qn", "python$target:::function-entry { exit(0); }", "-p", child.pid)
    assert (result.code, result.err) == (0, ""), result
