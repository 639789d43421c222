"""A program that embeds Python, and begins it again: the agent knows its first interpreter, and says so; nothing happens to the others."""
import pathlib
import shutil
import signal
import subprocess

import pytest

import harness
from agent.control_test import ask

pytestmark = [pytest.mark.needs_root, pytest.mark.skipif(not shutil.which("gcc"), reason="needs a C compiler")]

SOURCE = pathlib.Path(__file__).parent / "data/embedding.c"
CALLS = 50 + 3 + 2      # of leaf() in one life
COUNTS = 'python$target:::function-entry /copyinstr(arg1) == "leaf"/ { n++; } END { printf("%d\\n", n); }'
MARKERS = ("function-return", "line", "exception-raise", "exception-caught", "gc-start", "import-find-load-start", "audit", "thread-finish",
           "memory-alloc", "cfunction-entry", "*")
ANOTHER = "has ended its interpreter and begun another one, of which the agent sees nothing"
OTHER = "the interpreter in which it was is no more, and it sees nothing of another one in the same process"


@pytest.fixture
def embedding(interp):
    """The words that start it with the library of an interpreter."""
    library = next(pathlib.Path(f"{interp.root}/usr/lib").glob(f"*-linux-gnu/libpython{interp.version}.so.1.0"), None)
    if not library:
        pytest.skip(f"there is no libpython{interp.version} beside the interpreter")
    program = interp.dir / "embedding"
    subprocess.run(["gcc", SOURCE, "-o", program, library, "-Wl,--allow-shlib-undefined"], check=True)
    if interp.version != "3.9":
        return [*interp.argv[:-1], interp.inside(program)]
    # Its C library is older than the compiler's: with this machine's, and the other's Python.
    shutil.copy(library, interp.dir)
    return ["env", f"LD_LIBRARY_PATH={interp.dir}", f"PYTHONHOME={interp.root}/usr", str(program)]


def options(place):
    return ["-x", f"place={place}", "-x", "agent=always", "-qn"]


PLACES = pytest.mark.parametrize("place", [pytest.param("kernel", marks=pytest.mark.needs_bpf), "target"])


@PLACES
def test_lives(embedding, place):
    """The first one is counted as one alone is, and that there are others is told once."""
    alone = harness.dtrace(*options(place), COUNTS, "-c", " ".join([*embedding, "1"]))
    assert (alone.code, alone.out.split(), alone.err) == (0, ["done", str(CALLS)], ""), alone
    several = harness.dtrace(*options(place), COUNTS, "-c", " ".join([*embedding, "4"]))
    assert (several.code, several.out.split()) == (0, ["done", str(CALLS)]), several
    assert several.err.count("\n") == 1 and ANOTHER in several.err, several


@PLACES
def test_each_marker(embedding, place):
    """What the hooks have replaced in the first interpreter is not met by the others."""
    for marker in MARKERS:
        result = harness.dtrace(*options(place), f"python$target:::{marker} {{ @ = count(); }}", "-c", " ".join([*embedding, "4"]))
        assert result.code == 0 and "done\n" in result.out and ANOTHER in result.err and "terminated" not in result.err, (marker, result)


@PLACES
def test_attached(embedding, start, place):
    """One who comes later is told why there is nothing to see."""
    child = start([*embedding, "2", "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    tracer = start([harness.DTRACE, *options(place), 'BEGIN { printf("armed\\n"); }' + COUNTS, "-p", child.pid],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert tracer.stdout.readline() == b"armed\n"
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "ready\n"
    late = harness.dtrace(*options(place), COUNTS, "-p", child.pid)
    assert late.code == 1 and f"the agent cannot work in process {child.pid}: {OTHER}" in late.err, late
    assert child.communicate("\n", timeout=harness.TIMEOUT_S)[0] == "done\n" and child.returncode == 0
    result = harness.finish(tracer, ["dtrace"])
    assert result.code == 0 and result.out.split()[-1] == str(CALLS) and ANOTHER in result.err, result


@PLACES
@pytest.mark.parametrize("probe", ("python$target:::function-entry", "python$target:::function-return", "python$target:::gc-start",
                                   "py$target:*:leaf:entry", "py$target:*:lea?:return"))
def test_subinterpreters_that_are_there(embedding, start, probe, place):
    """They are met before their next call, as those of mod_wsgi are: they have the main interpreter's lock, and raise no audit event."""
    child = start([*embedding, "sub"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    where = '/copyinstr(arg1) == "leaf"/' if "function" in probe else ""
    by = "pyinterp" if place == "target" else "1"       # which the kernel does not know
    script = f'BEGIN {{ printf("armed\\n"); }} {probe} {where} {{ @[{by}] = count(); }}'
    for _ in range(2):
        tracer = start([harness.DTRACE, *options(place), script, "-p", child.pid], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert tracer.stdout.readline() == b"armed\n"
        for _ in range(2):
            assert ask(child, "") == "ready"
        tracer.send_signal(signal.SIGINT)
        result = harness.finish(tracer, ["dtrace"])
        each = 2 if "gc" in probe else 100
        assert (result.code, result.err) == (0, ""), result
        seen = dict(map(int, line.split()) for line in result.out.splitlines() if line)
        assert seen == ({1: each, 2: each, 3: each} if place == "target" else {1: 3 * each}), result
    child.stdin.close()
    assert child.wait(harness.TIMEOUT_S) == 0


@pytest.mark.interps("3.9", "3.11")
def test_lines_by_name_are_the_main_interpreters(embedding, start):
    """Before 3.12.  That there are others is told, once."""
    child = start([*embedding, "sub"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    tracer = start([harness.DTRACE, *options("target"), 'BEGIN { printf("armed\\n"); } py$target:*:leaf:line-1 { @ = count(); }', "-p", child.pid],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert tracer.stdout.readline() == b"armed\n"
    tracer.send_signal(signal.SIGINT)
    result = harness.finish(tracer, ["dtrace"])
    assert result.err.count("\n") == 1 and "lines of functions by name are seen in the main interpreter alone, and there are others" in result.err, result
    child.stdin.close()
    assert child.wait(harness.TIMEOUT_S) == 0
