"""dtap dump of 200 threads that wait for a lock, ten functions deep, on each Python

From the command's start to its end, and the CPU time that it takes; the target is not stopped.  The goal: at most 50 ms.
With --locals the same with the variables of all 2,600 frames.  A thread that runs is stopped for a dump with --locals: the
longest pause that a loop of the program itself sees in one, beside its longest one without a dump.  The goal: 5 ms.
"""
import resource
import subprocess
import time

import harness
import measure

ROUNDS = 15
PROGRAM = """
import sys, threading

def waits(depth):
    if depth:
        return waits(depth - 1)
    event.wait()

event = threading.Event()
for _ in range(200):
    threading.Thread(target=waits, args=(8,), daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
"""


RUNS = """
import sys, threading, time
class Point:
    def __init__(self, x):
        self.x, self.y = x, [x, {"k": x}]
def works(depth, points):
    table = {k: Point(k) for k in range(100)}
    if depth:
        return works(depth - 1, points)
    longest, last = 0.0, time.perf_counter()
    while not done:
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest
def asks():
    for line in sys.stdin:
        done.append(line)
        return
done = []
for k in range(2):
    done.clear()
    thread = threading.Thread(target=asks)
    thread.start()
    print("ready", flush=True)
    longest = works(50, [Point(k) for k in range(100)])
    thread.join()
    print(longest, flush=True)
"""


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def pause(interp):
    """The longest pauses without and with dumps, in ms."""
    program = measure.start(interp.argv_of(RUNS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    found = []
    try:
        for dumps in False, True:
            assert program.stdout.readline() == "ready\n"
            if dumps:
                for _ in range(ROUNDS):
                    subprocess.run([harness.BUILD / "dtap", "dump", "-l", "-p", str(program.pid)], stdout=subprocess.DEVNULL,
                                   check=True)
            else:
                time.sleep(0.3)
            program.stdin.write("\n")
            program.stdin.flush()
            found.append(float(program.stdout.readline()) * 1e3)
    finally:
        program.kill()
        program.wait()
    return found


def ask(interp):
    program = measure.start(interp.argv_of(PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wall, cpu, locals_wall = [], [], []
    try:
        assert program.stdout.readline() == "ready\n"
        for _ in range(ROUNDS):
            before, begin = used(), time.perf_counter()
            dump = subprocess.run([harness.BUILD / "dtap", "dump", "-p", str(program.pid)], stdout=subprocess.PIPE, check=True)
            wall.append((time.perf_counter() - begin) * 1e3)
            cpu.append((used() - before) * 1e3)
            begin = time.perf_counter()
            subprocess.run([harness.BUILD / "dtap", "dump", "-l", "-p", str(program.pid)], stdout=subprocess.PIPE, check=True)
            locals_wall.append((time.perf_counter() - begin) * 1e3)
            assert dump.stdout.count(b"waits for threading.Lock") >= 190, dump.stdout[:2000]
    finally:
        program.kill()
        program.wait()
    measure.row("dtap dump", wall, "ms")
    measure.row("its CPU time", cpu, "ms")
    measure.row("dtap dump --locals", locals_wall, "ms")
    without, with_dumps = zip(*(pause(interp) for _ in range(5)))
    measure.row("longest pause of a thread", without, "ms")
    measure.row("the same, --locals", with_dumps, "ms")


def run():
    for version in harness.VERSIONS:
        interp = measure.interpreter(version)
        print(f"  Python {version}", flush=True)
        ask(interp)
        interp.close()
