#!/usr/bin/python3
"""
The service and Pythons that come and go: its memory and descriptors, and what it missed.

	tests/soak/serve.py --pythons 5000

Short Pythons run a few at a time, each with its own number of calls, some forking.  The service counts them all, and the
sum is compared with the programs' own; those that it never came to trace are told, with their calls.  After each quarter, and a
rest of a minute, in which what a burst took is given back: memory and descriptors.  At the end: their growth since the first; CPU
time, bytes and time of a scrape.  Then one Python calls thousands of functions: how many series that makes, and what
the service says of it.  The exit status is 1 if a call was counted twice, or neither counted nor told as missed, if descriptors
are left, or if memory grows by more than --growth in all.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
sys.dont_write_bytecode = True

import harness  # noqa: E402
from serving import Service, total  # noqa: E402

# Its time is that of its sleep: it is to be traced before it begins, or it is short on purpose.
PROGRAM = """
import os, sys, time
def leaf(n):
    pass
wait, calls, forks = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "fork"
time.sleep(wait)
if forks:
    pid = os.fork()
    if not pid:
        for i in range(calls):
            leaf(i)
        os._exit(0)
    os.waitpid(pid, 0)
elif sys.argv[3] == "many":
    exec("".join(f"def leaf_{i}(): pass\\nleaf_{i}()\\n" for i in range(calls)))
else:
    for i in range(calls):
        leaf(i)
"""

CONFIG = """listen: 127.0.0.1:0
rules: {{ soak: {{ environment: {{ DTAP_SOAK: "{mark}" }} }} }}
outputs: {{ log: {{ file: {folder}/log, size: 1M, count: 1 }} }}
scripts:
  calls: {{ command: calls leaf leaf_*, rule: soak }}
  ends:
    rule: soak
    events: log
    metrics: {{ by: {{ labels: [process] }} }}
    program: |
      python*:::function-entry /copyinstr(arg1) == "leaf"/ {{ @n = count(); @by[pid] = count(); }}
      python*:::function-return /copyinstr(arg1) == "leaf"/ {{ printf("%d", arg2); }}
"""


def readings(service):
    found = service.metrics()
    return {"memory": total(found, "process_resident_memory_bytes"), "descriptors": total(found, "process_open_fds"),
            "cpu": total(found, "process_cpu_seconds_total"), "attached": total(found, "dtap_serve_attached_total", script="calls"),
            "refused": total(found, "dtap_serve_refused_total"), "lost": total(found, "dtap_serve_lost_total"),
            "missed": sum(total(found, f"dtap_serve_{how}_total", script="calls") for how in ("refused", "unseen", "late", "begun")),
            "series": total(found, "dtap_serve_series", script="calls"), "over": total(found, "dtap_serve_series_over", script="calls"),
            "calls": total(found, "dtap_calls_calls_total"), "events": total(found, "dtap_serve_output_events_total")}


def rested(args, service):
    """What a burst took is given back some time after what its processes have left was read, which goes on as ever."""
    end = time.monotonic() + args.rest
    while time.monotonic() < end:
        readings(service)
        time.sleep(args.scrape)
    return readings(service)


def show(what, values):
    print(f"{what}: " + ", ".join(f"{name} {value:.0f}" if name != "cpu" else f"cpu {value:.2f} s" for name, value in values.items()),
          flush=True)


def start(args, folder, calls, how):
    return subprocess.Popen([args.python, "-c", PROGRAM, str(args.wait), str(calls), how], env={**os.environ, "DTAP_SOAK": folder})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--wait", type=float, default=0.3, help="seconds that each sleeps before its calls")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--functions", type=int, default=20000, help="that one Python calls at the end")
    parser.add_argument("--growth", type=float, default=512, help="KiB between the first part and the end")
    parser.add_argument("--parts", type=int, default=4, help="how often memory is looked at")
    parser.add_argument("--rest", type=float, default=70, help="seconds before memory is looked at")
    parser.add_argument("--scrape", type=float, default=15, help="seconds between two readings")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rand = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "serve.yaml")
        config.write_text(CONFIG.format(mark=folder, folder=folder))
        service = Service(config)
        service.until(lambda found: total(found, "dtap_serve_script_up") == 2, "the scripts")
        running, made, first, begun = [], 0, None, time.monotonic()
        due = begun
        for i in range(args.pythons):
            if time.monotonic() >= due:     # as Prometheus does
                readings(service)
                due = time.monotonic() + args.scrape
            if len(running) == args.at_once:
                assert running.pop(0).wait(harness.TIMEOUT_S) == 0
            calls = rand.randrange(200)
            made += calls
            running.append(start(args, folder, calls, "fork" if rand.random() < 0.2 else "call"))
            if i % (args.pythons // args.parts) == 0 and 0 < i < args.pythons - args.parts:
                now = rested(args, service)
                first = first or now
                show(f"after {i}", now)
        for child in running:
            assert child.wait(harness.TIMEOUT_S) == 0
        took = time.monotonic() - begun
        last = rested(args, service)
        show(f"after {args.pythons} in {took:.0f} s", last)
        began = time.monotonic()
        size = len(service.ask()[1])
        print(f"a scrape: {size} bytes, {(time.monotonic() - began) * 1e3:.1f} ms")
        print(f"calls: {made} made, {last['calls']:.0f} counted; {args.pythons - last['attached']:.0f} Pythons never traced")
        growth, left = (last["memory"] - first["memory"]) / 1024, last["descriptors"] - first["descriptors"]
        print(f"growth: {growth:.0f} KiB, {left:.0f} descriptors")
        assert start(args, folder, args.functions, "many").wait(harness.TIMEOUT_S) == 0
        many = readings(service)
        show(f"after {args.functions} functions", many)
        began = time.monotonic()
        size = len(service.ask()[1])
        print(f"a scrape: {size} bytes, {(time.monotonic() - began) * 1e3:.1f} ms; of {args.functions} calls "
              f"{many['calls'] - last['calls']:.0f} are counted, {many['lost'] - last['lost']:.0f} told as lost")
        for line in service.lines[:5]:
            print("log:", line.rstrip())
        missed = 0 < made - last["calls"] <= 200 * last["missed"] or made == last["calls"]
        wrong = [what for what, is_so in (("counts", not missed or last["calls"] > made), ("memory", growth > args.growth),
                                          ("descriptors", left > 0),
                                          ("series", many["calls"] - last["calls"] + many["lost"] - last["lost"] != args.functions)) if is_so]
        if wrong:
            print("wrong:", ", ".join(wrong))
        return service.end() or bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
