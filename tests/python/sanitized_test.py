"""
The agent built with sanitizers, in interpreters whose memory is the sanitizer's (PYTHONMALLOC=malloc): what it reads and
writes belongs to it or to an object.  Only a build with sanitizers has it (make check-san).
"""
import os
import shutil
import subprocess

import pytest

import harness
import sanitized as bring

PROGRAMS = harness.TOP / "tests/agent/programs"
# Those that end the process, or wait for another, cannot be run one after the other in one process.
ALONE = {"exits.py", "signals.py", "pools.py", "closing.py", "recursion.py"}
# What is run each time; all others under make nightly.
SHAPES = {"classes.py", "coroutines.py", "evals.py", "exceptions.py", "generators.py", "names.py", "threads.py"}
REPORTS = ("AddressSanitizer", "runtime error:")

pytestmark = [pytest.mark.needs_root, pytest.mark.skipif(bool(bring.refusal()), reason=bring.refusal())]

SCRIPT = """
python$target:::function-entry, python$target:::function-return, python$target:::line, python$target:::gc-start,
python$target:::gc-done, python$target:::audit, python$target:::import-find-load-start, python$target:::import-find-load-done,
python$target:::cfunction-entry, python$target:::cfunction-return, python$target:::exception-raise, python$target:::thread-start,
python$target:::memory-alloc, python$target:::memory-free
{ @[probename] = count(); }
python$target:::memory-alloc { at[arg2] = pystack(); @live[at[arg2]] = sum(arg1); }
python$target:::function-entry
{
	@names[copyinstr(arg0), copyinstr(arg1)] = quantize(arg2);
	@stacks[pystack(), ustack(4)] = count();
}
python$target:::function-return { @results[pyshow(pyret)] = count(); }
python$target:::exception-raise { @raised[pytype(pyexc), pyshow(pyexc)] = count(); }
python$target:::function-entry { @first[pyshow(pyarg(0)), pytype(pyattr(pyarg(0), "__class__"))] = count(); }
ERROR { }
"""
RUNNER = """
import pathlib, sys, runpy
sys.stdout = open("/dev/null", "w")
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
    try:
        runpy.run_path(str(path), run_name="__main__")
    except BaseException:
        pass
"""


@pytest.fixture
def sanitized(interp, tmp_path):
    """(dtrace that brings the agent with sanitizers, its environment, the words that start the interpreter, its folder)."""
    library = bring.library(interp)
    if not library:
        pytest.skip("the sanitizers' library does not run with this interpreter's C library")
    env = dict(os.environ, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0:exitcode=99", UBSAN_OPTIONS="print_stacktrace=1")
    return bring.build(tmp_path) / "dtrace", env, bring.words_with(interp, interp.inside(library), []), interp.dir


def traced(sanitized, *more, env=None):
    command, own, words, _ = sanitized
    return harness.run([command, "-q", "-x", "agent=always", *more], env={**own, **(env or {})}, timeout=240)


@pytest.mark.interps("3.11", "3.13", "3.14", "3.15")
def test_inside(interp, sanitized):
    """All markers, values, stacks and names in programs of all shapes."""
    run_programs(interp, sanitized, "target")


@pytest.mark.interps("3.13")
def test_from_outside(interp, sanitized):
    run_programs(interp, sanitized, "kernel")


def run_programs(interp, sanitized, place):
    folder = sanitized[3] / "programs"
    folder.mkdir()
    for path in PROGRAMS.glob("*.py"):
        if path.name not in ALONE and (harness.NIGHTLY or path.name in SHAPES):
            shutil.copy(path, folder)
    script = SCRIPT if place == "target" else SCRIPT.split("python$target:::function-return {")[0]
    words = " ".join([*sanitized[2], interp.add(RUNNER, "runner.py"), interp.inside(folder)])
    result = traced(sanitized, "-x", f"place={place}", "-x", "strsize=128", "-x", "aggsize=64m", "-n", script, "-c", words)
    assert result.code == 0 and not any(report in result.err for report in REPORTS), result.err[:8000]
    assert "function-entry" in result.out and "line" in result.out, result


@pytest.mark.interps("3.11", "3.14")
def test_coming_and_going(interp, sanitized, start):
    """Into a running process and out of it again, twice."""
    script = interp.add("import sys, time\ndef f(n): return n\nprint('begun', flush=True)\nfor i in sys.stdin: break\nelse: sys.exit(3)\n"
                        "for i in range(10): f(i)\n", "waits.py")
    child = start([*sanitized[2], script], env=sanitized[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.readline()
    for _ in range(2):
        result = traced(sanitized, "-x", "place=target", "-n", "python$target:::function-entry { n++; } tick-100ms { exit(0); }",
                        "-p", child.pid)
        assert result.code == 0, result
    _, err = child.communicate(b"go\n", timeout=60)
    assert child.returncode == 0 and not any(report in err.decode() for report in REPORTS), err.decode()


@pytest.mark.interps("3.13")
def test_a_mistake_would_be_seen(interp, sanitized):
    words = " ".join([*sanitized[2], interp.add("print(1)\n")]).replace("PYTHONMALLOC", "DTAP_PLANTED=1 PYTHONMALLOC")
    command, env, _, _ = sanitized
    done = subprocess.run([command, "-q", "-x", "agent=always", "-n", "python$target:::function-entry { }", "-c", words], env=env,
                          capture_output=True, text=True, timeout=120)
    assert any(report in done.stderr for report in REPORTS) and "planted" in done.stderr, done.stderr
