"""A program that closes all its descriptors, as one does that becomes a daemon: the agent's connection is among them."""
import subprocess

import pytest

import harness

PROGRAM = """
import os, sys, time
def leaf(): pass
print("ready", flush=True)
if WAITS: sys.stdin.readline()
for i in range(100): leaf()
os.closerange(3, 1 << 16)
for i in range(1500):
    leaf()
    time.sleep(0.001)
"""
SCRIPT = ('BEGIN { printf("armed\\n"); } python$target:::function-entry /copyinstr(arg1) == "leaf"/ { n++; } '
          'tick-10ms /n > 200/ { exit(0); } END { printf("%d\\n", n); }')
TOLD = "has closed the agent's connection, as programs do that close all their descriptors: it is connected again"


@pytest.mark.parametrize("place", [pytest.param("kernel", marks=pytest.mark.needs_bpf), "target"])
@pytest.mark.parametrize("started", [True, False], ids=["-c", "-p"])
def test_it_is_connected_again(interp, start, place, started):
    program = interp.argv_of(PROGRAM.replace("WAITS", str(not started)))
    options = ["-x", f"place={place}", "-x", "agent=always", "-qn", SCRIPT]
    if started:
        result = harness.dtrace(*options, "-c", " ".join(program))
    else:
        child = start(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        tracer = start([harness.DTRACE, *options, "-p", str(child.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert tracer.stdout.readline() == b"armed\n"
        child.stdin.write(b"go\n")
        child.stdin.flush()
        result = harness.finish(tracer, ["dtrace"])
        child.kill()
    # While the agent waits, the kernel keeps its connection open.
    assert result.code == 0 and (not result.err or TOLD in result.err), result
    assert int(result.out.split()[-1]) > 200, result
