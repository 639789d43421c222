"""A filter of system calls that would be the traced program's end: memory that needs the call is a fault, the rest works."""
import re
import subprocess
import sys

import pytest

import harness

READ, WRITE = 310, 311          # process_vm_readv, process_vm_writev
KILL, TRAP, ERRNO, ALLOW = 0x80000000, 0x30000, 0x50001, 0x7fff0000

FILTER = """
import ctypes, struct
def limit(action, first={READ}, last={WRITE}):
    rows = [(0x20, 0, 0, 0), (0x35, 0, 2, first), (0x25, 1, 0, last), (0x06, 0, 0, action), (0x06, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *row) for row in rows))
    assert not ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
    assert not ctypes.CDLL(None).prctl(22, 2, struct.pack("<HxxxxxxQ", len(rows), ctypes.addressof(code)), 0, 0)
""".replace("{READ}", str(READ)).replace("{WRITE}", str(WRITE))

CALLS = """
import os, select, sys, time
def probe():
    return 7
def run(more=lambda n: n < 3):
    total = n = 0
    while more(n):
        total += probe()
        n += 1
        time.sleep(0.01)
    os.write(1, b"\\nresult %d\\n" % (total // n))
def until_told(n):
    return not select.select([0], [], [], 0)[0]
"""
PROBE = 'python$target:::function-entry /copyinstr(arg1) == "probe"'
SCRIPT = PROBE + '/ { n++; } ' + PROBE + '/ { printf("read %s\\n", copyinstr(arg1 + 1)); } ' + PROBE + ' && n == 3/ { exit(0); }'
FAULT = re.compile(r"invalid address \(0x[0-9a-f]+\)")

pytestmark = [pytest.mark.needs_root, pytest.mark.interps("3.9", "3.13"),
              pytest.mark.skipif(sys.maxsize < 2**32, reason="numbers of system calls")]


def judge(result, harmful):
    assert result.code == 0 and "\nresult 7\n" in result.out, result
    assert len(FAULT.findall(result.err)) == (3 if harmful else 0), result
    assert len(re.findall("^read robe$", result.out, flags=re.M)) == (0 if harmful else 3), result


@pytest.mark.parametrize("action", [KILL, TRAP, ERRNO, ALLOW], ids=["kill", "trap", "errno", "allow"])
def test_running(start, dtrace, interp, action):
    """The process has its filter before dtap comes."""
    program = interp.add(FILTER + CALLS + f"limit({action})\nos.write(1, b'up\\n')\nrun(until_told)\n")
    process = start([*interp.argv, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    result = dtrace("-q", "-x", "place=target", "-n", SCRIPT, "-p", process.pid)
    out, _ = process.communicate(b"\n")
    assert process.returncode == 0, (process.returncode, result)
    result.out += out.decode()
    judge(result, action != ALLOW)


@pytest.mark.parametrize("action", [KILL, ALLOW], ids=["kill", "allow"])
def test_wrapped(dtrace, interp, action):
    """A wrapper limits the command, which is judged when it is held at its exec."""
    wrapper = interp.add(FILTER + f"limit({action})\nimport os, sys\nos.execv(sys.executable, [sys.executable] + sys.argv[1:])\n",
                         "wrapper.py")
    program = interp.add(CALLS + "run(lambda n: n < 200)\n", "program.py")
    judge(dtrace("-q", "-x", "place=target", "-n", SCRIPT, "-c", " ".join([*interp.argv, wrapper, program])), action != ALLOW)


@pytest.mark.parametrize("action", [ERRNO, ALLOW], ids=["errno", "allow"])
def test_tracer_is_limited_itself(dtrace, interp, action):
    """What it starts has its filters, which it can try."""
    space = {}
    exec(FILTER, space)
    judge(dtrace("-q", "-x", "place=target", "-n", SCRIPT, "-c", interp.command(CALLS + "run()\n"),
                 preexec_fn=lambda: space["limit"](action)), action != ALLOW)
