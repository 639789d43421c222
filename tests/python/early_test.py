"""
The first calls: those that 3.9 makes before its agent is set up reach programs in the target, too.

The witness are the interpreter's own markers, which are all sound in 3.9, in the kernel place.
"""
import re

import pytest

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
    result = dtrace("-q", "-x", f"place={place}", "-x", "bufsize=4m", "-n", CALLS, "-c", what)
    assert result.code == 0 and "drop" not in result.err, result
    return [(int(at), event) for at, event in re.findall(r"^(\d+) ([<>] .*)$", result.out, re.M)]


@pytest.mark.parametrize("setting", sorted(SETTINGS))
def test_same_calls_as_its_own_markers(dtrace, interp, setting):
    what = command(interp, setting)
    own, ours = (events(dtrace, place, what) for place in ("kernel", "target"))
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
