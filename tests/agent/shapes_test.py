"""Programs in every shape they come in, and families of processes: bpftrace on the agent's markers, system-wide, beside
sys.setprofile in the same programs.  It knows nothing of dtap, so this is also how others see the markers."""
import collections
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile

import pytest

import harness
from agent.agent_test import HERE, agent, environment, ready, semaphore, start

sys.path.insert(0, str(harness.TOP / "bench"))

pytestmark = [pytest.mark.needs_bpf, pytest.mark.skipif(not shutil.which("bpftrace"), reason="no bpftrace")]

# Every body is a program; functions whose file has "mine" in its globals are looked at, their names begin with my_.
BODY = """
import sys
sys.path.insert(0, DIR)
mine = True
import witness
def my_leaf(n):
    return n
def my_values(n):
    for i in range(n):
        yield my_leaf(i)
def my_work(n):
    try:
        list(my_values(n))
        raise KeyError(n)
    except KeyError:
        return my_leaf(n)
"""

FORK = """
import os
def my_child():
    my_work(1)
    pid = os.fork()
    if not pid:
        my_work(3)
        os._exit(0)
    os.waitpid(pid, 0)
my_work(2)
pid = os.fork()
if not pid:
    my_child()
    os._exit(0)
os.waitpid(pid, 0)
my_work(1)
"""

EXEC = """
import os
my_work(len(sys.argv))
if len(sys.argv) < 3:
    os.execv(sys.executable, [sys.executable, __file__, *sys.argv[1:], "again"])
"""

RUN = """
import os, subprocess
my_work(len(sys.argv))
if len(sys.argv) < 3:
    subprocess.run([sys.executable, __file__, *sys.argv[1:], "again"], check=True)
    os.system(" ".join([sys.executable, __file__, "a", "b"]))
"""

POOL = """
import multiprocessing
def my_task(n):
    return my_work(n)
if __name__ == "__main__":
    with multiprocessing.get_context("METHOD").Pool(1) as pool:
        my_work(pool.apply(my_task, (2,)))
        pool.close()
        pool.join()
"""

EXIT = """
def my_exit(n):
    if n:
        my_exit(n - 1)
    sys.exit(0)
import atexit
@atexit.register
def my_last():
    my_leaf(1)
my_exit(3)
"""

@contextlib.contextmanager
def bpftrace(interp, clause):
    """While it has armed this clause on both function markers; what is yielded ends it and returns its output."""
    import peer
    path = interp.root + agent(interp)
    script = "".join(f"usdt:{path}:python:function__{name} {clause}\n".replace("TEXT", text)
                     for name, text in (("entry", "call"), ("return", "return")))
    tracer = subprocess.Popen(peer.argv(script), env=peer.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    canary = start(interp, "-c", "print('ready', flush=True); input()", LD_PRELOAD=agent(interp))
    ready(canary)
    harness.wait_until(lambda: tracer.poll() is not None or
                       all(semaphore(canary.pid, f"function__{name}") for name in ("entry", "return")),
                       what="bpftrace's start")

    def finish():
        canary.communicate("\n")
        time.sleep(0.5)
        out, err = harness.interrupt(tracer)
        assert "Lost" not in err, err
        return out

    try:
        yield finish
    finally:
        canary.kill()
        tracer.kill()
        tracer.communicate()


@pytest.fixture
def peer(interp):
    clause = ('/strncmp(str(arg1), "my_", 3) == 0/ '
              '{ printf("%llu %d TEXT %s %d\\n", nsecs, pid, str(arg1), arg2); }')
    with bpftrace(interp, clause) as finish:
        yield finish


def compare(interp, peer, args, stdin=""):
    """The same program under the tracer and with the witness; processes as a multiset of sequences."""
    folder = interp.dir / "witness"
    folder.mkdir()
    tracing = harness_run(interp, args, stdin, LD_PRELOAD=agent(interp), DTAP_AGENT_POLL=1)
    assert tracing == (0, "")
    calls = collections.defaultdict(list)
    for line in peer().splitlines():
        found = re.match(r"(\d+) (\d+) (\w+ my_\w+ -?\d+)$", line)
        if found:
            calls[found[2]].append((int(found[1]), found[3]))
    assert harness_run(interp, args, stdin, WITNESS=interp.inside(folder)) == (0, "")
    want = [[line for line in file.read_text().splitlines() if " my_" in line] for file in folder.iterdir()]
    got = [[call for _, call in sorted(events)] for events in calls.values()]
    assert want and sorted(got) == sorted(filter(None, want))
    return got


def harness_run(interp, args, stdin, **env):
    child = subprocess.run([*environment(interp, **env), *args], input=stdin, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_S)
    return child.returncode, child.stderr


@pytest.fixture
def body(interp):
    interp.add(HERE / "data/witness.py")
    return BODY.replace("DIR", repr(interp.inside(interp.dir)))


@pytest.mark.parametrize("shape", ["-c", "-m", "package", "stdin", "script", "folder", "zipapp", "optimised", "frozen"])
def test_one_process(interp, peer, body, shape):
    program = body + "my_work(3)\n"
    args, stdin = ["-c", program], ""
    if shape == "-m":
        args = [interp.add(f"import sys; sys.path.insert(0, {interp.inside(interp.dir)!r}); import runpy; "
                           "runpy.run_module('my_module', run_name='__main__', alter_sys=True)\n", "start.py")]
        interp.add(program, "my_module.py")
    elif shape == "package":
        (interp.dir / "my_package").mkdir()
        interp.add(program, "my_package/__main__.py")
        interp.add("", "my_package/__init__.py")
        args = ["-c", f"import sys; sys.path.insert(0, {interp.inside(interp.dir)!r}); import runpy; "
                      "runpy._run_module_as_main('my_package')"]
    elif shape == "stdin":
        args, stdin = ["-"], program
    elif shape == "script":
        args = [interp.add(program, "script.py")]
    elif shape == "folder":
        (interp.dir / "app").mkdir()
        args = [os.path.dirname(interp.add(program, "app/__main__.py"))]
    elif shape == "zipapp":
        with zipfile.ZipFile(interp.dir / "app.pyz", "w") as archive:
            archive.writestr("__main__.py", program)
        args = [interp.inside(interp.dir / "app.pyz")]
    elif shape == "optimised":
        args = ["-OO", interp.add(program, "script.py")]
    elif shape == "frozen":
        args = ["-I", "-S", interp.add(program, "script.py")]
    calls = compare(interp, peer, args, stdin)
    assert [len(events) for events in calls] == [18]


@pytest.mark.slow
@pytest.mark.parametrize("more, processes", [
    (FORK, 3), (EXEC, 1), (RUN, 3), (EXIT, 1), (POOL.replace("METHOD", "fork"), 2),
    (POOL.replace("METHOD", "spawn"), 2), (POOL.replace("METHOD", "forkserver"), 2)],
    ids=["fork", "exec", "run", "exit", "mp-fork", "mp-spawn", "mp-forkserver"])
def test_families(interp, peer, body, more, processes):
    calls = compare(interp, peer, [interp.add(body + more, "family.py"), "first"])
    assert len(calls) == processes


@pytest.mark.slow
@pytest.mark.interps("3.13")
def test_million(interp):
    """Another tracer counts every call."""
    program = "def my_leaf(): pass\nfor i in range(1000000): my_leaf()\n"
    with bpftrace(interp, '/str(arg1) == "my_leaf"/ { @TEXT = count(); }') as finish:
        assert harness_run(interp, ["-c", program], "", LD_PRELOAD=agent(interp), DTAP_AGENT_POLL=1) == (0, "")
        assert {"@call: 1000000", "@return: 1000000"} <= set(finish().splitlines())
