"""@[pyint(pyarg("n"))] = count() on every function entry, in the target place, on each Python; other values beside it

And the bare C hook, the floor.  All in turns in one process, whose rounds take 1,000,000 calls of a function with an
argument; what is shown is the least that a round added to a call, and the median.

The goal: at most 30 ns for the first.
"""
import inside

ROUNDS = 6
PROGRAM = inside.PROGRAM.replace("(): pass", "(n): pass").replace("leaf()", "leaf(7)")
VALUES = ('@[pyint(pyarg("n"))] = count()', "@[pyint(pyarg(0))] = count()", '@[pyshow(pyarg("n"))] = count()')


def ask(program):
    scripts = {action: "python$target:::function-entry { %s; }" % action for action in VALUES}
    inside.turns(program, inside.dtraces(program, scripts), ROUNDS, width=40)


def run():
    inside.each_python(ask, PROGRAM)
