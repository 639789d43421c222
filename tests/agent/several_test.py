"""Agents of several builds of dtap in one process, as when their tracers ask for all Pythons: each has its own hooks.

One agent is loaded by dtrace, which counts.  The other is a copy under a name that dtrace does not take for its agent's; its
hooks come and go by a channel of its own.  The witness is the program: its own trace and profile functions, which it has set
before any agent came, or a number that it is known to do.
"""
import re
import select
import shutil
import signal
import subprocess

import pytest

import harness
from agent.agent_test import AGENT, bits, end, ready
from agent.channel import READY
from agent.control_test import ask, listen, listener  # noqa: F401

pytestmark = pytest.mark.needs_root

OTHER = "another-build.so"

WORK = """
import gc, threading
def leaf(n):
    return n
def begun():
    leaf(3)
def work():
    for i in range(3):
        leaf(i)
    try:
        raise KeyError(1)
    except KeyError:
        pass
    len("")
    bytes(234567)
    gc.collect()
    try:
        import nosuchmodule
    except ImportError:
        pass
    thread = threading.Thread(target=begun)
    thread.start()
    thread.join()
"""

# Loads the other agent, and gives it a channel.  At the word "work" it says how many events its own functions have seen.
PROGRAM = """
import ctypes, socket, struct, sys, threading
from work import work
ctypes.CDLL(sys.argv[1])
with open(sys.argv[1], "rb") as elf:
    entry = struct.unpack_from("<Q", elf.read(64), 24)[0]
with open("/proc/self/maps") as maps:
    base = next(int(line.split("-")[0], 16) for line in maps if sys.argv[1] in line)
entered = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint)(base + entry)
def connect(name):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect("\\0" + name)
    return entered(sock.detach(), 0)

names, seen = ("line", "function-entry", "exception-raise", "cfunction-entry"), []
def note(name, frame):
    if frame.f_code.co_filename == work.__code__.co_filename:
        seen.append(name)       # in two threads
def trace(frame, event, arg):
    if event in ("line", "exception"):
        note("line" if event == "line" else "exception-raise", frame)
    return trace
def profile(frame, event, arg):
    if event in ("call", "c_call"):
        note("function-entry" if event == "call" else "cfunction-entry", frame)
def run(times):
    told = set()
    for _ in range(times):
        seen.clear()
        work()
        told.add(tuple(map(seen.count, names)))
    print(*("/".join(map(str, counts)) for counts in told), flush=True)
def own(on):
    for module in threading, sys:
        module.settrace(trace if on else None)
        module.setprofile(profile if on else None)
print("ready", flush=True)
for line in sys.stdin:
    word, *rest = line.split()
    if word == "go":
        break
    elif word == "connect":
        print(connect(*rest), flush=True)
    elif word == "own":
        own(rest == ["on"])
        print(flush=True)
    else:
        run(int(rest[0]))
"""

OWN = "line", "function-entry", "exception-raise", "cfunction-entry"

# Marker -> (which of its events are counted, how many of them a work() has: a number, or as many as the program's own
# functions see of this marker).
MARKERS = {
    "line": ('copyinstr(arg0) == "{file}"', "line"),
    "function-entry": ('copyinstr(arg0) == "{file}"', "function-entry"),
    "function-return": ('copyinstr(arg0) == "{file}"', "function-entry"),
    "cfunction-entry": ('copyinstr(arg0) == "{file}"', "cfunction-entry"),
    "exception-raise": ('copyinstr(arg1) == "{file}"', "exception-raise"),
    "exception-caught": ('copyinstr(arg1) == "{file}"', 2),
    "gc-start": ("arg0 == 2", 1),
    "import-find-load-start": ('copyinstr(arg0) == "nosuchmodule"', 1),
    "thread-start": ("1", 1),
    "thread-finish": ("1", 1),
    "memory-alloc": ("arg1 > 234567 && arg1 < 234667", 1),
}


class Counter:
    """A dtrace that counts a probe's events, and may do more at them."""

    def __init__(self, pid, probe, where, more=""):
        self.child = harness.dtrace_start("-q", "-x", "place=target", "-p", pid, "-n",
                                          f'{probe} /{where}/ {{ n++; {more} }}'
                                          'tick-10ms /!up/ { up = 1; printf("up\\n"); } END { printf("%d\\n", n);'
                                          f'{"trunc(@);" if "@" in more else ""} }}')
        line = self.child.stdout.readline()
        assert line == b"up\n", (probe, line, self.child.communicate())

    def end(self):
        self.child.send_signal(signal.SIGINT)
        result = harness.finish(self.child, [])
        assert result.code == 0 and result.err == "", result
        return int(result.out)


def counts(told):
    return dict(zip(OWN, map(int, told.split("/"))))


def witnessed(child):
    return counts(ask(child, "work 1"))


class Program:
    """PROGRAM, which runs and has the other agent: what its functions see in a work(), how many of the marker's events there are."""

    def __init__(self, interp, listener, marker, own):
        if marker == "exception-caught" and own and interp.version in ("3.9", "3.11"):
            pytest.skip("only one agent has these events beside a trace function of the program's (caught.c)")
        shutil.copy(AGENT, interp.dir / OTHER)
        where, each = MARKERS[marker]
        self.where = where.format(file=interp.add(WORK, "work.py"))
        self.child = subprocess.Popen([*interp.argv, interp.add(PROGRAM, "program.py"), interp.inside(interp.dir / OTHER)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            ready(self.child)
            ask(self.child, "own on")
            self.seen = plain = witnessed(self.child)
            self.each = plain.get(each, each)
            assert self.each > 0
            if not own:
                ask(self.child, "own off")
                self.seen = dict.fromkeys(OWN, 0)
            assert ask(self.child, f"connect {listener.name}") == "0"
            self.channel = listener.accept_plain()
            assert self.channel.receive().phase == READY
        except BaseException:
            self.child.kill()
            raise

    def let_other(self, marker, on):
        """The other agent's hooks come, or go."""
        listen(self.child.pid, marker.replace("-", "__"), on, OTHER)
        assert self.channel.look().supplied == (bits(marker.replace("-", "__")) if on else 0)


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=["alone", "own"])
@pytest.mark.parametrize("marker", MARKERS)
def test_come_and_go(interp, listener, marker, own):  # noqa: F811
    program = Program(interp, listener, marker, own)
    child, seen, each = program.child, program.seen, program.each
    counters, due, others = {}, {}, False
    try:
        # Who comes, or goes: the other agent's hooks; dtraces a and b, of one agent.
        for step in "other a other b other a a other b a other a other".split():
            if step == "other":
                others = not others
                program.let_other(marker, others)
            elif step in counters:
                assert counters.pop(step).end() == due.pop(step), step
            else:
                counters[step], due[step] = Counter(child.pid, f"python$target:::{marker}", program.where), 0
            for _ in range(2):
                assert witnessed(child) == seen, step
                due.update((key, due[key] + each) for key in counters)
        ask(child, "own off")
        assert end(child) == []
    finally:
        child.kill()
        for counter in counters.values():
            counter.child.kill()


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=["alone", "own"])
@pytest.mark.parametrize("marker", MARKERS)
def test_amid(interp, listener, marker, own):  # noqa: F811
    """The other agent's hooks come and go while the program works."""
    works = 60
    program = Program(interp, listener, marker, own)
    child, others = program.child, False
    counter = None
    try:
        counter = Counter(child.pid, f"python$target:::{marker}", program.where)
        child.stdin.write(f"work {works}\n")
        child.stdin.flush()
        while not select.select([child.stdout], [], [], 0)[0]:
            others = not others
            program.let_other(marker, others)
        assert [counts(told) for told in child.stdout.readline().split()] == [program.seen]
        assert counter.end() == works * program.each
        ask(child, "own off")
        assert end(child) == []
    finally:
        child.kill()
        if counter:
            counter.child.kill()


def other_version(path):
    """Make the object of another version: its note says so (readelf says where that is)."""
    out = subprocess.run(["readelf", "-WS", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    offset = int(re.search(r" \.note\.dtap\.agent +NOTE +[0-9a-f]+ ([0-9a-f]+) 000020 ", out)[1], 16) + 24     # the owner takes 12 of them
    data = bytearray(path.read_bytes())
    assert 0 < data[offset] < 255
    data[offset] += 1
    path.write_bytes(data)


@pytest.mark.parametrize("fits", [True, False], ids=["same version", "other version"])
def test_which_is_used(interp, start, fits):
    """An agent of another build serves, if it is of this version; if not, the process gets one beside it."""
    copy = interp.dir / "dtap-agent-of-others.so"
    shutil.copy(AGENT, copy)
    if not fits:
        other_version(copy)
    child = harness.running(start, interp, f"""
import ctypes, sys
ctypes.CDLL({interp.inside(copy)!r})
def leaf(): pass
print("ready", flush=True)
for line in sys.stdin:
    for i in range(3):
        leaf()
    print(sum("/dtap-agent.so" in row and " r-xp " in row for row in open("/proc/self/maps")), flush=True)
""")
    counter = Counter(child.pid, "python$target:::function-entry", 'copyinstr(arg1) == "leaf"')
    assert ask(child, "work") == str(int(not fits))
    assert counter.end() == 3


# In a pid namespace of its own: Pythons of which one has the agent of another build, and a dtrace for all of them.
ALL = r"""
import signal, subprocess, sys
dtrace, place, copy = sys.argv[1:]
PROGRAM = "import ctypes, sys\n[ctypes.CDLL(name) for name in sys.argv[1:]]\ndef leaf(): pass\nprint('up', flush=True)\n" \
          "sys.stdin.readline()\nfor i in range(100): leaf()\nprint('done', flush=True)\nsys.stdin.readline()"
def start(*argv):
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n"
    return child
pythons = [start(sys.executable, "-c", PROGRAM, *names) for names in ([], [copy], [])]
tracer = start(dtrace, "-q", "-x", "place=" + place, "-n", 'python*:::function-entry /copyinstr(arg1) == "leaf"/ { @[pid] = count(); }'
               'tick-10ms /!up/ { up = 1; printf("up\\n"); }')
for child in pythons:
    child.stdin.write("go\n")
    child.stdin.flush()
    assert child.stdout.readline() == "done\n"
tracer.send_signal(signal.SIGINT)
told = dict(line.split() for line in tracer.communicate()[0].splitlines() if line)
print(tracer.returncode, [told.get(str(child.pid)) for child in pythons])
for child in pythons:
    child.communicate("end\n")
"""


@pytest.mark.parametrize("place", ["target", "kernel"])
def test_each_event_is_one(tmp_path, place):
    """Also where another build's agent has its markers in other functions: of a stripped one these are not known."""
    copy = tmp_path / "dtap-agent-of-others.so"
    subprocess.run(["strip", "-o", copy, AGENT], check=True)
    result = harness.run(["unshare", "-pf", "--mount-proc", "/usr/bin/python3", "-c", ALL, harness.DTRACE, place, copy])
    assert (result.code, result.out, result.err) == (0, "0 ['100', '100', '100']", ""), result
