"""One session of an agent beside another, whose script comes and goes while the program works: it sees each event once."""
import os
import random
import subprocess
import time
import zlib

import pytest

import harness
from agent.agent_test import end, ready
from agent.control_test import ask
from agent.several_test import Counter

pytestmark = pytest.mark.needs_root

WORKS = 60
WORK = """
import asyncio, gc, sys, threading
def between(): pass
def leaf(n):
    between()
    return n
def gen():
    yield 1
    yield 2
def fails():
    between()
    raise KeyError(1)
async def step():
    await asyncio.sleep(0)
def work():
    for i in range(3):
        leaf(i)
    for i in gen():
        between()
    try:
        fails()
    except KeyError:
        pass
    between()
    len("")
    bytes(234567)
    gc.collect()
    between()
    sys.audit("mine")
    try:
        import nosuchmodule
    except ImportError:
        pass
    thread = threading.Thread(target=leaf, args=(3,))
    thread.start()
    thread.join()
    asyncio.run(step())
def many(times):
    for k in range(times):
        work()
"""
# The program's own tools, which come and go at random, between any two of its lines.
TOOLS = """
import cProfile, gc, random, sys, threading, tracemalloc
dice = random.Random(SEED)
seen = []       # in any thread
# Not what the interpreter itself tells by chance: in 3.9 a line that begins while there is no trace function, later an
# instruction where a line's event is disabled; and not collections, of which there are more where more is allocated.
CHANCE = "trace line", "trace opcode", "0 INSTRUCTION", "1 INSTRUCTION"
def note(name, code):
    if name not in CHANCE and code.co_filename.endswith("/work.py") and code.co_name != "between":
        seen.append(name)
def trace(frame, event, arg):
    note(f"trace {event}", frame.f_code)
    return trace
def trace_instructions(frame, event, arg):
    frame.f_trace_opcodes = True
    note(f"trace {event}", frame.f_code)
    return trace_instructions
def profile(frame, event, arg):
    note(f"profile {event}", frame.f_code)
def collected(phase, info): pass
profiler = cProfile.Profile()
def callbacks(on):
    if on:
        gc.callbacks.insert(dice.randrange(len(gc.callbacks) + 1), collected)
    else:
        gc.callbacks.remove(collected)
tools = {
    "trace": lambda on: sys.settrace(trace if on else None),
    "instructions": lambda on: sys.settrace(trace_instructions if on else None),
    "trace threads": lambda on: threading.settrace(trace if on else None),
    "profile": lambda on: sys.setprofile(profile if on else None),
    "profile threads": lambda on: threading.setprofile(profile if on else None),
    "callbacks": callbacks,
    "tracemalloc": lambda on: (tracemalloc.start if on else tracemalloc.stop)(),
    "switches": lambda on: sys.setswitchinterval(0.00001 if on else 0.005),
}
m = getattr(sys, "monitoring", None)
if m:
    tools["cProfile"] = lambda on: (profiler.enable if on else profiler.disable)()     # before, it takes others' place
    for tool in 0, 1:
        m.use_tool_id(tool, f"own {tool}")
        for name in ("PY_START", "PY_RETURN", "CALL", "RAISE", "EXCEPTION_HANDLED", "PY_UNWIND", "INSTRUCTION"):
            m.register_callback(tool, getattr(m.events, name), lambda code, *args, name=f"{tool} {name}": note(name, code))
        m.register_callback(tool, m.events.LINE, lambda *args: m.DISABLE)
        m.register_callback(tool, m.events.JUMP, lambda *args: m.DISABLE)
        for name in ("PY_START", "PY_RETURN", "CALL", "RAISE", "EXCEPTION_HANDLED", "PY_UNWIND", "LINE", "INSTRUCTION", "JUMP"):
            def turn(on, tool=tool, bit=getattr(m.events, name)):
                now = m.get_events(tool)
                m.set_events(tool, now | bit if on else now & ~bit)
            tools[f"{tool} {name}"] = turn
    tools["restart"] = lambda on: m.restart_events()
is_on = dict.fromkeys(tools, False)
main = threading.get_ident()
def between():
    if threading.get_ident() != main or dice.random() < 0.5:
        return
    name = dice.choice(names)
    is_on[name] = not is_on[name]
    tools[name](is_on[name])
names = [*tools]
def end():
    for name in names:
        if is_on[name] and name != "restart":
            is_on[name] = False
            tools[name](False)
    return sorted((name, seen.count(name)) for name in set(seen))
"""

PROGRAM = """
import sys
sys.path.insert(0, FOLDER)
import work
if TOOLS:
    import tools
    work.between = tools.between
print("ready", flush=True)
for line in sys.stdin:
    if line == "go\\n":
        break
    work.many(int(line))
    print(tools.end() if TOOLS else "done", flush=True)
"""

OWN = 'basename(copyinstr(%s)) == "work.py"'
LEAF = OWN % "arg0" + ' && copyinstr(arg1) == "leaf"'

# What a session may count: the probe, which of its events, and how many there are in a work().
KINDS = {
    "entry": ("python$target:::function-entry", LEAF, 4),
    "return": ("python$target:::function-return", LEAF, 4),
    "line": ("python$target:::line", LEAF, 8),
    "cfunction": ("python$target:::cfunction-entry", OWN % "arg0" + ' && copyinstr(arg1) == "work" && copyinstr(arg3) == "len"', 1),
    "raise": ("python$target:::exception-raise", OWN % "arg1" + ' && copyinstr(arg0) == "KeyError"', 2),
    "caught": ("python$target:::exception-caught", OWN % "arg1", 2),
    "gc": ("python$target:::gc-start", "arg0 == 2", 1),
    "import": ("python$target:::import-find-load-start", 'copyinstr(arg0) == "nosuchmodule"', 1),
    "audit": ("python$target:::audit", 'copyinstr(arg0) == "mine"', 1),
    "thread": ("python$target:::thread-start", "1", 1),
    "memory": ("python$target:::memory-alloc", "arg1 > 234567 && arg1 < 234667", 1),
    "task": ("python$target:::task-create", 'copyinstr(arg1) == "step"', 1),
    "function": ("py$target:work:leaf:entry", "1", 4),
    "function's return": ("py$target:work:leaf:return", "pyint(pyret) < 4", 4),
    "function's raise": ("py$target:work:fails:raise", "1", 1),
    "function's yield": ("py$target:work:gen:yield", "1", 2),
    "function's line": ("py$target:work:leaf:line-6", "1", 4),
    "pattern": ("py$target:work:*e*:entry", 'probefunc == "leaf"', 4),
    "stack": ("python$target:::function-entry", LEAF, 4),
}


def session(pid, kind):
    probe, where, _ = KINDS[kind]
    return Counter(pid, probe, where, "@[pystack()] = count();" if kind == "stack" else "")


class Program:
    """PROGRAM, at work or about to be."""

    def __init__(self, interp, tools=""):
        interp.add(WORK, "work.py")
        interp.add(tools, "tools.py")
        text = PROGRAM.replace("FOLDER", repr(interp.inside(interp.dir))).replace("TOOLS", str(bool(tools)))
        self.child = subprocess.Popen([*interp.argv, interp.add(text, "program.py")],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ready(self.child)
        ask(self.child, "2")

    def begin(self):
        self.begun = time.monotonic()
        self.child.stdin.write(f"{WORKS}\n")
        self.child.stdin.flush()

    def is_at_work(self):
        return harness.is_at_work(self.child, self.begun)

    def end(self):
        """What it says that its own tools have seen."""
        line = self.child.stdout.readline()
        assert line, self.child.communicate()
        return line


def dice_of(*words):
    """What a test does at random, by its name and DTAP_SEED."""
    return random.Random(int(os.environ.get("DTAP_SEED", 14)) + zlib.crc32(" ".join(words).encode()))


def holds(interp, kind, tools, amid):
    program = Program(interp, tools)
    counter = None
    try:
        counter = session(program.child.pid, kind)
        program.begin()
        told = amid(program)
        own = program.end()
        seen = counter.end()
        assert seen == WORKS * KINDS[kind][2], (seen, told)
        assert end(program.child) == []
        return own
    finally:
        program.child.kill()
        if counter:
            counter.child.kill()


@pytest.mark.slow
@pytest.mark.interps("3.9", "3.11", "3.13", "3.14", "3.15", "3.13t")
@pytest.mark.parametrize("kind", KINDS)
def test_others_come_and_go(interp, kind):
    dice = dice_of(kind, interp.version)

    def amid(program):
        others = []
        while program.is_at_work():
            others.append(dice.choice([*KINDS]))
            session(program.child.pid, others[-1]).end()
        return others

    holds(interp, kind, "", amid)


@pytest.mark.slow
@pytest.mark.interps("3.9", "3.11", "3.13", "3.14", "3.15")   # 3.13t crashes of itself
@pytest.mark.parametrize("kind", KINDS)
def test_own_tools_come_and_go(interp, kind):
    """They see what they see without dtap, as well."""
    seed = dice_of(kind, interp.version, "tools").randrange(1 << 30)
    tools = TOOLS.replace("SEED", str(seed))
    alone = Program(interp, tools)
    try:
        alone.begin()
        without = alone.end()
        assert end(alone.child) == []
    finally:
        alone.child.kill()
    assert holds(interp, kind, tools, lambda program: seed) == without, seed


INSTRUCTIONS = """
import sys
seen = 0
def trace(frame, event, arg):
    global seen
    if frame.f_code is not work.__code__: return
    frame.f_trace_opcodes = True
    seen += event == "opcode"
    return trace
def work():
    try: raise KeyError
    except KeyError: pass
def told():
    global seen
    seen = 0
    work()
    return seen
sys.settrace(trace)
first = told()
print("ready", flush=True)
for line in sys.stdin:
    if line == "go\\n":
        break
    print(all(told() == first > 5 for _ in range(100)), flush=True)
sys.settrace(None)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_instructions_stay(interp, kind):
    """A trace function of the program's that is told of instructions, set before: CPython loses who watches them (watched.c)."""
    child = subprocess.Popen([*interp.argv, interp.add(INSTRUCTIONS, "program.py")],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        ready(child)
        assert ask(child, "go on") == "True"
        counter = session(child.pid, kind)
        assert ask(child, "go on") == "True"
        counter.end()
        assert ask(child, "go on") == "True"
        assert end(child) == []
    finally:
        child.kill()
