"""The agent and its tracers: channels, coming and going, fork and exec, the environment.

The semaphores are raised here by writing to the process's memory, as the kernel does for a tracer.
"""
import os
import select
import signal
import socket
import struct
import subprocess
import time

import pytest

import harness
from agent.agent_test import AGENT, NAMES, agent, bits, end, environment, notes, preloaded, ready
from agent.channel import HELLO, READY, Channel, Listener

pytestmark = pytest.mark.needs_root

@pytest.fixture
def listener():
    listener = Listener()
    yield listener
    listener.close()


def listen(pid, name, on=1):
    """Raise or lower a semaphore."""
    with open(f"/proc/{pid}/maps") as maps:
        base = next(int(line.split("-")[0], 16) for line in maps if AGENT.name in line)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(base + notes()[name][0])
        memory.write(struct.pack("<H", on))


# Reports what hooks it sees for each line of stdin, in a thread if told so.
REPORT = """
import gc, sys
def report():
    monitoring = getattr(sys, "monitoring", None)
    tools = [monitoring.get_tool(i) for i in range(6)] if monitoring else []
    find = sys.modules["_frozen_importlib"]._find_and_load
    print(len(gc.callbacks), tools.count("dtap"), type(find).__name__, flush=True)
print("ready", flush=True)
for line in sys.stdin:
    if line == "go\\n":
        break
    report()
"""


def report(child):
    child.stdin.write("report\n")
    child.stdin.flush()
    return child.stdout.readline().split()


NOTHING = ["0", "0", "function"]


def test_look(interp, listener):
    """HELLO when it works, hooks by LOOK, and nothing left when the tracer has gone."""
    child = preloaded(interp, listener, interp.add(REPORT, "report.py"))
    try:
        channel, hello = listener.hello()
        assert (hello.phase, hello.pid, hello.why) == (READY, child.pid, ""), hello
        major, minor = map(int, interp.version.split("."))
        assert hello.python >> 16 == major << 8 | minor and hello.python & 0xf0 in (0xa0, 0xb0, 0xc0, 0xf0)
        assert hello.can & 0xff == 0xff
        ready(child)
        assert report(child) == NOTHING and channel.look().supplied == 0
        listen(child.pid, "gc__start")
        listen(child.pid, "import__find__load__done")
        time.sleep(0.3)
        assert report(child) == NOTHING, "no tracer said anything"
        state = channel.look()
        assert state.supplied == bits("gc__start", "import__find__load__done") and state.phase == READY
        assert report(child) == ["1", "0", "builtin_function_or_method"]
        listen(child.pid, "gc__start", 0)
        assert channel.look().supplied == bits("import__find__load__done")
        assert report(child) == ["0", "0", "builtin_function_or_method"]
        channel.close()
        listen(child.pid, "import__find__load__done", 0)
        harness.wait_until(lambda: report(child) == NOTHING, 1, "the hooks' end")
        assert end(child) == []
    finally:
        child.kill()


def test_idle_thread_sleeps(interp, listener):
    """With a tracer that has nothing to say the agent's thread never wakes; without one it is gone."""
    child = preloaded(interp, listener, interp.add(REPORT, "report.py"))
    try:
        channel, _ = listener.hello()
        ready(child)
        def switches():
            found = {}
            for tid in os.listdir(f"/proc/{child.pid}/task"):
                try:
                    with open(f"/proc/{child.pid}/task/{tid}/status") as status:
                        found[tid] = [line for line in status if "ctxt_switches" in line]
                except (FileNotFoundError, ProcessLookupError):
                    pass                # the thread has ended meanwhile
            return found
        time.sleep(0.2)
        before = switches()
        assert len(before) == 2
        time.sleep(0.5)
        assert switches() == before
        channel.close()
        harness.wait_until(lambda: len(switches()) == 1, 3, "the end of the agent's thread")
        assert end(child) == []
    finally:
        child.kill()


# Loads the agent as a tracer does, and calls its ELF entry point with each descriptor number that comes in.
ENTERED = """
import ctypes, gc, socket, struct, sys, threading
path = sys.argv[1]
ctypes.CDLL(path)
with open(path, "rb") as elf:
    entry = struct.unpack_from("<Q", elf.read(64), 24)[0]
with open("/proc/self/maps") as maps:
    base = next(int(line.split("-")[0], 16) for line in maps if path in line)
agent_entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(base + entry)
print("ready", flush=True)
for line in sys.stdin:
    if line == "go\\n":
        break
    if line.startswith("enter"):
        print(agent_entry(int(line.split()[1])), flush=True)
    elif line.startswith("connect"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect("\\0" + line.split()[1])
        print(agent_entry(sock.detach()), flush=True)
    else:
        print(len(gc.callbacks), threading.active_count(), flush=True)
"""


def enter(interp, *args):
    """A child that loads the agent; socket pairs made beforehand, as descriptors cannot follow it."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(12)]
    child = subprocess.Popen([*interp.argv, interp.add(ENTERED, "entered.py"), agent(interp), *args],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             pass_fds=[theirs.fileno() for _, theirs in pairs])
    ready(child)
    numbers = [theirs.fileno() for _, theirs in pairs]
    for _, theirs in pairs:
        theirs.close()
    return child, [Channel(ours) for ours, _ in pairs], numbers


def ask(child, line):
    child.stdin.write(line + "\n")
    child.stdin.flush()
    return child.stdout.readline().strip()


def test_entry(interp):
    """A running process: two tracers, one after the other and both at once, until there is nothing left."""
    child, channels, numbers = enter(interp)
    try:
        assert ask(child, f"enter {numbers[0]}") == "0"
        hello = channels[0].receive()
        assert (hello.kind, hello.phase, hello.pid) == (HELLO, READY, child.pid), hello
        listen(child.pid, "gc__done")
        assert channels[0].look().supplied == bits("gc__done")
        assert ask(child, f"enter {numbers[1]}") == "0"
        assert channels[1].receive().kind == HELLO
        listen(child.pid, "audit")
        assert channels[1].look().supplied == bits("gc__done", "audit")
        assert ask(child, "report") == "1 1"
        channels[0].close()
        listen(child.pid, "gc__done", 0)
        harness.wait_until(lambda: ask(child, "report") == "0 1", 1, "the first tracer's end")
        assert channels[1].look().supplied == bits("audit")
        channels[1].close()
        listen(child.pid, "audit", 0)
        harness.wait_until(lambda: len(os.listdir(f"/proc/{child.pid}/task")) == 1, 3, "the thread's end")
        assert ask(child, f"enter {numbers[2]}") == "0"
        assert channels[2].receive().kind == HELLO
        assert end(child) == []
    finally:
        child.kill()


def test_entry_of_a_stranger(interp):
    """Who made the channel must be this user or root."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.seteuid(65534)
    try:
        strange = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    finally:
        os.seteuid(0)
    child = subprocess.Popen([*interp.argv, interp.add(ENTERED, "entered.py"), agent(interp)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             pass_fds=[theirs.fileno(), strange[1].fileno()])
    try:
        ready(child)
        assert ask(child, f"enter {strange[1].fileno()}") == "-1"     # -EPERM
        assert ask(child, "report") == "0 1"
        assert ask(child, f"enter {theirs.fileno()}") == "0"
        assert Channel(ours).receive().kind == HELLO
        assert end(child) == []
    finally:
        child.kill()
        for sock in (theirs, *strange):
            sock.close()


def test_entry_too_many(interp):
    child, channels, numbers = enter(interp)
    try:
        before = len(os.listdir(f"/proc/{child.pid}/fd"))
        got = [int(ask(child, f"enter {number}")) for number in numbers]
        assert got == [0] * 8 + [-87] * 4          # -EUSERS
        # Four are closed, and there is the pair by which the agent's thread is woken.
        harness.wait_until(lambda: len(os.listdir(f"/proc/{child.pid}/fd")) == before - 4 + 2, 5, "the others' end")
        assert all(channel.receive().kind == HELLO for channel in channels[:8])
        assert end(child) == []
    finally:
        child.kill()


@pytest.mark.slow
def test_attach_often(interp, listener):
    """1,000 tracers one after another leave the process as it was."""
    child, _, _ = enter(interp)
    try:
        def state():
            harness.wait_until(lambda: len(os.listdir(f"/proc/{child.pid}/task")) == 1, 5, "the thread's end")
            with open(f"/proc/{child.pid}/statm") as statm:
                return len(os.listdir(f"/proc/{child.pid}/fd")), int(statm.read().split()[1])
        for i in range(1000):
            name = NAMES[i % len(NAMES)]
            assert ask(child, f"connect {listener.name}") == "0"
            channel = listener.accept()
            assert channel.receive().phase == READY
            listen(child.pid, name)
            assert channel.look().supplied & bits(name)     # others' tracers may want more
            listen(child.pid, name, 0)
            assert not channel.look().supplied & bits(name)
            channel.close()
            if i == 200:
                descriptors, pages = state()
        assert state()[0] == descriptors and state()[1] < pages + 64
        assert end(child) == []
    finally:
        child.kill()


def test_first_look(interp, listener):
    """A program waits for its tracer's first LOOK, with the hooks of before; half a second and no more."""
    begin = time.monotonic()
    child = preloaded(interp, listener, "-c", "print('ran', flush=True); input()")
    try:
        channel = listener.accept()
        assert channel.receive().kind == HELLO
        assert not select.select([child.stdout], [], [], 0.2)[0]
        listen(child.pid, "gc__start")
        assert channel.look().supplied == bits("gc__start")
        assert child.stdout.readline() == "ran\n"
        assert time.monotonic() - begin < 5
        end(child)
        channel.close()
        begin = time.monotonic()
        child = preloaded(interp, listener, "-c", "print('ran', flush=True)")
        channel = listener.accept()
        assert child.stdout.readline() == "ran\n" and time.monotonic() - begin > 0.45
        child.communicate()
    finally:
        child.kill()


def test_left_to_the_interpreter(interp, listener):
    """What every tracer leaves is not supplied, though its semaphore is up; what one wants is."""
    child, channels, numbers = enter(interp)
    try:
        for channel, number in zip(channels[:2], numbers):
            assert ask(child, f"enter {number}") == "0"
            channel.receive()
        for name in "gc__start", "gc__done", "audit":
            listen(child.pid, name)
        every = bits("gc__start", "gc__done", "audit")
        assert channels[0].look().supplied == every
        assert channels[0].look(bits("gc__done", "audit")).supplied == bits("gc__start")
        assert channels[1].look(bits("gc__start", "audit")).supplied == every - bits("audit")
        channels[1].close()
        harness.wait_until(lambda: channels[0].look(bits("gc__done", "audit")).supplied == bits("gc__start"), 1)
        channels[0].close()
        harness.wait_until(lambda: ask(child, "report") == "1 1", 1)
        assert end(child) == []
    finally:
        child.kill()


def test_killed_tracer(interp, listener):
    """A tracer that dies by SIGKILL: its end of the channel closes with it."""
    child = preloaded(interp, listener, interp.add(REPORT, "report.py"))
    try:
        channel, _ = listener.hello()
        ready(child)
        holder = os.fork()
        if not holder:
            signal.pause()
            os._exit(1)
        channel.close()                # the holder's copy is the last
        listen(child.pid, "gc__start")
        time.sleep(0.3)
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        harness.wait_until(lambda: report(child)[0] == "1", 1, "a look at the semaphores")
        time.sleep(1.2)                # a foreign listener stays: it is looked after
        listen(child.pid, "gc__start", 0)
        harness.wait_until(lambda: report(child) == NOTHING, 1, "the hooks' end")
        assert end(child) == []
    finally:
        child.kill()


FAMILY = """
import multiprocessing, os, subprocess, sys
def fine():
    return os.getpid()
if __name__ == "__main__":
    how = sys.argv[1]
    if how == "fork":
        pid = os.fork()
        if not pid:
            fine()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    elif how == "exec":
        os.execv(sys.executable, [sys.executable, "-c", "pass"])
    elif how == "run":
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    elif how == "run-env":
        subprocess.run([sys.executable, "-c", "pass"], check=True, env=dict(os.environ))
    elif how == "system":
        assert os.system(sys.executable + " -c pass") == 0
    else:
        with multiprocessing.get_context(how).Pool(1) as pool:
            assert pool.apply(fine) != os.getpid()
"""


@pytest.mark.parametrize("how, connections", [("fork", 2), ("exec", 2), ("run", 2), ("run-env", 1), ("system", 2),
                                              ("mp-fork", 2), ("mp-spawn", 3), ("mp-forkserver", 4)])
def test_children(interp, listener, how, connections):
    """Each process of the family says HELLO, once; one that is given an environment of its own is lost."""
    child = preloaded(interp, listener, interp.add(FAMILY, "family.py"), how.replace("mp-", ""))
    hellos = []
    try:
        while len(hellos) < connections or not how.startswith("mp-"):
            channel = listener.pending() if len(hellos) >= connections else listener.accept()
            if not channel:
                break
            message = channel.receive()
            if message:                # a forked child may have ended before
                assert (message.kind, message.phase) == (HELLO, READY)
                try:
                    channel.look()
                except (AssertionError, OSError):
                    pass
            hellos.append(channel)
        out, err = child.communicate(timeout=harness.TIMEOUT_S)
        assert (child.returncode, out, err) == (0, "", "")
        assert len(hellos) == connections
    finally:
        child.kill()


def test_environment(interp, listener):
    """os.environ shows none of it, and another preloaded object stays."""
    script = ("import os, subprocess, sys; env = 'DTAP_AGENT' in os.environ, os.environ.get('LD_PRELOAD'); "
              "print(*env, os.getenvb(b'DTAP_AGENT')); "
              "sys.stdout.flush(); subprocess.run(['/bin/sh', '-c', 'echo $DTAP_AGENT $LD_PRELOAD'])")
    own = agent(interp)
    other = "libm.so.6"
    for preload, rest in ((own, "None"), (f"{other}:{own}", other), (f"{own} {other}", other),
                          (f"{other}:{own}:{other}", f"{other}:{other}")):
        words = environment(interp, LD_PRELOAD=preload, DTAP_AGENT=listener.name)
        result = harness.run([*words, "-c", script])
        assert result.err == "" and result.out.splitlines() == [
            f"False {rest} None", f"{listener.name} {preload}"], result


def test_nobody_listens(interp):
    """A name without a listener: nothing happens, no thread."""
    words = environment(interp, LD_PRELOAD=agent(interp), DTAP_AGENT="dtap-nobody")
    result = harness.run([*words, "-c", "import os; print(len(os.listdir('/proc/self/task')))"])
    assert (result.code, result.out, result.err) == (0, "1\n", ""), result


def test_stranger_listens(interp):
    """Who listens must be this user or root."""
    if os.geteuid():
        pytest.skip("needs root")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    name = f"dtap-stranger-{os.getpid()}"
    sock.bind("\0" + name)
    pid = os.fork()
    if not pid:
        os.setuid(65534)
        sock.listen(5)
        os._exit(0)
    os.waitpid(pid, 0)
    words = environment(interp, LD_PRELOAD=agent(interp), DTAP_AGENT=name)
    result = harness.run([*words, "-c", "import os; print(len(os.listdir('/proc/self/task')))"])
    assert (result.code, result.out, result.err) == (0, "1\n", ""), result
    accepted, _ = sock.accept()
    assert accepted.recv(100) == b""
    sock.close()


def test_descriptors_taken(interp, listener):
    """A program that closes every number and opens its own files there loses nothing, forks included."""
    program = """
import os, sys, tempfile
print("ready", flush=True)
sys.stdin.readline()
os.closerange(3, 2000)
files = [tempfile.TemporaryFile() for i in range(600)]
for i in range(3):
    pid = os.fork()
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
assert all(os.fstat(f.fileno()).st_size == 0 for f in files)
"""
    child = preloaded(interp, listener, interp.add(program, "closer.py"))
    try:
        channel, _ = listener.hello()
        ready(child)
        assert end(child) == []
    finally:
        child.kill()


def test_fork_without_warning(interp, listener):
    """From 3.12 on os.fork() warns when there are threads; the agent's does not count."""
    program = "import os\nfor i in range(5):\n    pid = os.fork()\n    if not pid: os._exit(0)\n    os.waitpid(pid, 0)\n"
    child = preloaded(interp, listener, "-W", "error", interp.add(program, "forks.py"))
    out, err = child.communicate(timeout=harness.TIMEOUT_S)
    assert (child.returncode, out, err) == (0, "", "")
