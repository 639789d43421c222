"""@[copyinstr(arg1)] = count() on every function entry of Python 3.9, 1,000,000 calls

The goal: at most 0.9 of bpftrace 0.17.
"""
import re

import measure

CALLS = 1_000_000


def check(run):
    """Both must have counted every call."""
    with open(run.output, encoding="utf-8", errors="replace") as output:
        counted = re.search(r"\bleaf\b\]?:? +(\d+)", output.read())
    if not counted or int(counted[1]) != CALLS:
        return f"counted {counted[1] if counted else 'nothing'} of {CALLS}"
    return None


def run():
    measure.added_cost(CALLS, "{ @[copyinstr(arg1)] = count(); }", "{ @[str(arg1)] = count(); }", check=check)
