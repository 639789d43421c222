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
