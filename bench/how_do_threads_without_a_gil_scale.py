"""What a counted call adds to each of several threads that run at once, in CPU time of the thread, without a GIL

Each thread makes the calls of a function of its own.  Traced and untraced runs in turns; shown is the least that a round's
threads took on average.  Threads share no cache line of dtap's, so the last column is near 1.

The goal: a call of one of eight threads costs at most 1.3 of what it costs in one.
"""
import re

import harness
import measure

ROUNDS, CALLS = 5, 200000
VERSIONS = ("3.13t", "3.14t", "3.15t")
PROGRAM = """
import sys, threading, time
calls, width = int(sys.argv[1]), int(sys.argv[2])
there, took = threading.Barrier(width), []
def work():
    def leaf(): pass
    there.wait()
    begin = time.thread_time_ns()
    for _ in range(calls): leaf()
    took.append(time.thread_time_ns() - begin)
threads = [threading.Thread(target=work) for _ in range(width)]
for t in threads: t.start()
for t in threads: t.join()
print("ns", sum(took) // width // calls, sum(took) % (width * calls) * 100 // (width * calls))
"""
SCRIPTS = {
    "count by name": "python$target:::function-entry { @[copyinstr(arg1)] = count(); }",
    "time by name": "python$target:::function-entry { self->t = timestamp; } python$target:::function-return /self->t/ "
                    "{ @[copyinstr(arg1)] = sum(timestamp - self->t); self->t = 0; }",
}


def ns(result):
    assert result.code == 0 and not result.err, result
    whole, part = re.search(r"^ns (\d+) (\d+)$", result.out, re.M).groups()
    return int(whole) + int(part) / 100


def least(interp, width, script):
    if not script:
        return ns(harness.run(interp.argv_of(PROGRAM, CALLS, width)))
    return ns(harness.dtrace("-q", "-x", "place=target", "-n", script, "-c", interp.command(PROGRAM, CALLS, width)))


def run():
    for version in VERSIONS:
        if isinstance(harness.interpreters().get(version), str):
            print(f"  {version}: {harness.interpreters()[version]}")
            continue
        interp = measure.interpreter(version)
        for name, script in SCRIPTS.items():
            plain, traced = {}, {}
            for _ in range(ROUNDS):
                for width in (1, 2, 8):
                    plain[width] = min(least(interp, width, None), plain.get(width, 1e9))
                    traced[width] = min(least(interp, width, script), traced.get(width, 1e9))
            added = {width: traced[width] - plain[width] for width in plain}
            print(f"  {version} {name:15}" + "".join(f"  {width} threads: {plain[width]:.0f} + {added[width]:.0f} ns" for width in added) +
                  f"  8 to 1: {added[8] / added[1]:.2f}", flush=True)
        interp.close()
