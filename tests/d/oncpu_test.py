"""
Stacks in sched:::on-cpu are those of the thread that gets the CPU, though it does not run yet; what is not known is counted.

The programs say themselves which thread waits in which function, and how often it was switched out there.  A short sleep on
a busy machine may end before its thread has left the CPU, so the number of sleeps says little.  And a few switches are told by no tracepoint: leaving some threads of the
machine, sched_switch itself is silent for all its readers (those of one CPU do not join up then), so the thread that comes is not
seen either.  What is seen must be right, all of it; of what there was, more than half must be seen.
"""
import re

import pytest

pytestmark = pytest.mark.needs_bpf

WAITS = """
import resource, threading, time
def wait(): time.sleep(0.001)
def first():
    for i in range(60): wait()
def second():
    for i in range(40): wait()
def run(inner):
    old = resource.getrusage(resource.RUSAGE_THREAD)
    inner()
    new = resource.getrusage(resource.RUSAGE_THREAD)
    print(inner.__name__, threading.get_native_id(), new.ru_nvcsw - old.ru_nvcsw, new.ru_nivcsw - old.ru_nivcsw, flush=True)
threads = [threading.Thread(target=run, args=(f,)) for f in (first, second)]
for t in threads: t.start(); t.join()
"""


@pytest.mark.interps("3.9", "3.13")
def test_is_of_the_one_who_comes(dtrace, interp):
    """Each thread was in its own function; each stack of the kernel begins where a thread leaves its CPU."""
    # A function of a library, here one that is not called, makes the tracer look at the interpreter before it runs, not at chroot.
    result = dtrace("-q", "-n", """
        pid$target:libc*:raise:entry { }
        sched:::on-cpu /pid == $target/ { @[tid, pystack(8)] = count(); @all[tid] = count(); @k[stack(2)] = count(); }
        sched:::off-cpu /pid == $target/ { @off[tid] = count(); }
        END {
            printf("-- stacks\\n"); printa("tid %d\\n%k\\nend %@d\\n", @);
            printf("-- on\\n"); printa("%d %@d\\n", @all); printf("-- off\\n"); printa("%d %@d\\n", @off);
            printf("-- kernel\\n"); printa("%k\\nend %@d\\n", @k);
        }""", "-c", interp.command(WAITS))
    assert result.code == 0, result
    own, stacks, on, off, kernel = re.split(r"^-- \w+\n", result.out, flags=re.M)
    on, off = [dict(re.findall(r"^(\d+) (\d+)$", text, re.M)) for text in (on, off)]
    told = re.findall(r"^(\w+) (\d+) (\d+) (\d+)$", own, re.M)
    assert [name for name, *_ in told] == ["first", "second"], result
    for (name, tid, waits, preempted), other in zip(told, ("second", "first")):
        rows = [(text, int(n)) for at, text, n in re.findall(r"^tid (\d+)\n(.*?)^end (\d+)$", stacks, re.M | re.S) if at == tid]
        there = sum(n for text, n in rows if f"({name})" in text)
        assert int(waits) / 2 < there <= int(waits) + int(preempted), result
        assert not any(f"({other})" in text for text, _ in rows), result
        assert there <= sum(n for _, n in rows) == int(on[tid]) <= int(off[tid]) + 1, result
    tops = re.findall(r"^\s+vmlinux`(\w+)\+.*\n(?:.*\n)*?end (\d+)$", kernel, re.M)
    assert {top for top, _ in tops} == {"__schedule"} and sum(int(n) for _, n in tops) >= sum(int(n) for *_, n, _ in told) / 2, result


def test_what_is_not_known_is_counted(dtrace):
    """Of each thread at least the first time, when it has left no CPU yet; and what cannot be kept at all."""
    result = dtrace("-q", "-n", """
        sched:::on-cpu /pid == $target && ustackdepth == 0/ { @ = count(); }""",
        "-c", "/usr/bin/python3 -c 'import time; time.sleep(0.01)'")
    drops = re.fullmatch(r"dtrace: (\d+) drops? \(unknown stack of a thread that got the CPU\)\n", result.err)
    assert result.code == 0 and drops and int(drops[1]) == int(result.out) > 0, result


@pytest.mark.machine_pids       # elsewhere 0 is also whoever is not in there
def test_kernel_threads(dtrace):
    """They have no stack of user code: that is known."""
    result = dtrace("-q", "-n", """
        sched:::on-cpu /execname == "ksoftirqd/0" || pid == 0/ { @[ustack(3)] = count(); n++; } tick-200ms { exit(0); }""")
    assert result.code == 0 and not result.err, result
