"""CPython without a GIL: events of threads that run at the same time, against what the program counts itself."""
import re
import signal
import subprocess

import harness
import pytest

from pathlib import Path

pytestmark = [pytest.mark.needs_root, pytest.mark.interps("3.13t")]

PROGRAM = Path(__file__).parent / "data" / "free_threads.py"
THREADS, CALLS = 8, 2000

# Each thread's own variable, an aggregation by string, and a global variable that all threads add to.
SCRIPT = """
python$target:::function-entry /copyinstr(arg1) == "leaf"/ { @["leaf"] = count(); n++; self->in = 1; }
python$target:::function-return /copyinstr(arg1) == "leaf" && self->in/ { @["returned"] = count(); self->in = 0; }
python$target:::exception-raise /copyinstr(arg0) == "Odd"/ { @["Odd"] = count(); }
python$target:::cfunction-entry /copyinstr(arg3) == "abs"/ { @["abs"] = count(); }
END { printf("n %d\\n", n); }
"""


def rows(text, prefix=""):
    return {name: int(count) for name, count in re.findall(rf"^\s*{prefix}(\w+) +(\d+)$", text, re.M)}


def check(result):
    own, got = rows(result.out, "own "), rows(result.out)
    assert result.code == 0 and not result.err and own["leaf"] >= THREADS * CALLS, result
    assert got == {**own, "returned": own["leaf"], "n": own["leaf"]}, result


@pytest.mark.needs_bpf
@pytest.mark.parametrize("place", ["target", "kernel"])
def test_counts(dtrace, interp, place):
    check(dtrace("-q", "-x", f"place={place}", "-n", SCRIPT, "-c", interp.command(PROGRAM, "runs", THREADS, CALLS)))


# With a /proc of its own, where python* is this program alone.
ALONE = ["unshare", "--pid", "--mount-proc", "--fork"]


def test_fork(interp):
    """The child, whose parent has threads at events, goes on in lanes of its own."""
    check(harness.run([*ALONE, harness.DTRACE, "-q", "-x", "place=target", "-n", SCRIPT.replace("python$target:", "python*:"),
                       "-c", interp.command(PROGRAM, "forks", THREADS, CALLS)]))


def test_more_threads_than_lanes(dtrace, interp):
    check(dtrace("-q", "-x", "place=target", "-n", SCRIPT, "-c", interp.command(PROGRAM, "runs", 50, CALLS // 4)))


# The same by the names of functions; what is not named is disabled at its place.
NAMED = """
py$target:__main__:leaf:entry { @["leaf"] = count(); n++; self->in = 1; }
py$target:__main__:leaf:return /self->in/ { @["returned"] = count(); self->in = 0; }
py$target:__main__:leaf:line-16 { @["Odd"] = count(); }
py$target:__main__:leaf:line-19 { @["abs"] = count(); }
END { printf("n %d\\n", n); }
"""


def test_functions_by_name(dtrace, interp):
    check(dtrace("-q", "-x", "place=target", "-n", NAMED, "-c", interp.command(PROGRAM, "runs", THREADS, CALLS)))


@pytest.mark.parametrize("script", [SCRIPT, NAMED], ids=["markers", "names"])
def test_attached(start, interp, script):
    child = start(interp.argv_of(PROGRAM, "waits", THREADS, CALLS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    tracer = harness.dtrace_start("-q", "-x", "place=target", "-n", "tick-20ms /!up/ { up = 1; printf(\"up\\n\"); }", "-n", script,
                                  "-p", child.pid)
    assert tracer.stdout.readline() == b"up\n", tracer.communicate()
    own = child.communicate("\n", timeout=harness.TIMEOUT_S)[0]
    result = harness.finish(tracer, [script])
    result.out += own
    check(result)


def test_clauses_that_are_not_apart(interp):
    """A handler's two steps on one array: no other thread's come between."""
    result = harness.stap("-e", """
        global before, seen, twice
        probe python.function.entry { if (funcname == "leaf") { before = seen[0]; seen[0] = before + 1; twice += seen[0] == before + 1 } }
        probe end { printf("seen %d\\ntwice %d\\n", seen[0], twice) }""", "-c", interp.command(PROGRAM, "runs", THREADS, CALLS))
    own = rows(result.out, "own ")["leaf"]
    assert result.code == 0 and rows(result.out) == {"seen": own, "twice": own}, result


def test_stacks(dtrace, interp):
    """Of each thread its own frames, with the lines that the program's text has."""
    lines = PROGRAM.read_text().splitlines()
    want = "".join(f"{PROGRAM.name}:{1 + lines.index(text)} ({name})\n" for name, text in (
        ("leaf", "    return abs(i)"), ("work", "        leaf(i)"), ("run.<locals>.begin", "        work(n)")))
    result = dtrace("-q", "-x", "place=target", "-n", """
        python$target:::cfunction-entry /copyinstr(arg3) == "abs"/ { n++; pystack(3); }
        END { printf("n %d\\n", n); }""", "-c", interp.command(PROGRAM, "runs", THREADS, 20))
    frames = re.findall(r"^ *\[ .*/(.*\n)", result.out.replace(" ]\n", "\n"), re.M)
    stacks = ["".join(frames[k:k + 3]) for k in range(0, len(frames), 3)]
    assert result.code == 0 and rows(result.out)["n"] == len(stacks) == THREADS * 20 and set(stacks) == {want}, result


LINES = """
import sys
def work(n):
    for i in range(n): leaf(i)
def leaf(i):
    if i:
        x = [
            i,
            2]
    while i: i -= 1
    return 1
def gen():
    for i in range(3):
        yield i
def rest():
    for g in gen():
        while g:
            g -= 1
    with open("/dev/null") as f:
        pass
    try: raise KeyError
    except KeyError: pass
    finally: 1
seen = {}
def tracer(frame, what, arg):
    if what == "line" and frame.f_code.co_filename == __file__:
        seen[frame.f_code.co_name] = seen.get(frame.f_code.co_name, 0) + 1
    return tracer
def both():
    work(10)
    rest()
if sys.argv[1:]:
    sys.settrace(tracer)
both()
sys.settrace(None)
for name, count in seen.items(): print("own", name, count)
"""


def test_lines(dtrace, interp):
    """They come from sys.monitoring there, and are those of sys.settrace."""
    result = dtrace("-q", "-x", "place=target", "-n", """
        python$target:::line /basename(copyinstr(arg0)) == "lines.py" && copyinstr(arg1) != "<module>"/
        { @[copyinstr(arg1)] = count(); }""", "-c", " ".join([*interp.argv, interp.add(LINES, "lines.py")]))
    own = harness.run([*interp.argv, interp.add(LINES, "lines.py"), "1"])
    assert result.code == 0 and rows(result.out) == rows(own.out, "own ") != {}, (result, own)


MEMORY = """
import sys, threading
def work():
    for _ in range(200): bytes(100_003)
started = [threading.Thread(target=work) for _ in range(8)]
for t in started: t.start()
for t in started: t.join()
print("size", sys.getsizeof(bytes(100_003)))
"""


def test_memory(dtrace, interp):
    size = int(harness.run([*interp.argv, "-c", MEMORY]).out.split()[1])
    result = dtrace("-q", "-x", "place=target", "-n", f"""
        python$target:::memory-alloc /arg1 == {size}/ {{ @["alloc"] = count(); self->at = arg2; }}
        python$target:::memory-free /self->at && arg1 == self->at/ {{ @["free"] = count(); self->at = 0; }}
        """, "-c", interp.command(MEMORY))
    assert result.code == 0 and rows(result.out) == {"size": size, "alloc": 1601, "free": 1601}, result


VALUES = Path(__file__).parent / "data" / "free_values.py"
READS = {"number": 'pyattr(pyarg(0), "number")', "slot": 'pyattr(pyarg(1), "own")', "table": 'pyitem(pyarg(3), "key")'}
PROBE = 'python$target:::function-entry /copyinstr(arg1) == "probe"/ { %s }\n'
FAULT = r"it is being changed at this moment \(0x[0-9a-f]+\) at BPF pc \d+$"


def test_values_that_others_change(dtrace, interp):
    """Each is one that was stored, or there is a fault; never one of an object that was freed meanwhile."""
    script = "".join(PROBE % f'this->n = pyint({read}); @["{name}"] = count(); @[this->n & 0xffffffffff ? "bad" : "good"] = count();'
                     for name, read in READS.items())
    script += PROBE % '@[strjoin("text ", pystr(pyattr(pyarg(0), "name")))] = count();' + PROBE % '@["calls"] = count();'
    result = dtrace("-q", "-x", "place=target", "-x", "aggsize=4m", "-n", script, "-c", interp.command(VALUES, 6, 300))
    got, own = rows(result.out), rows(result.out, "own ")["calls"]
    texts = {text: int(n) for text, n in re.findall(r"^ +text (\w+) +(\d+)$", result.out, re.M)}
    assert result.code == 0 and got["calls"] == own == 1800 and "bad" not in got, result
    assert all(text == text[0] * 40 for text in texts), result
    assert all(re.search(FAULT, line) for line in result.err.splitlines()), result
    lost = len(result.err.splitlines())
    assert got["good"] == sum(got[name] for name in READS) and got["good"] + sum(texts.values()) + lost == 4 * own, result
    assert lost < own // 10, result


# Threads by the hundred, that begin and end while others do, and handlers in all of them.
MANY = """
import sys, threading
def leaf(i):
    try: raise KeyError(i)
    except KeyError: return i
def outer(i):
    try: leaf(i); raise ValueError
    except ValueError: pass
    finally: i += 1
def work(n):
    for i in range(n): outer(i)
def starts(n):
    for _ in range(n):
        t = threading.Thread(target=work, args=(3,))
        t.start()
        t.join()
rounds, width = int(sys.argv[1]), 8
if sys.argv[2:]:
    print("ready", flush=True)
    sys.stdin.readline()
outside = [threading.Thread(target=starts, args=(rounds,)) for _ in range(width)]
for t in outside: t.start()
for t in outside: t.join()
threads = width * (rounds + 1)
print("own threads", threads, "\\nown KeyError", 3 * width * rounds, "\\nown ValueError", 3 * width * rounds, flush=True)
"""
MANY_SCRIPT = """
python$target:::thread-start { @["threads"] = count(); }
python$target:::thread-finish { @["ends"] = count(); }
python$target:::thread-finish /copyinstr(arg0) != ""/ { @["names"] = count(); }
python$target:::exception-caught /basename(copyinstr(arg1)) == "script.py"/ { @[copyinstr(arg0)] = count(); }
"""


def check_many(result):
    own, got = {name: int(n) for name, n in re.findall(r"^own (\w+) (\d+) *$", result.out, re.M)}, rows(result.out)
    threads = own["threads"]
    assert result.code == 0 and not result.err and got == {**own, "ends": threads, "names": threads}, result


@pytest.mark.needs_bpf
@pytest.mark.parametrize("place", ["target", "kernel"])
def test_threads_and_handlers(dtrace, interp, place):
    check_many(dtrace("-q", "-x", f"place={place}", "-n", MANY_SCRIPT, "-c", interp.command(MANY, 25)))


def attach(program, script, *options):
    """A tracer of @program that has begun."""
    tracer = harness.dtrace_start("-q", "-x", "place=target", *options, "-n", "tick-20ms /!up/ { up = 1; printf(\"up\\n\"); }", "-n", script,
                                  "-p", program.pid)
    assert tracer.stdout.raw.readline() == b"up\n", tracer.communicate()     # and not what follows
    return tracer


def test_threads_and_handlers_attached(start, interp):
    child = start(interp.argv_of(MANY, 25, "waits"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    tracer = attach(child, MANY_SCRIPT)
    own = child.communicate("\n", timeout=harness.TIMEOUT_S)[0]
    result = harness.finish(tracer, [MANY_SCRIPT])
    result.out += "\n" + own
    check_many(result)


# Threads come and go, raise, catch and change values as long as the program is let.
CHURN = """
import os, sys, threading
class Own(Exception): pass
class Box: pass
box, stop, counts = Box(), threading.Event(), [0] * 6
def leaf(k, i):
    box.value = [i] * 3
    box.__dict__["k%d" % (i % 7)] = i
    try: raise Own(i)
    except Own: return box
def inner(k):
    for i in range(20): leaf(k, i)
    counts[k] += 20
def outer(k):
    while not stop.is_set():
        t = threading.Thread(target=inner, args=(k,))
        t.start()
        t.join()
threads = [threading.Thread(target=outer, args=(k,)) for k in range(6)]
for t in threads: t.start()
print("ready", flush=True)
sys.stdin.readline()
stop.set()
for t in threads: t.join()
print("alive", all(n > 0 for n in counts), flush=True)
"""
CHURN_SCRIPTS = (
    'python$target:::function-entry { @[copyinstr(arg1)] = count(); n++; self->t = timestamp; }'
    ' python$target:::function-return /self->t/ { @q = quantize(timestamp - self->t); self->t = 0; }',
    'python$target:::thread-start, python$target:::thread-finish { @[probename] = count(); n++; }'
    ' python$target:::exception-caught, python$target:::exception-raise { @[copyinstr(arg0)] = count(); n++; }',
    'py$target:__main__:leaf:entry { @[pyint(pyarg(0))] = count(); @s[pystack(4)] = count(); n++; }'
    ' py$target:__main__:leaf:return { @n[pylen(pyattr(pyret, "value"))] = count(); }',
    'python$target:::line { @ = count(); n++; } python$target:::memory-alloc { @a = sum(arg1); } python$target:::gc-start { @g = count(); }',
)
ENDS = " tick-20ms /n > 40/ { exit(0); }"


@pytest.mark.parametrize("rounds", [6, pytest.param(300, marks=pytest.mark.nightly)])
def test_tracers_come_and_go_while_threads_do(start, interp, rounds):
    """The program lives, each tracer sees events and ends by itself, and the one that stays has not lost its threads."""
    child = start(interp.argv_of(CHURN), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    stays = attach(child, CHURN_SCRIPTS[0])
    for k in range(rounds):
        pair = [attach(child, CHURN_SCRIPTS[n % len(CHURN_SCRIPTS)] + ENDS) for n in (k, k + 1)]
        if k % 3 == 2:
            pair[0].kill()
            pair.pop(0).communicate()
        for tracer in pair:
            result = harness.finish(tracer, ["dtrace"])
            assert result.code == 0 and re.search(r"\d", result.out), result
            assert all(re.search(FAULT, line) for line in result.err.splitlines()), result
    stays.send_signal(signal.SIGINT)
    result = harness.finish(stays, ["dtrace"])
    assert result.code == 0 and not result.err and rows(result.out)["leaf"] > 0, result
    assert child.communicate("\n", timeout=harness.TIMEOUT_S)[0] == "alive True\n" and child.returncode == 0


TASKS = """
import asyncio, sys, threading
made = []
class Loop(asyncio.SelectorEventLoop):
    def create_task(self, coro, **more):
        made.append(1)
        return super().create_task(coro, **more)
async def work(n): await asyncio.sleep(0)
async def main():
    for k in range(100):
        await asyncio.gather(*(asyncio.create_task(work(n)) for n in range(5)))
def run():
    with asyncio.Runner(loop_factory=Loop) as runner: runner.run(main())
threads = [threading.Thread(target=run) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("made", len(made), flush=True)
"""


def test_tasks_of_several_loops(dtrace, interp):
    """Eight event loops at once: each task is made once, as their own create_task() has it."""
    script = 'python$target:::task-create { n++; } END { printf("seen %d\\n", n); }'
    result = dtrace("-q", "-x", "place=target", "-n", script, "-c", interp.command(TASKS))
    made, seen = (int(re.search(rf"^{word} (\d+)$", result.out, re.M)[1]) for word in ("made", "seen"))
    assert made > 4000 and seen == made and not result.err, result
