"""An agent that a tracer brings to a running program, wherever that is: it does nothing of itself, and nothing too early."""
import pathlib
import socket
import struct
import subprocess

import pytest

from agent.agent_test import AGENT, agent, end, environment
from agent.channel import HELLO, READY, Channel
from agent.control_test import listener     # a fixture

pytestmark = pytest.mark.needs_root

HERE = pathlib.Path(__file__).resolve().parent
NUMBERS = 60        # of calls amid which it comes, beside those that put a text together


def pair():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(ours), theirs


def entry():
    """The entry point's offset in the agent (e_entry)."""
    return struct.unpack_from("<Q", AGENT.read_bytes(), 24)[0]


def run(words, theirs):
    child = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, pass_fds=[theirs.fileno()])
    theirs.close()
    return child


STARTED = """
import ctypes, sys
shim, texts, times = ctypes.CDLL(None), (ctypes.c_long * 64)(), ctypes.c_int()
n = shim.starting_texts(texts, len(texts))
print(shim.starting_calls(), shim.starting_answer(ctypes.byref(times)), times.value, *texts[:n], flush=True)
sys.stdin.read()
"""


def test_while_starting(interp, listener, tmp_path):
    """
    At calls from the first to the last before the program: at each that puts a text together, as the version's, which agents ask
    for, and at some of the others.  The address in the environment is that of another tracer, whom nobody calls.
    """
    built = tmp_path / "starting.so"
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-fno-tree-loop-distribute-patterns", "-shared", "-fPIC", "-nostdlib",
                    HERE / "starting.c", "-o", built], check=True)
    shim, script = interp.add(built), interp.add(STARTED, "started.py")

    def started(at):
        ours, theirs = pair()
        where = {} if at is None else {"STARTING_AT": at}
        words = environment(interp, LD_PRELOAD=shim, DTAP_AGENT=listener.address, STARTING_OBJECT="/" + agent(interp),
                            STARTING_ENTRY=entry(), STARTING_FD=theirs.fileno(), **where)
        child = run([*words, script], theirs)
        try:
            calls, answer, times, *texts = map(int, child.stdout.readline().split())
            if at is not None:
                assert answer == 0, (at, answer, times)
                hello = ours.receive()
                assert (hello.kind, hello.phase, hello.pid) == (HELLO, READY, child.pid), (at, times, hello)
            assert end(child) == [], at
            return calls, times, texts
        finally:
            child.kill()
            ours.close()

    calls, times, texts = started(None)
    assert times == 0 and calls > 1000 and texts, (calls, times, texts)
    entered = [started(at)[1] for at in [*texts, *range(0, calls, calls // NUMBERS)]]
    assert max(entered) > 5 and min(entered) == 1, "before the interpreter has begun, and behind that"
    assert listener.pending() is None


# It loads the object with the GIL, as a thread does that was stopped while it has that.
AUDITED = """
import ctypes, sys
seen = []
sys.addaudithook(lambda event, args: seen.append(event))
path, fd = sys.argv[1], int(sys.argv[2])
loader = ctypes.PyDLL(None)
with open("/proc/self/maps") as maps:
    assert "dtap-agent" not in maps.read()
del seen[:]
object = loader.dlopen(path.encode(), 2)
events = list(seen)
with open("/proc/self/maps") as maps:
    base = next(int(line.split("-")[0], 16) for line in maps if "dtap-agent" in line)
print(*events, flush=True)
enter = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint)(base + int(sys.argv[3]))
print(enter(fd, 0), "sys.addaudithook" in seen, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("polling", [False, True])
def test_while_running(interp, listener, polling):
    """No audit hook of the program's runs in the thread that loads it, and nobody is called."""
    ours, theirs = pair()
    words = environment(interp, DTAP_AGENT=listener.address, **({"DTAP_AGENT_POLL": 1} if polling else {}))
    child = run([*words, interp.add(AUDITED, "audited.py"), "/" + agent(interp), theirs.fileno(), entry()], theirs)
    try:
        events = child.stdout.readline().split()
        assert all(event.startswith("ctypes.") for event in events), events
        assert child.stdout.readline().strip() == "0 False"
        assert ours.receive().kind == HELLO
        assert end(child) == []
        assert listener.pending() is None
    finally:
        child.kill()
        ours.close()
