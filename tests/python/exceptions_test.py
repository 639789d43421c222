"""Exceptions: where they are raised and through which functions they pass, against what the program itself counts."""
import os
import random
import re
import subprocess

import harness
import pytest

pytestmark = [pytest.mark.needs_root, pytest.mark.interps(*harness.VERSIONS, "3.13t")]

# Each function counts what is about to happen in it: "here" or "passes".
PROGRAM = """
import collections
want = collections.Counter()
def note(function, what, kind):
    want[function, what, kind.__name__] += 1
class Own(Exception): pass
def deep(kind, message):
    note("deep", "here", kind)
    raise kind(message)
def middle(kind, message):
    note("middle", "passes", kind)
    deep(kind, message)
def outer(kind, message):
    try:
        middle(kind, message)
    except kind:
        note("outer", "passes", kind)           # is met on its way to the handler
def again(message):
    try:
        note("again", "passes", ValueError)
        deep(ValueError, message)
    except ValueError:
        raise                                   # no event: neither of sys.settrace nor of sys.monitoring
def of_c(text):
    note("of_c", "here", ValueError)
    int(text)
def instead(message):
    try:
        note("instead", "passes", KeyError)
        deep(KeyError, message)
    except KeyError:
        note("instead", "here", Own)
        raise Own("other")
def steps(message):
    yield 1
    note("steps", "here", Own)
    raise Own(message)
def caught(kind, fn, *args):
    try:
        fn(*args)
    except Exception as e:
        note("caught", "passes", kind)
for k in range(3):
    outer(ValueError, "first")
    outer(Own, "second")
caught(ValueError, again, "third")
caught(ValueError, of_c, "zz")
caught(Own, instead, "fourth")
caught(Own, list, steps("fifth"))
for (function, what, kind), n in want.items():
    print("want %s %s %s %d" % (function, what, kind, n))
"""

SCRIPT = """
python$target:::exception-raise /basename(copyinstr(arg1)) == "script.py"/ {
    @[copyinstr(arg2), pyraised ? "here" : "passes", copyinstr(arg0)] = count();
}
END { printa("got %s %s %s %@d\\n", @); }
"""


def rows(text, prefix):
    return sorted(re.findall(rf"^{prefix} (.*)$", text, flags=re.M))


def test_raised_or_passing(dtrace, interp):
    result = dtrace("-q", "-x", "place=target", "-n", SCRIPT, "-c", interp.command(PROGRAM))
    functions = {line.split()[0] for line in rows(result.out, "want")}
    got = [line for line in rows(result.out, "got") if line.split()[0] in functions]
    assert result.code == 0 and not result.err and got == rows(result.out, "want"), result


def test_leaving(dtrace, interp):
    """The same of functions by name, where an exception leaves them; once for each exception."""
    result = dtrace("-q", "-n", "py$target:__main__::raise { @[copyinstr(arg1), pyraised, pyshow(pyexc)] = count(); }"
                    'END { printa("got %s %d %s %@d\\n", @); }', "-c", interp.command(PROGRAM))
    assert result.code == 0 and not result.err and rows(result.out, "got") == sorted([
        "deep 1 KeyError('fourth') 1", "deep 1 Own('second') 3", "deep 1 ValueError('first') 3", "deep 1 ValueError('third') 1",
        "middle 0 Own('second') 3", "middle 0 ValueError('first') 3", "again 0 ValueError('third') 1",
        "of_c 1 ValueError(\"invalid literal for int() with base 10: 'zz'\") 1", "instead 1 Own('other') 1",
        "steps 1 Own('fifth') 1"]), result


def test_nothing_raised(dtrace, interp):
    result = dtrace("-q", "-n", "py$target:__main__:deep:entry { trace(pyraised); printf(\"there\"); }", "-c", interp.command(PROGRAM))
    assert result.code == 0 and "there" not in result.out and "no such argument" in result.err, result


# Each handler that keeps its exception counts that as its last action; where an exception goes on nothing is counted.
CAUGHT = """
import asyncio, collections, sys
want = collections.Counter()
def note(kind, message=""):
    want[sys._getframe(1).f_code.co_name, kind, message] += 1
class Own(Exception): pass
class Keeps:
    def __init__(self, keeps): self.keeps = keeps
    def __enter__(self): pass
    def __exit__(self, *args): return self.keeps
def fails(kind=Own, message="m"):
    raise kind(message)
def plain():
    try: fails()
    except Own: note("Own", "m")
def named():
    try: fails(ValueError, "named")
    except (KeyError, ValueError) as e: note("ValueError", e.args[0])
def bare():
    try: fails()
    except: note("Own", "m")
def second():
    try: fails(KeyError)
    except ValueError: note("never")
    except KeyError: note("KeyError", "m")
    finally: pass
def misses():
    try: fails(KeyError, "through")
    except ValueError: note("never")
def cleans():
    try: misses()
    finally: want["", "", ""] += 0
def leaves():
    with Keeps(False): cleans()
def through():
    try: leaves()
    except LookupError as e: note("KeyError", "through")
def again():
    try:
        try: fails()
        except Own: raise
    except Own: note("Own", "m")
def other():
    try:
        try: fails(KeyError)
        except KeyError as e: raise Own("instead") from e
    except Own: note("Own", "instead")
def kept():
    with Keeps(True):
        note("Own", "m")
        fails()
    return 1
def kept_in_two():
    with Keeps(False), Keeps(True), Keeps(False):
        note("Own", "m")
        fails()
def from_finally():
    try: fails()
    finally:
        note("Own", "m")
        return 2
def from_loop():
    for k in range(6):
        try: fails(Own, str(k))
        except Own:
            note("Own", str(k))
            if k == 1: continue
            if k == 4: break
    while True:
        try: fails(Own, "loop")
        finally:
            note("Own", "loop")
            break
def returns():
    try: fails()
    except Own:
        try: fails(KeyError)
        except KeyError as e:
            note("KeyError", "m")
            note("Own", "m")
            return [x for x in range(3)]
def nested():
    try: fails()
    except Own as first:
        try: fails(KeyError)
        except KeyError: note("KeyError", "m")
        plain()
        note("Own", "m")
def deep(n):
    try:
        if n: deep(n - 1)
        fails(Own, str(n))
    except Own: note("Own", str(n))
def by_c():
    def key(x):
        try: fails(ValueError)
        except ValueError: note("ValueError", "m")
        return x
    sorted([3, 1, 2], key=key)
    try: int("zz")
    except ValueError as e: note("ValueError", e.args[0])
    getattr(3, "none", None)
    next(iter([]), None)
def feeds():
    k = 0
    while k < 4:
        try:
            fails(Own, str(k))
        except Own:
            k += 1
            yield k
            plain()
            note("Own", str(k - 1))
def takes():
    while True:
        try: yield
        except KeyError as e: note("KeyError", e.args[0])
def generators():
    for k in feeds(): pass
    g = takes()
    next(g)
    for k in range(3): g.throw(KeyError("thrown"))
    g.close()
    g = feeds()
    next(g)
    try: g.throw(ValueError("away"))
    except ValueError: note("ValueError", "away")
async def waits(n):
    try: await waits(n - 1) if n else fails()
    except Own:
        await asyncio.sleep(0)
        if n < 2: raise
        note("Own", "m")
async def coroutines():
    await asyncio.gather(waits(2), waits(3))
    task = asyncio.ensure_future(asyncio.sleep(100))
    await asyncio.sleep(0)
    task.cancel()
    try: await task
    except asyncio.CancelledError: note("CancelledError")
def long():
    try: fails()
    except Own:
        %s
        note("Own", "m")
class Body:
    try: fails()
    except Own: note("Own", "m")
NEW = '''
def grouped():
    try: raise ExceptionGroup("group", [KeyError("m")])
    except* KeyError: note("ExceptionGroup", "group")
    except* Own: note("never")
    try:
        try: raise ExceptionGroup("rest", [KeyError("m"), ValueError("m")])
        except* KeyError: pass
    except ExceptionGroup: note("ExceptionGroup", "rest")
'''
rounds = [plain, named, bare, second, through, again, other, kept, kept_in_two, from_finally, from_loop, returns, nested,
          lambda: deep(5), by_c, generators, long]
if sys.version_info >= (3, 11):
    exec(compile(NEW, __file__, "exec"))
    rounds.append(grouped)
for k in range(3):
    for f in rounds: f()
asyncio.run(coroutines())
for (function, kind, message), n in want.items():
    if n: print("want %%s %%s %%s %%d" %% (function, kind, message, n))
""" % "; ".join(f"v{k} = {k}.5" for k in range(300))

CAUGHT_SCRIPT = """
python$target:::exception-caught /basename(copyinstr(arg1)) == "script.py"/ {
    @[copyinstr(arg2), copyinstr(arg0), pylen(pyattr(pyexc, "args")) ? pystr(pyitem(pyattr(pyexc, "args"), 0)) : ""] = count();
}
END { printa("got %s %s %s %@d\\n", @); }
"""


def test_caught(dtrace, interp):
    """Where exceptions end, also in finally, with, generators; not those that a handler lets go on."""
    result = dtrace("-q", "-x", "place=target", "-n", CAUGHT_SCRIPT, "-c", interp.command(CAUGHT))
    got = rows(result.out, "got")
    assert result.code == 0 and len(got) > 35 and got == rows(result.out, "want"), result


class Maker:
    """A random program of nested handlers.  Before a handler ends, or is left by return, break or continue, it counts that;
    what an __exit__ keeps, that counts."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []

    def put(self, depth, text):
        self.lines.append("    " * depth + text)

    def leave(self, depth, how, handlers):
        for name in reversed(handlers):
            self.put(depth, f"note('{self.name}', {name})")
        self.put(depth, how)

    def statement(self, depth, handlers, loop):
        """@handlers: the names of the exceptions of the handlers around it; @loop: how many were outside the innermost loop."""
        kind = self.random.choice(["try", "try", "try", "with", "finally", "for"] if depth < 6 else
                                  ["raise", "raise", "raise", "call", "leave", "again"])
        if kind in ("raise", "leave", "again"):
            self.put(depth, "if chance():")
            depth += 1
            self.put(depth, "pass")
        if kind == "raise":
            self.put(depth, f"raise E{self.random.randrange(3)}() from None")
        elif kind == "call":
            self.put(depth, f"f{self.random.randrange(self.number)}()" if self.number else "pass")
        elif kind == "try":
            self.put(depth, "try:")
            self.block(depth + 1, handlers, loop)
            for k in self.random.sample(range(3), self.random.choice((1, 1, 2))):
                self.put(depth, f"except E{k} as e{depth}:")
                self.block(depth + 1, [*handlers, f"e{depth}"], loop)
                self.put(depth + 1, f"note('{self.name}', e{depth})")
        elif kind == "with":
            self.put(depth, f"with Keeps('{self.name}', {self.random.random() < 0.5}):")
            self.block(depth + 1, handlers, loop)
        elif kind == "finally":
            self.put(depth, "try:")
            self.block(depth + 1, handlers, loop)
            self.put(depth, "finally:")
            self.put(depth + 1, "len('x')")
        elif kind == "for":
            self.put(depth, "for k in range(2):")
            self.block(depth + 1, handlers, len(handlers))
        elif kind == "again":
            self.put(depth, "raise" if handlers else "pass")
        elif loop is not None and self.random.random() < 0.6:
            self.leave(depth, self.random.choice(["break", "continue"]), handlers[loop:])
        else:
            self.leave(depth, "return", handlers)

    def block(self, depth, handlers, loop):
        self.put(depth, "pass")
        for _ in range(2 if depth < 4 else 1):
            self.statement(depth, handlers, loop)

    def program(self):
        self.put(0, "import collections\nwant, seed = collections.Counter(), [1]\n"
                    "def chance():\n    seed[0] = (seed[0] * 1103515245 + 12345) % 2 ** 31\n    return seed[0] >> 16 & 1\n"
                    "def note(name, e): want[name, type(e).__name__] += 1\n"
                    "class Keeps:\n    def __init__(self, *args): self.name, self.keeps = args\n    def __enter__(self): pass\n"
                    "    def __exit__(self, kind, e, trace):\n        if self.keeps and e: note(self.name, e)\n        return self.keeps")
        for k in range(3):
            self.put(0, f"class E{k}(Exception): pass")
        for self.number in range(12):
            self.name = f"f{self.number}"
            self.put(0, f"def {self.name}():")
            self.block(1, [], None)
        self.put(0, "def main(f):\n    try: f()\n    except Exception as e: note('main', e)\n"
                    "for k in range(5):\n    for n in range(12): main(globals()['f%d' % n])\n"
                    "for (name, kind), n in want.items(): print('want', name, kind, n)")
        return "\n".join(self.lines) + "\n"


def test_caught_random(dtrace, interp):
    script = """python$target:::exception-caught /basename(copyinstr(arg1)) == "script.py"/ { @[copyinstr(arg2), copyinstr(arg0)] = count(); }
                END { printa("got %s %s %@d\\n", @); }"""
    result = dtrace("-q", "-n", script, "-c", interp.command(Maker(int(os.environ.get("DTAP_SEED", 1))).program()))
    got = rows(result.out, "got")
    assert result.code == 0 and len(got) > 20 and got == rows(result.out, "want"), result


BESIDE = """
import sys
seen, want = [], 0
def trace(frame, event, arg):
    if frame.f_code.co_filename != __file__ or frame.f_code.co_name == "<module>": return
    if frame.f_code.co_name == "by_instruction" and event == "call": frame.f_trace_opcodes = True
    seen.append((frame.f_code.co_name, event, frame.f_lineno))
    return trace
def fails(): raise KeyError
def handles():
    global want
    for k in range(3):
        try: fails()
        except KeyError:
            inner()
            want += 1
def inner():
    global want
    try: by_instruction()
    except KeyError: want += 1
def by_instruction():
    global want
    try: fails()
    except KeyError: want += 1
    fails()
def steps():
    global want
    try: fails()
    except KeyError:
        yield 1
        handles()
        want += 1
def rounds():
    handles()
    list(steps())
    g = steps()
    next(g)
    g.close()
rounds()
sys.settrace(trace)
rounds()
sys.settrace(None)
rounds()
for row in seen: print("seen", *row)
print("want", want)
"""


@pytest.mark.interps("3.9", "3.11", "3.13", "3.15", "3.13t")
def test_caught_beside(dtrace, interp):
    """A trace function of the program, also of instructions, has the events that it has without."""
    alone = subprocess.run(interp.argv_of(BESIDE), stdout=subprocess.PIPE, text=True, check=True).stdout
    script = """python$target:::exception-caught /basename(copyinstr(arg1)) == "script.py"/ { n++; } END { printf("got %d\\n", n); }"""
    result = dtrace("-q", "-n", script, "-c", interp.command(BESIDE))
    assert result.code == 0 and rows(result.out, "seen") == rows(alone, "seen"), result
    assert rows(result.out, "got") == rows(alone, "want"), result


# Another one watches instructions, too: from the start, or when a handler has been at work.  What it sees in each work().
INSTRUCTIONS = """
import sys
how, when = {how!r}, {when!r}
seen = 0
def work():
    try: raise KeyError
    except KeyError:
        pass
def trace(frame, event, arg):
    global seen
    if frame.f_code is not work.__code__: return
    frame.f_trace_opcodes = True
    seen += event == "opcode"
    return trace
def instruction(code, offset):
    global seen
    seen += code is work.__code__
def returned(code, offset, value):
    global seen
    seen += 10 * (code is work.__code__)
def begin():
    if how == "trace":
        sys.settrace(trace)
        return
    m = sys.monitoring
    m.use_tool_id(1, "another")
    m.register_callback(1, m.events.INSTRUCTION, instruction)
    m.register_callback(1, m.events.PY_RETURN, returned)
    m.register_callback(1, m.events.LINE, lambda code, line: m.DISABLE)
    if how == "local": m.set_local_events(1, work.__code__, m.events.INSTRUCTION)
    elif how == "global": m.set_events(1, m.events.INSTRUCTION)
    elif how == "returns": m.set_events(1, m.events.PY_RETURN)
    else: m.set_events(1, m.events.PY_RETURN | m.events.LINE)
if when == "before": begin()
work()
if when == "after": begin()
for k in range(6):
    seen = 0
    work()
    print("seen", k, seen)
sys.settrace(None)
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["trace", "local", "global", "returns", "lines"])
def test_caught_instructions(dtrace, interp, how, when):
    """Others that watch instructions have theirs, and dtap has its own, whatever else is watched: function-return by both."""
    if how != "trace" and interp.version in ("3.9", "3.11"):
        pytest.skip("no sys.monitoring")
    program = INSTRUCTIONS.format(how=how, when=when)
    alone = subprocess.run(interp.argv_of(program), stdout=subprocess.PIPE, text=True, check=True).stdout
    script = """python$target:::exception-caught /basename(copyinstr(arg1)) == "script.py"/ { n++; } python$target:::function-return { m++; }
                py$target:nowhere:f:line-1 { m++; } END { printf("got %d\\n", n); }"""
    result = dtrace("-q", "-n", script, "-c", interp.command(program))
    assert result.code == 0 and rows(result.out, "seen") == rows(alone, "seen"), result
    assert int(rows(alone, "seen")[0].split()[1]) > 5 and rows(result.out, "got") == ["7"], result
