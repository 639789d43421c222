"""The markers that only the agent has, in SystemTap's language."""
import pytest

import harness

pytestmark = pytest.mark.needs_root

PROGRAM = """
import asyncio, threading
class Ours(Exception): pass
def fails():
    try: raise Ours
    except Ours: pass
async def work():
    await asyncio.sleep(0)
async def main():
    await named(work(), "job")
def named(coroutine, name):
    task = asyncio.ensure_future(coroutine)
    task.set_name(name)
    return task
for _ in range(3): fails()
asyncio.run(main())
thread = threading.Thread(target=fails, name="a thread")
thread.start()
thread.join()
kept = bytes(123456)
del kept
"""

SCRIPT = """
global n, blocks
probe process.mark("exception__raise"), process.mark("exception__caught") { if (user_string($arg1) == "Ours") n[$$name]++ }
probe process.mark("cfunction__entry"), process.mark("cfunction__return") {
	if (user_string($arg2) == "named" && user_string($arg4) == "set_name") n[$$name]++
}
probe process.mark("thread__start") { n[$$name]++ }
probe process.mark("thread__finish") { if (user_string($arg1) == "a thread") n[$$name]++ }
probe process.mark("task__step__begin"), process.mark("task__step__end") { if (user_string($arg1) == "job") n[$$name]++ }
probe process.mark("task__create") { if (user_string($arg2) == "work") n[$$name]++ }
probe process.mark("memory__alloc") { if ($arg2 > 123456 && $arg2 < 123600) { n[$$name]++; blocks[$arg3] = 1 } }
probe process.mark("memory__free") { if (blocks[$arg2]) { n[$$name]++; delete blocks[$arg2] } }
probe end { foreach (name+ in n) printf("%s %d\\n", name, n[name]) }
"""

WANT = {"exception__raise": 4, "exception__caught": 4, "cfunction__entry": 1, "cfunction__return": 1, "thread__start": 1,
        "thread__finish": 1, "task__create": 1, "task__step__begin": 2, "task__step__end": 2, "memory__alloc": 1, "memory__free": 1}


def test_marks(interp):
    result = harness.stap("--place=target", "-e", SCRIPT, "-c", interp.command(PROGRAM))
    assert result.code == 0 and {name: int(n) for name, n in map(str.split, result.out.splitlines())} == WANT, result
