"""dtap dump of 200 threads that wait for a lock, ten functions deep, on each Python

From the command's start to its end, and the CPU time that it takes; the target is not stopped.  The goal: at most 50 ms.
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


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ask(interp):
    program = subprocess.Popen(interp.argv_of(PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wall, cpu = [], []
    try:
        assert program.stdout.readline() == "ready\n"
        for _ in range(ROUNDS):
            before, begin = used(), time.perf_counter()
            dump = subprocess.run([harness.BUILD / "dtap", "dump", "-p", str(program.pid)], stdout=subprocess.PIPE, check=True)
            wall.append((time.perf_counter() - begin) * 1e3)
            cpu.append((used() - before) * 1e3)
            assert dump.stdout.count(b"waits for threading.Lock") >= 190, dump.stdout[:2000]
    finally:
        program.kill()
        program.wait()
    measure.row("dtap dump", wall, "ms")
    measure.row("its CPU time", cpu, "ms")


def run():
    for version in harness.VERSIONS:
        interp = measure.interpreter(version)
        print(f"  Python {version}", flush=True)
        ask(interp)
        interp.close()
