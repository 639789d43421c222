"""memory-alloc and memory-free: the witnesses are tracemalloc and the C API's own functions in the traced program."""
import os
import re
import select
import signal
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_root

PLACES = pytest.mark.parametrize("place", ["target", pytest.param("kernel", marks=pytest.mark.needs_bpf)])


def lines(text, word):
    return re.findall(rf"^{word} (.*)$", text, flags=re.M)


def traced(dtrace, interp, program, script, place="target", *options, faults=False):
    result = dtrace("-q", "-x", f"place={place}", *options, "-n", script, "-c", interp.command(program))
    told = [line for line in result.err.splitlines() if not (faults and "no such argument, variable" in line)]
    assert (result.code, told) == (0, []), result
    return result.out


KNOWN = """
import sys
for i in range(7):
    bytes(12345)
kept = [bytes(23456) for i in range(5)]
print("want", sys.getsizeof(bytes(12345)), sys.getsizeof(bytes(23456)))
"""


@PLACES
def test_known_sizes(dtrace, interp, place):
    """A bytes object is one block, of the size that the program says: made and freed, or kept."""
    out = traced(dtrace, interp, KNOWN, """
        python$target:::memory-alloc /arg1 >= 12345 && arg1 < 12445/
        { @made[copyinstr(arg0), arg1] = count(); size[arg2] = arg1; }
        python$target:::memory-alloc /arg1 >= 23456 && arg1 < 23556/
        { @made[copyinstr(arg0), arg1] = count(); size[arg2] = arg1; }
        python$target:::memory-free /size[arg1]/ { @freed[copyinstr(arg0), size[arg1]] = count(); size[arg1] = 0; }
        END { printa("made %s %d %@d\\n", @made); printa("freed %s %d %@d\\n", @freed); }""", place)
    small, large = lines(out, "want")[0].split()
    assert sorted(lines(out, "made")) == [f"obj {small} 8", f"obj {large} 6"], out     # with those of getsizeof()
    assert sorted(lines(out, "freed")) == [f"obj {small} 8", f"obj {large} 1"], out


CALLS = """
import ctypes, sys
api = ctypes.pythonapi
for domain in "PyMem", "PyObject":
    call = {name: getattr(api, f"{domain}_{name}") for name in ("Malloc", "Calloc", "Realloc", "Free")}
    for name in "Malloc", "Calloc", "Realloc":
        call[name].restype = ctypes.c_void_p
    call["Malloc"].argtypes = [ctypes.c_size_t]
    call["Calloc"].argtypes = [ctypes.c_size_t] * 2
    call["Realloc"].argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    call["Free"].argtypes = [ctypes.c_void_p]
    call["Free"].restype = None
    word = {"PyMem": "mem", "PyObject": "obj"}[domain]
    def say(what, *rest): wants.append(" ".join(map(str, ("want", what, word, *rest))))
    wants = []
    at = call["Malloc"](1000001); say("alloc", 1000001, at)
    to = call["Realloc"](at, 2000003); say("free", at); say("alloc", 2000003, to)
    none = call["Realloc"](to, sys.maxsize); assert none is None
    none = call["Malloc"](sys.maxsize); assert none is None
    call["Free"](to); say("free", to)
    at = call["Realloc"](None, 1000007); say("alloc", 1000007, at)
    call["Free"](at); say("free", at)
    at = call["Calloc"](1003, 1009); say("alloc", 1003 * 1009, at)
    call["Free"](at); say("free", at)
    call["Free"](None)
    print(*wants, sep="\\n")
"""


@PLACES
def test_calls(dtrace, interp, place):
    """Each function of the C API, in order, with both domains; what is refused or nothing has no events."""
    out = traced(dtrace, interp, CALLS, """
        python$target:::memory-alloc /arg1 >= 1000001/
        { printf("got alloc %s %d %d\\n", copyinstr(arg0), arg1, arg2); size[arg2] = arg1; }
        python$target:::memory-free /size[arg1]/ { printf("got free %s %d\\n", copyinstr(arg0), arg1); size[arg1] = 0; }
        """, place)
    want = lines(out, "want")
    assert len(want) == 16 and lines(out, "got") == want, out


TRACEMALLOC = """
import random, tracemalloc
rnd = random.Random(1)
class Odd: pass
def makes(depth):
    if depth: return makes(depth - 1)
    return rnd.choice((lambda n: bytes(n), lambda n: [None] * n, lambda n: "x" * n, lambda n: dict.fromkeys(range(n // 30)),
                       lambda n: set(range(n // 30)), lambda n: bytearray(n), lambda n: (0,) * n, lambda n: 1 << 30 * n))(
                       rnd.randrange(20000, 60000))
tracemalloc.start(1)
kept = []
for i in range(80):
    kept.append(makes(i % 5))
    if rnd.random() < 0.7:
        kept.pop(rnd.randrange(len(kept)))
    for some in kept:
        if isinstance(some, (bytearray, list)):
            some.extend(some[:rnd.randrange(3000)])
            break
traces = [trace.size for trace in tracemalloc.take_snapshot().traces if trace.size >= 15000]
for size in traces:
    print("want", size)
tracemalloc.stop()
for i in range(3):
    bytes(7654321)
"""


def test_against_tracemalloc(dtrace, interp):
    """Large blocks that are in use are those of tracemalloc, whose wrappers lie above ours; without them there are ours."""
    out = traced(dtrace, interp, TRACEMALLOC, """
        python$target:::memory-alloc /arg1 >= 15000/ { size[arg2] = arg1; @live[arg1] = sum(1); }
        python$target:::memory-alloc /arg1 >= 7654321 && arg1 < 7654421/ { @after = count(); }
        python$target:::memory-free /size[arg1]/ { @live[size[arg1]] = sum(-1); size[arg1] = 0; }
        END { printa("live %d %@d\\n", @live); printa("after %@d\\n", @after); }""", "target", "-x", "dynvarsize=64m")
    live = [int(size) for line in lines(out, "live") for size in [line.split()[0]] * int(line.split()[1])]
    want = [int(size) for size in lines(out, "want")]
    other = sorted(live)
    for size in want:       # what was made before tracemalloc, and the snapshot itself, is not in its list
        assert size in other, (size, out)
        other.remove(size)
    assert len(want) > 20 and lines(out, "after") == ["3"], out


RESTLESS = """
import os, threading, time, tracemalloc
print("ready", flush=True)
while not os.path.exists(__file__ + ".stop"):
    tracemalloc.start()
    sum(range(2000))
    tracemalloc.stop()
    sum(range(500))
"""


@pytest.mark.slow
def test_tracemalloc_comes_and_goes(interp, start):
    """A tracer comes and goes, too: tracemalloc.stop() must not meet an allocation of the agent's thread."""
    program = harness.running(start, interp, RESTLESS)
    for _ in range(12):
        result = harness.dtrace("-q", "-x", "place=target", "-n", """
            python$target:::memory-alloc { n++; } python$target:::memory-alloc /n == 3000/ { exit(0); }""", "-p", program.pid)
        assert result.code == 0, result
    (interp.dir / "script.py.stop").touch()
    assert program.wait(harness.TIMEOUT_S) == 0


BELOW = """
import os, sys, time, tracemalloc
assert tracemalloc.is_tracing()
bytes(1234567)
tracemalloc.stop()
print("stopped", flush=True)
while not os.path.exists(__file__ + ".stop"):
    bytes(2345678)
    time.sleep(0.01)
"""


def test_tool_below_goes(interp, start):
    """A tool that was there before takes its wrappers away, and ours with them: they come back."""
    argv = interp.argv_of(BELOW)
    argv[-1:-1] = ["-X", "tracemalloc"]
    tracer = harness.dtrace_start("-q", "-x", "place=target", "-n", """
        python$target:::memory-alloc /arg1 >= 1234567 && arg1 < 1234667 && !first/ { first = 1; printf("first\\n"); }
        python$target:::memory-alloc /arg1 >= 2345678 && arg1 < 2345778 && !then/ { then = 1; printf("then\\n"); }""",
                                  "-c", " ".join(map(str, argv)))
    try:
        said = [tracer.stdout.readline() for _ in range(3)]
        assert sorted(said) == [b"first\n", b"stopped\n", b"then\n"], (said, tracer.communicate())
    finally:
        (interp.dir / "script.py.stop").touch()
        result = harness.finish(tracer, ["dtrace"])
    assert (result.code, result.err) == (0, ""), result


THREADS = """
import os, threading
def work(n):
    for i in range(n):
        bytes(34567 + i % 3)
def group(n):
    threads = [threading.Thread(target=work, args=(n,)) for k in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
group(300)
pid = os.fork()
if not pid:
    group(100)
    os._exit(0)
os.waitpid(pid, 0)
group(50)
print("want", os.getpid())
"""


@PLACES
def test_threads_and_forks(dtrace, interp, place):
    """None is lost, none twice; a child has none of it."""
    out = traced(dtrace, interp, THREADS, """
        python$target:::memory-alloc /arg1 >= 34567 && arg1 < 34667/
        { @[pid] = count(); size[pid, arg2] = 1; }
        python$target:::memory-free /size[pid, arg1]/ { @freed[pid] = count(); size[pid, arg1] = 0; }
        END { printa("made %d %@d\\n", @); printa("freed %d %@d\\n", @freed); }""", place)
    want = [f"{lines(out, 'want')[0]} {8 * 350}"]
    assert lines(out, "made") == want and lines(out, "freed") == want, out


ODD = """
import gc, sys
source = '''
import gc
class \u00e9t\u00e9(Exception): pass
class Ends:
    def __del__(self):
        bytes(45678)
def \u00fcber(n):
    try:
        if n: return \u00fcber(n - 1)
        raise \u00e9t\u00e9(bytes(45678))
    except \u00e9t\u00e9 as error:
        assert len(error.args[0]) == 45678
        try:
            {}[Ends()]
        except KeyError as other:
            assert other.__context__ is error
        raise
    finally:
        [bytes(45678) for i in range(2)]
        gc.collect(0)
'''
for name in ("\u20ac.py", "\\udc80.py", "\\U0001f40d.py", "\u00ff.py"):
    space = {}
    exec(compile(source, name, "exec"), space)
    for k in range(30):
        try:
            space["\u00fcber"](k)
        except space["\u00e9t\u00e9"] as error:
            assert error.args == (bytes(45678),)
        else:
            raise SystemExit("lost")
def recurses(n):
    return recurses(n + 1)
for k in range(3):
    try:
        recurses(0)
    except RecursionError:
        pass
print("want", "correct")
"""


def test_program_is_not_disturbed(dtrace, interp):
    """Each allocation with the stack of Python, its values and its task, amid exceptions, collections, names that are not
    ASCII or have no UTF-8: the program's exceptions are its own."""
    out = traced(dtrace, interp, ODD, """
        python$target:::memory-alloc { at[arg2] = pystack(4, "line"); @[pystack(), pytask] = count(); }
        python$target:::memory-free /at[arg1]/ { @freed[at[arg1]] = count(); at[arg1] = 0; }
        python$target:::memory-alloc /arg1 >= 45678 && arg1 < 45778/ { @sizes[pyshow(pyarg("n"))] = count(); }
        END { printa("%k", @freed); }""", "target", "-x", "dynvarsize=64m", "-x", "aggsize=16m", "-x", "namesize=16m", faults=True)
    assert lines(out, "want") == ["correct"] and "(\u00fcber)" in out and "\u20ac.py:" in out, out


STATES = """
import ctypes, os, sys, tracemalloc
class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]
def state():
    found = []
    for domain in (1, 2):
        a = Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(a))
        found.append(tuple(getattr(a, name) for name, _ in a._fields_))
    return found
before = state()
print("ready", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "same":
        print(state() == before, flush=True)
    elif word == "work":
        kept = [bytes(n) for n in range(2000)] + [{n: str(n)} for n in range(2000)]
        assert [len(some) for some in kept[:2000]] == list(range(2000))
        del kept
        print("worked", flush=True)
    elif word == "start":
        tracemalloc.start()
        print("started", flush=True)
    elif word == "stop":
        tracemalloc.stop()
        print("stopped", flush=True)
    elif word == "fork":
        pid = os.fork()
        if not pid:
            kept = [bytes(n) for n in range(2000)]
            os._exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Target:
    def __init__(self, start, interp, **env):
        self.process = start(interp.argv_of(STATES), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def says(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=harness.TIMEOUT_S) == 0


def tracer_of(target):
    tracer = harness.dtrace_start("-q", "-x", "place=target", "-p", target.pid, "-n", """
        python$target:::memory-alloc /!up/ { up = 1; printf("up\\n"); }
        python$target:::memory-alloc { at[arg2] = pystack(); @ = count(); }
        python$target:::memory-free { at[arg1] = 0; @ = count(); }""")
    harness.wait_until(lambda: target.says("work") == "worked" and select.select([tracer.stdout], [], [], 0)[0], what="an event")
    assert tracer.stdout.readline() == b"up\n", tracer.communicate()
    assert target.says("same") == "False"
    return tracer


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda s: s.name)
def test_leaves(interp, start, how):
    """When the tracer goes, however it does, the allocators are what they were; and again."""
    target = Target(start, interp)
    for _ in range(2):
        tracer = tracer_of(target)
        assert target.says("fork") == "3"
        tracer.send_signal(how)
        harness.finish(tracer, tracer.args)
        harness.wait_until(lambda: target.says("work") == "worked" and target.says("same") == "True", what="former allocators")
        assert target.says("fork") == "3"
    target.end()


def test_leaves_under_another_tool(interp, start):
    """What another tool has put on top stays, with ours below, which pass calls on; with the next tracer they serve again."""
    target = Target(start, interp)
    tracer = tracer_of(target)
    assert target.says("start") == "started"
    tracer.kill()
    harness.finish(tracer, tracer.args)
    assert target.says("work") == "worked" and target.says("same") == "False"
    assert target.says("fork") == "3" and target.says("stop") == "stopped" and target.says("work") == "worked"
    tracer = tracer_of(target)
    tracer.send_signal(signal.SIGINT)
    harness.finish(tracer, tracer.args)
    harness.wait_until(lambda: target.says("work") == "worked" and target.says("same") == "True", what="former allocators")
    target.end()


@pytest.mark.parametrize("allocator", ["debug", "malloc", "pymalloc_debug"])
def test_other_allocators(interp, start, allocator):
    """What is below may be anything, and is there again afterwards."""
    target = Target(start, interp, PYTHONMALLOC=allocator)
    tracer = tracer_of(target)
    assert target.says("fork") == "3" and target.says("work") == "worked"
    tracer.send_signal(signal.SIGINT)
    harness.finish(tracer, tracer.args)
    harness.wait_until(lambda: target.says("work") == "worked" and target.says("same") == "True", what="former allocators")
    target.end()
