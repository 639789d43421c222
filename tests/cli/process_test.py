"""What a script can know of the process: execargs, and members of curpsinfo; /proc is the witness."""
import re

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"


def test_execargs(dtrace, start):
    words = [PYTHON, "-c", "import os, time\nwhile 1: os.getsid(0); time.sleep(0.01)", "", "one two", "x" * 40]
    other = start(words)
    result = dtrace("-q", "-n", 'syscall::getsid:entry /pid == %d/ { printf("%%s", execargs); exit(0); }' % other.pid)
    cmdline = open(f"/proc/{other.pid}/cmdline").read()
    assert result.out == cmdline[:-1].replace("\0", " ") == " ".join(words), result
    for size in (8, 16, 64):
        cut = dtrace("-q", "-x", f"strsize={size}", "-n",
                     'syscall::getsid:entry /pid == %d/ { printf("%%s", execargs); exit(0); }' % other.pid)
        assert cut.out == " ".join(words)[:size - 1], cut


@pytest.mark.alone
def test_execargs_as_key(dtrace, start):
    """Equal arguments are one key, whatever lay in memory before."""
    code = "import os, time\nwhile True: os.getsid(0); time.sleep(0.005)"
    for words in ("a", "bb bb"):
        child = start([PYTHON, "-c", code, *words.split()])
        harness.wait_until(lambda: harness.waits(child.pid), what="its sleep")
    result = dtrace("-q", "-n", """
        syscall::getsid:entry /execname == "python3"/ { @[execargs, pid % 1] = count(); @n[probefunc, execargs] = count(); }
        syscall::getsid:entry /++n == 60/ { exit(0); }""")
    rows = re.findall(r"(a|bb bb) +0 +(\d+)$", result.out, re.M)
    assert sorted(r[0] for r in rows) == ["a", "bb bb"] and 40 <= sum(int(r[1]) for r in rows) <= 70, result


def test_psinfo(dtrace):
    result = dtrace("-q", "-n", """
        syscall::getppid:entry /pid == $target/ {
            printf("%d %d %d %d %d %s [%s]", curpsinfo->pr_pid == pid, curpsinfo->pr_ppid == ppid, curpsinfo->pr_uid,
                   curpsinfo->pr_gid, curlwpsinfo->pr_lwpid == tid, curpsinfo->pr_fname, curpsinfo->pr_psargs);
        }""", "-c", f"{PYTHON} -c 'import os; os.getppid()'")
    assert result.out == "1 1 0 0 1 python3 [%s -c import os; os.getppid()]" % PYTHON, result


def test_members_of_arguments(dtrace):
    """The guide's way to ask whom a signal is for."""
    result = dtrace("-q", "-n", """
        proc:::signal-send /args[1]->pr_pid == $target && pid == $target/ { printf("%d %d", args[2], args[0]->pr_lwpid == tid); }
        proc:::create /pid == $target/ { child = args[0]->pr_pid; }
        proc:::exit /pid == child/ { printf(" child %d", args[0]); }""",
        "-c", "/bin/sh -c 'kill -CONT $$; /bin/true; exit 0'")
    assert result.out == "18 1 child 1", result


def test_progenyof(dtrace):
    """The target, its children and theirs; not this test, from which they all descend."""
    result = dtrace("-q", "-n", "syscall::getsid:entry /progenyof($target)/ { @[execname, pid == $target] = count(); }",
                    "-c", f"/bin/sh -c '{PYTHON} -c \"import os; os.getsid(0)\"; sh -c \"{PYTHON} -c "
                          "\\\"import os; os.getsid(0); os.getsid(0)\\\"; true\"; true'")
    assert re.findall(r"^ +python3 +0 +(\d+)$", result.out, re.M) == ["3"], result
    result = dtrace("-q", "-n", "BEGIN { printf(\"%d %d %d\", progenyof($pid), progenyof(1), progenyof(999999)); exit(0); }")
    assert result.out == "1 1 0", result


OUTSIDE = "import os\nwhile True:\n    os.getsid(0)\n    os.fork() or os._exit(os.getsid(0) * 0)\n    os.wait()\n"
FAMILY = """
{python} -c 'import os; print("said", os.getpid(), os.getppid(), flush=True); os.getsid(0)'
unshare --pid --fork {python} -c 'import os; os.getsid(0)'
true
"""


@pytest.mark.needs_bpf
def test_ids_in_a_pid_namespace(start, tmp_path):
    """As they are seen there; processes in another namespace, with the same numbers, are nobody's children here."""
    start(["unshare", "--pid", "--kill-child", "--fork", "--mount-proc", PYTHON, "-c", OUTSIDE])
    family = tmp_path / "family.sh"
    family.write_text(FAMILY.format(python=PYTHON))
    script = """BEGIN { printf("begin %d %d\\n", progenyof($pid), progenyof(99999)); }
        syscall::getsid:entry /progenyof($target)/ { printf("seen %d %d\\n", pid, ppid); }"""
    result = harness.run(["unshare", "--pid", "--fork", "--mount-proc", harness.DTRACE, "-q", "-n", script,
                          "-c", f"/bin/sh {family}"])
    lines = [line.split() for line in result.out.splitlines()]
    said = next(line[1:] for line in lines if line[0] == "said")
    seen = [line[1:] for line in lines if line[0] == "seen"]
    assert result.code == 0 and ["begin", "1", "0"] in lines and len(seen) == 2, result
    # The one in a namespace within is a child of unshare's, which began after the first.
    assert seen[0] == said and int(seen[1][0]) > int(seen[1][1]) > int(said[0]), result


CALLS = """
import time
def leafy(): pass
while True:
    leafy()
    time.sleep(0.001)
"""


@pytest.mark.needs_bpf
@pytest.mark.interps("3.9")
def test_others_of_the_same_file(start, interp):
    """Probes of a file that processes outside of the pid namespace execute, too: those are not there."""
    outside = start(interp.argv_of(CALLS))
    harness.wait_until(lambda: harness.waits(outside.pid), what="the program outside")
    script = """python*:::function-entry /copyinstr(arg1) == "leafy"/ { @[pid == 0] = count(); }
        END { printa("%d %@d\\n", @); }"""
    inside = interp.command(CALLS.replace("while True", "for i in range(100)"))
    result = harness.run(["unshare", "--pid", "--fork", "--mount-proc", harness.DTRACE, "-q", "-x", "place=kernel", "-n", script, "-c", inside])
    outside.kill()
    assert result.out.split() == ["0", "100"], result


@pytest.mark.needs_bpf
@pytest.mark.interps("3.9", "3.13")
def test_start_in_a_namespace_within(interp):
    """A Python that starts in a pid namespace below the tracer's own is traced, under the number that it has in the tracer's."""
    inside = f"unshare --pid --fork {interp.command(CALLS.replace('while True', 'for i in range(2000)'))}"
    script = """python*:::function-entry /copyinstr(arg1) == "leafy"/ { @[pid == 0 || pid == 1] = count(); n++; }
        tick-10ms /n > 100/ { exit(0); } END { printa("%d %@d\\n", @); }"""
    result = harness.run(["unshare", "--pid", "--fork", "--mount-proc", harness.DTRACE, "-q", "-n", script,
                          "-c", f"sh -c 'sleep 0.3; {inside}; true'"])
    found = result.out.split()
    assert found[0] == "0" and int(found[1]) > 100 and len(found) == 2, result


NEWS = """
import os, threading, time
inside = threading.Event()
def wait():
    print("said", os.getpid(), threading.get_native_id(), flush=True)
    inside.set()
    time.sleep(0.01)
thread = threading.Thread(target=wait)
thread.start()
inside.wait()
thread.join()
child = os.fork()
if not child:
    os._exit(0)
os.waitpid(child, 0)
print("said", child, child, flush=True)
"""


@pytest.mark.needs_bpf
@pytest.mark.parametrize("inside", [(), ("unshare", "--pid", "--fork", "--mount-proc"),
                                    ("unshare", "--pid", "--fork", "--mount-proc", "unshare", "--pid", "--fork", "--mount-proc")])
def test_ids_of_other_threads(inside, tmp_path):
    """Of those that an event is about and that do not run yet, too: they begin, and they get the CPU."""
    program = tmp_path / "news.py"
    program.write_text(NEWS)
    script = """sched:::on-cpu /pid == $target/ { @["on", pid, tid] = count(); }
        sched:::on-cpu /progenyof($target) && pid != $target/ { @["on", pid, tid] = count(); }
        sched:::wakeup /pid == $target/ { @["by", pid, tid] = count(); }
        proc:::lwp-start /pid == $target/ { @["begun", pid, tid] = count(); }
        proc:::start /progenyof($target)/ { @["begun", pid, tid] = count(); }
        END { printa("%s %d %d %@d\\n", @); }"""
    result = harness.run([*inside, harness.DTRACE, "-q", "-n", script, "-c", f"{PYTHON} -S {program}"])
    rows = [line.split() for line in result.out.splitlines()]
    said = {(pid, tid) for what, pid, tid, *_ in rows if what == "said"}
    [main] = {(pid, pid) for pid, tid in said if pid != tid}
    assert result.code == 0 and len(said) == 2, result
    assert {(pid, tid) for what, pid, tid, *_ in rows if what == "on"} == said | {main}, result
    assert {(pid, tid) for what, pid, tid, *_ in rows if what == "begun"} == said, result
