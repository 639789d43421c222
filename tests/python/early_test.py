"""
The first calls: those that 3.9 makes before its agent is set up reach programs in the target, too; so that is where scripts
about the calls of one process run by default.

The witness are the interpreter's own markers, which are all sound in 3.9, in the kernel place.
"""
import re
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.needs_bpf, pytest.mark.interps("3.9")]

PROGRAM = """
def begin(): pass
begin()
"""

# Everything up to the program's first call: after it the two places see the same hooks' events, which other tests compare.
CALLS = """
    int done;
    python$target:::function-entry /!done/ { printf("%d > %s %s %d\\n", timestamp, copyinstr(arg0), copyinstr(arg1), arg2); }
    python$target:::function-return /!done/ { printf("%d < %s %s %d\\n", timestamp, copyinstr(arg0), copyinstr(arg1), arg2); }
    python$target:::function-entry /copyinstr(arg1) == "begin"/ { done = 1; }"""

SETTINGS = {"plain": ([], []), "isolated": ([], ["-I", "-S"]), "development": ([], ["-X", "dev"]),
            "debug": (["PYTHONMALLOC=debug"], []), "profiled": ([], ["-X", "importtime"])}


def command(interp, setting):
    variables, options = SETTINGS[setting]
    *start, script = interp.argv_of(PROGRAM)
    # In the chroot, so that the interpreter has the variables and not chroot's own program.
    place = start.index("python3")
    return " ".join(start[:place] + (["env", *variables] if variables else []) + start[place:] + options + [script])


def events(dtrace, place, what):
    """In the kernel place, or (auto) the one that dtap chooses."""
    result = dtrace("-q", "-x", "showplace", "-x", f"place={place}", "-x", "bufsize=4m", "-n", CALLS, "-c", what)
    assert result.code == 0 and "drop" not in result.err, result
    assert f"runs in the {'kernel' if place == 'kernel' else 'target'}:" in result.err, result
    return [(int(at), event) for at, event in re.findall(r"^(\d+) ([<>] .*)$", result.out, re.M)]


@pytest.mark.parametrize("setting", sorted(SETTINGS))
def test_same_calls_as_its_own_markers(dtrace, interp, setting):
    what = command(interp, setting)
    own, ours = (events(dtrace, place, what) for place in ("kernel", "auto"))
    assert [event for _, event in ours] == [event for _, event in own] and len(own) > 400
    times = [at for at, _ in ours]
    assert times == sorted(times) and times[0] < times[-1]      # when they happened, not when they were told


def test_not_where_more_is_asked_for(dtrace, interp):
    """Stacks of what is over cannot be read: such a session has the calls from the agent's setup on, and no fault."""
    result = dtrace("-q", "-x", "place=target", "-n", """
        python$target:::function-entry { @[copyinstr(arg1), pystack(1)] = count(); }""", "-c", command(interp, "plain"))
    assert result.code == 0 and not result.err and re.search(r"^\s*begin\s.*\n.*script.py:2 \(begin\)", result.out, re.M), result


def test_the_program_may_end_at_once(dtrace, interp):
    """Nothing that was noted is left over where the interpreter ends before it is initialised."""
    start = interp.argv_of("")[:-1]
    result = dtrace("-q", "-x", "place=target", "-n", "python$target:::function-entry { n++; } END { printf(\"%d\\n\", n); }",
                    "-c", " ".join(start + ["--version"]))
    assert result.code == 0 and result.out.startswith("Python 3.9"), result


WHOLE = """
import atexit, sys, threading
def f(n): return n and f(n - 1)
def g():
    yield f(1)
    yield f(2)
class Late:
    def __del__(self): f(3)
def bye(): f(4)
def raises(): raise KeyError
kept, list_of = Late(), list(g())
kept.itself = kept
atexit.register(bye)
thread = threading.Thread(target=f, args=(5,))
thread.start()
thread.join()
try: raises()
except KeyError: pass
"""


def test_whole_program_as_its_own_markers(dtrace, interp):
    """Threads, generators, exceptions, atexit, what is destroyed at the interpreter's end."""
    script = """python$target:::function-entry, python$target:::function-return
        /basename(copyinstr(arg0)) == "script.py"/ { @[probename, copyinstr(arg1), arg2] = count(); }"""
    own, ours = (dtrace("-q", "-x", f"place={place}", "-n", script, "-c", interp.command(WHOLE)) for place in ("kernel", "auto"))
    assert own.code == ours.code == 0 and sorted(own.out.splitlines()) == sorted(ours.out.splitlines()), (own, ours)
    assert re.search(r"function-entry +f +3 +20$", ours.out, re.M), ours     # 2 + 3 + 4 + 5 + 6 calls


@pytest.mark.parametrize("clause, options, place, why", [
    ("function-entry { @ = count(); }", [], "target", "has the same events"),
    ("function-* { @[probename] = count(); } tick-1s { n++; }", [], "target", "has the same events"),
    ("function-entry { @ = count(); } python$target:::gc-start { n++; }", [], "kernel", "interpreter's own"),
    ("line { @ = count(); }", [], "kernel", "interpreter's own"),
    ("function-entry { @[pystack()] = count(); }", [], "kernel", "must run at once"),
    ("function-entry { @[pyint(pyarg(0))] = count(); }", [], "target", "values of Python are read there"),
    ("function-entry { @ = count(); }", ["-w"], "kernel", "must run at once"),
    ("function-entry { @ = count(); }", ["-x", "agent=never"], "kernel", "interpreter's own"),
], ids=["count", "pair", "gc", "line", "stacks", "values", "-w", "never"])
def test_place(dtrace, interp, clause, options, place, why):
    result = dtrace("-q", "-x", "showplace", *options, "-n", "python$target:::" + clause, "-c", interp.command("pass"))
    assert result.code == 0 and f"runs in the {place}:" in result.err and why in result.err, result


def test_one_that_does_not_answer(interp, start):
    """It holds the GIL and waits: its own markers are traced, and no event is missing."""
    process = start(interp.argv_of("""
import ctypes
def step(): pass
print("up", flush=True)
ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)
for _ in range(5): step()
"""), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    tracer = harness.dtrace_start("-q", "-x", "showplace", "-n", """BEGIN { printf("up\\n"); }
        python$target:::function-entry { @[copyinstr(arg1)] = count(); }""", "-p", process.pid)
    assert tracer.stdout.readline() == b"up\n", tracer.communicate()
    process.stdin.write(b"\n")
    process.stdin.close()
    result = harness.finish(tracer, tracer.args)
    assert result.code == 0 and "runs in the kernel:" in result.err and re.search(r"^\s*step\s+5$", result.out, re.M), result
