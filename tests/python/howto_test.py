"""The D script of CPython's HOWTO "Instrumenting CPython with DTrace and SystemTap", pasted as it stands.

Its output is the HOWTO's too: the call hierarchy of call_stack.py, which CPython's test suite ships.
"""
import pathlib

import pytest

import harness

DATA = pathlib.Path(__file__).parent / "data"

pytestmark = pytest.mark.needs_bpf


def check(result):
    assert result.code == 0, result
    assert harness.in_time_order(result.out) == (DATA / "howto_call_stack.out").read_text().splitlines(), result


def test_call_hierarchy(dtrace, interp):
    check(dtrace("-q", "-s", DATA / "howto_call_stack.d", "-c", interp.command(DATA / "call_stack.py")))


def test_output_is_in_time_order(dtrace, interp):
    """dtap merges its streams by time: nothing has to be sorted."""
    result = dtrace("-q", "-s", DATA / "howto_call_stack.d", "-c", interp.command(DATA / "call_stack.py"))
    stamps = [int(line.split("\t")[0]) for line in result.out.splitlines() if line]
    assert stamps and stamps == sorted(stamps), result
