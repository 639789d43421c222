#!/usr/bin/python3
"""
What a budget leaves to a program whose function is called five million times a second.

	tests/soak/budget.py --budget 1% --seconds 60

Two equal programs run at the same time, each on a processor of its own and for so many seconds of its own CPU time, and say how
many calls they have made: the service traces one, which its rule selects, and leaves the other alone.  Then they change places,
since processors are not equally fast.  The loss is how many calls less the traced one has made for the same CPU time, both ways
together; what the service says about the budget is shown beside it.  The exit status is 1 if it is more than --limit.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
sys.dont_write_bytecode = True

import harness  # noqa: E402
from serving import Service, total  # noqa: E402

# A call and some turns of an empty loop, as many as make it 200 ns: told 0 of them, the program finds out and ends with that.
PROGRAM = """
import sys, time
def leaf(n):
    return n
def turn(calls, fill):
    for i in range(calls):
        leaf(i)
        for _ in fill:
            pass
def rate(fill, seconds):
    calls, begun = 0, time.process_time()
    while (now := time.process_time()) - begun < seconds:
        turn(20000, fill)
        calls += 20000
    return calls / (now - begun)
fill = (0,) * int(sys.argv[2])
if sys.argv[2] == "0":
    while rate(fill, 0.5) > 5e6:
        fill += (0,)
    sys.exit(len(fill))
print("ready", flush=True)
sys.stdin.readline()
print(rate(fill, float(sys.argv[1])), flush=True)
"""

CONFIG = """listen: 127.0.0.1:0
budget: {budget}
rules: {{ mine: {{ environment: {{ DTAP_SOAK: "{mark}" }} }} }}
scripts: {{ calls: {{ command: calls leaf, rule: mine }} }}
"""

TOLD = ("dtap_budget_exact", "dtap_budget_rests_total", "dtap_budget_rested_seconds_total", "dtap_budget_spent_seconds_total",
        "dtap_budget_cpu_seconds_total", "dtap_budget_events_total", "dtap_budget_ratio")


def start(args, fill, mark, processor):
    child = subprocess.Popen([args.python, "-c", PROGRAM, str(args.seconds), str(fill)], env={**os.environ, "DTAP_SOAK": mark},
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    os.sched_setaffinity(child.pid, {processor})
    assert child.stdout.readline() == "ready\n"
    return child


def compare(args, fill, folder, first):
    """The traced program's calls a CPU second, and the other's; @first: is the traced one on the first processor?"""
    config = pathlib.Path(folder, "serve.yaml")
    config.write_text(CONFIG.format(budget=args.budget, mark=folder))
    marks = [folder, "another"] if first else ["another", folder]
    children = [start(args, fill, mark, processor) for mark, processor in zip(marks, sorted(os.sched_getaffinity(0)))]
    service = Service(config)
    service.until(lambda found: total(found, "dtap_serve_processes") == 1, "the program")
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    rates = dict(zip(marks, (float(child.stdout.readline()) for child in children)))
    found = service.metrics()
    for child in children:
        child.stdin.close()
        child.wait(harness.TIMEOUT_S)
    print("  " + ", ".join(f"{name[len('dtap_budget_'):]} {total(found, name):.4g}" for name in TOLD))
    for line in service.lines:
        if "not traced" in line:
            print("  log:", line.rstrip()[:160])
            break
    assert service.end() == 0
    return rates[folder], rates["another"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="1%")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--limit", type=float, default=2, help="percent of the calls that may be lost")
    args = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("budget.py: needs two processors")
    losses = []
    fill = max(1, subprocess.run([args.python, "-c", PROGRAM, "0", "0"], check=False).returncode)
    for first in True, False:
        with tempfile.TemporaryDirectory() as folder:
            traced, bare = compare(args, fill, folder, first)
        losses.append(1 - traced / bare)
        print(f"traced {traced / 1e6:.3f}, bare {bare / 1e6:.3f} million calls a CPU second: a loss of {losses[-1] * 100:.2f} %", flush=True)
    loss = sum(losses) / 2 * 100
    print(f"both: {loss:.2f} %")
    return loss > args.limit


if __name__ == "__main__":
    sys.exit(main())
