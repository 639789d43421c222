"""What an event costs a process, and what dtap says that it costs (-x showcost): the figures of src/agent/cost.def

Each form of an event in turn with none, in one process, whose rounds take 1,000,000 calls.  What is told is the average of all
of the run's events, of which hardly one is not of the rounds.

The goal: what is told is from 0.7 to 1.5 times what is added.
"""
import re
import subprocess
import time

import harness
import inside
import measure

ROUNDS = 4
SCRIPTS = {
    "count by name": "python$target:::function-entry { @[copyinstr(arg1)] = count(); }",
    "count two things": "python$target:::function-entry { @[copyinstr(arg1)] = count(); @b = count(); }",
    "settled": "python$target:::function-entry /copyinstr(arg1) == \"none\"/ { @ = count(); }",
    "duration": "python$target:::function-entry { self->t = timestamp; } python$target:::function-return /self->t/ "
                "{ @[copyinstr(arg1)] = quantize(timestamp - self->t); self->t = 0; }",
    "stack": "python$target:::function-entry { @[pystack(5)] = count(); }",
    "named": "py$target:*:leaf*:entry { @ = count(); }",
    "none named": "py$target:*:nothing:entry { @ = count(); }",
    "line": "python$target:::line { @ = count(); }",
    "print": "python$target:::function-entry { printf(\"%s\", copyinstr(arg1)); }",
}


class Told(inside.Tracer):
    def __init__(self, program, clauses):
        super().__init__([str(harness.DTRACE), "-x", "showcost", "-x", "bufsize=16m", "-x", "place=target", "-p", str(program.process.pid), "-o", "/dev/null", "-n",
                          clauses])

    def __enter__(self):
        self.process = measure.start(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        assert self.process.poll() is None, self.process.stderr.read()
        return self

    def __exit__(self, *_):
        self.process.send_signal(2)
        _, err = self.process.communicate()
        found = re.search(r"(\d+) events have cost the traced processes ([\d.]+) s", err)
        self.events, self.ns = (int(found[1]), float(found[2]) * 1e9) if found else (0, 0)


def ask(program):
    print(f"  Python {program.interp.version}")
    for name, clauses in SCRIPTS.items():
        added, told, events = [], [], 0
        for _ in range(ROUNDS):
            base = program.say("1 1")
            tracer = Told(program, clauses)
            with tracer:
                took = program.say("1 1")
            added.append(took - base)
            told.append(tracer.ns / 2000000)     # the rounds' warm-up is of as many calls
            events = tracer.events
        least = min(added)
        print(f"    {name:<18} {least:8.1f} ns a call added, {sorted(told)[len(told) // 2]:8.1f} told: {sorted(told)[len(told) // 2] / least:5.2f} "
              f"({events / 2000000:.2f} events a call)", flush=True)


def run():
    inside.each_python(ask)
