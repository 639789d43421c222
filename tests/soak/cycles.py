#!/usr/bin/python3
"""Attaching and detaching many times: a program with threads that forks, executes itself anew and ends meanwhile, tracers
that are killed at any moment.

    tests/soak/cycles.py [--cycles N] [--python 3.9,3.11] [--seed S] [--first N] [-v]

N cycles on each interpreter.  A cycle is made from the seed, the interpreter and its number: one or two tracers come to
the program (tests/target/attach, which brings the agent in and leaves; or dtrace, whose script runs in the process), and
go by themselves or by SIGKILL after a random time; the program gets an order, or none, after another one.  Then

- what the program's threads, and its children by fork, calculate is right, and all of them go on;
- a program that was not told to end lives, and ends with 0 when it is told to;
- at the end, and now and then, nothing of the tracers is left in it: no thread, no descriptor; its calls are as fast as they
  were before the first tracer.

The build under test is $DTAP_BUILD.
"""
import argparse
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402

ATTACH = harness.BUILD / "tests/target/attach"
AGENT = harness.BUILD / "src/agent/dtap-agent.so"
ANSWER_S = 60           # a program that does not answer for so long hangs
SLOWER = 1.25           # than before, at most; measured as the best of some, and again for SPEED_S
SPEED_S = 60

PROGRAM = r"""
import os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)      # fork with threads
go, wrong, laps = threading.Event(), [], [0] * 4
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def squares(n):
    for i in range(n): yield i * i
def fails(n):
    if n: return fails(n - 1)
    raise ValueError(n)
def lap():
    d = {str(i): i for i in range(50)}
    try: fails(5)
    except ValueError as error: caught = error.args
    return fib(10) == 55 and sum(squares(40)) == 20540 and len(d) == 50 and caught == (0,)
def work(i):
    while True:
        go.wait()
        if not lap(): wrong.append(i)
        laps[i] += 1
        time.sleep(0)
def speed():
    go.clear()
    time.sleep(0.02)
    best = 1e9
    for _ in range(10):
        begin = time.perf_counter()
        fib(14)
        best = min(best, time.perf_counter() - begin)
    go.set()
    return best
def forks():
    child = os.fork()
    if not child:
        os._exit(0 if all(lap() for _ in range(30)) else 9)
    return os.waitpid(child, 0)[1]
def goes_on():
    before = list(laps)
    end = time.monotonic() + 50
    while any(a == b for a, b in zip(before, laps)) and time.monotonic() < end: time.sleep(0.002)
    return "wrong" if wrong else "right" if all(a != b for a, b in zip(before, laps)) else "stands still"
for i in range(len(laps)): threading.Thread(target=work, args=(i,), daemon=True).start()
go.set()
print("up", flush=True)
for line in sys.stdin:
    order = line.strip()
    if order == "speed": print("speed", speed(), flush=True)
    elif order == "fork": print("fork", forks(), flush=True)
    elif order == "look": print("look", goes_on(), flush=True)
    elif order == "exec": os.execv(sys.executable, [sys.executable, *sys.argv])
    elif order == "exit": break
print("end", goes_on(), flush=True)
"""

SCRIPTS = [
    "python$target:::function-entry { @[copyinstr(arg1)] = count(); } tick-60ms { exit(0); }",
    "python$target:::function-entry { self->t = timestamp; } python$target:::function-return /self->t/"
    " { @ = quantize(timestamp - self->t); self->t = 0; } tick-80ms { exit(0); }",
    'python$target:::line { @[arg2] = count(); } python$target:::gc-start { n++; } tick-50ms { exit(0); }',
    'python$target:::function-entry /copyinstr(arg1) == "fails"/ { @[ustack(3), stackdepth] = count(); } tick-50ms { exit(0); }',
]


class Died(Exception):
    pass


def threads(pid):
    """What each is doing: state, and the system call with its arguments."""
    return "\n".join(f"{task.name} {(task / 'stat').read_text().split()[2]} {(task / 'syscall').read_text().strip()}"
                     for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


class Target:
    def __init__(self, interp):
        self.process = subprocess.Popen(interp.argv_of(PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid, self.text = self.process.pid, b""
        self.answer("up")
        self.order("speed")
        self.fast = float(self.answer("speed"))
        self.had = self.has()

    def order(self, word):
        try:
            self.process.stdin.write(word.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Died(f"takes no order {word}, status {self.process.wait(timeout=ANSWER_S)}") from None

    def answer(self, word):
        """The rest of the next line, which begins with @word."""
        end = time.monotonic() + ANSWER_S
        while b"\n" not in self.text:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise Died(f"hangs: no answer to {word}\n{threads(self.pid)}")
            more = os.read(self.process.stdout.fileno(), 4096)
            if not more:
                raise Died(f"died before {word}: status {self.process.wait(timeout=ANSWER_S)}")
            self.text += more
        line, self.text = self.text.split(b"\n", 1)
        first, _, rest = line.decode().partition(" ")
        if first != word:
            raise Died(f"said {line}, not {word}")
        return rest

    def check(self, word):
        said = self.answer(word)
        if said not in ("right", "0"):
            raise Died(f"{word}: {said}")

    def has(self):
        """Descriptors and threads."""
        return len(os.listdir(f"/proc/{self.pid}/fd")), len(os.listdir(f"/proc/{self.pid}/task"))

    def is_clean(self):
        """An agent keeps two descriptors: by them its thread is woken, should it be needed again."""
        return all(now <= had + more for now, had, more in zip(self.has(), self.had, (2, 0)))

    def wait_clean(self):
        """Until nothing of the tracers is left, and calls are as fast as before."""
        end, slow = time.monotonic() + SPEED_S, 0.0
        while time.monotonic() < end:
            self.order("speed")
            slow = float(self.answer("speed"))
            if self.is_clean() and slow <= SLOWER * self.fast:
                return
            time.sleep(0.05)
        raise Died(f"has {self.has()} descriptors and threads, had {self.had}; a call costs {slow / self.fast:.2f} of before")

    def end(self):
        self.order("exit")
        self.check("end")
        if self.process.wait(timeout=ANSWER_S):
            raise Died(f"ended with {self.process.returncode}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def start_tracer(rnd, pid):
    if rnd.random() < 0.6:
        argv, longest = [ATTACH, AGENT, str(pid)], 0.03
    else:
        argv, longest = [harness.DTRACE, "-q", "-x", "place=target", "-n", rnd.choice(SCRIPTS), "-p", str(pid)], 0.2
    tracer = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return tracer, rnd.random() * longest if rnd.random() < 0.6 else None


def cycle(rnd, target):
    """One cycle; true when the program has ended as it was told to."""
    tracers = [start_tracer(rnd, target.pid) for _ in range(rnd.choice((1, 1, 1, 2)))]
    order = rnd.choices((None, "fork", "exec", "exit"), (70, 15, 12, 3))[0]
    plan = [(after, tracer, None) for tracer, after in tracers if after is not None]
    plan += [(rnd.random() * 0.06, None, order)] if order else []
    begin = time.monotonic()
    try:
        for after, tracer, _ in sorted(plan, key=lambda row: row[0]):
            time.sleep(max(0, begin + after - time.monotonic()))
            if tracer:
                tracer.kill()
            elif order == "exit":
                target.end()
            else:
                target.order(order)
                if order == "fork":
                    target.check("fork")
                else:
                    target.answer("up")
        for tracer, after in tracers:
            try:
                code = tracer.wait(timeout=ANSWER_S)
            except subprocess.TimeoutExpired:
                raise Died(f"cannot be left by {tracer.args}\ntracer:\n{threads(tracer.pid)}\nprogram:\n"
                           f"{threads(target.pid)}") from None
            if code not in (0, 1) and not (after is not None and code == -signal.SIGKILL):
                raise Died(f"a tracer ended with {code}: {tracer.args}")
    finally:
        for tracer, _ in tracers:
            tracer.kill()
            tracer.wait()
    if target.process.poll() is None:
        return False
    if order != "exit":
        raise Died(f"died: status {target.process.returncode}")
    return True


def cycles(version, n, seed, first=0, verbose=False):
    """Figures of the run; Died says in which cycle."""
    interp = harness.Interp(version, harness.interpreters()[version])
    target, begin, programs = None, time.monotonic(), 0
    number = first
    try:
        for number in range(first, first + n):
            rnd = random.Random(f"{seed} {version} {number}")
            if not target:
                target, programs = Target(interp), programs + 1
            if cycle(rnd, target):
                target.kill()
                target = None
            elif number % 10 == 9:
                target.order("look")
                target.check("look")
            if target and number % 200 == 199:
                target.wait_clean()
            if verbose and number % 100 == 99:
                print(f"{version}: {number + 1 - first} after {time.monotonic() - begin:.0f} s", flush=True)
        if target:
            target.wait_clean()
            target.end()
    except Died as died:
        raise Died(f"Python {version}, seed {seed}, cycle {number}: the program {died}") from None
    finally:
        if target:
            target.kill()
        interp.close()
    return f"{version}: {n} cycles, {programs} programs, 0 deaths, {time.monotonic() - begin:.0f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--python", default=",".join(harness.VERSIONS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    failed = False
    for version in args.python.split(","):
        try:
            print(cycles(version, args.cycles, args.seed, args.first, args.v), flush=True)
        except Died as died:
            print(f"FAILED: {died}", flush=True)
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
