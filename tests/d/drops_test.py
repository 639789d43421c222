"""What is lost is counted, and told in DTrace's words: a test that provokes each kind."""
import re

import pytest

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"


def lost(result, words):
    """The sum of all "dtrace: N WORDS"; they are told in parts."""
    return sum(map(int, re.findall(rf"^dtrace: (\d+) {words}\b", result.err, re.M)))


def calls(n):
    """A command that calls getpgid(0), getpgid(1) ... n times; what is asked for need not exist."""
    return (f"{PYTHON} -S -c 'import ctypes; f = ctypes.CDLL(None).getpgid; f.argtypes = [ctypes.c_int]\n"
            f"for i in range({n}): f(i)'")


def test_aggregation(dtrace):
    """16 kB have room for some hundred keys: those are right, and each other one is a drop."""
    result = dtrace("-q", "-x", "aggsize=16k", "-n", "syscall::getpgid:entry /pid == $target/ { @[arg0] = count(); }",
                    "-c", calls(2000))
    rows = re.findall(r"^ +(\d+) +(\d+)$", result.out, re.M)
    assert result.code == 0 and 50 < len(rows) < 1000 and all(n == "1" for _, n in rows), result
    assert len(rows) + lost(result, "aggregation drops?") == 2000, (len(rows), result.err)


def test_burst_of_new_keys(dtrace):
    """Long values for many keys at once: memory for them there is, so nothing may be lost."""
    result = dtrace("-q", "-x", "aggsize=16m", "-n",
                    "syscall::getpgid:entry /pid == $target/ { @[arg0] = quantize(arg0); }", "-c", calls(3000))
    assert result.code == 0 and result.err == "" and result.out.count("Distribution") == 3000, result.err


def test_dynamic_variables(dtrace):
    result = dtrace("-q", "-x", "dynvarsize=16k", "-n",
                    "int n, i; syscall::getpgid:entry /pid == $target/ { x[arg0] = 1; }"
                    "syscall::getpgid:return /pid == $target/ { n += x[i]; i++; }"
                    'END { printf("%d", n); }', "-c", calls(2000))
    kept = int(result.out)
    assert result.code == 0 and 50 < kept < 1000, result
    assert kept + lost(result, "dynamic variable drops?") == 2000, result


def test_thread_variables(dtrace):
    """Of many threads only some have room; a value that was lost reads as 0."""
    program = ("import os, threading\nn = 300\nall = threading.Barrier(n)\n"
               "def f():\n all.wait(); os.getsid(0); all.wait(); os.getpgid(0); all.wait()\n"
               "threading.stack_size(65536)\n"
               "ts = [threading.Thread(target=f) for i in range(n)]\n"
               "for t in ts: t.start()\nfor t in ts: t.join()")
    result = dtrace("-q", "-x", "dynvarsize=4k", "-n",
                    "int n, m; self int x; syscall::getsid:entry /pid == $target/ { self->x = 1; }"
                    "syscall::getpgid:entry /pid == $target/ { n += self->x; m++; }"
                    'END { printf("%d %d", n, m); }', "-c", f"{PYTHON} -S -c '{program}'")
    kept, threads = map(int, result.out.split())
    assert result.code == 0 and threads == 300 and 0 < kept < 300, result
    assert kept + lost(result, "dynamic variable drops?") == 300, result


def test_principal_buffer(dtrace):
    """Nobody takes records out while the program stops its tracer, so the buffer gets full."""
    program = ("import os, signal, time\ntracer = os.getppid()\nos.kill(tracer, signal.SIGSTOP)\n"
               "def states():\n for thread in os.listdir(f'/proc/{tracer}/task'):\n"
               "  yield open(f'/proc/{tracer}/task/{thread}/stat').read().rsplit(')', 1)[1].split()[0]\n"
               "while set(states()) != {'T'}: time.sleep(0.01)\n"
               "for i in range(20000):\n try: os.getpgid(1000000000 + i)\n except OSError: pass\n"
               "os.kill(tracer, signal.SIGCONT)")
    result = dtrace("-q", "-x", "bufsize=4k", "-n",
                    'syscall::getpgid:entry /pid == $target/ { printf("%d\\n", arg0); n++; }'
                    'END { printf("all %d\\n", n); }', "-c", f'{PYTHON} -S -c "{program}"')
    lines = result.out.splitlines()
    assert result.code == 0 and len(set(lines)) == len(lines), result.code
    # END's own record finds the buffer empty again.
    assert lines[-1] == "all 20000" and len(lines) - 1 + lost(result, "drops?") == 20000, (len(lines), result.err)
    assert lost(result, "drops?") > 0, result.err


def test_speculation_too_large(dtrace):
    """Behind specsize a record is a drop, and the speculation keeps what it has."""
    result = dtrace("-q", "-x", "specsize=1k", "-n", """
        BEGIN { s = speculation(); }
        syscall::getpgid:entry /pid == $target && arg0 < 100/ { speculate(s); printf("%d,", arg0); }
        syscall::getpgid:entry /pid == $target && arg0 == 100/ { commit(s); }""", "-c", calls(101))
    kept = re.findall(r"(\d+),", result.out)
    assert kept == [str(i) for i in range(len(kept))] and 5 < len(kept) < 50, result
    assert len(kept) + lost(result, "speculative drops?") == 100, result


def test_speculation_unavailable(dtrace):
    result = dtrace("-q", "-x", "nspec=3", "-n", """
        int n;
        syscall::getpgid:entry /pid == $target/ { s[arg0] = speculation(); n += s[arg0] != 0; }
        END { printf("%d", n); }""", "-c", calls(50))
    assert result.code == 0 and result.out == "3", result
    found = re.findall(r"^dtrace: (\d+) failed speculations? \(no speculative buffer available\)$", result.err, re.M)
    assert sum(map(int, found)) == 47, result
