"""asyncio in scripts: pytask and pycoro, against what the program itself says of the task that runs."""
import os
import re
import subprocess
import sys

import pytest

import harness

pytestmark = [pytest.mark.needs_root, pytest.mark.interps(*harness.VERSIONS, "3.13t")]

# What 3.13t says by itself of tasks of Python that are there when it ends.
OWN_NOISE = r"Exception ignored in: <function Task.__del__ .*\n(.*\n)+?AttributeError: .*'_PENDING'\n"
SCRIPT = 'py$target:__main__:mark:entry { @[pytask, pycoro] = count(); } END { printa("got %s|%s|%@d\\n", @); }'

# mark() counts under what asyncio says of the task and a task factory has noted of its coroutine; "" outside of tasks.
PROGRAM = """
import asyncio, collections, sys, threading
want, given = collections.Counter(), {}
lock = threading.Lock()
def mark(name, coro):
    with lock:
        want[name, coro] += 1
def here():
    task = asyncio.current_task() or asyncio.tasks._py_current_task()
    coro = task.get_coro().__qualname__
    assert given.get(id(task), coro) == coro
    return task.get_name(), coro
class Own(asyncio.Task): pass
class OwnPython(asyncio.tasks._PyTask): pass
KINDS = [asyncio.Task, Own, asyncio.tasks._PyTask, OwnPython]
def factory(kind):
    def make(loop, coro, **options):
        task = kind(coro, loop=loop, **options)
        given[id(task)] = coro.__qualname__
        kept.append(task)
        return task
    return make
kept = []
class Work:
    async def step(self, n):
        for _ in range(n):
            mark(*here())
            await asyncio.sleep(0)
            async for k in self.feed():
                mark(*here())
    async def feed(self):
        for k in range(2):
            mark(*here())
            yield k
            await asyncio.sleep(0)
def plain():
    mark("", "")
async def main(kind, where):
    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory(kind))
    mark(*here())
    tasks = [loop.create_task(Work().step(k)) for k in range(3)]
    for k, name in enumerate(("fetch", "\u00fcr\u20ac\U0001f600", "two words", "x" * 100)):
        tasks.append(loop.create_task(Work().step(2)))
        tasks[-1].set_name(where + name)
    loop.call_soon(plain)
    for _ in range(3):
        await loop.run_in_executor(None, plain)
    await asyncio.gather(*tasks)
    if hasattr(asyncio, "eager_task_factory") and kind is asyncio.Task:
        loop.set_task_factory(asyncio.eager_task_factory)
        async def eager(n):
            mark(*here())
            if n:
                await asyncio.create_task(eager(n - 1), name="eager %d" % n)
            mark(*here())
            await asyncio.sleep(0)
            mark(*here())
        await asyncio.create_task(eager(3), name="outermost")
    loop.set_task_factory(None)         # from 3.14 on asyncio's own end does not see tasks of Python
    mark(*here())
plain()
for kind in KINDS:
    asyncio.run(main(kind, "alone "))
threads = [threading.Thread(target=lambda k=k: asyncio.run(main(KINDS[k], "thread %d " % k))) for k in range(4)]
for t in threads: t.start()
for t in threads: t.join()
plain()
for (name, coro), n in want.items():
    print("want %s|%s|%d" % (name, coro, n))
"""


def rows(text, prefix):
    return sorted(re.findall(rf"^{prefix} (.*)$", text, flags=re.M))


def test_against_the_program(dtrace, interp):
    result = dtrace("-q", "-n", SCRIPT, "-c", interp.command(PROGRAM))
    got = rows(result.out, "got")
    assert result.code == 0 and got == rows(result.out, "want") and len(got) > 40, result
    assert not re.sub(OWN_NOISE, "", result.err), result


# Once asyncio runs already: what is measured then must not disturb it.
RUNNING = """
import asyncio, sys
def mark(): pass
async def work(n):
    while True:
        mark()
        await asyncio.sleep(0.001 * n)
async def main():
    tasks = [asyncio.create_task(work(k), name="task %d" % k) for k in range(1, 4)]
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    assert asyncio.get_running_loop().is_running() and asyncio.current_task().get_name() == "Task-1"
    assert len(asyncio.all_tasks()) == 4
    print("well")
asyncio.run(main())
"""


def test_running(dtrace, interp, start):
    child = start(interp.argv_of(RUNNING), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    script = 'py$target:__main__:mark:entry { @[pytask, pycoro] = count(); n++; } py$target:__main__:mark:entry /n == 100/ { exit(0); }'
    for _ in range(2):
        result = dtrace("-q", "-p", child.pid, "-n", script)
        assert result.code == 0 and not result.err, result
        assert {tuple(line.split()[:3]) for line in result.out.splitlines() if line} == {
            ("task", str(k), "work") for k in range(1, 4)}, result
    out, _ = child.communicate()
    assert out == b"well\n" and child.returncode == 0


NOTHING = """
import sys, types
def mark(): pass
mark()
sys.modules["_asyncio"] = None
mark()
class Odd:
    def __getattr__(self, name): print("asked for", name); raise AttributeError(name)
sys.modules["_asyncio"] = Odd()
sys.audit("any.event")
mark()
sys.modules["_asyncio"] = types.ModuleType("_asyncio")
sys.audit("any.event")
mark()
print("end")
"""


def test_other_modules(dtrace, interp):
    """No asyncio, and others of its name: none of their code is run; what is there and cannot be read is a fault."""
    result = dtrace("-q", "-n", "py$target:__main__:mark:entry { printf(\"<%s>\\n\", pytask); }", "-c", interp.command(NOTHING))
    lines = result.out.split()
    assert result.code == 0 and sorted(lines) == ["<>", "<>", "<>", "end"], result
    assert result.err.count("where this interpreter keeps it is not known") == 1, result


def test_times_and_keys(dtrace, interp):
    """The loop's time by task, and SystemTap's functions."""
    step = "py$target:__main__:Work.step:"
    result = dtrace("-q", "-n", f"{step}entry, {step}resume {{ self->t = timestamp; }}"
                    f"{step}yield, {step}return /self->t/ {{ @[pytask] = sum(timestamp - self->t); self->t = 0; }}"
                    'END { printa("time %s %@d\\n", @); }', "-c", interp.command(PROGRAM))
    times = dict(re.findall(r"^time (.*) (\d+)$", result.out, flags=re.M))
    assert result.code == 0 and all(int(ns) > 0 for ns in times.values()), result
    names = {line.split("|")[0] for line in rows(result.out, "want") if "|Work.step|" in line}
    assert names <= set(times) and names, result
    result = harness.stap("-e", 'probe python3.module("__main__").function("mark") { printf("got %s|%s\\n", pytask(), pycoro()) }',
                          "-c", interp.command(PROGRAM))
    counts = {line: 0 for line in rows(result.out, "got")}
    for line in rows(result.out, "got"):
        counts[line] += 1
    assert result.code == 0 and sorted(f"{line}|{n}" for line, n in counts.items()) == rows(result.out, "want"), result


@pytest.mark.interps("3.13")
def test_refused(dtrace, interp):
    result = dtrace("-n", "syscall::write:entry /pid == $target/ { @[pytask] = count(); }", "-c", interp.command("pass"))
    assert result.code == 1 and "inside the traced process" in result.err, result


# Every frame that is entered or left is compared with that of the running task's coroutine, by a profile function or not at all.
STEPS = """
import asyncio, os, sys
def witness(frame, event, arg):
    if event not in ("call", "return"): return
    try: task = asyncio.current_task() or getattr(asyncio.tasks, "_py_current_task", asyncio.current_task)()
    except RuntimeError: return
    if task is not None and task.get_coro().cr_frame is frame:
        print({"call": "begin", "return": "end"}[event], task.get_name() + "|" + task.get_coro().__qualname__)
class Own(asyncio.Task): pass
class OwnPython(asyncio.tasks._PyTask): pass
class Work:
    async def deep(self, n):
        if n:
            await asyncio.sleep(0)
            return await self.deep(n - 1)
        await asyncio.sleep(0)
    async def all(self, n):
        async for k in self.feed(n): await asyncio.sleep(0)
        await self.deep(n)
        for k in [x async for x in self.feed(1)]: pass
        async with Lock: await asyncio.sleep(0)
    async def feed(self, n):
        for k in range(n):
            yield k
            await asyncio.sleep(0)
class Gate:
    async def __aenter__(self): await asyncio.sleep(0)
    async def __aexit__(self, *args): await asyncio.sleep(0)
Lock = Gate()
async def raises():
    await asyncio.sleep(0)
    raise KeyError("m")
async def waits(future):
    try: return await future
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        raise
async def starts(n):
    if n:
        task = asyncio.ensure_future(starts(n - 1))
        task.set_name("starts %d" % n)
        await task
    return n
async def main(kind):
    loop, made = asyncio.get_running_loop(), []
    def factory(loop, coro, **options):
        made.append(kind(coro, loop=loop, **options))
        return made[-1]
    loop.set_task_factory(factory)
    future = loop.create_future()
    for k in range(3): loop.create_task(Work().all(k))
    for k in range(2): loop.create_task(Work().deep(3 * k))
    loop.create_task(raises())
    loop.create_task(starts(3))
    waiting = [loop.create_task(waits(future)) for k in range(3)]
    waiting[0].cancel()                     # before it has begun
    for k, task in enumerate(made): task.set_name("%s %d" % (kind.__name__, k))
    for k in range(3): await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.sleep(0)
    if not future.done(): future.set_result(3)
    await asyncio.gather(*made, return_exceptions=True)
    loop.set_task_factory(None)
    if hasattr(asyncio, "eager_task_factory"):
        loop.set_task_factory(asyncio.eager_task_factory)
        await asyncio.gather(*(asyncio.create_task(coro, name="eager %d" % k) for k, coro in enumerate((Work().deep(2), Work().all(2), Work().deep(0), starts(0)))))
        loop.set_task_factory(None)
    for task in made: tasks.append((task.get_name(), 2 if task.cancelled() or task.exception() else 1))
tasks = []
if "witness" in sys.argv: sys.setprofile(witness)
for kind in asyncio.Task, Own, asyncio.tasks._PyTask, OwnPython:
    asyncio.run(main(kind))
sys.setprofile(None)
for name, how in tasks: print("last", how, name)
"""

STEPS_SCRIPT = r"""
python$target:::task-step-begin { printf("begin %s|%s\n", copyinstr(arg0), copyinstr(arg1)); running[arg2]++; }
python$target:::task-step-end { printf("end %s|%s\n", copyinstr(arg0), copyinstr(arg1)); running[arg2]--; }
python$target:::task-step-end /copyinstr(arg0) != pytask || copyinstr(arg1) != pycoro || running[arg2]/ { printf("odd %s\n", pytask); }
python$target:::task-step-end /(int)arg3 && copyinstr(arg1) != "main"/ { printf("ended %d %s\n", (int)arg3, copyinstr(arg0)); }
"""


def in_order(text, *prefixes):
    return [line for line in text.splitlines() if line.split(" ")[0] in prefixes]


def check_steps(dtrace, interp, program, place):
    """As the interpreter's own profile function sees the frames of the tasks' coroutines, of all kinds of tasks."""
    want = subprocess.run([*interp.argv_of(program), "witness"], stdout=subprocess.PIPE, text=True, check=True, timeout=harness.TIMEOUT_S).stdout
    script = STEPS_SCRIPT if place == "target" else re.sub(r".*pytask.*\n", "", STEPS_SCRIPT)
    result = dtrace("-q", "-x", f"place={place}", "-n", script, "-c", interp.command(program))
    assert result.code == 0 and not in_order(result.out, "odd"), result
    got, steps = in_order(result.out, "begin", "end"), in_order(want, "begin", "end")
    # asyncio.run()'s own tasks have other numbers with a profile function that makes some; their order is the same.
    number = lambda lines: [re.sub(r"Task-\d+", "Task", line) for line in lines]
    assert number(got) == number(steps) and len(got) > 300, result
    last = [line.split(" ", 1)[1] for line in in_order(want, "last")]
    ended = [line.split(" ", 1)[1] for line in in_order(result.out, "ended")]
    assert sorted(last) == sorted(line for line in ended if not re.match(r"\d (eager|Task-)", line)), result


@pytest.mark.parametrize("place", ["target", pytest.param("kernel", marks=pytest.mark.needs_bpf)])
def test_steps(dtrace, interp, place):
    check_steps(dtrace, interp, STEPS, place)


@pytest.mark.interps("3.11")
def test_steps_of_uvloop(dtrace, interp):
    if subprocess.run([*interp.argv, "-c", "import uvloop"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("uvloop is not installed")
    program = STEPS.replace("import asyncio, os, sys\n", "import asyncio, os, sys, uvloop\nasyncio.set_event_loop_policy(uvloop.EventLoopPolicy())\n")
    assert "uvloop" in program
    check_steps(dtrace, interp, program, "target")


# A task factory, or from 3.12 on an eager task itself, notes what is made.
MADE = """
import asyncio, sys, weakref
class Own(asyncio.Task): pass
class OwnPython(asyncio.tasks._PyTask): pass
class Loop(asyncio.SelectorEventLoop):      # another loop: what it is to call is not what a task gave it
    def call_soon(self, callback, *args, context=None):
        return super().call_soon(lambda: callback(*args), context=context)
witness, mine = "witness" in sys.argv, weakref.WeakSet()
def note(task):
    if witness: print("made", task.get_name() + "|" + task.get_coro().__qualname__)
def current():
    return sys.version_info >= (3, 14) and asyncio.tasks._py_current_task() or asyncio.current_task()
async def work(n):
    for _ in range(n): await asyncio.sleep(0)
async def outer(n):
    mine.add(asyncio.ensure_future(work(n)))        # a set of tasks that is not asyncio's
    await asyncio.sleep(0)
async def noting(coro):
    note(current())
    return await coro
def factory(kind):
    def make(loop, coro, name=None, context=None):
        task = kind(coro, loop=loop, name=name)
        note(task)
        return task
    return make
def eager_factory(kind):
    def make(loop, coro, name=None, context=None, eager_start=True):
        if witness:
            name, coro = coro.__qualname__, noting(coro)
            coro.__qualname__ = name
        return kind(coro, loop=loop, eager_start=True)
    return make
async def main(kind):
    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory(kind))
    tasks = [loop.create_task(work(k)) for k in range(4)] + [loop.create_task(outer(k)) for k in range(3)]
    mine.update(tasks)
    tasks[0].cancel()                   # before it has begun
    await asyncio.gather(*tasks, work(2), return_exceptions=True)
    await asyncio.wait_for(work(1), 10)
    if hasattr(asyncio, "eager_task_factory"):
        loop.set_task_factory(eager_factory(kind))
        tasks = [asyncio.create_task(work(k)) for k in range(3)] + [asyncio.create_task(outer(k)) for k in range(3)]
        mine.update(tasks)
        await asyncio.gather(*tasks)
    loop.set_task_factory(None)
    await asyncio.gather(*(task for task in mine if isinstance(task, asyncio.tasks._PyTask)), return_exceptions=True)
for kind in asyncio.Task, Own, asyncio.tasks._PyTask, OwnPython:
    asyncio.run(main(kind))
if "loops" in sys.argv:
    loop = Loop()
    loop.run_until_complete(main(asyncio.Task))
    loop.close()
"""


def check_made(dtrace, interp, program, *args, place="target"):
    """In their order; without those of asyncio.run(), which is not asked to note them, and the numbers in their names."""
    want = subprocess.run([*interp.argv_of(program), "witness", *args], stdout=subprocess.PIPE, text=True, check=True, timeout=harness.TIMEOUT_S).stdout
    script = 'python$target:::task-create { printf("made %s|%s\\n", copyinstr(arg0), copyinstr(arg1)); }'
    result = dtrace("-q", "-x", f"place={place}", "-n", script, "-c", " ".join([interp.command(program), *args]))
    rest = r"made .*\|(main|BaseEventLoop\..*)$"
    want, got = ([re.sub(r"Task-\d+", "Task", line) for line in in_order(text, "made") if not re.match(rest, line)]
                 for text in (want, result.out))
    assert result.code == 0 and len(want) > 40, result
    return want, got, result


@pytest.mark.parametrize("place", ["target", pytest.param("kernel", marks=pytest.mark.needs_bpf)])
@pytest.mark.interps(*harness.VERSIONS, "3.13t")
def test_made(dtrace, interp, place):
    want, got, result = check_made(dtrace, interp, MADE, place=place)
    assert got == want and not result.err, result


@pytest.mark.interps(*harness.VERSIONS, "3.13t")
def test_made_by_another_loop(dtrace, interp):
    """From 3.14 on tasks of C are seen there when they begin; the one that is cancelled before is not."""
    want, got, result = check_made(dtrace, interp, MADE, "loops")
    missed = tuple(map(int, interp.version.rstrip("t").split("."))) >= (3, 14)
    assert len(got) == len(want) - missed and (missed or got == want) and not result.err, result


@pytest.mark.interps("3.11")
def test_made_with_uvloop(dtrace, interp):
    if subprocess.run([*interp.argv, "-c", "import uvloop"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("uvloop is not installed")
    program = MADE.replace("import asyncio, sys, weakref\n", "import asyncio, sys, uvloop, weakref\nasyncio.set_event_loop_policy(uvloop.EventLoopPolicy())\n")
    assert "uvloop" in program
    want, got, _ = check_made(dtrace, interp, program)          # it has coroutines of its own, without a name
    assert got == want


@pytest.mark.interps(*harness.VERSIONS, "3.13t")
def test_made_while_it_runs(dtrace, interp, start):
    """Of a program that has made tasks before, those that are made now; tasks that go on are not made again."""
    program = RUNNING.replace("    while True:\n", "    while True:\n        await asyncio.create_task(short(), name='short %d' % n)\n")
    child = start(interp.argv_of(program.replace("async def work", "async def short(): await asyncio.sleep(0)\nasync def work").replace(
        "assert len(asyncio.all_tasks()) == 4", "")), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    script = ('python$target:::task-create { @[copyinstr(arg0), copyinstr(arg1)] = count(); made[arg2] = 1; n++; } '
              'python$target:::task-step-begin /copyinstr(arg1) == "short" && made[arg2] != 1/ { @old = count(); } '
              'python$target:::task-step-end /made[arg2] && arg3/ { made[arg2] = 0; } tick-50ms /n > 50/ { exit(0); }')
    result = dtrace("-q", "-p", child.pid, "-n", script)
    assert result.code == 0 and not result.err, result
    rows = [line.split() for line in result.out.splitlines() if "short" in line]
    if interp.version in ("3.9", "3.11"):       # asyncio.create_task() gives the name afterwards
        assert len(rows) > 50 and all(re.fullmatch(r"Task-\d+", name) and rest == ["short", "1"] for name, *rest in rows), result
    else:
        assert {tuple(row[:3]) for row in rows} == {("short", str(k), "short") for k in range(1, 4)}, result
    out, _ = child.communicate()
    assert out == b"well\n" and child.returncode == 0


# After some steps, this thread's system calls that read memory fail.
LIMITED = """
import asyncio, ctypes, struct, sys
def limit():
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, 310), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]   # process_vm_readv: EPERM
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *row) for row in rows))
    assert not ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
    assert not ctypes.CDLL(None).prctl(22, 2, struct.pack("<HxxxxxxQ", len(rows), ctypes.addressof(code)), 0, 0)
async def work(n):
    for _ in range(n):
        await asyncio.sleep(0)
class Python(asyncio.tasks._PyTask): pass
async def main(loop, n):
    for kind in asyncio.Task, Python:
        task = kind(work(n), loop=loop)
        task.set_name(kind.__name__)
        await task
loop = asyncio.new_event_loop()
loop.run_until_complete(main(loop, 9))
limit()
loop.run_until_complete(main(loop, 99))
"""


@pytest.mark.skipif(sys.maxsize < 2**32 or os.uname().machine != "x86_64", reason="numbers of system calls")
@pytest.mark.interps(*harness.VERSIONS)
def test_steps_need_no_system_call(dtrace, interp):
    """Tasks are read as the living objects that they are: a process_vm_readv(2) for each word would cost 0.1 ms a step."""
    script = "python$target:::task-step-begin { @[copyinstr(arg0), copyinstr(arg1), pytask, pycoro] = count(); }"
    result = dtrace("-q", "-n", script, "-c", interp.command(LIMITED))
    assert result.code == 0 and not result.err, result
    got = {tuple(row[:4]): int(row[4]) for row in map(str.split, result.out.splitlines()) if row and row[1] == "work"}
    assert got == {(kind, "work", kind, "work"): 110 for kind in ("Task", "Python")}, result
