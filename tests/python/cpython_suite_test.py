"""The D scripts of CPython's own test suite (Lib/test/dtracedata), judged as its test_dtrace.py does."""
import pathlib

import pytest

import harness

DATA = pathlib.Path("/usr/lib/python3.11/test/dtracedata")

pytestmark = [pytest.mark.needs_bpf,
              pytest.mark.skipif(not DATA.is_dir(), reason="libpython3.11-testsuite is not installed")]


def trace(dtrace, interp, name, flags=()):
    program = interp.add(DATA / f"{name}.py")
    result = dtrace("-q", "-s", DATA / f"{name}.d", "-c", " ".join([*interp.argv, *flags, program]))
    assert result.code == 0, result
    got = harness.in_time_order(result.out + result.err)
    assert got == (DATA / f"{name}.d.expected").read_text().splitlines(), result


@pytest.mark.interps("3.9", "3.15")
@pytest.mark.parametrize("flags", [(), ("-OO",)], ids=["plain", "optimised"])
def test_call_stack(dtrace, interp, flags):
    trace(dtrace, interp, "call_stack", flags)


@pytest.mark.interps("3.9")
def test_gc(dtrace, interp):
    trace(dtrace, interp, "gc")


@pytest.mark.interps("3.9")
def test_line(dtrace, interp):
    trace(dtrace, interp, "line")


def test_usable(dtrace):
    """What test_dtrace.py asks first: without "probe: success" it skips itself."""
    result = dtrace("-q", "-s", DATA / "assert_usable.d")
    assert result.code == 0 and result.out.strip() == "probe: success", result
