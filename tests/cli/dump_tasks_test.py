"""dtap dump: the tasks of asyncio.  The witness is the program: it follows cr_await itself, and asyncio.all_tasks()."""
import json
import subprocess

import pytest

import harness

PROGRAM = '''
import asyncio, json, os, sys, threading

class Waits:
    def __init__(self, future):
        self.future = future
    def __await__(self):
        yield from self.future

async def inner(event):
    await event.wait()
async def outer(event):
    await inner(event)
async def generates(event):
    await inner(event)
    yield 1
async def consumes(event):
    async for _ in generates(event):
        pass
async def joins(task):
    await task
async def sleeps():
    await asyncio.sleep(100000)
async def awaits_object(future):
    await Waits(future)
async def both(*tasks):
    await asyncio.gather(*tasks)
async def ends():
    pass

def follow(task):
    """[names and lines, the innermost first], what it awaits"""
    found, o = [], task.get_coro()
    while o is not None:
        for kind in "cr", "gi", "ag":
            frame = getattr(o, kind + "_frame", None)
            if frame:
                found.insert(0, [getattr(frame.f_code, "co_qualname", frame.f_code.co_name), frame.f_code.co_filename, frame.f_lineno])
                o = getattr(o, kind + ("_yieldfrom" if kind == "gi" else "_await"))
                break
        else:
            break
    return found

async def program(make, ready):
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    first = make(outer(event), "first")
    tasks = [first, make(consumes(event), "generator"), make(sleeps(), "Größe"), make(joins(first), "joins"),
             make(awaits_object(loop.create_future()), "object"), make(both(first), "gather"), make(ends(), "ends"),
             asyncio.ensure_future(sleeps())]
    await asyncio.sleep(0.05)
    mine = asyncio.current_task()
    told = {task.get_name(): follow(task) for task in tasks if not task.done()}
    ready(mine.get_name(), threading.get_native_id(), told)

def told(*what):
    tell.append(what)
    met.wait()
    threading.Event().wait()

tell, met = [], threading.Barrier(3)

def of_c(coro, name):
    return asyncio.create_task(coro, name=name)
def of_python(coro, name):
    task = asyncio.tasks._PyTask(coro, name=name, loop=asyncio.get_running_loop())
    return task

for make in of_c, of_python:
    threading.Thread(target=asyncio.run, args=(program(make, told),), daemon=True).start()
met.wait()
print(json.dumps(tell), flush=True)
sys.stdin.readline()
'''


def dump(pid, *args):
    result = harness.run([harness.BUILD / "dtap", "dump", "-p", pid, *args])
    assert (result.code, result.err) == (0, ""), result
    return result.out


@pytest.fixture
def child(interp, start):
    return start(interp.argv_of(PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.needs_root
def test_tasks(child):
    """Of two loops in two threads, one with tasks that are written in Python: each has its own."""
    want = json.loads(child.stdout.readline())
    harness.wait_until_asleep(child.pid)
    threads = {t["tid"]: t for t in map(json.loads, dump(child.pid, "--json", "--tasks").splitlines())}
    assert [tid for tid, t in threads.items() if "tasks" in t] == sorted(tid for _, tid, _ in want)
    for mine, tid, told in want:
        assert threads[tid]["tasks_complete"]
        tasks = {t["name"]: t for t in threads[tid]["tasks"]}
        running = tasks.pop(mine)
        assert running["runs"] and "awaits" not in running
        assert [f["function"] for f in running["frames"]] == ["program"]
        # Python itself does not tell what an asynchronous generator awaits for whoever goes through it.
        inside = [f["function"].rpartition(".")[2] for f in tasks["generator"]["frames"]]
        assert inside == ["wait", "inner", "generates", "consumes"]
        del tasks["generator"]["frames"][:3]
        assert {name: [[f["function"], f["file"], f["line"]] for f in t["frames"]] for name, t in tasks.items()} == told
        assert not any(t["runs"] for t in tasks.values()) and "ends" not in tasks
        assert tasks["joins"]["awaits_task"] == "first"
        assert "Future" in tasks["first"]["awaits"]["type"] and tasks["first"]["awaits"]["address"]
        assert tasks["gather"]["awaits"]["type"].endswith("_GatheringFuture")


@pytest.mark.needs_root
def test_text(child):
    (mine, tid, told), _ = json.loads(child.stdout.readline())
    harness.wait_until_asleep(child.pid)
    plain, full = dump(child.pid), dump(child.pid, "-t")
    line = f'    asyncio: task "{mine}" has its turn, {len(told)} tasks wait\n'
    assert f"Thread {tid} " in plain and line in plain and line in full
    assert "\nTask " not in plain
    blocks = {block.split("\n")[0]: block.split("\n")[1:] for block in full.rstrip("\n").split("\n\n")}
    assert 'Task "joins": awaits task "first"' in blocks
    titles = [title for title in blocks if title.startswith('Task "Größe": awaits ')]
    assert len(titles) == 2 and all("asyncio.Future 0x" in title for title in titles)
    for title in titles:
        assert blocks[title] == [f"    {function} ({file}:{line})" for function, file, line in told["Größe"]]


@pytest.mark.needs_root
def test_without_asyncio(interp, start):
    program = start(interp.argv_of("import asyncio, sys; print('ready', flush=True); sys.stdin.readline()"), stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    assert "asyncio" not in dump(program.pid, "-t").split("\n\n", 1)[1]


@pytest.mark.needs_root
def test_while_tasks_come_and_go(interp, start):
    """A loop that is busy: what is told are tasks that there can be, and the program goes on."""
    program = start(interp.argv_of("""
import asyncio
async def leaf(n):
    await asyncio.sleep(0)
async def works(n):
    await leaf(n)
    await leaf(n)
async def main():
    n = 0
    while True:
        n += 10
        await asyncio.gather(*[asyncio.ensure_future(works(n + k)) for k in range(10)])
        if n == 1000:
            print("ready", flush=True)
asyncio.run(main())
"""), stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    may, seen = {"leaf", "works", "main", "sleep", "__sleep0", "gather"}, 0
    for _ in range(40):
        for thread in map(json.loads, dump(program.pid, "--json").splitlines()):
            for task in thread.get("tasks", ()):
                assert task["name"].startswith("Task-"), task
                assert {f["function"] for f in task["frames"]} <= may, task
                seen += 1
    assert seen > 40 and program.poll() is None
