"""The D scripts of CPython's own test suite (Lib/test/dtracedata), judged as its test_dtrace.py does.

What line and gc give differs a little between versions: where it does, the interpreter's own sys.settrace and
gc.callbacks say what is right.
"""
import os
import pathlib
import subprocess

import pytest

import harness

DATA = pathlib.Path("/usr/lib/python3.11/test/dtracedata")

pytestmark = [pytest.mark.needs_bpf,
              pytest.mark.skipif(not DATA.is_dir(), reason="libpython3.11-testsuite is not installed")]

every_level = pytest.mark.parametrize("flags", [(), ("-OO",)], ids=["plain", "optimised"])

WITNESS = """
import gc, sys
path = sys.argv[1]
inside, events = [], []

def line(frame, event, arg):
    if event == "line" and frame.f_code.co_name == "test_line":
        events.append("line:line.py:test_line:%d" % frame.f_lineno)
    return line

def bracket(frame, event, arg):
    if frame.f_code.co_name == "start" and event in ("call", "return"):
        inside[:] = [True] if event == "call" else []

def collect(phase, info):
    if inside and phase == "start":
        events.append("gc-start:%d" % info["generation"])
    elif inside:
        events.append("gc-done:%d" % (info["collected"] + info["uncollectable"]))

with open(path) as file:
    code = compile(file.read(), path, "exec")
if path.endswith("line.py"):
    sys.settrace(line)
else:
    gc.callbacks.append(collect)
    sys.setprofile(bracket)
exec(code, {"__name__": "__main__"})
sys.settrace(None)
sys.setprofile(None)
gc.callbacks.clear()
print("\\n".join(events), file=sys.stderr)
"""


# Both write to one stream, as there; a program that does not buffer would be interrupted in the middle of a line.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def trace(dtrace, interp, name, flags):
    program = interp.add(DATA / f"{name}.py")
    result = dtrace("-q", "-s", DATA / f"{name}.d", "-c", " ".join([*interp.argv, *flags, program]), env=ENVIRONMENT)
    assert result.code == 0, result
    return harness.in_time_order(result.out + result.err), result


def expected(name):
    return (DATA / f"{name}.d.expected").read_text().splitlines()


def witness(interp, name, flags):
    """What the interpreter's own hooks say of the program."""
    program, runner = interp.add(DATA / f"{name}.py"), interp.add(WITNESS, "witness.py")
    done = subprocess.run([*interp.argv, *flags, runner, program], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


@every_level
def test_call_stack(dtrace, interp, flags):
    got, result = trace(dtrace, interp, "call_stack", flags)
    assert got == expected("call_stack"), result


@every_level
@pytest.mark.parametrize("name", ["gc", "line"])
def test_with_witness(dtrace, interp, name, flags):
    got, result = trace(dtrace, interp, name, flags)
    want = witness(interp, name, flags)
    assert len(want) >= 8 and got == want, result
    if interp.version == "3.9":
        assert want == expected(name)


def test_usable(dtrace):
    """What test_dtrace.py asks first: without "probe: success" it skips itself."""
    result = dtrace("-q", "-s", DATA / "assert_usable.d")
    assert result.code == 0 and result.out.strip() == "probe: success", result


def test_mixed_streams(dtrace, interp):
    """test_dtrace.py reads both streams as one: what is not the script's begins with #."""
    program = interp.add(DATA / "call_stack.py")
    result = dtrace("-s", DATA / "call_stack.d", "-q", "-x", "agent=always",
                    "-c", " ".join([*interp.argv, program]))
    lines = (result.out + result.err).splitlines()
    assert result.code == 0 and all(not line or line[0] in "#0123456789" for line in lines), result


@pytest.mark.parametrize("case", ["DTraceNormalTests", "DTraceOptimizedTests"])
def test_the_test_itself(case):
    """test_dtrace.py of the host's Python, with our dtrace first in PATH.  (Its fourth test is about opcodes, not tracing, and
    looks for some that 3.11 has no more.)"""
    names = [f"test.test_dtrace.{case}.test_{name}" for name in ("function_entry_return", "gc", "line")]
    env = dict(ENVIRONMENT, PATH=f"{harness.BUILD}:{os.environ['PATH']}")
    result = harness.run(["/usr/bin/python3", "-B", "-m", "unittest", *names], cwd=DATA.parent, env=env)
    assert result.code == 0 and "Ran 3 tests" in result.err and "skipped" not in result.err, result
