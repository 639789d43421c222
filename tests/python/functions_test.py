"""Functions of Python by name: the py provider.  What must come out is what the program counts itself."""
import os
import re
import shutil
import subprocess

import pytest

import harness

MONITORED = ("3.13", "3.14", "3.15")
VERSIONS = ("3.9", "3.11") + MONITORED

# Counts of every function of this program, written by the functions themselves, but for those of their events that only the
# interpreter sees: each return and raise is counted where it is about to happen.
PROGRAM = """
import collections, functools, sys
want = collections.Counter()
def note(what, depth=1):
    want[sys._getframe(depth).f_code.co_name, what] += 1

class Order:
    def total(self, n):
        note("entry")
        got = sum(self.part(k) for k in range(n))
        note("return")
        return got
    @staticmethod
    def part(k):
        note("entry"); note("return")
        return k
    class Inner:
        @classmethod
        def deep(cls, fail):
            note("entry")
            if fail:
                note("raise")
                raise ValueError("deep")
            note("return")

def numbers(n):
    note("entry")
    for k in range(n):
        note("yield")
        yield k
        note("resume")
    note("return")

def delegate(n):
    note("entry")
    for k in numbers(n):
        note("yield")
        yield k
        note("resume")
    note("return")

def thrown():
    note("entry")
    try:
        note("yield")
        yield 1
    except KeyError:
        note("resume")
    note("raise")
    raise LookupError

def passes(fail):
    note("entry")
    try:
        Order.Inner.deep(fail)
    except ValueError:
        note("raise")
        raise
    note("return")

def recursive(n):
    note("entry")
    got = n and recursive(n - 1)
    note("return")
    return got

def decorate(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        note("entry")
        got = fn(*args)
        note("return")
        return got
    return wrapper

@decorate
def decorated(n):
    note("entry")
    note("return")
    return n

def closures(n):
    def closure():
        note("entry"); note("return")
        return n
    return [closure for _ in range(n)]

async def task(n):
    note("entry")
    if n:
        await task(n - 1)
    note("return")

for k in range(5):
    Order().total(k)
for fail in (0, 1, 1, 0):
    try:
        passes(fail)
    except ValueError:
        pass
list(delegate(4))
g = thrown()
next(g)
try:
    g.throw(KeyError())
except LookupError:
    pass
recursive(7)
decorated(3)
for c in closures(3):
    c()
try:
    task(3).send(None)
except StopIteration:
    pass
for (name, what), n in sorted(want.items()):
    print("want", name, what, n)
"""

# co_name of what PROGRAM notes
NOTED = {"total", "part", "deep", "numbers", "delegate", "thrown", "passes", "recursive", "wrapper", "decorated", "closure", "task"}


def rows(text, prefix):
    return {(name, what): int(n) for name, what, n in re.findall(rf"^{prefix} (\S+) (\S+) (\d+)$", text, flags=re.M)}


@pytest.fixture(params=["target", "kernel"])
def placed(request, dtrace):
    """dtrace in each place: the events and their names are the same."""
    return lambda *args: dtrace("-x", f"place={request.param}", *args)


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
def test_every_event(placed, interp):
    result = placed("-q", "-n", 'py$target:__main__:: { @[copyinstr(arg1), probename] = count(); }'
                    ' END { printa("got %s %s %@d\\n", @); }', "-c", interp.command(PROGRAM))
    got = {key: n for key, n in rows(result.out, "got").items() if key[0] in NOTED}
    assert result.code == 0 and got == rows(result.out, "want") and len(got) > 30, result


# What other tools do while PROGRAM runs: a debugger's trace function, also set for frames that run; a coverage tool with an id of
# its own, which switches places off and has them all back; a profiler.
TOOLS = {
    "debugger": """
import bdb, sys
class Debugger(bdb.Bdb):
    steps = 0
    def user_line(self, frame):
        Debugger.steps += 1
        self.set_step()
Debugger().run(compile(%r, __file__, "exec"), {"__name__": "__main__", "__file__": __file__})
assert Debugger.steps > 100
""",
    "coverage": """
import sys
lines = []
m = getattr(sys, "monitoring", None)
if m:
    m.use_tool_id(m.COVERAGE_ID, "test coverage")
    def on_line(code, line):
        lines.append((code, line))
        if len(lines) %% 10 == 0:
            m.restart_events()
        return m.DISABLE
    for event, fn in (m.events.LINE, on_line), (m.events.PY_START, lambda code, off: m.DISABLE):
        m.register_callback(m.COVERAGE_ID, event, fn)
    m.set_events(m.COVERAGE_ID, m.events.LINE | m.events.PY_START)
else:
    def tracer(frame, what, arg):
        lines.append((frame.f_code, frame.f_lineno))
        return tracer
    sys.settrace(tracer)
exec(compile(%r, __file__, "exec"), {"__name__": "__main__", "__file__": __file__})
if not m:
    sys.settrace(None)
assert len(lines) > 50
""",
    "profiler": """
import cProfile
p = cProfile.Profile()
p.run(compile(%r, __file__, "exec"))
assert len(p.getstats()) > 10
""",
}


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_beside_other_tools(dtrace, interp, tool):
    """Optimised code, and others who watch the same functions: neither loses anything."""
    result = dtrace("-q", "-n", 'py$target:__main__:: { @[copyinstr(arg1), probename] = count(); }'
                    ' END { printa("got %s %s %@d\\n", @); }', "-c",
                    " ".join([*interp.argv, "-O", interp.add(TOOLS[tool] % PROGRAM)]))
    got = {key: n for key, n in rows(result.out, "got").items() if key[0] in NOTED}
    assert result.code == 0 and "Traceback" not in result.err, result
    assert got == rows(result.out, "want") and len(got) > 30, result


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
def test_names(placed, interp):
    """probemod, probefunc and the line that is printed name the function that was met, not the pattern."""
    result = placed("-n", 'py*:__main_?:*closure:entry, py$target:__main__:Order*:return { trace(probemod); trace(probefunc); }'
                    .replace("py*", "py$target"), "-c", interp.command(PROGRAM))
    lines = {" ".join(line.split()[2:]) for line in result.out.splitlines() if "__main__" in line}
    assert lines == {"closures.<locals>.closure:entry __main__ closures.<locals>.closure",
                     "Order:return __main__ Order", "Order.Inner:return __main__ Order.Inner",
                     "Order.total:return __main__ Order.total", "Order.part:return __main__ Order.part",
                     "Order.total.<locals>.<genexpr>:return __main__ Order.total.<locals>.<genexpr>",
                     "Order.Inner.deep:return __main__ Order.Inner.deep"}, result


@pytest.mark.parametrize("script, says", [
    ("py$target:m:f:entyr {}", "entry, return, raise, yield, resume and line-N"),
    ("py$target:m:f:line-0x {}", "line-N"),
])
@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_refused(dtrace, interp, script, says):
    result = dtrace("-n", script, "-c", interp.command("pass"))
    assert result.code == 1 and says in result.err, result


@pytest.mark.parametrize("name, says", [
    ("gil-hold", "gil-wait, gil-take and gil-drop"), ("task-new", "task-create is when asyncio makes one"), ("task-end", "task-step-end where arg3 is not 0"),
    ("thread-end", "thread-finish"),
    ("object-alloc", "memory-alloc tells of each allocation"), ("memory-release-free", "memory-free tells of the end"),
])
@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_not_there(dtrace, interp, name, says):
    """Events of Python that have no probe: what serves in their place."""
    result = dtrace("-n", f"python$target:::{name} {{}}", "-c", interp.command("pass"))
    assert result.code == 1 and says in result.err, result


THREADS = """
import threading
class Own(threading.Thread):
    def run(self): raise_or_not(self.name)
def raise_or_not(name):
    if "raises" in name: raise SystemExit
threads = [Own(name="own %d" % k) for k in range(3)] + [threading.Thread(target=raise_or_not, args=(n,), name=n) for n in ("raises", "\u00fc")]
for t in threads: t.start()
for t in threads: t.join()
for t in threads: print("want", t.name)
"""


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
def test_threads(placed, interp):
    """What begins and ends a thread, with its name: functions of Python's own."""
    probe = "py$target:threading:Thread._bootstrap_inner:"
    name = 'pystr(pyattr(pyarg("self"), "_name"))'
    result = placed("-q", "-n", f'{probe}entry {{ printf("begin %s\\n", {name}); }} {probe}return {{ printf("end %s\\n", {name}); }}',
                    "-c", interp.command(THREADS))
    want = sorted(re.findall("^want (.*)$", result.out, flags=re.M))
    assert result.code == 0 and len(want) == 5, result
    assert sorted(re.findall("^begin (.*)$", result.out, flags=re.M)) == want, result
    assert sorted(re.findall("^end (.*)$", result.out, flags=re.M)) == want, result


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_refused_processes(dtrace, interp):
    result = dtrace("-x", "agent=never", "-n", "py$target:m:f:entry {}", "-c", interp.command("pass"))
    assert result.code == 1 and "agent=auto" in result.err, result
    result = dtrace("-n", "py$target:m:f:entry {}", "-c", "/bin/true")
    assert result.code == 1 and "runs no CPython" in result.err, result


# Other programs, each with what it is about in front; they print "want NAME N".  A probe's count is "got NAME N".
PROGRAMS = {
    # The same code in two modules, of which one is named: which it is, its globals say each time.
    "modules": ("py$target:wanted:*:entry", """
import types
source = compile("def made():\\n    return lambda: None\\nmade()()", "<made>", "exec")
spaces = [{"__name__": name} for name in ("other", "wanted", "other", "wanted")]
for space in spaces:
    exec(source, space)
for space in spaces * 2:
    space["made"]()
moved = types.FunctionType(spaces[0]["made"].__code__, {"__name__": "wanted"})
moved(); moved()
def plain(): pass
plain.__code__ = spaces[1]["made"].__code__
plain()
spaces[0]["__name__"] = "wanted"
spaces[0]["made"]()
print("want <module> 2")
print("want made", 2 + 4 + 2 + 1)
print("want made.<locals>.<lambda> 2")
"""),
    # A module that is imported late, and again.
    "imports": ("py$target:late_*:*.*:entry, py$target:late_*:f*:entry", """
import importlib, os, sys, tempfile
with tempfile.TemporaryDirectory() as where:
    for n in range(3):
        with open(os.path.join(where, "late_%d.py" % n), "w") as f:
            f.write("class C:\\n    def method(self): pass\\ndef func(): pass\\ndef other(): pass\\n")
    sys.path.insert(0, where)
    for n in range(3):
        late = importlib.import_module("late_%d" % n)
        for _ in range(2):
            late.C().method(); late.func(); late.other()
            late = importlib.reload(late)
print("want C.method 6")
print("want func 6")
"""),
    "recursion": ("py$target::deep:entry, py$target::deep:return", """
import sys
sys.setrecursionlimit(100000)
def deep(n):
    return n and deep(n - 1)
for _ in range(3):
    deep(900)
print("want deep", 2 * 3 * 901)
"""),
    "threads": ("py$target::work:entry, py$target::Pool.step:return, py$target::Pool.step:raise", """
import threading
class Pool:
    def step(self, n):
        if n % 3 == 0:
            raise ValueError
def work(pool):
    for n in range(300):
        try: pool.step(n)
        except ValueError: pass
threads = [threading.Thread(target=work, args=(Pool(),)) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print("want work 4")
print("want Pool.step 1200")
"""),
    "children": ("py$target::child:entry, py$target::both:return", """
import os
def both(): pass
def child(): pass
both()
if os.fork() == 0:
    both(); child()
    os._exit(0)
os.wait()
both()
print("want both 2")
"""),
    "coroutines": ("py$target::Loop.*:entry, py$target::Loop.*:yield, py$target::Loop.*:resume, py$target::Loop.*:return", """
import asyncio
class Loop:
    async def step(self):
        await asyncio.sleep(0)
    async def several(self, n):
        for _ in range(n):
            await self.step()
    async def feed(self):
        for n in range(3):
            yield n
    async def eat(self):
        async for n in self.feed():
            await asyncio.sleep(0)
async def main():
    await asyncio.gather(Loop().several(4), Loop().eat())
asyncio.run(main())
print("want Loop.step", 4 * 4)
print("want Loop.several", 2 + 2 * 4)
print("want Loop.eat", 2 + 2 * 3)
print("want Loop.feed", 2 + 2 * 3)
"""),
    # Events that are switched off by another tool, or switched on again, are not this one's.
    "coverage": ("py$target:__main__:named:entry, py$target:__main__:named:line-*", """
import sys
def named():
    pass
def other():
    pass
seen = []
if hasattr(sys, "monitoring"):
    m = sys.monitoring
    m.use_tool_id(m.COVERAGE_ID, "test")
    m.register_callback(m.COVERAGE_ID, m.events.PY_START, lambda code, off: (seen.append(code.co_name), m.DISABLE)[1])
    m.set_events(m.COVERAGE_ID, m.events.PY_START)
    again = m.restart_events
else:
    def tracer(frame, what, arg):
        seen.append(frame.f_code.co_name)
    sys.settrace(tracer)
    again = lambda: None
for k in range(6):
    named(); other()
    if k == 2:
        again()
if hasattr(sys, "monitoring"):
    m.set_events(m.COVERAGE_ID, 0)
    m.free_tool_id(m.COVERAGE_ID)
else:
    sys.settrace(None)
named()
once = 2 if hasattr(sys, "monitoring") else 6
assert (seen.count("named"), seen.count("other")) == (once, once), seen
print("want named 7")
"""),
    # A generator that is thrown into before it began, and one that is closed; a frame that cannot start.
    "ends": ("py$target::g:entry, py$target::g:raise, py$target::deep:raise", """
import sys
def g():
    yield 1
one = g()
try: one.throw(KeyError)
except KeyError: pass
two = g(); next(two); two.close()
def deep(): deep()
try: deep()
except RecursionError: pass
begun = 0
def count(frame, what, arg):
    global begun
    begun += what == "call" and frame.f_code.co_name == "deep"
sys.setprofile(count)
try: deep()
except RecursionError: pass
finally: sys.setprofile(None)
print("begun", begun > 100)
"""),
}


def pairs(text, prefix):
    return {name: int(n) for name, n in re.findall(rf"^{prefix} (\S+) (\d+)$", text, flags=re.M)}


def of_program(dtrace, interp, name, *more):
    probes, source = PROGRAMS[name]
    result = dtrace("-q", "-n", probes.replace(":line-*", ":line-4") + ' { @[probefunc] = count(); }'
                    ' END { printa("got %s %@d\\n", @); }', *more, "-c", interp.command(source))
    assert result.code == 0, result
    return result


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
@pytest.mark.parametrize("name", ["modules", "imports", "recursion", "threads", "children", "coroutines"])
def test_programs(placed, interp, name):
    result = of_program(placed, interp, name)
    assert pairs(result.out, "got") == pairs(result.out, "want") != {}, result


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
def test_beside_a_tool(placed, interp):
    """Entries and line 4, which is the function's only line, each time; the other tool has its own."""
    result = of_program(placed, interp, "coverage")
    assert pairs(result.out, "got") == {"named": 2 * pairs(result.out, "want")["named"]}, result


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
def test_ends(placed, interp):
    """Thrown into before it began, a generator is resumed and not entered; close() ends one by GeneratorExit, or quietly."""
    _, source = PROGRAMS["ends"]
    result = placed("-q", "-n", 'py$target::g:, py$target::deep:entry, py$target::deep:raise { @[probefunc, probename] = count(); }'
                    ' END { printa("got %s %s %@d\\n", @); }', "-c", interp.command(source))
    got = rows(result.out, "got")
    assert got["g", "entry"] == 1 and got["g", "yield"] == 1 and 1 <= got["g", "resume"] <= 2, result
    assert got["g", "resume"] == got["g", "raise"], result
    # From 3.12 on a frame that the recursion limit keeps from starting is left by its RecursionError all the same.
    assert got["deep", "entry"] > 200 and 0 <= got["deep", "raise"] - got["deep", "entry"] <= 2, result
    assert "begun True" in result.out, result


# More functions than a process is ever asked about at a time, and code that comes and goes.
COMING = """
import gc
for k in range(3000):
    space = {"__name__": "made_%d" % (k % 3)}
    exec("def f_%d(): pass" % (k % 50), space)
    space["f_%d" % (k % 50)]()
    if k % 500 == 0:
        gc.collect()
"""


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
def test_code_that_comes_and_goes(placed, interp):
    result = placed("-q", "-n", 'py$target:made_*:f_*:entry { @[probemod, probefunc] = count(); }'
                    ' END { printa("got %s %s %@d\\n", @); }', "-c", interp.command(COMING))
    want = {}
    for k in range(3000):
        key = f"made_{k % 3}", f"f_{k % 50}"
        want[key] = want.get(key, 0) + 1
    assert result.code == 0 and rows(result.out, "got") == want, result


# The module of code is the name in its globals at each event.
RENAMED = """
import types
def call(): pass
def renames(): globals()["__name__"] = "elsewhere"
def calls(function, n):
    for _ in range(n): function()
calls(call, 300)
renames()
calls(call, 50)
globals()["__name__"] = "__main__"
for k in range(200):                            # the dictionary grows
    globals()["global_%d" % k] = k
    call()
other = types.FunctionType(call.__code__, {"__name__": "elsewhere"})
nameless = types.FunctionType(call.__code__, {})
for k in range(100):
    other(); nameless(); call()
del globals()["__name__"]
calls(call, 10)
globals()["__name__"] = "__main__"
calls(call, 10)
names = {"__name__": "__main__", 1: 2}          # not all are strs
mixed = types.FunctionType(call.__code__, names)
calls(mixed, 70)
names.clear()
calls(mixed, 5)
names.update(first=1, second=2)
calls(mixed, 5)
names["__name__"] = "__main__"
calls(mixed, 5)
many = {"name_%d" % k: k for k in range(100)}   # the name is not among the first
many["__name__"] = "__main__"
calls(types.FunctionType(call.__code__, many), 30)
"""


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS, "3.13t")
def test_renamed(dtrace, interp):
    result = dtrace("-q", "-n", 'py$target:__main__:call:entry, py$target:__main__:call:return, py$target:__main__:renames:entry,'
                    ' py$target:__main__:renames:return { @[probefunc, probename] = count(); }'
                    ' END { printa("got %s %s %@d\\n", @); }', "-c", interp.command(RENAMED))
    calls = 300 + 200 + 100 + 10 + 70 + 5 + 30
    assert result.code == 0 and rows(result.out, "got") == {
        ("call", "entry"): calls, ("call", "return"): calls, ("renames", "entry"): 1}, result


# A deep recursion on 3.11 uses C stack while the evaluator is there: the profile function takes over.
DEEP = """
import sys, threading
sys.setrecursionlimit(10 ** 6)
def deep(n):
    if n:
        deep(n - 1)
def gen(n):
    for k in range(n):
        yield k
deep(20000)
for k in range(3):
    list(gen(5))
    deep(10)
"""


@pytest.mark.needs_root
@pytest.mark.interps("3.11")
def test_deep(placed, interp):
    result = placed("-q", "-n", 'py$target::deep:, py$target::gen: { @[probefunc, probename] = count(); }'
                    ' END { printa("got %s %s %@d\\n", @); }', "-c", interp.command(DEEP))
    calls = 20001 + 3 * 11
    assert result.code == 0 and rows(result.out, "got") == {
        ("deep", "entry"): calls, ("deep", "return"): calls, ("gen", "entry"): 3, ("gen", "return"): 3,
        ("gen", "yield"): 15, ("gen", "resume"): 15}, result


# Lines, also of one function twice on one line of the script, and each time round a loop.
LINES = """
def loop(n):
    for k in range(n):
        k += 1
    return k
class C:
    def loop(self):
        pass
loop(7)
C().loop()
print("ready")
"""


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
def test_lines(placed, interp):
    result = placed("-q", "-n", 'py$target:__main__:*loop:line-4, py$target::loop:line-5, py$target::C.*:line-8, py$target::loop:line-99'
                    ' { @[probefunc, probename, arg2] = count(); }'
                    ' END { printa("got %s %s %d %@d\\n", @); }', "-c", interp.command(LINES))
    got = {tuple(line.split()[1:]) for line in result.out.splitlines() if line.startswith("got")}
    assert got == {("loop", "line-4", "4", "7"), ("loop", "line-5", "5", "1"), ("C.loop", "line-8", "8", "1")}, result


# A process that goes on until it is told to end.  Its functions are there before anybody asks.
RUNNING = """
import functools, sys
class Order:
    class Part:
        def weigh(self): return (lambda: 1)()
    def total(self):
        def inner(): return self.Part().weigh()
        return inner()
def plain(fn):
    @functools.wraps(fn)
    def wrapper(): return fn()
    return wrapper
@plain
def wrapped(): pass
def other(): pass
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        Order().total(); wrapped(); other()
    print("done", flush=True)
"""


class Running:
    def __init__(self, interp):
        self.child = subprocess.Popen(interp.argv_of(RUNNING), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.child.stdout.readline() == "ready\n"

    def run(self, n):
        self.child.stdin.write(f"{n}\n")
        self.child.stdin.flush()
        assert self.child.stdout.readline() == "done\n"

    def end(self):
        self.child.stdin.close()
        assert self.child.wait(harness.TIMEOUT_S) == 0


COUNT_TO_END = ' { @[probefunc] = count(); } tick-20ms /!said/ { said = 1; printf("armed\\n"); } END { printa("got %s %@d\\n", @); }'


def armed(*args):
    tracer = harness.dtrace_start("-q", *args)
    assert tracer.stdout.readline() == b"armed\n"
    return tracer


def ended(tracer):
    out, err = harness.interrupt(tracer)
    assert not err, err
    return pairs(out.decode(), "got")


@pytest.mark.needs_root
@pytest.mark.interps(*VERSIONS)
@pytest.mark.parametrize("places", [("target", "target"), ("kernel", "kernel"), ("kernel", "target")], ids="-".join)
def test_sessions(interp, places):
    """
    Two sessions of a running process, one after the other and at once, see what each has named: functions that ran
    before it came, too.
    """
    target = Running(interp)
    try:
        target.run(1)
        one = armed("-x", f"place={places[0]}", "-p", str(target.child.pid), "-n", "py$target:__main__:Order*:entry" + COUNT_TO_END)
        target.run(10)
        two = armed("-x", f"place={places[1]}", "-p", str(target.child.pid), "-n", "py$target:__main__:*w*:entry, py$target:__main__:other:entry" + COUNT_TO_END)
        target.run(100)
        assert ended(one) == {"Order.total": 110, "Order.total.<locals>.inner": 110, "Order.Part.weigh": 110,
                              "Order.Part.weigh.<locals>.<lambda>": 110}
        target.run(1000)
        assert ended(two) == {"Order.Part.weigh": 1100, "Order.Part.weigh.<locals>.<lambda>": 1100, "wrapped": 1100,
                              "plain.<locals>.wrapper": 1100, "other": 1100}
        target.run(1)
        three = armed("-x", f"place={places[0]}", "-p", str(target.child.pid), "-n", "py$target:__main__:other:return" + COUNT_TO_END)
        target.run(5)
        assert ended(three) == {"other": 5}
    finally:
        target.end()


@pytest.mark.needs_root
@pytest.mark.interps("3.9", "3.13")
@pytest.mark.parametrize("place", ["target", "kernel"])
def test_killed_tracer(interp, place):
    """A tracer that is killed leaves a process that runs on, and that another tracer can ask at once."""
    target = Running(interp)
    try:
        for _ in range(2):
            tracer = armed("-x", f"place={place}", "-p", str(target.child.pid), "-n", "py$target:__main__:Order*:" + COUNT_TO_END)
            target.run(10)
            tracer.kill()
            tracer.communicate()
            target.run(10)
        one = armed("-x", f"place={place}", "-p", str(target.child.pid), "-n", "py$target:__main__:other:entry" + COUNT_TO_END)
        target.run(3)
        assert ended(one) == {"other": 3}
    finally:
        target.end()


# Pythons of a pid namespace of their own, one of them started while the tracer runs.
EVERYWHERE = r"""
$RUN & first=$!
"$@" >"$OUT" & tracer=$!
while ! grep -qs armed "$OUT"; do
    kill -0 $tracer || exit 3
    sleep 0.02
done
$RUN &
wait $tracer
"""

SEEN_TWICE = """
tick-20ms /!said/ { said = 1; printf("armed\\n"); }
py*:__main__:Class.tick:entry /!seen[pid]/ { seen[pid] = 1; printf("%s\\n", probefunc); n++; }
tick-20ms /n == 2/ { exit(0); }
"""


@pytest.mark.needs_root
@pytest.mark.alone
@pytest.mark.interps("3.11", "3.14")
@pytest.mark.parametrize("place", ["target", "kernel"])
@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
def test_all_processes(interp, tmp_path, place):
    out = tmp_path / "out"
    run = interp.command("import time\nclass Class:\n  def tick(self): time.sleep(0.005)\nwhile True: Class().tick()\n")
    result = harness.run(["unshare", "--pid", "--mount-proc", "--fork", "sh", "-c", EVERYWHERE, "sh", harness.DTRACE, "-x", f"place={place}",
                          "-qn", SEEN_TWICE],
                         env=dict(os.environ, RUN=run, OUT=str(out)))
    assert (result.code, sorted(out.read_text().split())) == (0, ["Class.tick", "Class.tick", "armed"]), result
    assert re.fullmatch(harness.LATE, result.err), result
