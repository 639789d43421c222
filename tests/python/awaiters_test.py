"""pystack(n, "async"): behind the running task's coroutines those that wait for it, against what the program says of them."""
import re

import pytest

import harness

pytestmark = [pytest.mark.needs_root, pytest.mark.interps(*harness.VERSIONS)]

# here() writes the names of the stack that is wanted: from the function that calls it to the task's coroutine, and then those
# of the coroutine of the task that waits for it, by cr_await, and so on.  Who waits is what the program itself has noted
# (`waits`).  Where a task begins eagerly its caller goes on, down to that one's task.
PROGRAM = """
import asyncio, contextlib, gc, sys, types

waits = {}                              # who waits for a task: itself said so, before
PYTHON = %(python)r

class Own(asyncio.tasks._PyTask): pass

def name_of(code):
    return getattr(code, "co_qualname", code.co_name)

def chain(coro):
    '''The frames of a suspended coroutine, the innermost first.'''
    names = []
    while coro is not None:
        for kind in ("cr", "gi", "ag"):
            if hasattr(coro, kind + "_frame"):
                frame = getattr(coro, kind + "_frame")
                if frame is None:
                    return names
                names.insert(0, name_of(frame.f_code))
                coro = getattr(coro, "gi_yieldfrom" if kind == "gi" else kind + "_await")
                break
        else:
            if type(coro).__name__ in ("async_generator_asend", "coroutine_wrapper"):
                coro = the_only(coro)
                continue
            break
    return names

def the_only(wrapper):
    for o in gc.get_referents(wrapper):
        if isinstance(o, (types.AsyncGeneratorType, types.CoroutineType)):
            return o

def mark(): pass

def here():
    task = asyncio.current_task() or asyncio.tasks._py_current_task()
    own, frame, names = task.get_coro(), sys._getframe(1), ["mark", "here"]
    while True:
        names.append(name_of(frame.f_code))
        if frame is getattr(own, "cr_frame", None) or frame is getattr(own, "gi_frame", None):
            break
        frame = frame.f_back
    while task in waits:
        task = waits[task]
        names += chain(task.get_coro())
    print("want " + " ".join(names))
    mark()

async def leaf(depth):
    if depth:
        return await leaf(depth - 1)
    here()
    await asyncio.sleep(0)
    here()

class Thing:
    async def method(self):
        await leaf(1)
    def __await__(self):
        return (yield from self.method().__await__())

async def feed():
    await leaf(0)
    yield 1
    await leaf(0)
    yield 2

async def loops():
    async for k in feed():
        await leaf(0)

@contextlib.asynccontextmanager
async def context():
    await leaf(0)
    yield
    await leaf(0)

async def within():
    async with context():
        await leaf(0)

def make(coro, waiter=True, by=None):
    task = asyncio.get_running_loop().create_task(coro)
    if waiter:
        waits[task] = by or me()
    return task

def me():
    return asyncio.current_task() or asyncio.tasks._py_current_task()

async def nested(n):
    '''A task that waits for a task that waits for a task.'''
    await leaf(0)
    if n:
        a = b = c = n
        x = [a, b, await make(nested(n - 1)), c]

async def things():
    await Thing()
    await make(Thing().method())

async def gathers():
    await asyncio.gather(make(leaf(2)), make(leaf(0)), asyncio.gather(make(leaf(1))))

async def shields():
    await asyncio.shield(make(leaf(1)))

async def waiting():
    await asyncio.wait([make(leaf(0)), make(leaf(1))])
    await asyncio.wait([make(leaf(0))], timeout=10)

async def in_time():
    task = make(leaf(1))
    await asyncio.wait_for(task, 10)

async def groups():
    async with asyncio.TaskGroup() as group:
        for k in range(2):
            waits[group.create_task(leaf(k))] = me()
        await leaf(0)
    async with asyncio.TaskGroup() as outer, asyncio.TaskGroup() as group:
        waits[group.create_task(nested(1))] = me()

async def forgotten():
    '''Nobody waits for it, whatever is called when it ends.'''
    victim = make(asyncio.sleep(60), False)
    task = make(leaf(1), False)
    task.add_done_callback(lambda t: None)
    task.add_done_callback(victim.get_name and (lambda t, v=victim: v.cancel()))
    with contextlib.suppress(asyncio.CancelledError):
        while not task.done():
            await asyncio.sleep(0)
    class Calls:
        def __init__(self, task): self._parent_task = task
        def _on_task_done(self, task): pass
    task = make(leaf(0), False)
    task.add_done_callback(Calls(me())._on_task_done)
    task.add_done_callback(me().set_name)
    while not task.done():
        await asyncio.sleep(0)

async def second():
    '''Two wait for one: the first one is taken.'''
    task = make(leaf(1), False)
    async def waiter():
        waits.setdefault(task, me())
        await task
    first, other = make(waiter()), make(waiter())
    await first
    await other

@types.coroutine
def old(coro):
    for k in (n for n in [1]):
        yield from coro.__await__() if k else ()

async def with_generators():
    await old(leaf(0))
    await make(old_first())

async def old_first():
    await old(leaf(1))

async def main():
    if PYTHON:
        asyncio.get_running_loop().set_task_factory(lambda loop, coro, **o: Own(coro, loop=loop, **o))
    async def is_current():
        return asyncio.current_task() is not None
    # From 3.14 on asyncio itself does not know a task of Python that runs, which these want to.
    needing = [in_time, *([groups] if hasattr(asyncio, "TaskGroup") else [])] if await make(is_current()) else []
    for what in (lambda: nested(0), lambda: nested(3), things, gathers, shields, waiting, loops, within, with_generators,
                 second, forgotten, *needing):
        await make(what())
        await leaf(0)
    asyncio.get_running_loop().set_task_factory(None)

asyncio.run(main())
"""

STACKS = """
py$target:__main__:mark:entry { printf("got\\n"); pystack(100, "async function"); }
"""


def wanted(text):
    return [line.split()[1:] for line in text.splitlines() if line.startswith("want ")]


def got(text):
    """The function names of each stack."""
    stacks = []
    for line in text.splitlines():
        if line.startswith("got"):
            stacks.append([])
        found = re.match(r"\s+\[ .* \((.*)\) \]", line)
        if found:
            stacks[-1].append(found[1])
    return stacks


def shown(stack):
    return " <- ".join(stack)


@pytest.mark.parametrize("kind", ["c", "python"])
def test_against_the_program(dtrace, interp, kind, tmp_path):
    """asyncio's ways to wait, for tasks of C and of Python."""
    out = tmp_path / "stacks"
    result = dtrace("-q", "-n", STACKS, "-o", out, "-c", interp.command(PROGRAM % {"python": kind == "python"}))
    want, have = wanted(result.out), got(out.read_text())
    assert result.code == 0 and not result.err, result
    assert len(want) > 60, result
    assert [shown(s) for s in have] == [shown(s) for s in want], result


EAGER = """
import asyncio
def mark(): pass
async def leaf():
    mark()
    await asyncio.sleep(0)
    mark()
async def parent():
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    task = asyncio.create_task(leaf())
    loop.set_task_factory(None)
    await task
async def main():
    await asyncio.create_task(parent())
asyncio.run(main())
"""


@pytest.mark.interps("3.13", "3.14", "3.15")
def test_eager(dtrace, interp):
    """An eager task begins in the stack of the function that makes it, and goes on for who waits for it then."""
    result = dtrace("-q", "-n", STACKS, "-c", interp.command(EAGER))
    first, second = got(result.out)
    assert result.code == 0 and not result.err, result
    assert first[:2] == ["mark", "leaf"] and first[-1] == "<module>" and "create_task" in first, first
    assert first.index("parent") < first.index("Handle._run"), first
    assert second == ["mark", "leaf", "parent", "main"]


KEYS = """
import asyncio
def mark(): pass
async def leaf(n):
    mark()
    await asyncio.sleep(0)
    mark()
async def a():
    await asyncio.gather(leaf(1), leaf(2))
    await asyncio.create_task(leaf(3))
async def b():
    await asyncio.create_task(leaf(1))
async def main():
    for k in range(3):
        await asyncio.create_task(a())
        await asyncio.create_task(b())
    mark()
mark()
asyncio.run(main())
"""


def counts(text):
    """Rows of an aggregation by stack: the functions, the innermost first, with lines if frames have them, and the count."""
    rows, stack = {}, []
    for line in text.splitlines():
        frame = re.match(r"\s+\[ .*?(:\d+)? \((.*)\) \]$", line)
        if frame:
            stack.append(frame[2])
        elif line.strip():
            rows[" ".join(stack)] = rows.get(" ".join(stack), 0) + int(line)
            stack = []
    return rows


def test_keys(dtrace, interp):
    """One row for one stack of functions; outside of tasks the stack is as it is without the word."""
    script = "py$target:__main__:mark:entry { @[pystack(20, \"async\")] = count(); }"
    result = dtrace("-q", "-n", script, "-c", interp.command(KEYS))
    assert result.code == 0 and not result.err, result
    assert counts(result.out) == {"mark leaf a main": 18, "mark leaf b main": 6, "mark main": 1, "mark <module>": 1}


def test_frames_are_bounded(dtrace, interp):
    script = "py$target:__main__:mark:entry { @[pystack(3, \"async\")] = count(); }"
    result = dtrace("-q", "-n", script, "-c", interp.command(KEYS))
    assert counts(result.out) == {"mark leaf a": 18, "mark leaf b": 6, "mark main": 1, "mark <module>": 1}, result


@pytest.mark.parametrize("loop", ["asyncio", "thread"])
def test_running(dtrace, interp, start, loop):
    """Of a process that runs already, whose loop is in the main thread or another one."""
    body = """
import asyncio, sys, threading
def mark(): pass
async def leaf():
    while True:
        mark()
        await asyncio.sleep(0.001)
async def main():
    await asyncio.gather(asyncio.create_task(leaf()))
def loop():
    print("ready", flush=True)
    asyncio.run(main())
if %r == "thread":
    threading.Thread(target=loop, daemon=True).start()
    sys.stdin.read()
else:
    loop()
""" % loop
    child = start(interp.argv_of(body), stdin=harness.subprocess.PIPE, stdout=harness.subprocess.PIPE)
    child.stdout.readline()
    script = "py$target:__main__:mark:entry { @[pystack(20, \"async\")] = count(); n++; } py$target:__main__:mark:entry /n == 50/ { exit(0); }"
    result = dtrace("-q", "-p", child.pid, "-n", script)
    assert result.code == 0 and not result.err, result
    assert set(counts(result.out)) == {"mark leaf main"}, result


def test_refused(dtrace, interp):
    """The kernel does not know who waits; another word does not exist."""
    result = dtrace("-q", "-n", "profile-99 { @[pystack(5, \"async\")] = count(); }", "-c", interp.command("pass"))
    assert result.code == 1 and "who waits for a task of asyncio is read inside the traced process" in result.err, result
    result = dtrace("-q", "-n", "py$target:::entry { pystack(5, \"tasks\"); }", "-c", interp.command("pass"))
    assert result.code == 1 and "argument #2 must be" in result.err and "async" in result.err, result
