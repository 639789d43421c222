"""A traced process that dies of a signal is named, whatever else is not said."""
import re
import signal
import subprocess

import pytest

import harness

DIES = "import os, signal\ndef f(): pass\nf()\nos.kill(os.getpid(), signal.%s)\n"
WAITS = "import os, signal, sys\nprint('up', flush=True)\nsys.stdin.readline()\nos.kill(os.getpid(), signal.%s)\n"
D = ("-q", "-x", "place=target", "-n", 'python$target:::function-entry { n++; } tick-10ms /!up++/ { printf("up\\n"); }')
STP = ("--place=target", "-e", 'global n probe process("%s").mark("function__entry") { n++ } probe timer.ms(10) { if (!up++) println("up") } global up')

SAYS = {"dtrace": r"^dtrace: pid %s terminated by signal %d \(", "stap": r"^WARNING: .* exited with signal %d \("}


def start(command, interp, *args):
    words = [harness.DTRACE, *D] if command == "dtrace" else [harness.STAP, *STP[:2], STP[2] % interp.executable]
    return subprocess.Popen([str(word) for word in (*words, *args)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def says(command, pid, number):
    return SAYS[command] % ((pid, number) if command == "dtrace" else number)


@pytest.mark.dies("SIGSEGV")
@pytest.mark.needs_root
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("command", SAYS)
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL"])
def test_of_a_command(interp, command, name):
    child = start(command, interp, "-c", interp.command(DIES % name))
    result = harness.finish(child, [command])
    assert re.search(says(command, r"\d+", getattr(signal, name)), result.err, flags=re.M), result


@pytest.mark.dies("SIGSEGV")
@pytest.mark.needs_root
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("command", SAYS)
def test_of_a_running_process(interp, command):
    """Its parent, and no tracer, is who is told the status."""
    process = subprocess.Popen(interp.argv_of(WAITS % "SIGSEGV"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    child = start(command, interp, "-p" if command == "dtrace" else "-x", str(process.pid))
    assert child.stdout.readline() == b"up\n"
    process.stdin.write(b"\n")
    process.stdin.close()
    assert process.wait() == -signal.SIGSEGV
    if command == "stap":       # it goes on for other processes
        child.send_signal(signal.SIGINT)
    result = harness.finish(child, [command])
    assert re.search(says(command, process.pid, signal.SIGSEGV), result.err, flags=re.M), result


@pytest.mark.needs_root
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("command", SAYS)
def test_not_of_one_that_ends(interp, command):
    result = harness.finish(start(command, interp, "-c", interp.command("def f(): pass\nf()\nraise SystemExit(3)\n")), [command])
    assert "signal" not in result.err, result
