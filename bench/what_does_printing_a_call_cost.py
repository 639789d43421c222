"""A printf on every function entry of Python 3.9, 100,000 calls; and what of it is lost
"""
import measure

CALLS = 100_000


def check(run):
    with open(run.output, encoding="utf-8", errors="replace") as output:
        printed = sum("leaf" in line for line in output)
    return f"lost {100 * (CALLS - printed) / CALLS:.1f} %" if printed != CALLS else "lost none"


def run():
    measure.added_cost(CALLS, '{ printf("%s:%s:%d\\n", copyinstr(arg0), copyinstr(arg1), arg2); }',
                       '{ printf("%s:%s:%d\\n", str(arg0), str(arg1), (int32)arg2); }', check=check)
