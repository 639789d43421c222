"""vtimestamp: the time of a thread never goes back, though it moves between CPUs whose clocks differ."""
import os
import re

import pytest

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
