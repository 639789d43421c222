"""The instructions outside of the interpreter for an event in the target place, counted in single steps, on each Python

Beside bare C hooks, the floor.  A program that does nothing but call a function is stepped through by ptrace, a script a
program: what is shown is the least of the calls that were met, which no other work of the machine changes, and where it
is: in the agent, in the compiled programs of the script (or of bare_hook.c), in libc with what else is there, and what the
interpreter itself does more than untraced.

The least, because the agent now and then measures what an event costs (src/agent/cost.c), some twice as many instructions,
and the next ones, too, if it was long, as all are in single steps.  So the program runs freely now and then.

x86-64 only.
"""
import bisect
import collections
import contextlib
import ctypes
import errno
import os
import platform
import signal
import statistics
import time

import inside
import measure

ROUNDS, STEPS, LEAST = 6, 10000, 10     # for a row: each round's steps, and the calls that must be among all of them
WARM_S, FREE_S = 0.5, 0.05              # calls before them: caches, code that the interpreter specializes; and in between
HELD_S = 0.3                            # stopped, until the tracer has taken the records: one that is lost takes fewer
BUSY_S = 10                             # the longest that another may hold it by ptrace
PROGRAM = inside.PROGRAM.replace("(): pass", "(n): pass").replace("leaf()", "leaf(7)").replace("CALLS = 1000000", "CALLS = 1 << 60") \
                        .replace("        work(1, 1)\n", "")
DURATION = "%s { self->t = timestamp; } %s /self->t/ { @ = quantize(timestamp - self->t); self->t = 0; }"
SCRIPTS = {
    "count()": "python$target:::function-entry { @ = count(); }",
    "counted by name": "python$target:::function-entry { @[copyinstr(arg1)] = count(); }",
    "an integer as a key": 'python$target:::function-entry { @[pyint(pyarg("n"))] = count(); }',
    "a function by name": "py$target::leaf*:entry { @ = count(); }",
    "entry and return": DURATION % ("python$target:::function-entry", "python$target:::function-return"),
    "... of a function by name": DURATION % ("py$target::leaf*:entry", "py$target::leaf*:return"),
    "a record": 'python$target:::function-entry { printf("%s:%d\\n", copyinstr(arg1), arg2); }',
    "a stack as a key": "python$target:::function-entry { @[pystack()] = count(); }",
}

# --- single steps ------------------------------------------------------------------------------------

PTRACE_PEEKUSER, PTRACE_SINGLESTEP, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 3, 9, 17, 0x4206, 0x4207
PTRACE_O_EXITKILL = 1 << 20
WALL = 1 << 30                  # waitpid's
RIP = 8 * 16                    # in struct user

measure.LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
measure.LIBC.ptrace.restype = ctypes.c_ulong
FAILED = ctypes.c_ulong(-1).value


def stopped(pid):
    """Wait until the thread stops; the signal that it is about to get, or 0."""
    status = os.waitpid(pid, WALL)[1]
    if not os.WIFSTOPPED(status):
        raise SystemExit("the program that is stepped through has ended")
    return 0 if status >> 16 or os.WSTOPSIG(status) == signal.SIGTRAP else os.WSTOPSIG(status)


def steps(pid, number, held_s=0):
    """
    The addresses of so many instructions that the process's first thread executes now, after it has stood still for @held_s.
    It dies with this process.
    """
    ptrace, found, deadline = measure.LIBC.ptrace, [], time.monotonic() + BUSY_S
    while ptrace(PTRACE_SEIZE, pid, None, PTRACE_O_EXITKILL):
        if ctypes.get_errno() != errno.EPERM or time.monotonic() > deadline:
            raise SystemExit(f"ptrace() of process {pid}: {os.strerror(ctypes.get_errno())}")
        time.sleep(FREE_S)      # a tracer is at it
    ptrace(PTRACE_INTERRUPT, pid, None, None)
    passed = stopped(pid)
    try:
        time.sleep(held_s)
        for _ in range(number):
            at = ptrace(PTRACE_PEEKUSER, pid, RIP, None)
            if at == FAILED or ptrace(PTRACE_SINGLESTEP, pid, None, passed):
                raise SystemExit(f"ptrace() cannot step through process {pid}")
            found.append(at)
            passed = stopped(pid)
    finally:
        ptrace(PTRACE_DETACH, pid, None, None)
    return found


# --- whose instructions ------------------------------------------------------------------------------

OWN = "interpreter"


def owner(path):
    name = path.removesuffix(" (deleted)").rsplit("/", 1)[-1]
    if path.startswith("/memfd:") or "bare_hook" in name or not path:
        return "program"
    if name.startswith("dtap-agent"):
        return "agent"
    return OWN if "python" in name else "libc"


class Owners(dict):
    """Whose an instruction is, by its address, as long as the process lives."""

    def __init__(self, pid):
        super().__init__()
        self.rows = []
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                words = line.split(None, 5)
                begin, end = (int(word, 16) for word in words[0].split("-"))
                self.rows.append((begin, end, owner(words[5].strip() if len(words) > 5 else "")))

    def __missing__(self, at):
        k = bisect.bisect(self.rows, (at, 1 << 64)) - 1
        self[at] = self.rows[k][2] if k >= 0 and at < self.rows[k][1] else "libc"
        return self[at]


def calls(rounds, owners):
    """
    Split what was executed, lists of addresses, in calls, each a Counter of owners.  At least a quarter of the interpreter's
    instructions for a call are executed once in it, so as often, but for the calls that begin or end a list; others a multiple of
    that, or hardly ever.  The first of those begins a call; where it is executed once more by chance, the pieces are left out.
    """
    own = collections.Counter(at for addresses in rounds for at in addresses if owners[at] == OWN)
    times = sorted(n for n in own.values() if n > len(rounds))
    alike = (bisect.bisect(times, n + len(rounds)) - k for k, n in enumerate(times))
    number = next((times[k] for k, n in enumerate(alike) if 4 * n >= len(times)), 0)
    if number < LEAST:
        raise SystemExit(f"fewer than {LEAST} calls in {sum(map(len, rounds))} steps")
    number = statistics.mode(n for n in own.values() if number <= n <= number + len(rounds))
    first, found = next(at for at in own if own[at] == number), []
    for addresses in rounds:
        begins = [k for k, at in enumerate(addresses) if at == first]
        found += [collections.Counter(owners[at] for at in addresses[begin:end]) for begin, end in zip(begins, begins[1:])]
    whole = statistics.median(call[OWN] for call in found) * 3 / 4
    return [call for call in found if call[OWN] >= whole]


def outside(call):
    return sum(call.values()) - call[OWN]


# --- the question ------------------------------------------------------------------------------------

def stepped(interp, library, way):
    """The calls of a program.  @way is a word for what it does about them itself, or a script's clauses; "": untraced."""
    program = inside.Program(interp, library, PROGRAM)
    try:
        if way in ("bare", "pair"):
            program.say(f"{way} on")
        with inside.dtrace(program, way) if "{" in way else contextlib.nullcontext():
            return run_and_step(program, "printf" in way)
    finally:
        program.end()


def run_and_step(program, prints):
    program.process.stdin.write("1 1\n")
    program.process.stdin.flush()
    time.sleep(WARM_S)
    pid, rounds = program.process.pid, []
    for _ in range(ROUNDS):
        rounds.append(steps(pid, STEPS, HELD_S if prints else 0))
        time.sleep(FREE_S)
    return calls(rounds, Owners(pid))


def ask(interp, library):
    print(f"  Python {interp.version}")
    own = min(call[OWN] for call in stepped(interp, library, ""))
    for name, way in {"bare C hook": "bare", "bare C hooks, the time": "pair", **SCRIPTS}.items():
        found = sorted(stepped(interp, library, way), key=lambda call: (outside(call), call[OWN]))
        least, same = found[0], sum(outside(call) == outside(found[0]) for call in found)
        parts = ", ".join(f"{part} {least[part]}" for part in ("agent", "program", "libc"))
        print(f"    {name:<26} {outside(least):8}   ({parts}; the interpreter {least[OWN] - own:+}; "
              f"{same} of {len(found)} calls)", flush=True)


def run():
    if platform.machine() != "x86_64":
        print("  not on this machine: single steps are counted on x86-64 only")
        return
    inside.each_interpreter(ask)
