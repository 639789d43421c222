"""@[pystack()] = count() on each call at depth 20, and dtap record's script, in the target place, on each Python

Beside the bare C hook, the floor of one event a call (record has two); and cProfile.  All in turns in one process, whose rounds
take 1,000,000 calls; what is shown is the least that a round added to a call, and the median.

The goals: at most 60 ns for the stack; at most 60 ns a call for the record.
"""
import harness
import inside

ROUNDS = 4
DEEP = """
def deep(depth, names, threads):
    return deep(depth - 1, names, threads) if depth else work(names, threads)

"""
PROGRAM = inside.PROGRAM.replace("class Bare:", DEEP + "class Bare:").replace("print(work(", "print(deep(17, ")
STACK = "python$target:::function-entry { @[pystack()] = count(); }"


def record():
    lines = (harness.TOP / "share/commands/record.d").read_text().replace("python*", "python$target").splitlines()
    return "\n" + "\n".join(line for line in lines if not line.startswith("#!"))


def ask(program):
    ways = inside.dtraces(program, {"a stack as the key": STACK, "dtap record": record()})
    ways["cProfile"] = lambda: inside.Switch(program, "profile")
    inside.turns(program, ways, ROUNDS)


def run():
    inside.each_python(ask, PROGRAM)
