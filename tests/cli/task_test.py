"""Providers proc, sched and rawtp: against the shell's own account, the kernel's counters, and bpftrace."""
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"


def test_life_of_processes(dtrace, tmp_path):
    """A shell that runs three programs, one of which is not there and one that is killed."""
    script = tmp_path / "family"
    script.write_text("#!/bin/sh\n/bin/true\n/bin/nosuchprogram\nsh -c 'kill -9 $$'\n/bin/false\nexit 3\n")
    result = dtrace("-q", "-n", """
        proc:::create /pid == $target/ { family[arg0] = 1; n++; }
        proc:::exec /family[pid]/ { printf("exec %s\\n", args[0]); }
        proc:::exec-success /family[pid]/ { printf("runs %s\\n", execname); }
        proc:::exec-failure /family[pid]/ { printf("error %d\\n", arg0); }
        proc:::exit /family[pid] || pid == $target/ { printf("exit %s %d\\n", execname, arg0); }
        END { printf("%d children\\n", n); }""", "-c", f"sh {script}")
    assert result.code == 0 and [l for l in result.out.splitlines() if l != "Killed"] == [
        "exec /bin/true", "runs true", "exit true 1",
        "exec /bin/nosuchprogram", "error -2", "exit sh 1",
        "exec /usr/bin/sh", "runs sh", "exit sh 2",
        "exec /bin/false", "runs false", "exit false 1",
        "exit sh 1", "4 children"], result


def test_execveat(dtrace):
    """The path is the second argument; relative to a folder it is told as it was given."""
    calls = "import ctypes; call = ctypes.CDLL(None).syscall; call(322, -100, b'x/nosuch', 0, 0, 0); call(59, b'/nosuch', 0, 0)"
    result = dtrace("-q", "-n", """proc:::exec /pid == $target/ { printf("%s\\n", args[0]); }
        proc:::exec-failure /pid == $target/ { printf("%d\\n", args[0]); }""", "-c", f'{PYTHON} -c "{calls}"')
    assert result.out.split()[-4:] == ["x/nosuch", "-2", "/nosuch", "-2"], result


def test_threads(dtrace):
    result = dtrace("-q", "-n", """
        proc:::lwp-create /pid == $target/ { @["made", arg1 == pid, arg0 != pid] = count(); }
        proc:::lwp-exit /pid == $target/ { @["gone", 1, tid != pid] = count(); }
        proc:::exit /pid == $target/ { @["process", 1, 1] = count(); }""",
        "-c", f"{PYTHON} -c 'import threading\nfor i in range(7):\n t = threading.Thread(target=id, args=(1,)); t.start(); t.join()'")
    rows = re.findall(r"^ +(\w+) +(\d) +(\d) +(\d+)$", result.out, re.M)
    assert sorted(rows) == [("gone", "1", "0", "1"), ("gone", "1", "1", "7"), ("made", "1", "1", "7"),
                            ("process", "1", "1", "1")], result


def test_signals(dtrace):
    result = dtrace("-q", "-n", """
        proc:::signal-send /pid == $target/ { printf("send %d %d\\n", arg2, arg1 == pid); }
        proc:::signal-discard /pid == $target/ { printf("discard %d\\n", arg2); }
        proc:::signal-handle /pid == $target/ { printf("handle %d\\n", arg0); }""",
        "-c", f"{PYTHON} -c 'import os, signal\nsignal.signal(10, lambda *a: 0); signal.signal(12, signal.SIG_IGN)\n"
              "os.kill(os.getpid(), 10)\nos.kill(os.getpid(), 12)'")
    events = [line for line in result.out.splitlines() if not line.endswith(("17", "17 0"))]
    assert sorted(events) == ["discard 12", "handle 10", "send 10 1", "send 12 1"], result


def test_yield_and_sigwait(dtrace):
    """A thread that gives its CPU away, one that takes a signal without a handler; not one that waits in vain."""
    result = dtrace("-q", "-n", """
        sched:::surrender /pid == $target/ { printf("yields %d %d\\n", args[0]->pr_lwpid == tid, args[1]->pr_pid == pid); }
        proc:::signal-clear /pid == $target/ { printf("takes %d\\n", args[0]); }""",
        "-c", f"{PYTHON} -c 'import os, signal\nsignal.pthread_sigmask(0, [10])\nos.kill(os.getpid(), 10)\n"
              "signal.sigwait([10])\nsignal.sigtimedwait([10], 0)\nos.sched_yield()'")
    assert result.code == 0 and result.out.splitlines() == ["takes 10", "yields 1 1"], result


def test_commands_of_begin(dtrace):
    """What BEGIN has done in its name happens while the other probes are there."""
    result = dtrace("-q", "-w", "-n", """BEGIN { system("exec /bin/echo of BEGIN"); }
        proc:::exec-success /progenyof($pid) && execname == "echo"/ { printf("%s\\n", curpsinfo->pr_psargs); exit(0); }""")
    assert result.out.splitlines() == ["of BEGIN", "/bin/echo of BEGIN"], result


def test_switches_are_the_kernels(dtrace):
    """off-cpu as often as the process was switched away from; on-cpu as often as back to it.

    But for a few: the kernel runs no program at a tracepoint inside another program, and counts none of them.
    """
    result = dtrace("-q", "-n", """
        sched:::on-cpu /pid == $target/ { self->ts = timestamp; @["on"] = count(); }
        sched:::off-cpu /pid == $target/ { @["off"] = count(); }
        sched:::off-cpu /self->ts/ { @["again"] = count(); self->ts = 0; }
        sched:::sleep /pid == $target/ { @["sleep"] = count(); }""",
        "-c", f"{PYTHON} -c 'import time, resource\nfor i in range(40): time.sleep(0.002)\n"
              "r = resource.getrusage(0); print(\"usage\", r.ru_nvcsw, r.ru_nivcsw)'")
    rows = dict(re.findall(r"^ +(\w+) +(\d+)$", result.out, re.M))
    voluntary, other = map(int, re.search(r"usage (\d+) (\d+)", result.out).groups())
    assert 40 - 5 <= int(rows["sleep"]) <= voluntary + 10, result
    assert abs(int(rows["off"]) - voluntary - other) <= 20, result
    assert abs(int(rows["off"]) - int(rows["on"])) <= 5 and abs(int(rows["again"]) - int(rows["on"])) <= 5, result


def test_on_cpu_is_about_the_one_who_comes(dtrace):
    result = dtrace("-q", "-n", """
        sched:::on-cpu /pid == $target/ { @[execname, pid == $target, tid == $target] = count(); }""",
        "-c", f"{PYTHON} -c 'import time; time.sleep(0.01)'")
    rows = re.findall(r"^ +(\S+) +(\d) +(\d) +\d+$", result.out, re.M)
    assert ("python3", "1", "1") in rows and all(r[1:] == ("1", "1") for r in rows), result


def test_wakeup(dtrace):
    """On a busy machine some sleeps end without one."""
    result = dtrace("-q", "-n", "sched:::wakeup /arg1 == $target/ { @ = count(); }",
                    "-c", f"{PYTHON} -c 'import time\nfor i in range(30): time.sleep(0.001)'")
    assert int(result.out.split()[-1]) >= 30 - 5, result


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGKILL])
def test_signal_that_ends_the_process(dtrace, number):
    """It has no handler and is delivered all the same, as what was sent."""
    result = dtrace("-q", "-n", 'proc:::signal-handle /pid == $target/ { printf("%d %d\\n", args[0], arg0); }',
                    "-c", f"{PYTHON} -c 'import os; os.kill(os.getpid(), {int(number)})'")
    assert result.out.split() == [str(int(number))] * 2, result


def test_raw_tracepoints(dtrace):
    """Their arguments by place, with the kernel's types."""
    result = dtrace("-q", "-n", """
        rawtp:::sys_enter /pid == $target/ { @[args[1] == 39] = count(); }""",
        "-c", f"{PYTHON} -c 'import os\nfor i in range(21): os.getpid()'")
    assert re.search(r"^ +1 +21$", result.out, re.M), result
    listed = dtrace("-l", "-P", "rawtp")
    found = set(re.findall(r"^ +\d+ +rawtp +(\w+) +(\w+)$", listed.out, re.M))
    assert {"sched_switch", "sys_enter", "sched_process_fork"} <= {name for _, name in found}, listed.out[:500]
    if "tracefs" in pathlib.Path("/proc/filesystems").read_text():
        assert {("sched", "sched_switch"), ("raw_syscalls", "sys_enter")} <= found, listed.out[:500]
        listed = dtrace("-l", "-n", "rawtp:sched::")
        names = {name for _, name in re.findall(r"^ +\d+ +rawtp +(sched) +(\w+)$", listed.out, re.M)}
        mount = "mount -t tracefs none /mnt && ls /mnt/events/sched"
        events = subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, text=True, check=True).stdout.split()
        assert listed.code == 0 and names and names <= set(events), listed
        listed = dtrace("-l", "-n", "rawtp:vmlinux::sched_switch")
        assert listed.code == 0 and "sched_switch" in listed.out, listed


@pytest.mark.slow
@pytest.mark.dies("SIGABRT")       # bpftrace 0.17 itself, while it lists
def test_list_is_bpftraces(dtrace):
    if not shutil.which("bpftrace"):
        pytest.skip("needs bpftrace")
    theirs = subprocess.run(["bpftrace", "-l", "rawtracepoint:*"], capture_output=True, text=True).stdout.split()
    names = {name.split(":")[-1] for name in theirs}
    ours = set(re.findall(r"^ +\d+ +rawtp +\w+ +(\w+)$", dtrace("-l", "-P", "rawtp").out, re.M))
    if not names:
        pytest.skip("bpftrace lists no raw tracepoints here")
    assert len(names & ours) >= 0.9 * len(names), sorted(names - ours)


def test_what_is_not_there(dtrace):
    for desc, words in (("proc:::nosuch", "the kernel has no tracepoint for it"),
                        ("sched:::enqueue", "the kernel does not tell of its queues"),
                        ("sdt:::sched_switch", "provider rawtp"), ("rawtp:::nosuch", "does not match any probes")):
        result = dtrace("-n", desc)
        assert result.code == 1 and words in result.err, result


def test_self_of_the_thread_that_gets_the_cpu(tmp_path):
    """sched:::on-cpu is about another thread than the running one, and has that one's self->, in a pid namespace as well.

    Eight sleeps, of which some may be missed: the kernel runs no program at a tracepoint inside another program.
    """
    script = """int64_t waited; sched:::off-cpu /pid == $target/ { self->left = timestamp; }
        sched:::on-cpu /self->left/ { waited += timestamp - self->left; self->left = 0; } END { printf("%d\\n", waited / 50000000); }"""
    (tmp_path / "sleeps.py").write_text("import time\nfor i in range(8): time.sleep(0.05)\n")
    command = [harness.DTRACE, "-q", "-n", script, "-c", f"{PYTHON} {tmp_path}/sleeps.py"]
    for within in [], ["unshare", "-mpf", "--mount-proc"]:
        result = harness.run([*within, *command])
        assert result.code == 0 and 5 <= int(result.out) < 1000, result     # waiting for a busy processor counts as well
