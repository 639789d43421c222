"""Functions by name (py$target:MODULE:FUNCTION:entry): what calls of the others pay, and what its own

Beside a bare C hook of all calls, the floor of whoever looks at each, and two that read the clock, that of whoever wants to know
its time; and beside a predicate that compares names.  All in
turns in one process, whose rounds take 1,000,000 calls; what is shown is the least that a round added to a call, and the
median.

The goals: calls of other functions 0 from Python 3.12 on, at most 2 ns on 3.9, at most the bare hook's on 3.11.
"""
import inside

ROUNDS = 4
SCRIPTS = {
    "another function named": "py$target:__main__:one:entry { @ = count(); }",
    "another, all its events": "py$target:__main__:one: { @[probename] = count(); }",
    "its module another": "py$target:elsewhere:*:entry { @ = count(); }",
    "the function named": "py$target::leaf_*:entry { @ = count(); }",
    "... by a predicate": 'python$target:::function-entry /copyinstr(arg1) == "leaf_0"/ { @ = count(); }',
    "another, by a predicate": 'python$target:::function-entry /copyinstr(arg1) == "nope"/ { @ = count(); }',
    "entry and return": "py$target::leaf_*:entry { self->t = timestamp; } "
                        "py$target::leaf_*:return /self->t/ { @ = quantize(timestamp - self->t); self->t = 0; }",
    "... of all functions": "python$target:::function-entry { self->t = timestamp; } "
                            "python$target:::function-return /self->t/ { @ = quantize(timestamp - self->t); self->t = 0; }",
}


def ask(program):
    ways = {"bare C hooks, the time": lambda: inside.Switch(program, "pair")}
    inside.turns(program, {**ways, **inside.dtraces(program, SCRIPTS)}, ROUNDS)


def run():
    inside.each_python(ask)
