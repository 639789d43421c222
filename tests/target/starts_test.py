"""Pythons that start under a system-wide script are held at exec, and bring the agent from their first line."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import harness

pytestmark = [pytest.mark.needs_root, pytest.mark.alone]

LEAF = f"held_leaf_{os.getpid()}"
PROGRAM = f"def {LEAF}(): pass\nfor _ in range(100): {LEAF}()\n"
SCRIPT = f'python*:::function-entry /copyinstr(arg1) == "{LEAF}"/ {{ @ = count(); }}'


class Tracer:
    """A system-wide script that counts the leaf's calls; its holder, unless another tracer has one."""

    def __init__(self, *wrapper, holds=True):
        # It ends with the tests, however those end: else it would go on to hold each start of a Python.
        self.child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *wrapper, harness.BUILD / "dtrace", "-q", "-x", "place=target",
                                       "-n", 'BEGIN { printf("begun\\n"); } ' + SCRIPT],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.child.stdout.readline() == "begun\n"
        self.begun = time.monotonic()
        self.holder = harness.wait_until(self.find, what="the holder") if holds else None

    def find(self):
        children = pathlib.Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
        return next((int(pid) for pid in children
                     if pathlib.Path(f"/proc/{pid}/comm").read_text() == "dtap-hold\n"), None)

    def end(self):
        """The count, and what it said."""
        self.child.send_signal(signal.SIGINT)
        out, err = self.child.communicate(timeout=harness.TIMEOUT_S)
        assert self.child.returncode == 0, err
        return int((out.split() or ["0"])[-1]), err


def agrees(count, n, err):
    """All calls of @n programs, but for those of which the tracer tells; on a busy machine it is not always quick enough."""
    told = sum(map(int, re.findall(r"# dtrace: (\d+) programs? ", err)))
    return 100 * (n - told) <= count <= 100 * n


@pytest.fixture
def tracer():
    one = Tracer()
    yield one
    if one.child.poll() is None:
        one.child.kill()
    one.child.communicate()


def run(argv, **kwargs):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_S, **kwargs)
    assert done.returncode == 0, (argv, done)
    return done.stdout


def seeing_the_build(interp):
    """A command that starts a shell in which the interpreter's root has our build where it is here."""
    if not interp.root:
        return ["sh", "-c"]
    there = f"{interp.root}{harness.BUILD}"
    return ["unshare", "-m", "sh", "-c", f"mkdir -p {there} && mount --bind {harness.BUILD} {there} && eval \"$0\""]


def test_every_call(interp, tracer):
    """As the agent's own events say; the first of all is another program of that interpreter, which makes it known."""
    n = 1000 if harness.NIGHTLY else 30
    script = interp.add(PROGRAM)
    command = " ".join([*interp.argv, script])
    run([*seeing_the_build(interp), f"{' '.join([*interp.argv, '-c', repr('import time; time.sleep(1)')])}; "
         f"for i in $(seq {n}); do {command} || exit 1; done"])
    count, err = tracer.end()
    assert agrees(count, n, err) and count >= 25 * n, (count, err)
    assert not harness.NIGHTLY or count >= 99 * n, (count, err)


@pytest.mark.parametrize("preload", ["", "libm.so.6"])
def test_environment_is_its_own(tracer, preload):
    """As it is without a tracer: in os.environ, in the C library's, in children, and as the kernel shows it."""
    program = PROGRAM + """
import os, subprocess, sys
print(sorted(os.environ.items()))
print(open("/proc/self/environ").read())
print(subprocess.run(["env"], stdout=subprocess.PIPE, text=True).stdout)
sys.stdout.flush()
os.system("env")
os.execv("/usr/bin/env", ["env"])
"""
    env = {"PATH": "/usr/bin:/bin", "LANG": "C", **({"LD_PRELOAD": preload} if preload else {})}
    argv = ["/usr/bin/python3", "-S", "-c", program]
    found = run(argv, env=env)
    for _ in range(5):
        assert run(argv, env=env) == found
    count, err = tracer.end()
    assert agrees(count, 6, err), (count, err)
    found = found.replace(os.getcwd(), "")      # a checkout's folder may be called so
    assert "DTAP" not in found and "dtap" not in found
    assert found == run(argv, env=env).replace(os.getcwd(), "")


def test_arguments_and_many_variables(tracer):
    """What the program finds on its stack is what it was given, also if that is large; and it is traced."""
    program = PROGRAM + "import os, sys; print([*sys.argv[1:], *sorted(os.environ.items())])"
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **{f"V{i}": "x" * i for i in range(600)}}
    given = [str(i) for i in range(1500)]
    assert run(["/usr/bin/python3", "-c", program, *given], env=env) == f"{[*given, *sorted(env.items())]}\n"
    # More than the holder looks at: it is let go.
    assert run(["/usr/bin/python3", "-c", "import sys; print(len(sys.argv))", *(["x"] * 20000)], env=env) == "20001\n"
    count, err = tracer.end()
    assert count >= 100 or "may have begun" in err or "could be looked at" in err, (count, err)


def test_script_with_its_interpreter_in_the_first_line(tracer, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/python3\n" + PROGRAM)
    script.chmod(0o755)
    for _ in range(10):
        run([script])
    count, err = tracer.end()
    assert agrees(count, 10, err), (count, err)


def test_nobody_is_held_without_a_lease():
    """The kernel gives no timer that would end a holder that hangs: then there is none, and late Pythons are told."""
    tracer = Tracer("prlimit", "--sigpending=0", holds=False)
    run(["/usr/bin/python3", "-c", f"{PROGRAM}\nimport time; time.sleep(0.5)"])
    assert not tracer.find()
    count, err = tracer.end()
    assert count == 100 or re.search(r"# dtrace: [1-9]\d* programs? may have begun", err), (count, err)


@pytest.mark.parametrize("who, how", [("tracer", signal.SIGSTOP), ("tracer", signal.SIGKILL), ("holder", signal.SIGKILL),
                                      ("holder", signal.SIGSTOP)])
def test_end_of_those_who_hold(tracer, who, how):
    """Programs start nevertheless.  A holder that somebody stops is the one whom the kernel asks: its lease ends it."""
    os.kill(tracer.child.pid if who == "tracer" else tracer.holder, how)
    for _ in range(3):
        run(["/usr/bin/python3", "-c", PROGRAM])
    if who == "tracer" and how == signal.SIGKILL:
        tracer.child.wait()
        harness.wait_until(lambda: not os.path.exists(f"/proc/{tracer.holder}"), what="the holder's end")
        return
    if how == signal.SIGSTOP:
        tracer.child.send_signal(signal.SIGCONT)
    run(["/usr/bin/python3", "-c", PROGRAM])
    tracer.end()


@pytest.fixture
def freezer(tmp_path):
    """A cgroup of version 2, in which processes can be frozen."""
    folder = tmp_path / "cgroups"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "cgroup2", "none", folder], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("cgroup2 cannot be mounted")
    group = folder / f"dtap-test-{os.getpid()}"
    group.mkdir()
    yield group
    (group / "cgroup.freeze").write_text("0")
    harness.wait_until(lambda: not (group / "cgroup.procs").read_text(), what="the end of all in the cgroup")
    group.rmdir()
    subprocess.run(["umount", folder], check=True)


def test_all_are_frozen(freezer):
    """The tracer and its holder at once, as a paused container's are."""
    tracer = Tracer()
    for pid in tracer.child.pid, tracer.holder:
        (freezer / "cgroup.procs").write_text(str(pid))
    (freezer / "cgroup.freeze").write_text("1")
    for _ in range(3):
        run(["/usr/bin/python3", "-c", PROGRAM])
    (freezer / "cgroup.freeze").write_text("0")
    tracer.end()


def brings():
    """Does a program that starts now bring the agent?"""
    return run(["/usr/bin/python3", "-c", "print(any('dtap-agent' in line for line in open('/proc/self/maps')))"]) == "True\n"


def test_another_holder(tracer):
    """The tracer starts another one, which knows the interpreters, when the first is killed."""
    # One that has only just begun is not replaced.
    harness.wait_until(lambda: time.monotonic() - tracer.begun > 1.1, what="a second")
    os.kill(tracer.holder, signal.SIGKILL)
    second = harness.wait_until(lambda: tracer.find() not in (None, tracer.holder) and tracer.find(), what="another holder")
    harness.wait_until(lambda: brings(), what="a program that brings the agent")
    tracer.end()
    harness.wait_until(lambda: not os.path.exists(f"/proc/{second}"), what="its end")


def test_tracers_share_a_holder():
    """Of two tracers both count all; the first one's end leaves the second its holder."""
    first, n = Tracer(), 20
    second = Tracer(holds=False)
    for _ in range(n):
        run(["/usr/bin/python3", "-c", PROGRAM])
    count, err = first.end()
    assert agrees(count, n, err) and count >= 25 * n, (count, err)
    assert os.path.exists(f"/proc/{first.holder}")
    for _ in range(n):
        run(["/usr/bin/python3", "-c", PROGRAM])
    count, err = second.end()
    assert agrees(count, 2 * n, err), (count, err)
    harness.wait_until(lambda: not os.path.exists(f"/proc/{first.holder}"), what="the holder's end")


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_end_while_programs_are_held(tracer, how):
    """Many programs start while the tracer, or the holder, is taken away: each does its work."""
    argv = ["/usr/bin/python3", "-c", PROGRAM + "print('done')"]
    for victim in (tracer.holder, tracer.child.pid) if how == signal.SIGKILL else (tracer.child.pid,):
        children = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(10)]
        os.kill(victim, how)
        children += [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(10)]
        assert [child.communicate(timeout=harness.TIMEOUT_S)[0] for child in children] == ["done\n"] * 20
        assert [child.returncode for child in children] == [0] * 20
    if how == signal.SIGSTOP:
        tracer.child.send_signal(signal.SIGCONT)
        tracer.end()


def test_one_that_is_traced_already(tracer):
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    assert run(["strace", "-f", "-o", "/dev/null", "/usr/bin/python3", "-c", PROGRAM + "print(1)"]) == "1\n"
    tracer.end()


def test_programs_that_cannot_bring_it(tracer, tmp_path):
    """A set-user-ID one; a broken one; one under a filter of system calls; a static one: as without a tracer, nothing on stderr."""
    setuid = tmp_path / "python3"
    shutil.copy(os.path.realpath("/usr/bin/python3"), setuid)
    os.chown(setuid, 65534, 65534)
    setuid.chmod(0o4755)
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if str(folder).startswith("/tmp/") and folder.stat().st_mode & 0o5 != 0o5:
            folder.chmod(0o755)
    # Known by a first one that runs long enough to be looked at.
    run([setuid, "-c", "import time; time.sleep(1)"])
    done = subprocess.run(["setpriv", "--reuid=65533", "--clear-groups", setuid, "-I", "-c", "import os; print(os.geteuid())"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.stdout, done.stderr) == ("65534\n", "")
    known = tmp_path / "broken"
    shutil.copy(setuid, known)
    run([known, "-c", "import time; time.sleep(1)"])
    with open(known, "r+b") as f:
        f.write(b"no ELF")
    for _ in range(3):
        with pytest.raises(OSError):
            subprocess.run([known])
    tracer.end()


@pytest.mark.parametrize("most", [128, 200])
def test_few_descriptors(most):
    """A tracer that may have few does not make a start fail."""
    tracer = Tracer("prlimit", f"--nofile={most}:{most}")
    children = [subprocess.Popen(["/usr/bin/python3", "-c", PROGRAM]) for _ in range(60)]
    assert [child.wait(harness.TIMEOUT_S) for child in children] == [0] * 60
    tracer.end()


THREADS = """
import ctypes, os, sys, threading, time
def start():
    for _ in range(5):
        pid = os.posix_spawn("/usr/bin/python3", ["python3", "-c", sys.argv[1]], os.environ)
        assert os.waitpid(pid, 0)[1] == 0
threads = [threading.Thread(target=start) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if os.fork() == 0:
    # A thread that is not the first one executes the program.
    threading.Thread(target=os.execv, args=("/usr/bin/python3", ["python3", "-c", "print('by a thread')"])).start()
    time.sleep(1000)
assert os.wait()[1] == 0
"""


def test_threads_that_start_programs(tracer):
    assert run(["/usr/bin/python3", "-c", THREADS, PROGRAM]) == "by a thread\n"
    count, err = tracer.end()
    assert agrees(count, 20, err), (count, err)


def test_script_about_one_process_holds_nobody(tmp_path):
    """Others do not wait for it when they start."""
    program = tmp_path / "siblings.py"
    program.write_text("import os, pathlib\nparent = os.getppid()\n"
                       "for pid in pathlib.Path(f'/proc/{parent}/task/{parent}/children').read_text().split():\n"
                       "    print('sibling', pathlib.Path(f'/proc/{pid}/comm').read_text(), end='')\n")
    found = run([harness.BUILD / "dtrace", "-qn", "BEGIN { n = 0; } python$target:::function-entry { n++; }",
                 "-c", f"/usr/bin/python3 {program}"])
    assert "sibling python3" in found and "dtap-hold" not in found, found
