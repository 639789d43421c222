"""A step of an asyncio task (python$target:::task-step-begin), and the task's name as a key, on each Python

A task that only gives way: a step is a turn of the loop, the sleep(0) that it awaits and their events.  All in turns in
one process, whose rounds take 20,000 steps; what is shown is the least that a round added to a step, and the median.

The goal: at most 3,000 ns for the first.
"""
import inside

ROUNDS = 4
PROGRAM = inside.PROGRAM.replace("CALLS = 1000000", """CALLS = 20000
import asyncio
async def steps(calls):
    for _ in range(calls):
        await asyncio.sleep(0)
""").replace("""    for _ in range(calls):
        leaf()
""", """    asyncio.run(steps(calls))
""")
SCRIPTS = {
    "a step begins": "python$target:::task-step-begin { @ = count(); }",
    "a step, both ends": "python$target:::task-step-begin, python$target:::task-step-end { @ = count(); }",
    "its time by task": "python$target:::task-step-begin { self->t = timestamp; } python$target:::task-step-end /self->t/ "
                        "{ @[copyinstr(arg0)] = sum(timestamp - self->t); self->t = 0; }",
    "pytask at a call": "py$target:__main__:steps:resume { @[pytask] = count(); }",
}


def run():
    inside.each_python(lambda program: inside.turns(program, inside.dtraces(program, SCRIPTS), ROUNDS), PROGRAM)
