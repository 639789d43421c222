"""pystack() and jstack(): the frames of Python, with the program's own view of its stack as the witness."""
import re
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

HERE = harness.TOP / "tests/d/data"


def stacks(text):
    """Lists of lines, one a stack."""
    return [[line.strip() for line in part.splitlines()] for part in text.strip().split("\n\n")]


def traced(start, interp, script, program=HERE / "pystacks.py"):
    """What a script prints of a program that runs when it has been armed, and what the program prints."""
    child = start(interp.argv_of(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    tracer = harness.dtrace_start("-q", "-n", 'tick-20ms /!up/ { up = 1; printf("up\\n"); }', "-n", script, "-p", child.pid)
    try:
        assert tracer.stdout.readline() == b"up\n", tracer.communicate()
        own = child.communicate(b"\n", timeout=harness.TIMEOUT_S)[0].decode()
        result = harness.finish(tracer, [script])
    finally:
        tracer.kill()
    assert result.code == 0 and result.err == "", result
    return result.out, own


def test_frames(start, interp):
    """Calls, methods, generators, coroutines, threads, children: file, line and function of each frame, also when the
    process that made them has gone."""
    out, own = traced(start, interp, "syscall::getppid:entry /progenyof($target)/ { pystack(); }")
    assert stacks(out) == stacks(own)


@pytest.mark.interps("3.11")
def test_key(dtrace, interp):
    """Equal stacks are one key, in the program's own process and from its start; %k prints them."""
    command = interp.command("import os\ndef f(n):\n os.getppid()\nfor i in range(5): f(i)\nf(0)\n")
    name = command.split()[-1]
    result = dtrace("-q", "-n", 'syscall::getppid:entry /pid == $target/ { @[pystack(2), execname] = count(); }'
                    ' END { printa("%k%s %@d\\n", @); }', "-c", command)
    frames = [f"\n{14 * ' '}[ {name}:3 (f) ]\n{14 * ' '}[ {name}:{line} (<module>) ]\n{name and 'python3'} {n}\n"
              for line, n in ((5, 1), (4, 5))]
    assert result.out == "".join(frames), result


@pytest.mark.interps("3.11")
def test_size(dtrace, interp):
    result = dtrace("-q", "-n", "syscall::getppid:entry /pid == $target/ { pystack(1); }",
                    "-c", interp.command("import os\ndef f(): os.getppid()\nf()\n"))
    assert re.fullmatch(r"\s*\[ \S+:2 \(f\) \]\s*", result.out), result
