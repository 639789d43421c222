"""From the start of `dtrace -p` to the first event that it sees, and what `dtrace -c` adds to a program, on each Python

The program of -p calls a function all the time; the event has the clock's time.  The command's own start is in it:
`BEGIN { exit(0); }` beside it is that of a script without a program, and true(1) what starting any program takes here.  The
program of -c does nothing; what is added to it is the time from the command's start to its end, less that of the program alone,
in turns.  All of them in the target place.

The goal: at most 5 ms each.
"""
import contextlib
import statistics
import subprocess
import time

import harness
import measure

ROUNDS = 15
CALLS = """
def leaf():
    pass
print("ready", flush=True)
while True:
    leaf()
"""
ENTRY = "python$target:::function-entry"
DTRACE = [str(harness.DTRACE), "-q", "-x", "place=target"]


def ms(argv):
    begin = time.monotonic_ns()
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return (time.monotonic_ns() - begin) / 1e6


def first_event(pid):
    """Milliseconds from the command's start to the event."""
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    out = subprocess.run([*DTRACE, "-p", str(pid), "-n", ENTRY + ' { printf("%d\\n", timestamp); exit(0); }'],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout
    return (int(out.split()[0]) - begin) / 1e6


def tells(name, values):
    print(f"    {name:<42} {min(values):8.1f} ms   (median {statistics.median(values):.1f})", flush=True)


def ask(interp):
    """The middle of all rounds' differences: the program's own start takes longer than what is looked for."""
    with contextlib.closing(interp):
        first, again, begins, nothing, added = [], [], [], [], []
        for _ in range(ROUNDS):
            calls = measure.start(interp.argv_of(CALLS), stdout=subprocess.PIPE, text=True)
            try:
                assert calls.stdout.readline() == "ready\n"
                first.append(first_event(calls.pid))
                again.append(first_event(calls.pid))
            finally:
                calls.kill()
                calls.communicate()
            begins.append(ms([*DTRACE, "-n", "BEGIN { exit(0); }"]))
            nothing.append(ms(["true"]))
        alone = interp.argv_of("pass")
        for _ in range(ROUNDS):
            without = ms(alone)
            added.append(ms([*DTRACE, "-n", ENTRY + " { @ = count(); }", "-c", " ".join(map(str, alone))]) - without)
    print(f"  Python {interp.version}")
    tells("-p: to the first event", first)
    tells("the same program a second time", again)
    tells("a command without a program", begins)
    tells("true(1)", nothing)
    tells("-c: added to a program that does nothing", added)


def run():
    for version in harness.VERSIONS:
        ask(measure.interpreter(version))
