"""dtap agent: an interpreter of a virtual environment loads the agent when it starts, and any tracer sees it."""
import re
import shutil
import subprocess

import pytest

import harness

DTAP = harness.BUILD / "dtap"
# The one that is installed: a tracer of every Python, of another test, may have given it another one.
LOADED = "print(any('site-packages/dtap-agent.so' in line for line in open('/proc/self/maps')))"

pytestmark = pytest.mark.needs_root


class Venv:
    def __init__(self, interp):
        self.interp = interp
        self.folder = interp.dir / "venv"
        made = subprocess.run([*interp.argv, "-m", "venv", "--without-pip", interp.inside(self.folder)],
                              capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"no venv: {made.stderr.strip()}")
        self.python = f"{interp.inside(self.folder)}/bin/python"
        self.argv = ["chroot", interp.root, self.python] if interp.root else [self.python]
        self.options = ["--python", self.python, *(["--root", interp.root] if interp.root else [])]

    def agent(self, verb, *more):
        return harness.run([DTAP, "agent", verb, *self.options, *more])

    def run(self, text, *flags, **kwargs):
        return harness.run([*self.argv, *flags, "-c", text], **kwargs)

    @property
    def files(self):
        return sorted(path.name for path in self.folder.rglob("dtap-agent.*"))


@pytest.fixture
def venv(interp):
    return Venv(interp)


def test_install_and_remove(venv):
    status = venv.agent("status")
    assert status.code == 1 and "not installed" in status.out, status
    done = venv.agent("install")
    assert done.code == 0 and done.err == "" and "installed in" in done.out, done
    assert venv.files == ["dtap-agent.pth", "dtap-agent.so"]
    status = venv.agent("status")
    assert status.code == 0 and "agent: installed\n" in status.out, status
    again = venv.agent("install")
    assert again.code == 0, again
    result = venv.run(f"{LOADED}; import os; print([name for name in os.environ if 'DTAP_AGENT' in name])", "-W", "error::DeprecationWarning")
    assert (result.code, result.out, result.err) == (0, "True\n[]\n", "")
    done = venv.agent("remove")
    assert done.code == 0 and "removed from" in done.out and venv.files == [], done
    done = venv.agent("remove")
    assert done.code == 0 and "not installed" in done.out, done
    assert venv.run(LOADED).out == "False\n"


@pytest.mark.alone
@pytest.mark.needs_bpf
@pytest.mark.interps("3.11", "3.13")
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_beside_the_tracers_own(venv, interp, place):
    """A program that dtap starts has its agent, too; and a child that it forks.  Each call is one."""
    assert venv.agent("install").code == 0
    program = interp.add("import os\ndef f(): pass\nfor i in range(7): f()\nif not os.fork(): f()\nelse: os.wait()\n", "beside.py")
    result = harness.dtrace("-x", f"place={place}", "-x", "agent=always", "-qn",
                            'python*:::function-entry /progenyof($target) && copyinstr(arg1) == "f"/ { @ = count(); }',
                            "-c", " ".join([*venv.argv, program]))
    assert result.code == 0 and result.out.strip() == "8", result


@pytest.mark.interps("3.13")
def test_lost_object(venv):
    """Without its object the line in site-packages says nothing."""
    assert venv.agent("install").code == 0
    next(venv.folder.rglob("dtap-agent.so")).unlink()
    result = venv.run("print(1)")
    assert (result.code, result.out, result.err) == (0, "1\n", "")
    status = venv.agent("status")
    assert status.code == 1 and "not installed" in status.out, status


@pytest.mark.interps("3.11")
def test_other_version(venv):
    assert venv.agent("install").code == 0
    with next(venv.folder.rglob("dtap-agent.so")).open("ab") as out:
        out.write(b"more")
    status = venv.agent("status")
    assert status.code == 0 and "another version" in status.out, status


@pytest.mark.interps("3.11")
def test_not_writable(venv):
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv")
    result = harness.run(["setpriv", "--reuid=65534", "--clear-groups", DTAP, "agent", "install", *venv.options])
    assert result.code == 1 and "cannot write to" in result.err and venv.files == [], result


def answers(tmp_path, *lines):
    """A program that answers as an interpreter would."""
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\n" + "".join(f'echo "{line}"\n' for line in lines and (*lines, "glibc")))
    fake.chmod(0o755)
    return fake


@pytest.mark.parametrize("facts, word", [
    (("pypy", "3.10.1", "64", "gil", "/nowhere", "/", "no"), "CPython alone"),
    (("cpython", "3.8.3", "64", "gil", "/nowhere", "/", "no"), "3.9 to 3.15"),
    (("cpython", "3.16.0", "64", "gil", "/nowhere", "/", "no"), "3.9 to 3.15"),
    (("cpython", "3.12.1", "32", "gil", "/nowhere", "/", "no"), "32-bit"),
    (("cpython", "3.14.1", "64", "free", "/nowhere", "/", "no"), "free-threaded"),
    (("cpython", "3.13.1", "64", "gil", "", "/", "no"), "no site-packages"),
    (("cpython", "3.13.1", "64", "gil", "/nowhere/it's", "/", "no"), "cannot stand"),
    ((), "no Python 3"),
], ids=lambda value: value if isinstance(value, str) else None)
def test_wrong_interpreter(tmp_path, facts, word):
    result = harness.run([DTAP, "agent", "install", "--python", answers(tmp_path, *facts)])
    assert result.code == 1 and word in result.err and result.out == "", result


def test_not_loaded_is_undone(tmp_path):
    """An interpreter that does not read its folder: nothing stays behind."""
    folder = tmp_path / "site"
    fake = answers(tmp_path, "cpython", "3.13.1", "64", "gil", folder, "/", "no")
    result = harness.run([DTAP, "agent", "install", "--python", fake])
    assert result.code == 1 and "does not load" in result.err, result
    assert list(folder.iterdir()) == []


def test_usage():
    for words in ((), ("what",), ("install", "more"), ("--nosuch", "status")):
        result = harness.run([DTAP, "agent", *words])
        assert result.code == 2 and "usage: dtap agent" in result.err, result
    assert harness.run([DTAP, "agent", "--help"]).code == 0
    result = harness.run([DTAP, "agent", "status", "--python", "no-such-python"])
    assert result.code == 1 and "cannot start no-such-python" in result.err, result
    result = harness.run([DTAP, "agent", "status", "--root", "/no/such/root"])
    assert result.code == 1 and "/no/such/root" in result.err, result


# --- a tracer that knows nothing of dtap ---------------------------------------------------------------

CALLS = 1_000_000

COUNTED = f"""
import sys, time
def leaf():
    pass
sys.stdin.readline()
while "dtap" not in map(sys.monitoring.get_tool, range(6)):     # the agent looks every tenth of a second
    time.sleep(0.01)
for _ in range({CALLS}):
    leaf()
"""


@pytest.mark.needs_bpf
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.interps("3.13")
@pytest.mark.skipif(not shutil.which("bpftrace"), reason="bpftrace is not installed")
def test_bpftrace_counts(venv, start):
    assert venv.agent("install").code == 0
    shared = re.search(r"^bpftrace: usdt:(\S+):python:function__entry$", venv.agent("status").out, re.M).group(1)
    process = start([*venv.argv, "-c", COUNTED], stdin=subprocess.PIPE)
    harness.wait_until(lambda: harness.agent_semaphores(process.pid), what="the agent in the program")
    script = f'usdt:{shared}:python:function__entry /str(arg1) == "leaf"/ {{ @calls = count(); }}'
    tracer = start(["bpftrace", "-e", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    harness.wait_until(lambda: harness.agent_semaphores(process.pid)["function__entry"] or tracer.poll() is not None,
                       what="bpftrace's probe")
    process.stdin.write(b"\n")
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    out, err = harness.interrupt(tracer)
    assert re.findall(r"@calls: (\d+)", out) == [str(CALLS)], (out, err)
