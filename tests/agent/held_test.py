"""C code forks while the agent's thread waits for an answer: the child, which has no such thread, forks and ends like any other."""
import os
import platform
import signal
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_root

HERE = os.path.dirname(os.path.abspath(__file__))
NAP = {"x86_64": "230", "aarch64": "115"}[platform.machine()]

# While tracemalloc works the agent's thread asks the main thread, for a second.
PROGRAM = """
import ctypes, os, signal, sys, tracemalloc
shim = ctypes.PyDLL(sys.argv[1])
def leaf(): pass
def fork():
    pid = os.fork()
    if not pid:
        os._exit(3)
    assert os.waitpid(pid, 0)[1] == 3 << 8
tracemalloc.start()
print("ready", flush=True)
agent = os.read(0, 100)
print("holds", flush=True)
pid = shim.fork_when_it_naps(b"/proc/self/task/%d/syscall" % int(agent), sys.argv[2].encode() + b" ")
if not pid:
    signal.alarm(30)    # as it may wait for ever
    leaf()
    if sys.argv[3] == "forks":
        fork()
    sys.exit(5)
print(os.waitpid(pid, 0)[1], flush=True)
"""


def traces(pid, what):
    return harness.dtrace_start("-x", "agent=always", "-qn", f'BEGIN {{ printf("up\\n"); }} python$target:::{what} {{ @ = count(); }}', "-p", pid)


@pytest.mark.parametrize("then", ["ends", "forks"])
def test_fork_in_c(interp, start, tmp_path, then):
    built = tmp_path / "held.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-nostdlib", f"{HERE}/held.c", "-o", built], check=True)
    program = start([*interp.argv_of(PROGRAM), interp.add(built), NAP, then], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"ready\n"
    first = traces(program.pid, "function-entry")
    assert first.stdout.readline() == b"up\n"
    [agent] = {int(task) for task in os.listdir(f"/proc/{program.pid}/task")} - {program.pid}
    program.stdin.write(b"%d" % agent)
    program.stdin.flush()
    assert program.stdout.readline() == b"holds\n"
    second = traces(program.pid, "line")
    assert program.communicate(timeout=harness.TIMEOUT_S)[0] == b"%d\n" % (5 << 8)
    assert program.returncode == 0
    for tracer in first, second:
        tracer.send_signal(signal.SIGINT)
        assert harness.finish(tracer, tracer.args).code == 0
