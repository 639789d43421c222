"""The SystemTap scripts of CPython's own test suite (Lib/test/dtracedata), judged as its test_dtrace.py does: with
stap -g, standard output and standard error as one."""
import pathlib
import re

import pytest

import harness

DATA = pathlib.Path("/usr/lib/python3.11/test/dtracedata")

pytestmark = [pytest.mark.needs_bpf,
              pytest.mark.skipif(not DATA.is_dir(), reason="libpython3.11-testsuite is not installed")]


def expected(name):
    """call_stack.stp.expected of this release lacks the calls of function_3 that function_1 makes in call_stack.py; the
    same calls stand in call_stack.d.expected, indented."""
    if name == "call_stack":
        text = (DATA / "call_stack.d.expected").read_text()
        return [re.sub(r"^ *function-(\w+): *", r"function__\1:", line) for line in text.splitlines() if line]
    return [line for line in (DATA / f"{name}.stp.expected").read_text().splitlines() if line]


@pytest.mark.parametrize("flags", [(), ("-OO",)], ids=["plain", "optimised"])
@pytest.mark.parametrize("name", ["call_stack", "gc"])
def test_case(interp, name, flags):
    program = interp.add(DATA / f"{name}.py")
    result = harness.stap("-g", DATA / f"{name}.stp", "-c", " ".join([*interp.argv, *flags, program]))
    assert result.code == 0, result
    assert harness.in_time_order(result.out + result.err) == expected(name), result


def test_usable():
    """What test_dtrace.py asks first: without "probe: success" it skips itself."""
    result = harness.stap("-g", DATA / "assert_usable.stp")
    assert (result.code, result.out.strip(), result.err) == (0, "probe: success", ""), result
