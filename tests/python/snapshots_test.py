"""Aggregations printed and emptied while events arrive: each event is in one report, none is in two."""
import pathlib
import re

import pytest

pytestmark = [pytest.mark.needs_bpf, pytest.mark.interps("3.9")]

CALLS, THREADS = 40_000, 4

PROGRAM = pathlib.Path(__file__).parent / "data" / "threads.py"

REPORT = """
    printa("calls %@d\\n", @calls);
    printa("name %s %@d\\n", @names);
    printa("lines %@d\\n", @lines);
    printa("sizes\\n%@d", @sizes);"""


@pytest.mark.parametrize("apart", [False, True], ids=["one clause", "two clauses"])
def test_reports_add_up(dtrace, interp, apart):
    result = dtrace("-q", "-n", """
        python$target:::function-entry
        /copyinstr(arg1) == "leaf"/
        {
            @calls = count();
            @names[copyinstr(arg1)] = count();
            @lines = sum(arg2);
            @sizes = quantize(arg2);
        }
        tick-5ms { %s %s clear(@calls); trunc(@names); clear(@lines); clear(@sizes); }
        END { %s }""" % (REPORT, "} tick-5ms {" if apart else "", REPORT),
        "-c", interp.command(PROGRAM, CALLS, THREADS))
    assert result.code == 0 and result.err == "", result

    def total(pattern):
        return sum(int(n) for n in re.findall(pattern, result.out))

    assert len(re.findall("^calls", result.out, re.M)) > 2, result
    assert total(r"calls (\d+)") == CALLS
    assert total(r"name leaf (\d+)") == CALLS
    assert total(r"lines (\d+)") == CALLS * 4           # leaf is on line 4
    assert total(r"\|@* +(\d+)") == CALLS
