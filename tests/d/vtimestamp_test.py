"""
vtimestamp: the time of a thread never goes back, though it moves between CPUs whose clocks differ, and does not have the time
of probes.
"""
import os
import re
import statistics

import pytest

import harness

pytestmark = [pytest.mark.needs_bpf, pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")]

PROGRAM = """
import os, threading
cpus = sorted(os.sched_getaffinity(0))
def f():
    for i in range(500):
        os.getsid(0)
        os.sched_setaffinity(0, [cpus[i % 2]])
        os.getpgid(0)
threads = [threading.Thread(target=f) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""


def test_never_back(dtrace, tmp_path):
    program = tmp_path / "moves.py"
    program.write_text(PROGRAM)
    result = dtrace("-q", "-n", """
        self int64_t start, end;
        syscall::getsid:entry /pid == $target && self->end/ { @[(int64_t)(vtimestamp - self->end) < 0] = count(); }
        syscall::getsid:entry /pid == $target/ { self->start = vtimestamp; }
        syscall::getpgid:entry /pid == $target && self->start/ {
            self->end = vtimestamp; @[(int64_t)(self->end - self->start) < 0] = count();
        }""", "-c", f"/usr/bin/python3 -S {program}")
    assert result.code == 0 and re.fullmatch(r"\s*0\s+3996\s*", result.out), result


TELLS = """
import ctypes, os, time
cpus = sorted(os.sched_getaffinity(0))
getpgid = ctypes.CDLL(None).getpgid
for i in range(200):
    os.sched_setaffinity(0, [cpus[i % 2]])
    for _ in range(20000): pass
    getpgid(i)
    print(time.thread_time_ns())
"""


def test_is_the_threads_time(dtrace, tmp_path):
    """What the thread itself is told a moment later.  Missing may be only what was stolen since the last tick."""
    program, told = tmp_path / "tells.py", tmp_path / "told"
    program.write_text(TELLS)
    result = dtrace("-q", "-n", 'syscall::getpgid:entry /pid == $target/ { printf("%d\\n", vtimestamp); }',
                    "-c", f"sh -c 'exec /usr/bin/python3 -S {program} > {told}'")
    seen, own = [list(map(int, text.split())) for text in (result.out, told.read_text())]
    assert result.code == 0 and len(seen) == len(own) == 200, result
    apart = sorted(abs(x - y) for x, y in zip(seen, own))
    assert apart[100] < 1_000_000 and apart[-10] < 100_000_000, apart


THREADS = """
import os, threading, time
def run():
    os.getpgid(0)
    end = time.thread_time_ns() + 20_000_000
    while time.thread_time_ns() < end: pass
    os.getsid(0)
for i in range(30):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
"""


def test_each_thread_has_its_own(dtrace, tmp_path):
    """Also one that gets an ended one's memory in the kernel, which had run for longer than it has.  Half: for what was stolen."""
    program = tmp_path / "threads.py"
    program.write_text(THREADS)
    result = dtrace("-q", "-n", """
        syscall::getpgid:entry /pid == $target/ { self->begin = vtimestamp; }
        syscall::getsid:entry /pid == $target/ { @[vtimestamp - self->begin >= 10000000] = count(); }""",
        "-c", f"/usr/bin/python3 -S {program}")
    assert result.code == 0 and re.fullmatch(r"\s*1\s+30\s*", result.out), result


# --- without the time of probes ------------------------------------------------------------------------

COSTLY = """
    this->s = strjoin(copyinstr(arg0), "%s");
    @[index(this->s, "aab"), index(this->s, "aaab"), index(this->s, "aaaab"), strstr(this->s, "aaac")] = count();
    @b[index(this->s, "aaaaaab"), index(this->s, "aaaaaaab"), index(this->s, "aaaaaaaab"), strstr(this->s, "aaaaaac")] = count();
""" % ("a" * 250)

WORK = """
import time
def f():
    end = time.thread_time_ns() + LENGTH
    while time.thread_time_ns() < end: pass
def measured():
    for i in range(CALLS): f()
begin = time.thread_time_ns()
measured()
print(f"took {time.thread_time_ns() - begin}")
"""


def took(text):
    return int(re.search(r"took (\d+)", text)[1])


def work(interp, calls, length):
    return WORK.replace("CALLS", str(calls)).replace("LENGTH", str(length))


def traced(dtrace, interp, place, program):
    """The program's thread as it says itself, and by vtimestamp, with a costly probe on every call."""
    result = dtrace("-q", "-x", f"place={place}", "-n", """
        python$target:::function-entry /copyinstr(arg1) == "f"/ { %s }
        python$target:::function-entry /copyinstr(arg1) == "measured"/ { self->v = vtimestamp; }
        python$target:::function-return /copyinstr(arg1) == "measured"/ { printf("seen %%d\\n", vtimestamp - self->v); }
        """ % COSTLY, "-c", interp.command(program))
    assert result.code == 0, result
    return took(result.out), int(re.search(r"seen (\d+)", result.out)[1])


PLACES = pytest.mark.parametrize("place", ["target", "kernel"])

EACH = """
import time
def f():
    time.thread_time_ns()
took = []
for i in range(CALLS):
    begin = time.thread_time_ns()
    f()
    took.append(time.thread_time_ns() - begin)
print(f"took {sorted(took)[CALLS // 2]}")
"""


def middle_traced(dtrace, interp, options, costly, program):
    """Of all calls of f: the thread's time as it says itself, and by vtimestamp, with a costly probe."""
    result = dtrace("-q", *options, "-n", """
        python$target:::function-entry /copyinstr(arg1) == "f"/ { %s }
        python$target:::function-entry /copyinstr(arg1) == "f"/ { self->v = vtimestamp; }
        python$target:::function-return /copyinstr(arg1) == "f"/ { printf("seen %%d\\n", vtimestamp - self->v); }
        """ % costly, "-c", interp.command(program))
    assert result.code == 0, result
    return took(result.out), statistics.median(map(int, re.findall(r"seen (\d+)", result.out)))


def check_without(interp, program, whole, seen):
    """
    What the program takes untraced, though most of its time is the probe's by now.  The kernel's trap is not hidden.  The
    middle of all calls: a machine may keep some of them waiting for longer than all the probes take.
    """
    alone = took(harness.run(interp.argv_of(program)).out)
    assert abs(seen - alone) < (whole - alone) / 4, (alone, whole, seen)


@PLACES
@pytest.mark.interps("3.9", "3.14")
def test_is_without_costly_probes(dtrace, interp, place):
    program = EACH.replace("CALLS", "1500")
    check_without(interp, program, *middle_traced(dtrace, interp, ["-x", f"place={place}"], COSTLY, program))


# Some 10 ms: a text is looked for at each place of a longer one.
LONG = 'this->s = substr("%s", 0); @[index(this->s, "%sb")] = count();' % ("a" * 6000, "a" * 3000)


@pytest.mark.interps("3.9", "3.14")
def test_is_without_long_probes(dtrace, interp):
    program = EACH.replace("CALLS", "20")
    whole, seen = middle_traced(dtrace, interp, ["-x", "place=kernel", "-x", "strsize=8192"], LONG, program)
    assert whole > 5_000_000
    check_without(interp, program, whole, seen)


@PLACES
@pytest.mark.interps("3.11", "3.15")
def test_has_all_but_the_probes(dtrace, interp, place):
    """Nothing of the program's own time is taken for a probe's, though the thread loses its CPU in both."""
    whole, seen = traced(dtrace, interp, place, work(interp, 100, 1_000_000))
    assert 100_000_000 <= seen <= whole, (whole, seen)


FORKS = """
import os, threading
def f(): pass
def run():
    for i in range(2000): f()
threads = [threading.Thread(target=run) for i in range(3)]
for t in threads: t.start()
for t in threads: t.join()
pid = os.fork()
run()
if pid: os.waitpid(pid, 0)
"""


@pytest.mark.interps("3.9", "3.13")
def test_never_back_inside(dtrace, interp):
    """Nor in a child of fork, whose time begins anew."""
    result = dtrace("-q", "-x", "place=target", "-x", "family", "-n", """
        self uint64_t last;
        python*:::function-entry /copyinstr(arg1) == "f"/ {
            @[(int64_t)(vtimestamp - self->last) < 0, vtimestamp >> 40 != 0] = count(); self->last = vtimestamp;
        }""", "-c", interp.command(FORKS))
    assert result.code == 0 and re.fullmatch(r"\s*0\s+0\s+10000\s*", result.out), result
