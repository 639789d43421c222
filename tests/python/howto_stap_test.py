"""The SystemTap scripts of CPython's HOWTO "Instrumenting CPython with DTrace and SystemTap", pasted as they stand in its
Chinese and Korean copies (the English one has lost them): comments that end with \\*/, "\\\\n" in a string.

The witness of the call hierarchy is sys.setprofile in the traced program itself.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness

DATA = pathlib.Path(__file__).parent / "data"

pytestmark = [pytest.mark.needs_bpf, pytest.mark.parametrize("copy", ["zh", "ko"])]

LINE = re.compile(r" *(\d+) (\S+)\((\d+)\):( *) (=>|<=) (\S+) in (.+):(\d+)$")

# What the interpreter itself says of the same calls, in the scripts' form: depth, direction, name, line.
WITNESS = """
import sys
depth = 0
def hook(frame, event, arg):
    global depth
    if event == "call":
        print(depth, "=>", frame.f_code.co_name, frame.f_code.co_firstlineno)
        depth += 1
    elif event == "return":
        depth -= 1
        print(depth, "<=", frame.f_code.co_name, frame.f_lineno)
text = open(sys.argv[1]).read()
code = compile(text, sys.argv[1], "exec")
sys.setprofile(hook)
exec(code, {"__name__": "__main__"})
"""


def path_with_python(interp, tmp_path):
    """An environment in which "python" is the interpreter, as the scripts have it: a copy, which nobody else runs."""
    copy = interp.dir / "python"
    shutil.copy(interp.executable, copy)
    os.symlink(copy, tmp_path / "python")
    return dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}")


def argv_of_copy(interp, script, *args):
    return [*interp.argv[:-1], "env", "PYTHONHOME=/usr", interp.inside(interp.dir / "python"), interp.add(script), *args]


def command(interp):
    return " ".join(argv_of_copy(interp, DATA / "call_stack.py"))


def said(result):
    """Messages, without the line that tells what comes from the agent."""
    return [line for line in result.err.splitlines() if not line.startswith("# ")]


def first_line(name, way, line):
    """Where a module begins is line 0 or 1, as versions have it."""
    return 0 if (name, way) == ("<module>", "=>") else int(line)


def check_hierarchy(interp, lines):
    rows = [LINE.match(line) for line in lines]
    assert rows and all(rows), lines[:5]
    called = [(len(row[4]), row[5], row[6], first_line(row[6], row[5], row[8])) for row in rows
              if row[7].endswith("call_stack.py")]
    witness = subprocess.run(interp.argv_of(WITNESS, interp.add(DATA / "call_stack.py")), stdout=subprocess.PIPE,
                             text=True, check=True).stdout
    wanted = [(int(depth), way, name, first_line(name, way, line)) for depth, way, name, line in
              (row.split() for row in witness.splitlines() if re.match(r"\d+ (=>|<=) ", row))]
    wanted = [row for row in wanted if row[2] != "hook"]
    if rows[0][5] == "<=":      # tracing began inside of a call, whose return thread_indent() cannot pair
        called, wanted = ([(0, *row[1:]) for row in some] for some in (called, wanted))
    shift = called[0][0] - wanted[0][0]
    assert [(depth - shift, way, name, line) for depth, way, name, line in called] == \
           [row for row in wanted if row[0] >= wanted[0][0]][:len(called)]
    others = [row[0] for row in rows if row.group(2, 3) != rows[-1].group(2, 3)]
    assert not others, (rows[-1][0], len(others), others[:10], others[-10:])


def test_direct(interp, copy, tmp_path):
    env = path_with_python(interp, tmp_path)
    result = harness.stap(DATA / f"howto_direct_{copy}.stp", "-c", command(interp), env=env)
    assert (result.code, said(result)) == (0, []), result
    assert "\n" not in result.out and result.out.endswith("\\n")     # the script has a backslash too many
    check_hierarchy(interp, result.out.split("\\n")[:-1])


def test_direct_mended(interp, copy, tmp_path):
    env = path_with_python(interp, tmp_path)
    script = tmp_path / "direct.stp"
    script.write_text((DATA / f"howto_direct_{copy}.stp").read_text().replace("\\\\n", "\\n"))
    result = harness.stap(script, "-c", command(interp), env=env)
    assert (result.code, said(result)) == (0, []), result
    check_hierarchy(interp, result.out.splitlines())


def with_tapset(tmp_path, copy):
    folder = tmp_path / "tapset"
    folder.mkdir()
    shutil.copy(DATA / f"howto_tapset_{copy}.stp", folder / "python.stp")
    return ["-I", folder]


def test_hierarchy_through_the_tapset(interp, copy, tmp_path):
    """dtap's own tapset has these aliases, too: each event must come once."""
    env = path_with_python(interp, tmp_path)
    result = harness.stap(*with_tapset(tmp_path, copy), DATA / f"howto_hierarchy_{copy}.stp", "-c",
                          command(interp), env=env)
    assert (result.code, said(result)) == (0, []), result
    check_hierarchy(interp, result.out.splitlines())


def test_unused_argument_that_is_not_there(interp, copy, tmp_path):
    """frameptr = $arg4 does no harm until somebody uses frameptr."""
    env = path_with_python(interp, tmp_path)
    result = harness.stap(*with_tapset(tmp_path, copy), "-p2", "-e",
                          "probe python.function.entry { println(frameptr) }", env=env)
    assert result.code == 1 and "semantic error: " in result.err and "$arg4" in result.err, result


TOP_PROGRAM = """
import sys, time
def often(): pass
def seldom(): pass
print("ready", flush=True)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    often(); often(); seldom()
    time.sleep(0.0005)
"""


@pytest.mark.slow
@pytest.mark.alone
def test_top(interp, copy, tmp_path, start):
    """Two programs for three seconds: each second both are there, the busier function first."""
    env = path_with_python(interp, tmp_path)
    argv = argv_of_copy(interp, TOP_PROGRAM, harness.TIMEOUT_S)
    programs = [start(argv, stdout=subprocess.PIPE), start(argv, stdout=subprocess.PIPE)]
    for program in programs:
        assert program.stdout.readline() == b"ready\n"
    # A handler waits for a second, not 10 ms, for the one that has fn_calls: that may have lost its CPU.
    tracer = start([harness.STAP, "-T", "3.5", "-DMAXTRYLOCK=100000", *with_tapset(tmp_path, copy), DATA / f"howto_top_{copy}.stp"], env=env,
                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    result = harness.finish(tracer, ["stap"])
    assert (result.code, said(result)) == (0, []), result
    screens = result.out.split("\033[2J\033[1;1H")[1:]
    assert len(screens) >= 3, result
    row = re.compile(r" *(\d+) +(\S+) +(\d+) +(\S+) +(\d+)$")
    for screen in screens[1:3]:
        lines = screen.splitlines()
        assert lines[0].split() == ["PID", "FILENAME", "LINE", "FUNCTION", "CALLS"]
        rows = [row.match(line) for line in lines[1:]]
        assert all(rows), lines
        calls = [int(found[5]) for found in rows]
        # In the kernel the handler that prints has fn_calls to itself; in the processes counting goes on meanwhile.
        slack = 0 if interp.version == "3.9" else 5
        assert all(more >= less - slack for more, less in zip(calls, calls[1:])), lines
        for program in programs:
            mine = [found for found in rows if int(found[1]) == program.pid]
            assert [found[4] for found in mine] == ["often", "seldom"], lines
            assert abs(int(mine[0][5]) - 2 * int(mine[1][5])) <= 2
