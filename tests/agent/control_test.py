"""The agent and its tracers: channels, coming and going, fork and exec, the environment.

The semaphores are raised here by writing to the process's memory, as the kernel does for a tracer.
"""
import os
import pathlib
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
from hostile.stepper import DETACH, SEIZE, Stepper, ptrace

pytestmark = pytest.mark.needs_root

HERE = pathlib.Path(__file__).resolve().parent

# PTRACE_O_TRACEEXIT, PTRACE_EVENT_EXIT and __WALL
TRACE_EXIT, EVENT_EXIT, WALL = 0x40, 6, 0x40000000

@pytest.fixture
def listener():
    listener = Listener()
    yield listener
    listener.close()


def listen(pid, name, on=1, file=AGENT.name):
    """Raise or lower a semaphore of an agent."""
    with open(f"/proc/{pid}/maps") as maps:
        base = next(int(line.split("-")[0], 16) for line in maps if file in line)
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
        harness.wait_until_asleep(child.pid)    # the agent looks around once more when it has answered
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
        harness.wait_until(lambda: report(child) == NOTHING, what="the hooks' end")
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

        def sleeps():
            before = switches()
            time.sleep(0.5)
            return len(before) == 2 and switches() == before

        harness.wait_until(sleeps, what="half a second in which it does not wake")
        channel.close()
        harness.wait_until(lambda: len(switches()) == 1, what="the end of the agent's thread")
        assert end(child) == []
    finally:
        child.kill()


# Loads the agent as a tracer does, and calls its ELF entry point with each descriptor number that comes in.
ENTERED = """
import ctypes, gc, os, resource, socket, struct, sys, threading
path = sys.argv[1]
ctypes.CDLL(path)
with open(path, "rb") as elf:
    entry = struct.unpack_from("<Q", elf.read(64), 24)[0]
with open("/proc/self/maps") as maps:
    base = next(int(line.split("-")[0], 16) for line in maps if path in line)
entered = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint)(base + entry)
agent_entry = lambda fd: entered(fd, 0)

def full(fd):
    "What it answers when there is one descriptor left; and how many the process has afterwards."
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    files = []
    try:
        while True:
            files.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        os.close(files.pop())
    answer = agent_entry(fd)
    for file in files:
        os.close(file)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return answer, len(os.listdir("/proc/self/fd"))

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
    elif line.startswith("full"):
        print(*full(int(line.split()[1])), flush=True)
    else:
        print(len(gc.callbacks), threading.active_count(), flush=True)
"""


MOST = 32       # tracers that an agent has room for (CONTROL_CHANNELS)


def enter(interp, *args):
    """A child that loads the agent; socket pairs made beforehand, as descriptors cannot follow it."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(MOST + 4)]
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
        harness.wait_until(lambda: ask(child, "report") == "0 1", what="the first tracer's end")
        assert channels[1].look().supplied == bits("audit")
        channels[1].close()
        listen(child.pid, "audit", 0)
        harness.wait_until(lambda: len(os.listdir(f"/proc/{child.pid}/task")) == 1, what="the thread's end")
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
        assert got == [0] * MOST + [-87] * 4       # -EUSERS
        # Four are closed, and there is the pair by which the agent's thread is woken.
        harness.wait_until(lambda: len(os.listdir(f"/proc/{child.pid}/fd")) == before - 4 + 2, what="the others' end")
        assert all(channel.receive().kind == HELLO for channel in channels[:MOST])
        assert end(child) == []
    finally:
        child.kill()


def test_entry_without_a_thread(interp):
    """Where the agent's thread cannot be started the channel is closed, and its place is another tracer's."""
    child, channels, numbers = enter(interp)
    try:
        had = len(os.listdir(f"/proc/{child.pid}/fd"))
        for i, number in enumerate(numbers[:MOST + 1]):        # one more than there are places
            assert ask(child, f"full {number}") == f"-24 {had - i}"         # -EMFILE; listdir has one itself
            assert channels[i].receive() is None
        assert ask(child, f"enter {numbers[MOST + 1]}") == "0"
        assert channels[MOST + 1].receive().kind == HELLO
        assert end(child) == []
    finally:
        child.kill()


# A child for each place: the agent is entered with one descriptor, there with another, and behind it with a third.
AMID = ENTERED.split("print(")[0] + """
import os, time
PLACES = 40
shim = ctypes.CDLL(sys.argv[2])
shim.amid.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
count = lambda: (len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")))
def pair():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(50)
    return ours, theirs.detach()
def child(at):
    before = count()[1]
    (one, first), (two, second), (three, third) = pair(), pair(), pair()
    shim.amid(base + entry, second, at)
    assert not agent_entry(first)
    left = shim.amid_left()
    if left >= 0:
        assert not agent_entry(second)
    assert one.recv(4096) and two.recv(4096)
    assert not agent_entry(third)
    assert three.recv(4096)
    for ours in one, two, three:
        ours.close()
    end = time.monotonic() + 100        # somebody may be tracing all Pythons
    while count() != (1, before + 2) and time.monotonic() < end:
        time.sleep(0.05)
    assert count() == (1, before + 2), (count(), before)
    return left < 0
def run(at):
    try:
        os._exit(0 if child(at) else 2)
    except BaseException as error:
        print(at, repr(error), file=sys.stderr, flush=True)
        os._exit(1)
children = [os.fork() or run(at) for at in range(PLACES)]
codes = [os.waitpid(pid, 0)[1] >> 8 for pid in children]
assert codes == sorted(codes), codes
print(codes.count(0), codes.count(2))
"""


def test_entry_amid_another(interp, tmp_path):
    """Two tracers at once, the second before each system call that the first one's entry makes: both hear of the agent, as does
    a third, and when they have gone it keeps one pair to be woken by, and no thread."""
    built = tmp_path / "amid.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-nostdlib", HERE / "amid.c", "-o", built], check=True)
    shim = interp.add(built)
    words = environment(interp, LD_PRELOAD=shim)
    result = subprocess.run([*words, interp.add(AMID, "amid.py"), agent(interp), shim], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=300)
    assert result.returncode == 0 and not result.stderr, result
    inside, behind = map(int, result.stdout.split())
    assert inside > 10 and behind > 0, "each place from the channel to the thread"


@pytest.mark.slow
def test_attach_often(interp, listener):
    """Hundreds of tracers one after another leave the process as it was."""
    child, _, _ = enter(interp)
    try:
        def state():
            harness.wait_until(lambda: len(os.listdir(f"/proc/{child.pid}/task")) == 1, what="the thread's end")
            with open(f"/proc/{child.pid}/statm") as statm:
                return len(os.listdir(f"/proc/{child.pid}/fd")), int(statm.read().split()[1])
        times = int(os.environ.get("DTAP_ATTACHES", 400))
        for i in range(times):
            name = NAMES[i % len(NAMES)]
            assert ask(child, f"connect {listener.name}") == "0"
            channel = listener.accept_plain()
            assert channel.receive().phase == READY
            listen(child.pid, name)
            assert channel.look().supplied & bits(name)     # others' tracers may want more
            listen(child.pid, name, 0)
            assert not channel.look().supplied & bits(name)
            channel.close()
            if i == times // 2:
                descriptors, pages = state()
        harness.wait_until(lambda: state()[0] == descriptors, what="the descriptors of before")
        assert state()[1] < pages + 64
        assert end(child) == []
    finally:
        child.kill()


def test_first_look(interp, listener):
    """A program waits for its tracer's first LOOK, with the hooks of before; some time and no more."""
    begin = time.monotonic()
    child = preloaded(interp, listener, "-c", "print('ran', flush=True); input()")
    try:
        channel = listener.accept()
        assert channel.receive().kind == HELLO
        too_early = select.select([child.stdout], [], [], 0.2)[0]
        assert not too_early or time.monotonic() - begin > 0.45     # a machine with much to do
        listen(child.pid, "gc__start")
        assert channel.look().supplied == bits("gc__start")
        assert child.stdout.readline() == "ran\n"
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
        harness.wait_until(lambda: channels[0].look(bits("gc__done", "audit")).supplied == bits("gc__start"))
        channels[0].close()
        harness.wait_until(lambda: ask(child, "report") == "1 1")
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
        harness.wait_until(lambda: report(child)[0] == "1", what="a look at the semaphores")
        time.sleep(1.2)                # a foreign listener stays: it is looked after
        listen(child.pid, "gc__start", 0)
        harness.wait_until(lambda: report(child) == NOTHING, what="the hooks' end")
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


# Forks a child that, when it is told to, ends its interpreter, says so, and lives on: by what exit() calls then, in C.
ENDED = """
import ctypes, os, sys
print("ready", flush=True)
sys.stdin.readline()
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
else:
    libc = ctypes.CDLL(None)
    libc.strdup.restype = ctypes.c_void_p
    libc.on_exit(libc.pause, None)
    libc.on_exit(libc.dprintf, ctypes.c_void_p(libc.strdup(b"ended\\n")))     # (1, "ended\\n"): the status is its descriptor
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    sys.exit(1)
"""


@pytest.mark.parametrize("greets", [False, True], ids=["connected", "greeted"])
def test_interpreter_ends_first(interp, listener, greets):
    """A child whose interpreter has ended before the tracer's turn has nothing to say: not that it is off, nor that something is missing."""
    child = preloaded(interp, listener, interp.add(ENDED, "ended.py"))
    left = []
    try:
        listener.hello()
        ready(child)
        pid = int(ask(child, "go"))
        left.append(pid)
        if greets:
            channel = listener.accept()
            assert channel.receive().phase == READY
        assert ask(child, "end") == "ended"
        if not greets:
            channel = listener.accept()
        state = channel.look()
        assert (state.why, state.pid) == ("", pid), state
        os.kill(left.pop(), signal.SIGKILL)
        assert end(child) == []
    finally:
        child.kill()
        for pid in left:
            os.kill(pid, signal.SIGKILL)


def test_environment(interp, listener):
    """os.environ shows none of it, and another preloaded object stays."""
    script = ("import os, subprocess, sys; env = 'DTAP_AGENT' in os.environ, os.environ.get('LD_PRELOAD'); "
              "print(*env, os.getenvb(b'DTAP_AGENT')); "
              "sys.stdout.flush(); subprocess.run(['/bin/sh', '-c', 'echo $DTAP_AGENT $LD_PRELOAD'])")
    own = agent(interp)
    other = "libm.so.6"
    for preload, rest in ((own, "None"), (f"{other}:{own}", other), (f"{own} {other}", other),
                          (f"{other}:{own}:{other}", f"{other}:{other}")):
        words = environment(interp, LD_PRELOAD=preload, DTAP_AGENT=listener.address)
        result = harness.run([*words, "-c", script])
        assert result.err == "" and result.out.splitlines() == [
            f"False {rest} None", f"{listener.address} {preload}"], result


def test_nobody_listens(interp):
    """A name without a listener: nothing happens, no thread."""
    words = environment(interp, LD_PRELOAD=agent(interp), DTAP_AGENT="dtap-nobody")
    result = harness.run([*words, "-c", "import os; print(len(os.listdir('/proc/self/task')))"])
    assert (result.code, result.out, result.err) == (0, "1\n", ""), result


@pytest.mark.parametrize("what", ["user", "process"])
def test_stranger_listens(interp, what):
    """Who listens must be this user or root, and the process that the address names: others hear nothing."""
    if os.geteuid():
        pytest.skip("needs root")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if not pid:
        name = f"dtap-{os.getpid() if what == 'user' else os.getppid()}-0123456789abcdef"
        sock.bind("\0" + name)
        if what == "user":
            os.setuid(65534)
        sock.listen(5)
        os._exit(0)
    os.waitpid(pid, 0)
    name = sock.getsockname()[1:].decode()
    words = environment(interp, LD_PRELOAD=agent(interp), DTAP_AGENT=f"{name}:{'0' * 32}")
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


@pytest.mark.interps("3.13", "3.14", "3.15")
def test_fork_that_did_not_wait(interp, listener):
    """The agent's thread takes too long to end before a fork: there is another one behind it."""
    program = """
import os, sys
print("ready", flush=True)
for line in sys.stdin:
    if line == "go\\n":
        break
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)
    print("forked", flush=True)
"""
    child = preloaded(interp, listener, "-W", "ignore", interp.add(program, "forks.py"))
    try:
        channel, _ = listener.hello()
        ready(child)
        thread = next(int(tid) for tid in os.listdir(f"/proc/{child.pid}/task") if int(tid) != child.pid)
        ptrace(SEIZE, thread, None, TRACE_EXIT)
        child.stdin.write("fork\n")
        child.stdin.flush()
        assert os.waitpid(thread, WALL)[1] >> 8 == signal.SIGTRAP | EVENT_EXIT << 8
        assert child.stdout.readline() == "forked\n"    # after a second
        ptrace(DETACH, thread)
        assert channel.look().supplied == 0
        assert end(child) == []
    finally:
        child.kill()


def test_fork_waits_for_the_thread(interp, listener):
    """The agent's thread is on its way to the interpreter's lock: no fork until it is there, for it may have other locks."""
    program = """
import ctypes, os, sys
print(ctypes.cast(ctypes.pythonapi.PyGILState_Ensure, ctypes.c_void_p).value, flush=True)
for line in sys.stdin:
    if line == "go\\n":
        break
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)
    print("forked", flush=True)
"""
    child = preloaded(interp, listener, "-W", "ignore", interp.add(program, "forks.py"))
    try:
        channel, _ = listener.hello()
        ensure = int(child.stdout.readline())
        listen(child.pid, "gc__done")
        thread = Stepper(next(int(tid) for tid in os.listdir(f"/proc/{child.pid}/task") if int(tid) != child.pid))
        thread.run_to(ensure, channel.ask_look)
        child.stdin.write("fork\n")
        child.stdin.flush()
        assert not select.select([child.stdout], [], [], 0.3)[0]
        thread.go()
        assert channel.receive_state().supplied == bits("gc__done")
        assert child.stdout.readline() == "forked\n"
        assert end(child) == []
    finally:
        child.kill()
