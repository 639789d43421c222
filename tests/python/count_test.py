"""Counting calls exactly: an aggregation misses nothing, however many events there are."""
import pathlib
import re

import pytest

pytestmark = pytest.mark.needs_bpf

CALLS = 1_000_000

PROGRAM = pathlib.Path(__file__).parent / "data" / "threads.py"


def table(text):
    """Rows "key value" of an aggregation that dtrace printed."""
    return {key: int(value) for key, value in re.findall(r"^\s*(\S+) +(\d+)$", text, re.M)}


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 4])
def test_a_million_calls(dtrace, interp, threads):
    result = dtrace("-n", "python$target:::function-entry { @[copyinstr(arg1)] = count(); }",
                    "-c", interp.command(PROGRAM, CALLS, threads))
    assert result.code == 0 and "drop" not in result.err, result
    rows = table(result.out)
    assert rows["leaf"] == CALLS, result
    assert rows["work"] == threads, result


@pytest.mark.interps("3.9", "3.13")
def test_sum_min_max_avg(dtrace, interp):
    """Line numbers as values; the whole-program truth is in the source: leaf is on line 4, work on line 7."""
    result = dtrace("-q", "-n", """
        python$target:::function-entry
        /copyinstr(arg1) == "leaf" || copyinstr(arg1) == "work"/
        {
            @lines["sum"] = sum(arg2);
            @least["min"] = min(arg2);
            @most["max"] = max(arg2);
        }""", "-c", interp.command(PROGRAM, 1000, 1))
    assert result.code == 0, result
    assert table(result.out) == {"sum": 4 * 1000 + 7, "min": 4, "max": 7}, result


@pytest.mark.interps("3.9", "3.13")
def test_two_keys(dtrace, interp):
    result = dtrace("-q", "-n", """
        python$target:::function-entry /copyinstr(arg1) == "leaf"/ { @[copyinstr(arg1), arg2] = count(); }
    """, "-c", interp.command(PROGRAM, 1000, 1))
    assert re.search(r"^\s*leaf +4 +1000$", result.out, re.M), result


@pytest.mark.interps("3.9", "3.13")
def test_many_printfs_lose_nothing(dtrace, interp):
    """Each of 100,000 records arrives, in order; a loss would have to be reported."""
    result = dtrace("-q", "-n", """
        python$target:::function-entry /copyinstr(arg1) == "leaf"/ { n++; printf("%d\\n", n); }
    """, "-c", interp.command(PROGRAM, 100_000, 1))
    assert result.code == 0, result
    drops = sum(map(int, re.findall(r"(\d+) (?:\w+ )?drops?", result.err)))
    numbers = list(map(int, result.out.split()))
    assert numbers == sorted(numbers), "not in order"
    assert len(numbers) + drops == 100_000, f"{len(numbers)} lines, {drops} drops\n{result.err}"
    assert drops == 0
