"""Who gets a channel and a segment: processes that the tracer named, and nobody else; and nobody holds it up."""
import os
import shutil
import signal
import socket
import subprocess

import pytest

import harness
from agent.channel import ASK, LAYOUT, PROOF, VERSION, Message
from hostile.attackers import STRANGER, attack

pytestmark = pytest.mark.needs_root

ALONE = ["unshare", "--pid", "--mount-proc", "--fork"]
LEAF = 'python$target:::function-entry /copyinstr(arg1) == "leaf"/ { @ = count(); }'
# Says that the session runs: every agent that could answer has its hook in.
BEGUN = 'tick-10ms /!begun/ { begun = 1; printf("begun\\n"); }'

# Runs until a line comes on stdin, then calls leaf() 100 times.
WAITS = """
import sys
def leaf(): pass
print("ready", flush=True)
sys.stdin.readline()
for i in range(100):
    leaf()
print("done", flush=True)
"""


def started(interp, *options):
    """A dtrace in the target place whose target runs, and waits for a line."""
    child = subprocess.Popen([str(w) for w in (harness.DTRACE, "-q", "-x", "place=target", *options, "-n", LEAF, "-c",
                                               interp.command(WAITS))],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


def ended(child, err=""):
    out, said = child.communicate("go\n", timeout=harness.TIMEOUT_S)
    assert (child.returncode, said, out.split()) == (0, err, ["done", "100"]), (out, said)


# Says what an agent would say, in the layouts of each version, and what else comes to mind.
KNOCKS = r"""
name = find(int(sys.argv[1]))
said = []
for first in ([message(2, HELLO)], [message(3, HELLO)], [message(3, HELLO, 1)], [message(3, PROOF), message(3, HELLO)],
              [message(3, PROOF, why=b"0" * 32), message(3, HELLO, 1)], [message(2, PROOF, why=b"0" * 32)],
              [message(3, PROOF, why=b"\0" * 32)], [message(3, STATE)], [message(3, 77)], [message(60000, HELLO)], [b""],
              [b"x"], [b"x" * 231], [b"x" * 60000], [message(3, HELLO) * 2], [message(3, HELLO)[:-1]]):
    s = connect(name)
    for m in first:
        try:
            s.send(m)
        except OSError:
            pass
    said.append(hear(s))
print(said.count(["end"]), "of", len(said), [x for x in said if x != ["end"]])
"""


@pytest.mark.interps("3.9", "3.14")
@pytest.mark.parametrize("user", [STRANGER, 0], ids=["another user", "the tracer's user"])
def test_stranger_gets_nothing(interp, user):
    """Whoever connects and says what an agent says is dropped without a word."""
    child = started(interp)
    try:
        stranger = attack(KNOCKS, child.pid, user=user)
        out, _ = stranger.communicate(timeout=harness.TIMEOUT_S)
        assert out.split(" of ")[0] == out.split(" of ")[1].split()[0], out
        ended(child)
    finally:
        child.kill()


# Connects as soon as there is a socket: once to be silent, once to say HELLO and be silent then.
SILENT = r"""
name = find(int(sys.argv[1]))
held = []
for first in (None, message(2, HELLO), message(3, HELLO), message(3, PROOF)):
    s = connect(name)
    if first:
        try:
            s.send(first)
        except OSError:
            pass
    held.append(s)
print("connected", flush=True)
sys.stdin.readline()
"""


@pytest.mark.interps("3.9", "3.14")
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_silent_stranger_at_the_start(interp, start, place):
    """One who is there before the session starts, and then says nothing, does not end it."""
    if place == "kernel" and harness.bpf_refusal():
        pytest.skip(harness.bpf_refusal())
    target = start(interp.argv_of(WAITS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert target.stdout.readline() == "ready\n"
    # The attacker is there before the tracer is.
    child = subprocess.Popen(["sh", "-c", f'read go; exec {harness.DTRACE} -q -x switchrate=10ms -x agent=always '
                              f"-x place={place} -n \'{LEAF} {BEGUN}\' -p {target.pid}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    stranger = attack(SILENT, child.pid)
    try:
        child.stdin.write("go\n")
        child.stdin.flush()
        assert stranger.stdout.readline() == "connected\n"
        # It is over when the target has ended; no sooner, and with its events.
        assert child.stdout.readline() == "begun\n", child.communicate()
        target.communicate("go\n", timeout=harness.TIMEOUT_S)
        out, err = child.communicate(timeout=harness.TIMEOUT_S)
        assert (child.returncode, err, out.split()) == (0, "", ["100"]), (out, err)
    finally:
        stranger.kill()
        stranger.communicate()
        child.kill()


def is_covered(pid):
    """Has the agent in the process its hook in?  Then a session traces it."""
    with open(f"/proc/{pid}/maps") as maps:
        text = maps.read()
    return "dtap-image" in text or any((harness.agent_semaphores(pid) or {}).values())


# As many connections as it can have, over and over.
FLOOD = r"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
name = find(int(sys.argv[1]))
print("begun", flush=True)
held = []
try:
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        try:
            s.connect("\0" + name)
        except BlockingIOError:
            continue
        if len(held) % 3:
            try:
                s.send(message(3, len(held) % 7, why=b"0" * 32))
            except OSError:
                pass
        held.append(s)
        if len(held) == 3000:
            del held[:1000]
except (ConnectionRefusedError, BrokenPipeError):
    pass
"""

# Forks children that call leaf(), one after the other.
FORKS = """
import os, sys
def leaf(): pass
print("ready", flush=True)
sys.stdin.readline()
for i in range(10):
    if not os.fork():
        for k in range(10):
            leaf()
        os._exit(0)
    os.wait()
print("done", flush=True)
"""


@pytest.mark.interps("3.11", "3.14")
@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
@pytest.mark.alone
def test_flood(interp):
    """Others connect all the time: those that the tracer named get their channels all the same."""
    child = subprocess.Popen([*ALONE, harness.DTRACE, "-q", "-x", "place=target", "-n",
                              LEAF.replace("python$target", "python*"), "-c", interp.command(FORKS)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    floods = []
    try:
        assert child.stdout.readline() == "ready\n"
        with open("/proc/net/unix") as f:       # in the namespace the tracer is process 1
            assert "@dtap-1-" in f.read()
        floods = [attack(FLOOD, 1) for _ in range(2)]
        for flood in floods:
            assert flood.stdout.readline() == "begun\n"
        ended(child)
    finally:
        for flood in floods:
            flood.kill()
            flood.communicate()
        child.kill()


# Tells of its environment what the agent in itself hides.
TELLS = """
import subprocess, sys
subprocess.run(["/bin/sh", "-c", "echo $DTAP_AGENT"])
sys.stdin.readline()
"""


@pytest.mark.interps("3.14")
def test_word_before_the_socket_is_prepared(interp, tmp_path):
    """Who says the word before the tracer has done anything with its socket is known, and asked, all the same."""
    shim, accepted = tmp_path / "at_accept.so", tmp_path / "accepted"
    subprocess.run(["gcc", "-O1", "-w", "-shared", "-fPIC", harness.TOP / "tests/hostile/at_accept.c", "-o", shim], check=True)
    child = subprocess.Popen([harness.DTRACE, "-q", "-x", "place=target", "-n", LEAF, "-c", interp.command(TELLS)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=dict(os.environ, LD_PRELOAD=str(shim), AT_ACCEPT=str(accepted),
                                      ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")))
    try:
        name, word = child.stdout.readline().strip().split(":")
        before = accepted.stat().st_size
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.settimeout(harness.TIMEOUT_S)
            sock.connect("\0" + name)
            harness.wait_until(lambda: accepted.stat().st_size > before, what="the tracer to accept it")
            sock.send(LAYOUT.pack(VERSION, PROOF, 0, os.getpid(), 0, 0, 0, 0, 0, 0, word.encode()))
            assert Message(*LAYOUT.unpack(sock.recv(4096))).kind == ASK
        out, err = child.communicate("go\n", timeout=harness.TIMEOUT_S)
        assert (child.returncode, err) == (0, ""), err
    finally:
        child.kill()


# --- busy processes ---------------------------------------------------------------------------------------

# After a line on stdin, holds its interpreter's lock for the seconds that the line has, whatever wakes the thread.
HOLDS = """
import ctypes, sys, time
def leaf(): pass
libc = ctypes.PyDLL(None)
class timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_long), ("nsec", ctypes.c_long)]
mutex = ctypes.create_string_buffer(64)
libc.pthread_mutex_lock(mutex)
print("ready", flush=True)
until = timespec(int(time.time()) + int(sys.stdin.readline()), 0)
libc.pthread_mutex_timedlock(mutex, ctypes.byref(until))
print("free", flush=True)
while True:
    leaf()
    time.sleep(0.01)
"""

@pytest.fixture(params=["known", "new"])
def busy(request, start, interp):
    """A function that makes a process that holds its lock for some seconds; the agent is in it already, or not."""
    def make(seconds):
        child = harness.running(start, interp, HOLDS)
        if request.param == "known":
            result = harness.dtrace("-q", "-x", "agent=always", "-n", LEAF + " tick-10ms { exit(0); }", "-p", child.pid)
            assert (result.code, result.err) == (0, ""), result
        child.stdin.write(f"{seconds}\n")
        child.stdin.flush()
        return child
    return make


def per_process(children, until):
    """Counts each one's calls of leaf(), until each of @until has made one."""
    return " ".join(f'python{one.pid}:::function-entry /copyinstr(arg1) == "leaf"/ {{ @[pid] = count(); called_{one.pid} = 1; }}'
                    for one in children) + f" tick-10ms /{' && '.join(f'called_{one.pid}' for one in until)}/ {{ exit(0); }}"


@pytest.mark.slow
@pytest.mark.interps("3.9", "3.13")
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_busy_process_is_skipped(interp, start, busy, place):
    """One that holds its lock is named, the others are traced."""
    if place == "kernel" and harness.bpf_refusal():
        pytest.skip(harness.bpf_refusal())
    good = harness.running(start, interp)
    held = busy(600)
    result = harness.dtrace("-q", "-x", "agent=always", "-x", f"place={place}", "-n", per_process([held, good], [good]),
                            "-p", held.pid, "-p", good.pid)
    assert result.code == 0, result
    pid, count = result.out.split()
    assert int(pid) == good.pid and int(count) >= 1, result
    assert result.err.count("\n") == 1 and f"process {held.pid} " in result.err and "skipped" in result.err, result


@pytest.mark.slow
@pytest.mark.interps("3.9", "3.13")
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_busy_process_joins(interp, start, busy, place):
    """It is traced from when it answers on."""
    if place == "kernel" and harness.bpf_refusal():
        pytest.skip(harness.bpf_refusal())
    good = harness.running(start, interp)
    held = busy(9)
    result = harness.dtrace("-q", "-x", "agent=always", "-x", f"place={place}", "-n", per_process([held, good], [held, good]),
                            "-p", held.pid, "-p", good.pid)
    assert result.code == 0, result
    assert {str(good.pid), str(held.pid)} == set(result.out.split()[::2]), result


@pytest.mark.slow
@pytest.mark.interps("3.13")
def test_stopped_process_joins(interp, start):
    """The same of one that is stopped by a signal, at a place where nothing can be loaded or not."""
    good = harness.running(start, interp)
    stopped = [harness.running(start, interp) for _ in range(3)]
    for child in stopped:
        child.send_signal(signal.SIGSTOP)
    words = [w for child in stopped for w in ("-p", child.pid)]
    script = per_process([*stopped, good], [good]).replace("exit(0);", "") + " " + BEGUN
    child = harness.dtrace_start("-x", "quiet", "-x", "switchrate=10ms", "-n", script, *words, "-p", good.pid, text=True)
    try:
        assert child.stdout.readline() == "begun\n", child.communicate()
        for one in stopped:
            one.send_signal(signal.SIGCONT)
        harness.wait_until(lambda: all(is_covered(one.pid) for one in stopped), what="the agents")
        for one in (*stopped, good):
            harness.wait_until(lambda: len(os.listdir(f"/proc/{one.pid}/task")) == 2, what="its thread")
        out, err = harness.interrupt(child)
        assert child.returncode == 0 and all(f"process {one.pid} " in err for one in stopped), err
        assert str(good.pid) in out.split(), out
    finally:
        child.kill()


@pytest.mark.interps("3.13")
@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_heard(interp, busy, signo):
    """The tracer ends by a signal while it waits for a process, and says nothing of that process."""
    held = busy(600)
    child = harness.dtrace_start("-q", "-x", "agent=always", "-n", LEAF, "-p", held.pid, text=True)
    try:
        # Its own socket is there before it waits.
        harness.wait_until(lambda: f"@dtap-{child.pid}-" in open("/proc/net/unix").read(), what="the tracer's socket")
        child.send_signal(signo)
        out, err = child.communicate(timeout=harness.TIMEOUT_S)
        assert (out, err) == ("", ""), err
        assert held.poll() is None
    finally:
        child.kill()


# --- families ---------------------------------------------------------------------------------------------

# A daemon: its parents have ended when it calls leaf() for the first time.
DAEMON = """
import os, sys, time
def leaf(): pass
def hello(): pass
path = sys.argv[1]
if sys.argv[2] == "attached":
    os.rename(path, path + ".ready")
while not os.path.exists(path + ".go"):
    hello()
    time.sleep(0.001)
if not os.fork():
    os.setsid()
    if not os.fork():
        while os.getppid() > 1:
            time.sleep(0.001)
        for i in range(100):
            leaf()
        open(path + ".done", "w").close()
        os._exit(0)
    os._exit(0)
os.wait()
while not os.path.exists(path + ".done"):
    time.sleep(0.001)
"""


@pytest.mark.interps("3.9", "3.14")
@pytest.mark.alone      # in the kernel place the agent's markers of other tests fire, too
@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
@pytest.mark.parametrize("place", ["kernel", "target"])
@pytest.mark.parametrize("how", ["started", "attached"])
def test_daemon_stays_a_peer(interp, how, place):
    """Who descends from the command, or from a process that ran before the tracer came, is traced, whoever its parent is."""
    if place == "kernel" and harness.bpf_refusal():
        pytest.skip(harness.bpf_refusal())
    path = interp.dir / "flag"
    path.write_text("")
    command = interp.command(DAEMON, interp.inside(path), how)
    script = LEAF + ' python$target:::function-entry /copyinstr(arg1) == "hello" && !begun/ { begun = 1; printf("begun\\n"); }'
    script = script.replace("python$target", "python*")
    dtrace = f"{harness.DTRACE} -q -x switchrate=10ms -x agent=always -x place={place} -n '{script}'"
    # The shell is process 1 of the namespace: the tracer is not the daemon's ancestor.
    if how == "started":
        words = f"{dtrace} -c '{command}'; exit $?"
    else:
        words = f"{command} & while [ ! -e {path}.ready ]; do sleep 0.01; done; {dtrace} -p $!; exit $?"
    child = subprocess.Popen([*ALONE, "sh", "-c", words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "begun\n", child.communicate()
        (interp.dir / "flag.go").write_text("")
        out, err = child.communicate(timeout=harness.TIMEOUT_S)
        assert (child.returncode, err, out.split()) == (0, "", ["100"]), (out, err)
    finally:
        child.kill()
