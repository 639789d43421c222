"""One session of an agent beside another, whose script comes and goes while the program works: it sees each event once."""
import os
import random
import re
import select
import signal
import subprocess
import zlib

import pytest

import harness
from agent.agent_test import end, ready
from agent.control_test import ask

pytestmark = pytest.mark.needs_root

WORKS = 60
WORK = """
import asyncio, gc, sys, threading
def leaf(n):
    return n
def gen():
    yield 1
    yield 2
def fails():
    raise KeyError(1)
async def step():
    await asyncio.sleep(0)
def work():
    for i in range(3):
        leaf(i)
    for i in gen():
        pass
    try:
        fails()
    except KeyError:
        pass
    len("")
    bytes(234567)
    gc.collect()
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
PROGRAM = """
import sys
sys.path.insert(0, FOLDER)
import work
print("ready", flush=True)
for line in sys.stdin:
    if line == "go\\n":
        break
    work.many(int(line))
    print("done", flush=True)
"""

OWN = 'basename(copyinstr(%s)) == "work.py"'
LEAF = OWN % "arg0" + ' && copyinstr(arg1) == "leaf"'

# What a session may count: the probe, which of its events, and how many there are in a work().
KINDS = {
    "entry": ("python$target:::function-entry", LEAF, 4),
    "return": ("python$target:::function-return", LEAF, 4),
    "line": ("python$target:::line", LEAF, 4),
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
    "function's line": ("py$target:work:leaf:line-4", "1", 4),
    "pattern": ("py$target:work:*e*:entry", 'probefunc == "leaf"', 4),
    "stack": ("python$target:::function-entry", LEAF, 4),
}


class Session:
    """A dtrace that counts."""

    def __init__(self, pid, kind):
        probe, where, _ = KINDS[kind]
        stacks = "@[pystack()] = count();" if kind == "stack" else ""
        self.kind = kind
        self.child = harness.dtrace_start("-q", "-x", "place=target", "-p", pid, "-n",
                                          f'{probe} /{where}/ {{ n++; {stacks} }} tick-10ms /!up/ {{ up = 1; printf("up\\n"); }} '
                                          f'END {{ printf("%d\\n", n); {"trunc(@);" if stacks else ""} }}')
        line = self.child.stdout.readline()
        assert line == b"up\n", (kind, line, self.child.communicate())

    def end(self):
        self.child.send_signal(signal.SIGINT)
        result = harness.finish(self.child, [])
        assert result.code == 0 and result.err == "", (self.kind, result)
        return int(re.search(r"^\d+$", result.out, re.M)[0])


@pytest.mark.interps("3.9", "3.11", "3.13", "3.14", "3.15", "3.13t")
@pytest.mark.parametrize("kind", KINDS)
def test_amid(interp, kind):
    """Others come and go; which, a number says (DTAP_SEED)."""
    dice = random.Random(int(os.environ.get("DTAP_SEED", 14)) + zlib.crc32(f"{kind} {interp.version}".encode()))
    interp.add(WORK, "work.py")
    program = interp.add(PROGRAM.replace("FOLDER", repr(interp.inside(interp.dir))), "program.py")
    child = subprocess.Popen([*interp.argv, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    counter, others = None, []
    try:
        ready(child)
        assert ask(child, "2") == "done"
        counter = Session(child.pid, kind)
        child.stdin.write(f"{WORKS}\n")
        child.stdin.flush()
        while not select.select([child.stdout], [], [], 0)[0]:
            others.append(dice.choice([*KINDS]))
            Session(child.pid, others[-1]).end()
        assert child.stdout.readline() == "done\n"
        seen = counter.end()
        assert seen == WORKS * KINDS[kind][2], (seen, others)
        assert end(child) == []
    finally:
        child.kill()
        if counter:
            counter.child.kill()
