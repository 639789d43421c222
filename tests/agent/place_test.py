"""The place where a script runs: which one is chosen, and what the target place has to hold in odd processes."""
import os
import re
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

ENTRY = "python$target:::function-entry"
COUNT = ENTRY + " { @[copyinstr(arg1)] = count(); }"


def counts(text):
    """Rows of an aggregation with one key: {key: value}."""
    return {key: int(value) for key, value in re.findall(r"^ +(\S.*?) +(-?\d+)$", text, flags=re.M)}


# What dtrace -V -v says of a script: the place, and some words of why.
AGENTS, OWN, NOWHERE = "come from dtap's agent", "the interpreter's own marker", "has no probe in a process"
CHOICES = [
    ("3.11", COUNT, "target", AGENTS),
    ("3.11", "python$target:::line, python$target:::cfunction-entry { n++; } tick-1s, END { trace(n); }", "target", AGENTS),
    ("3.11", COUNT + " profile-97 { n++; }", "kernel", "profile:::profile-97 fires there alone"),
    ("3.11", COUNT + " python$target:::gc-start { n++; }", "kernel", OWN),
    ("3.11", COUNT + " syscall::read:entry /pid == $target/ { n++; }", "kernel", "fires there alone"),
    ("3.11", ENTRY + " { @[caller] = count(); }", "kernel", "kernel place"),
    ("3.11", "tick-1s { exit(0); }", "kernel", NOWHERE),
    ("3.11", "#pragma D option place=kernel\n" + COUNT, "kernel", "-x place says so"),
    ("3.11", "#pragma D option bufpolicy=wait\n" + COUNT, "target", "bufpolicy=wait"),
    ("3.11", ENTRY + " { @[pystack()] = count(); }", "target", AGENTS),
    ("3.11", ENTRY + " { @[ustack(), usym(arg0)] = count(); }", "target", AGENTS),
    ("3.11", ENTRY + " { @[stack()] = count(); }", "kernel", "the kernel's stack"),
    ("3.9", COUNT, "kernel", OWN),
    ("3.9", "#pragma D option agent=always\n" + COUNT, "target", AGENTS),
]


def said(version, script, *how):
    found = harness.interpreters().get(version)
    if isinstance(found, str):
        pytest.skip(f"no Python {version}: {found}")
    result = harness.dtrace("-V", "-v", "-q", "-n", script, *how, "-c", " ".join([*found, "-c", "pass"]))
    assert result.code == 0 and result.out.startswith("dtrace: D "), result
    return re.fullmatch(r"# dtrace: the script runs in the (\w+): (.*)\n", result.err).groups()


@pytest.mark.parametrize("number", range(len(CHOICES)))
def test_choice(number):
    version, script, place, why = CHOICES[number]
    got = said(version, script)
    assert got[0] == place and why in got[1], got


def test_limited_memory():
    """A process whose address space is limited has no room for the tracer's memory, and must not be given less."""
    found = harness.interpreters().get("3.11")
    if isinstance(found, str):
        pytest.skip(f"no Python 3.11: {found}")
    result = harness.dtrace("-q", "-x", "showplace", "-n", ENTRY + " { n++; } END { trace(n > 0); }", "-c",
                            " ".join(["prlimit", "--as=500000000", *found, "-c", "0"]))
    assert result.out.split() == ["1"] and "runs in the kernel" in result.err and "RLIMIT_AS" in result.err, result


def test_libraries_to_come(tmp_path):
    """Whose functions can be traced in the kernel alone (-Z)."""
    found = harness.interpreters().get("3.11")
    if isinstance(found, str):
        pytest.skip(f"no Python 3.11: {found}")
    script = ["-q", "-Z", "-n", "pid$target:libnosuch.so:f:entry { n++; } " + ENTRY + " { n++; } END { trace(n > 0); }"]
    result = harness.dtrace("-x", "showplace", *script, "-c", " ".join([*found, "-c", "0"]))
    assert result.out.split() == ["1"] and "runs in the kernel" in result.err, result
    result = harness.dtrace("-x", "place=target", *script, "-c", " ".join([*found, "-c", "0"]))
    assert result.code == 1 and "place=kernel" in result.err, result


def test_without_script():
    result = harness.dtrace("-V", "-v")
    assert result.code == 0 and re.fullmatch(r"# dtrace: scripts run in the .*\n", result.err), result


@pytest.mark.interps("3.11")
def test_stap_follows(interp):
    script = 'probe process.mark("function__entry") { n++ } global n probe end { println(n > 10) }'
    for options, place in ((["--place=kernel"], "kernel"), ([], "target")):
        result = harness.stap(*options, "-vv", "-e", script, "-c", interp.command("def f(): pass\nfor _ in range(20): f()"))
        assert result.out == "1\n" and f"# stap: the script runs in the {place}: " in result.err, result


@pytest.mark.interps("3.11", "3.15")
def test_no_machine_code(interp):
    """Where a policy forbids executable memory the programs are interpreted, and that is said once."""
    policy = "echo 2 > /proc/sys/vm/memfd_noexec && exec \"$@\""
    result = harness.run(["unshare", "-pf", "--mount-proc", "sh", "-c", policy, "sh", harness.DTRACE, "-n", COUNT, "-c",
                          interp.command("def leaf(): pass\nfor _ in range(1000): leaf()")])
    if "memfd_noexec" in result.err:
        pytest.skip("this kernel has no vm.memfd_noexec")
    assert counts(result.out)["leaf"] == 1000, result
    assert result.err.count("the programs are interpreted there") == 1, result


WAITING = """
import os, sys
def leaf(): pass
def after_fork(): leaf()
os.register_at_fork(after_in_child=after_fork)
print("ready", flush=True)
sys.stdin.readline()
%s
"""


@pytest.fixture
def waiting(interp, start):
    """A program that does its work when a line comes."""
    def begin(work, *wrapper):
        process = start([*wrapper, *interp.argv_of(WAITING % work)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        return process
    return begin


def traced(process, pid, start, *args):
    """The output of a dtrace that saw all of the program's work."""
    tracer = start([harness.DTRACE, "-q", *args, "-n", 'tick-20ms /!up/ { up = 1; printf("up\\n"); }', "-p", pid],
                   stdout=subprocess.PIPE, text=True)
    assert tracer.stdout.readline() == "up\n"
    process.stdin.write("\n")
    process.stdin.close()
    assert process.wait(timeout=harness.TIMEOUT_S) == 0
    return tracer.communicate(timeout=harness.TIMEOUT_S)[0]


@pytest.mark.interps("3.11", "3.14")
def test_both_places_at_once(interp, waiting, start):
    """A tracer in the kernel gets what one in the target has hooked already."""
    process = waiting("for _ in range(500): leaf()")
    up = ["-n", 'tick-20ms /!up/ { up = 1; printf("up\\n"); }', "-p", process.pid]
    first, second = (harness.DTRACE, "-q", "-x", "place=target"), (harness.DTRACE, "-q", "-x", "place=kernel")
    tracers = []
    for argv in (first, second):
        tracers.append(start([*argv, "-n", COUNT, *up], stdout=subprocess.PIPE, text=True))
        assert tracers[-1].stdout.readline() == "up\n"
    process.stdin.close()
    assert process.wait(timeout=harness.TIMEOUT_S) == 0
    for tracer in tracers:
        assert counts(tracer.communicate(timeout=harness.TIMEOUT_S)[0]).get("leaf") == 500


FORKS = """
import gc
def work():
    for _ in range(50): leaf()
for _ in range(30):
    child = os.fork()
    if not child:
        os._exit(0)
    work()
    os.waitpid(child, 0)
"""


@pytest.mark.interps("3.11", "3.14")
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_childs_first_calls(interp, waiting, start, place):
    """What a child of fork does before the agent is told of it is not the parent's."""
    process = waiting(FORKS)
    out = traced(process, process.pid, start, "-x", f"place={place}", "-n",
                 ENTRY + " { @[strjoin(copyinstr(arg1), \"\")] = count(); }")
    got = counts(out)
    assert (got["work"], got["leaf"], got.get("after_fork")) == (30, 1500, None), out


NAMESPACE = """
import threading
def work():
    for _ in range(100): leaf()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
work()
if not os.fork():
    work()
    os._exit(0)
os.wait()
"""


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_other_pid_namespace(interp, waiting, start, place):
    """pid is the tracer's number of the process, which knows itself as 1."""
    wrapper = waiting(NAMESPACE, "unshare", "-pf", "--mount-proc")
    with open(f"/proc/{wrapper.pid}/task/{wrapper.pid}/children") as children:
        pid = int(children.read())
    out = traced(wrapper, pid, start, "-x", f"place={place}", "-n", ENTRY + """ /copyinstr(arg1) == "leaf"/
        { self->n++; a[pid]++; @["of", pid, pid == $target] = count(); @most["hundred"] = sum(self->n == 100); }
        END { printf("array %d\\n", a[$target]); }""")
    assert re.findall(r"of +(\d+) +(\d+) +(\d+)$", out, flags=re.M) == [(str(pid), "1", "400")], out
    assert "array 400\n" in out and re.search(r"hundred +4$", out, flags=re.M), out


def test_other_pid_namespace_is_for_the_kernel(start):
    found = harness.interpreters()["3.11"]
    if isinstance(found, str):
        pytest.skip(f"no Python 3.11: {found}")
    wrapper = start(["unshare", "-pf", *found, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    path = f"/proc/{wrapper.pid}/task/{wrapper.pid}/children"
    pid = harness.wait_until(lambda: open(path).read().strip(), what="the program")
    harness.wait_until(lambda: "python" in os.readlink(f"/proc/{pid}/exe"), what="the interpreter")
    result = harness.dtrace("-V", "-v", "-q", "-n", COUNT, "-p", pid)
    assert "runs in the kernel" in result.err and "is in another pid namespace" in result.err, result


ACTIONS = """
import signal
def leaf(): pass
def halt(): pass
def shout(): pass
signal.signal(10, lambda *args: print("got it", flush=True))
for _ in range(100):
    leaf()
shout()
print("on", flush=True)
halt()
print("end", flush=True)
"""


@pytest.mark.interps("3.11", "3.15")
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_actions(interp, place):
    """What acts on the process, and what asks about it."""
    result = harness.dtrace("-w", "-q", "-x", f"place={place}", "-n", ENTRY + """ /copyinstr(arg1) == "shout"/ { raise(10); }
        """ + ENTRY + """ /copyinstr(arg1) == "halt"/
        {
            printf("stopped\\n");
            stop();
            system("ps -o stat= -p %d; kill -CONT %d", pid, pid);
        }
        """ + ENTRY + """ /copyinstr(arg1) == "leaf"/
        {
            @low = min(rand()); @high = max(rand());
            @of[progenyof($target), progenyof($1), progenyof(999999999)] = count();
        }
        BEGIN { printf("args %s\\n", execargs); }
        END { printa("rand %@d\\n", @low); printa("rand %@d\\n", @high); printa("of %d %d %d %@d\\n", @of); }""",
        "-c", interp.command(ACTIONS), os.getpid())
    assert result.code == 0 and result.err == "", result
    low, high = map(int, re.findall(r"^rand (\d+)$", result.out, flags=re.M))
    assert 0 <= low < 2 ** 29 and 2 ** 30 < high < 2 ** 31, result
    assert "of 1 1 0 100\n" in result.out and re.search(r"^args \S*dtrace -w -q -x place", result.out, flags=re.M), result
    # What the program and the tracer print comes in no order, but the program goes on after the tracer's command.
    assert re.search(r"got it\non\n(.*\n)*stopped\nT\S*\s(.*\n)*end\n", result.out) or \
        re.search(r"stopped\nT\S*\s(.*\n)*end\n", result.out) and "got it\non\n" in result.out, result


@pytest.mark.interps("3.11")
def test_what_the_target_place_refuses(interp):
    """By name, with the place that has it."""
    for text in ("@[caller] = count();", "@[stack()] = count();", "trace(uregs[R_RIP]);", "trace(stackdepth);"):
        result = harness.dtrace("-q", "-x", "place=target", "-n", ENTRY + " { " + text + " }", "-c", interp.command("pass"))
        assert result.code == 1 and "place=kernel" in result.err and "without having" not in result.err, result


ATTACHED_FORKS = """
def work(n):
    for _ in range(n): leaf()
    if n < 400 and not os.fork():
        work(n * 2)
        os._exit(0)
    if n < 400: os.wait()
work(100)
"""


@pytest.mark.alone
@pytest.mark.interps("3.9", "3.11", "3.14")
@pytest.mark.parametrize("place", ["kernel", "target"])
@pytest.mark.parametrize("provider, want", [("python*", [100, 201, 401]), ("python$target", [100])])
def test_children_of_an_attached_process(interp, waiting, start, place, provider, want):
    """Children of fork, and theirs, are traced from their first call when any process is meant; no event counts twice."""
    def child(pid):
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return int(children.read())

    init = start(["unshare", "-pf", "--kill-child", "--mount-proc", "sleep", "1000"])
    harness.wait_until(lambda: open(f"/proc/{init.pid}/task/{init.pid}/children").read(), what="a namespace")
    into = ["nsenter", "-t", child(init.pid), "-p", "-m"]
    process = waiting(ATTACHED_FORKS, *into)
    with open(f"/proc/{child(process.pid)}/status") as status:
        pid = re.search(r"^NSpid:.*\s(\d+)$", status.read(), re.M)[1]
    script = f'{provider}:::function-entry /copyinstr(arg1) == "leaf"/ {{ @[pid] = count(); }}'
    tracer = start([*into, harness.DTRACE, "-q", "-x", f"place={place}", "-x", "agent=always", "-n", script,
                    "-n", 'tick-20ms /!up/ { up = 1; printf("up\\n"); }', "-p", pid], stdout=subprocess.PIPE, text=True)
    assert tracer.stdout.readline() == "up\n"
    process.stdin.write("\n")
    process.stdin.close()
    assert process.wait(timeout=harness.TIMEOUT_S) == 0
    assert sorted(counts(tracer.communicate(timeout=harness.TIMEOUT_S)[0]).values()) == want


# The tracer is stopped while a second program starts, which waits for it in vain.
SLOW = """
import os, signal, subprocess, sys, time
tracer = os.getppid()
os.kill(tracer, signal.SIGSTOP)
child = subprocess.Popen([sys.executable, "-c", %r], stdout=subprocess.PIPE)
child.stdout.readline()
os.kill(tracer, signal.SIGCONT)
while os.getppid() == tracer: time.sleep(0.01)
child.kill()
"""
GOES_ON = """
def early(): pass
def later(): pass
early()
print("goes on", flush=True)
while True: later()
"""


@pytest.mark.alone
@pytest.mark.interps("3.11")
def test_answer_comes_late(dtrace, interp):
    """What a program has done before its hooks were installed is lost, and that is told, also where the script ends before the agent says so."""
    result = dtrace("-q", "-x", "place=target", "-n", """
        python*:::function-entry /copyinstr(arg1) == "early"/ { early++; }
        python*:::function-entry /copyinstr(arg1) == "later"/ { later++; }
        tick-1ms /later && ++n == 2/ { exit(0); } END { printf("%d\\n", early); }""",
        "-c", interp.command(SLOW % GOES_ON))
    assert result.out == "0\n", result
    assert re.search(r"^# dtrace: the agent was answered too late, and what came before that is not traced, in process \d+ "
                     r"\(Python 3\.\d+\)$", result.err, re.M), result


NAPS = """syscall::clock_nanosleep:entry /progenyof($target) && execname == "dtap" && *(uint64_t *)copyin(arg2 + 8, 8) >= 20000000/
    { naps++; } END { printf("naps %d\\n", naps); }"""


@pytest.mark.interps("3.9", "3.11", "3.13")
def test_command_is_no_stranger(dtrace, interp, tmp_path):
    """A tracer does not wait for who traces its own command: itself.  Another tracer counts its naps: a hundred, once."""
    inner = tmp_path / "inner.sh"
    inner.write_text(f"exec {harness.BUILD / 'dtap'} calls -n 2 -c '{interp.command('print(1)')}'\n")
    result = dtrace("-q", "-n", NAPS, "-c", f"sh {inner}")
    assert result.code == 0 and result.out.startswith("1\n") and "CALLS" in result.out, result
    assert int(re.search(r"^naps (\d+)$", result.out, re.M)[1]) < 50, result
