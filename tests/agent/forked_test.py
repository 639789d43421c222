"""A tracer comes to the child of a fork before that is through with it: the interpreter there is not in one piece."""
import os
import signal
import subprocess

import pytest

import harness
from agent.agent_test import environment

pytestmark = pytest.mark.needs_root

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = 40
SCRIPT = "BEGIN { exit(0); } python$target:::function-entry { @ = count(); }"
STOPPED = "is stopped where the agent cannot be loaded without danger: let it go on (SIGCONT) and try again; it is skipped until the agent can be loaded"

# Each line that it reads is the number of the call at which a child is to be stopped; it tells the child's pid, then its end.
PROGRAM = """
import ctypes, gc, os, sys, threading
shim = ctypes.PyDLL(None)
shim.stop_forks_at.argtypes, shim.fork_is_over.restype = [ctypes.c_long], ctypes.c_long
def leaf(): pass
def work():
    thread = threading.Thread(target=leaf)
    thread.start()
    thread.join()
    gc.collect()
for line in sys.stdin:
    shim.stop_forks_at(int(line))
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        calls = shim.fork_is_over()
        work()
        os.write(into, str(calls).encode())
        os._exit(0)
    os.close(into)
    stopped = os.waitpid(pid, os.WUNTRACED)[1]
    if os.WIFSTOPPED(stopped):
        print(pid, flush=True)
        stopped = os.waitpid(pid, 0)[1]
    print(stopped, os.read(out, 100).decode(), flush=True)
    os.close(out)
"""


@pytest.mark.parametrize("inherits", [False, True], ids=["anew", "inherited"])
def test_comes_amid_a_fork(interp, start, tmp_path, inherits):
    """At each call of the child's until Python's functions at fork have been called, or at some of them: it is asked to try again."""
    built = tmp_path / "forking.so"
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-w", "-shared", "-fPIC", "-nostdlib", f"{HERE}/forking.c", "-o", built], check=True)
    program = start([*environment(interp, LD_PRELOAD=interp.add(built)), interp.add(PROGRAM, "script.py")], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ask(number):
        program.stdin.write(f"{number}\n")
        program.stdin.flush()
        return program.stdout.readline().split()

    status, calls = map(int, ask(-1))
    assert status == 0 and calls > 10, (status, calls)
    if inherits:
        other = harness.dtrace_start("-x", "agent=always", "-qn", 'BEGIN { printf("up\\n"); } python$target:::function-entry { @ = count(); }',
                                     "-p", program.pid)
        assert other.stdout.readline() == b"up\n"
    for at in range(0, calls, max(1, calls // PLACES)):
        [pid] = ask(at)
        result = harness.dtrace("-x", "agent=always", "-qn", SCRIPT, "-p", pid)
        os.kill(int(pid), signal.SIGCONT)
        said = program.stdout.readline().split()
        assert said and said[0] == "0", (at, said, result, program.poll())
        assert STOPPED in result.err, (at, result)
    assert program.communicate(timeout=harness.TIMEOUT_S) == ("", "")
    if inherits:
        other.send_signal(signal.SIGINT)
        assert harness.finish(other, other.args).code == 0
