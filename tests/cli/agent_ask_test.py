"""Where the agent is installed, Pythons ask for sessions when they start (src/abi/ask.h): their first call is counted.

Each test has the processes of a pid namespace, and the names of a network namespace, to itself.
"""
import os
import re
import shutil

import pytest

import harness
from agent_command_test import Venv

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_bpf,
              pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")]

ALONE = ["unshare", "--net", "--pid", "--mount-proc", "--fork"]
CALLS = 50
NAME = f"short{os.getpid()}.py"	# probes in the kernel are those of the whole machine
PROGRAM = f"def f(): pass\nfor i in range({CALLS}): f()\n"

# $1: how many Pythons; $2: what is done before they are started; $3: their command; then the tracer.  Its number is $tracer.
RUN = r"""
n=$1 before=$2 command=$3 out=$4
shift 4
: >"$out"
"$@" >"$out" &
tracer=$!
while ! grep -qs armed "$out"; do
    kill -0 $tracer || exit 3
    sleep 0.02
done
eval "$before"
for i in $(seq $n); do $command || exit 4; done
kill -CONT $tracer
kill -INT $tracer
wait $tracer
"""

COUNT = ('BEGIN { printf("armed\\n"); } '
         f'python*:::function-entry /copyinstr(arg1) == "f" && basename(copyinstr(arg0)) == "{NAME}"/ {{ @ = count(); }} '
         'END { printa("%@d\\n", @); }')


def run(tmp_path, n, command, *options, before=""):
    """How many calls were counted, of how many Pythons the tracer told, and the result."""
    out = tmp_path / "out"
    result = harness.run([*ALONE, "sh", "-c", RUN, "sh", str(n), before, command, out, harness.DTRACE, "-q", *options, "-n", COUNT])
    assert result.code == 0, result
    counted = [int(word) for word in out.read_text().split()[1:]]
    told = sum(map(int, re.findall(r"# dtrace: (\d+) programs? ", result.err)))
    return sum(counted), told, result


@pytest.fixture
def venv(interp):
    made = Venv(interp)
    assert made.agent("install").code == 0
    return made


@pytest.mark.parametrize("place", ["kernel", "target"])
def test_every_call(venv, interp, tmp_path, place):
    """Short programs, one after another.  Of one that a busy machine has not served in time the tracer tells."""
    n = 10
    program = interp.add(PROGRAM, NAME)
    counted, told, result = run(tmp_path, n, " ".join([*venv.argv, program]), "-x", f"place={place}")
    assert CALLS * (n - told) <= counted <= CALLS * n, result


def test_tracemalloc(venv, interp, tmp_path):
    """Before CPython 3.12.9 and 3.13.2 tracemalloc lets the agent's thread not take the GIL; the thread that waits does its work."""
    program = interp.add(PROGRAM, NAME)
    counted, told, result = run(tmp_path, 3, " ".join([*venv.argv, "-X", "tracemalloc", program]))
    assert CALLS * (3 - told) <= counted <= CALLS * 3, result


@pytest.mark.interps("3.13")
def test_without_site(venv, interp, tmp_path):
    """With -S nobody asks: it is told of each, where others do."""
    program = interp.add(PROGRAM, NAME)
    both = tmp_path / "both"
    both.write_text(f"{' '.join([*venv.argv, program])}\n{' '.join([*venv.argv, '-S', program])}\n")
    counted, told, result = run(tmp_path, 5, f"sh {both}")
    assert CALLS * (10 - told) <= counted <= CALLS * 10 and told >= 5, result


@pytest.mark.interps("3.9", "3.13")
def test_hung_tracer(venv, interp, tmp_path):
    """Programs go on although the tracer is stopped."""
    run(tmp_path, 3, " ".join([*venv.argv, interp.add(PROGRAM, NAME)]), before="kill -STOP $tracer")


# As user nobody: take the first @n names of root, and answer nobody.
SQUAT = """exec setpriv --reuid=65534 --clear-groups /usr/bin/python3 -c '
import socket, time
names = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range({n})]
for i, name in enumerate(names):
    name.bind("\\0dtap-ask-1-0-%d" % i)
    name.listen()
print("ready", flush=True)
time.sleep(1000)
'"""


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("n", [3, 32])
def test_squatters(venv, interp, tmp_path, n):
    """Another user has bound names: the tracer takes another one, or says that there is none; programs do not wait for him."""
    squat = tmp_path / "squat"
    squat.write_text(SQUAT.format(n=n))
    program = interp.add(PROGRAM, NAME)
    tracer = f'sh {squat} >{tmp_path}/taken & while ! grep -qs ready {tmp_path}/taken; do kill -0 $! || exit; sleep 0.02; done; exec "$@"'
    out = tmp_path / "out"
    result = harness.run([*ALONE, "sh", "-c", RUN, "sh", "5", "", " ".join([*venv.argv, program]), out,
                          "sh", "-c", tracer, "sh", harness.DTRACE, "-qn", COUNT])
    counted = sum(int(word) for word in out.read_text().split()[1:])
    told = sum(map(int, re.findall(r"# dtrace: (\d+) programs? ", result.err)))
    assert result.code == 0 and CALLS * (5 - told) <= counted <= CALLS * 5, result
    assert ("all 32 names by which starting Pythons ask are taken" in result.err) == (n == 32), result


@pytest.mark.interps("3.11")
@pytest.mark.skipif(not shutil.which("perl"), reason="no perl")
def test_stranger(venv, interp, tmp_path):
    """Who is no Python is told nothing: the connection is closed."""
    ask = tmp_path / "ask.pl"
    ask.write_text('socket(S, 1, 5, 0) or die; connect(S, pack("Sa*", 1, "\\0dtap-ask-1-0-0")) or die $!;\n'
                   '$n = sysread(S, $b, 100); print STDERR "answer: ", defined $n ? $n : -1, "\\n";\n')
    counted, told, result = run(tmp_path, 1, " ".join([*venv.argv, interp.add(PROGRAM, NAME)]),
                                before=f"perl {ask}")
    assert "answer: 0\n" in result.err, result
