"""
The events of the interpreter's lock, against a program that says itself when it has held the lock and waited for it.

A function called through ctypes.PyDLL holds the lock meanwhile, one called through ctypes.CDLL does not.  That they do, and
that another thread waits for the lock, the program sees in /proc; its times and those of probes are of one clock.  So the bounds
are exact, however slow the machine is.
"""
import json
import platform
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

PROGRAM = """
import ctypes, os, threading, time
holding, without = ctypes.PyDLL(None), ctypes.CDLL(None)
now, byte = time.monotonic_ns, ctypes.create_string_buffer(1)
to_main, to_thread, said = os.pipe(), os.pipe(), os.pipe()

def call(tid):
    with open("/proc/%d/task/%d/syscall" % (main, tid)) as f:
        return f.read().split()[:2]

main = os.getpid()
if not os.fork():       # another process sees what the threads do, and lets them go on
    os.close(said[1])
    for line in os.fdopen(said[0]):
        thread = int(line)
        while call(main) != ["0", hex(to_main[0])]: time.sleep(0.001)
        held = now()                                    # main has the lock, and reads
        os.write(to_thread[1], b"x")
        while call(thread)[0] != "202": time.sleep(0.001)
        waited = now()                                  # the thread wants the lock
        time.sleep(0.02)
        end = now()
        print("said", main, held, thread, waited, end, flush=True)
        os.write(to_main[1], b"x")
    os._exit(0)
os.close(said[0])

tids = []
def reads():
    tids.append(threading.get_native_id())
    without.read(to_thread[0], byte, 1)

for _ in range(2):
    thread = threading.Thread(target=reads)
    thread.start()
    while len(tids) == _ or call(tids[-1]) != ["0", hex(to_thread[0])]: time.sleep(0.001)
    os.write(said[1], b"%d\\n" % tids[-1])
    holding.read(to_main[0], byte, 1)
    thread.join()
os.close(said[1])
os.wait()
for _ in range(50): without.usleep(1)
"""

SCRIPT = """
python$target:::gil-wait { printf("wait %d %d %x 0\\n", tid, timestamp, arg0); }
python$target:::gil-take { printf("take %d %d %x %d\\n", tid, timestamp, arg1, arg0); }
python$target:::gil-drop { printf("drop %d %d %x %d\\n", tid, timestamp, arg1, arg0); }
"""


def check(out):
    said = [tuple(map(int, row)) for row in re.findall(r"^said (\d+) (\d+) (\d+) (\d+) (\d+)$", out, re.M)]
    events = [(what, int(tid), int(when), lock, int(ns))
              for what, tid, when, lock, ns in re.findall(r"^(wait|take|drop) (\d+) (\d+) (\w+) (\d+)$", out, re.M)]
    events.sort(key=lambda e: e[2])
    assert len({e[3] for e in events}) == 1
    holder, last, waiting, holds, waits = None, {}, set(), [], []
    for what, tid, when, _, ns in events:
        # Each probe notes for itself when a wait or a hold has begun, at the thread's last event: after the one before that.
        (before, _), last[tid] = last.get(tid, (0, 0)), (last.get(tid, (0, 0))[1], when)
        if what == "wait":
            assert holder != tid and tid not in waiting         # once for each wait
            waiting.add(tid)
        elif what == "take":
            assert holder is None                               # nobody else has it
            assert before < when - ns < when if tid in waiting else ns == 0
            holder = tid
            if ns:
                waiting.remove(tid)
                waits.append((tid, when - ns, when))
        else:
            assert holder == tid and before < when - ns < when
            holder = None
            holds.append((tid, when - ns, when))
    assert len(holds) > 50 and len(said) == 2
    for main, held, thread, waited, end in said:
        assert any(tid == main and a < held and end < b for tid, a, b in holds)
        assert any(tid == thread and held < a < waited and end < b for tid, a, b in waits)


@pytest.mark.alone
def test_times(dtrace, interp):
    result = dtrace("-q", "-x", "bufsize=8m", "-n", SCRIPT, "-c", interp.command(PROGRAM))
    assert result.code == 0 and not result.err, result
    check(result.out)


STAP = """
global takes, drops, waits, lasting
probe python.gil.wait { waits[lock]++ }
probe python.gil.take { takes[lock]++; if (waited) waits[lock]-- }
probe python.gil.drop { drops[lock]++; if (held >= 20000000) lasting++ }
probe end { foreach (l in takes) printf("%d %d %d %d\\n", takes[l] - drops[l], waits[l], takes[l] > 50, lasting >= 2) }
"""


def test_stap(interp):
    """Each lock is given back as often as it is taken, in some versions but for the last time, and each wait ends."""
    result = harness.stap("-e", STAP, "-c", interp.command(PROGRAM))
    assert result.code == 0 and re.search(r"^[01] 0 1 1$", result.out, re.M), result


@pytest.mark.alone
def test_command(interp):
    """dtap gil: who has kept the lock and who has waited, at least as long as the program says, and how often."""
    result = harness.run([harness.BUILD / "dtap", "gil", "--json", "--frames", "1", "-c", interp.command(PROGRAM)])
    assert result.code == 0 and not result.err, result
    said = [tuple(map(int, row)) for row in re.findall(r"^said (\d+) (\d+) (\d+) (\d+) (\d+)$", result.out, re.M)]
    rows = [json.loads(line) for line in result.out.splitlines() if line.startswith("{")]
    main = said[0][0]
    of = {row["where"][0].rpartition("(")[2]: row for row in rows if row["pid"] == main and row["where"] and "script.py" in row["where"][0]}
    waits, holds = of["reads)"], of["<module>)"]
    assert len(said) == 2 and waits["waits"] >= 2 and holds["holds"] > 50, rows
    assert waits["waited_ns"] >= sum(end - waited for _, _, _, waited, end in said), (waits, said)
    assert waits["longest_wait_ns"] >= max(end - waited for _, _, _, waited, end in said), (waits, said)
    assert holds["held_ns"] >= sum(end - held for _, held, _, _, end in said), (holds, said)
    assert holds["longest_hold_ns"] >= max(end - held for _, held, _, _, end in said), (holds, said)
    result = harness.run([harness.BUILD / "dtap", "gil", "--json", "--least", "60000000", "-c", interp.command(PROGRAM)])
    assert result.code == 0 and "{" not in result.out, result


def test_refused(dtrace, interp):
    """Nobody else than the kernel sees it, so a script with functions of Python by name cannot ask for it."""
    result = dtrace("-x", "place=target", "-n", "python$target:::gil-take {}", "-c", interp.command("pass"))
    assert result.code == 1 and "gil-take cannot fire in the target place" in result.err and "place=kernel" in result.err, result


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("gcc"), reason="needs x86-64 and a C compiler")
@pytest.mark.parametrize("flags", ["-fplt", "-fno-plt", "-fno-plt -fno-pie -no-pie", "-fno-plt -O0"])
def test_calls(tmp_path, dtrace, flags):
    """A lock like CPython's, whose calls are compiled in this way, says itself how often what has happened."""
    source = harness.TOP / "tests/python/data/lock.c"
    subprocess.run(["gcc", "-O2", *flags.split(), "-rdynamic", "-pthread", source, "-o", tmp_path / "python3"], check=True)
    result = dtrace("-q", "-n", "python$target:::gil-* { @[probename] = count(); }", "-c", tmp_path / "python3")
    said = sorted(line.split() for line in result.out.splitlines() if line)
    assert result.code == 0 and len(said) == 6 and said[::2] == said[1::2], result
