"""Functions by name where the script runs in the kernel: what calls of the others pay, and what its own

Beside the count of all calls by a marker at which the kernel stops as well, the floor.  All in turns in one process, whose
rounds take 1,000,000 calls; what is shown is the least that a round added to a call, and the median.
"""
import inside

ROUNDS = 3
SCRIPTS = {
    "a marker, counted": "python$target:::function-entry { @ = count(); }",
    "another function named": "py$target:__main__:one:entry { @ = count(); }",
    "the function named": "py$target::leaf_0:entry { @ = count(); }",
    "... a pattern, by its name": "py$target::leaf_*:entry { @[probefunc] = count(); }",
    "... an integer as a key": "py$target::leaf_0:return { @[pyint(pylocal(\"n\"))] = count(); }",
    "entry and return": "py$target::leaf_0:entry { self->t = timestamp; } "
                        "py$target::leaf_0:return /self->t/ { @ = quantize(timestamp - self->t); self->t = 0; }",
}
PROGRAM = inside.PROGRAM.replace("def leaf_{k}(): pass", "def leaf_{k}(): n = {k}")


def ask(program):
    inside.turns(program, inside.dtraces(program, SCRIPTS, "kernel"), ROUNDS)


def run():
    inside.each_python(ask, PROGRAM)
