"""A session about every Python reaches those, too, that are started while it runs, and those that only just begin.

Each test has the processes of a pid namespace to itself, as agent_family_test.py says.
"""
import os
import re
import shutil

import pytest

import harness

pytestmark = [pytest.mark.needs_bpf, pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")]

ALONE = ["unshare", "--pid", "--mount-proc", "--fork"]

# Calls tick() until somebody ends it.
TICKER = "import time\ndef tick(): time.sleep(0.005)\nwhile True: tick()\n"

# $RUN is started in the very moment in which the tracer is, and again when that has said that it is ready.  The
# tracer ends when it has seen both; with the first process of the namespace all others end.
BOTH = r"""
: >"$OUT"
$RUN &
"$@" >"$OUT" &
tracer=$!
while ! grep -qs armed "$OUT"; do
    kill -0 $tracer || exit 3
    sleep 0.02
done
$RUN &
wait $tracer
"""

SEEN = """
BEGIN { printf("armed\\n"); }
python*:::function-entry /copyinstr(arg1) == "tick" && !seen[pid]/ { seen[pid] = 1; printf("%s\\n", copyinstr(arg1)); n++; }
python*:::function-entry /n == 2/ { exit(0); }
"""


def both(tmp_path, command, *tracer):
    out = tmp_path / "out"
    result = harness.run([*ALONE, "sh", "-c", BOTH, "sh", *tracer],
                         env=dict(os.environ, RUN=command, OUT=str(out)))
    return result, out.read_text().split()


@pytest.mark.interps("3.9", "3.13", "3.15")
def test_dtrace(interp, tmp_path):
    result, out = both(tmp_path, interp.command(TICKER), harness.DTRACE, "-qn", SEEN)
    assert (result.code, out) == (0, ["armed", "tick", "tick"]) and re.fullmatch(harness.LATE, result.err), result


@pytest.mark.interps("3.11")
def test_in_the_target(interp, tmp_path):
    result, out = both(tmp_path, interp.command(TICKER), harness.DTRACE, "-q", "-x", "place=target", "-n", SEEN)
    assert (result.code, out) == (0, ["armed", "tick", "tick"]) and re.fullmatch(harness.LATE, result.err), result


STAP = """
global seen, n
probe begin { println("armed") }
probe process("%s").mark("function__entry") {
    if (user_string($arg2) == "tick" && !seen[pid()]++) {
        println("tick")
        if (++n == 2)
            exit()
    }
}
"""


@pytest.mark.interps("3.9", "3.14")
def test_stap(interp, tmp_path):
    result, out = both(tmp_path, interp.command(TICKER), harness.STAP, "-w", "-e", STAP % interp.executable)
    assert (result.code, out) == (0, ["armed", "tick", "tick"]) and re.fullmatch(harness.LATE, result.err), result


FORKS = """
import os
import re
def forked_tick(): pass
pid = os.fork()
forked_tick()
if pid:
    os.waitpid(pid, 0)
"""


@pytest.mark.interps("3.9", "3.13")
def test_stap_children(interp):
    """A point that names a program means every process that executes it, the command's children as well."""
    script = ('global n; probe process("%s").mark("function__entry") { if (user_string($arg2) == "forked_tick") n++ } '
              'probe end { println(n) }')
    result = harness.stap("-w", "-e", script % interp.executable, "-c", interp.command(FORKS))
    assert (result.code, result.err, result.out) == (0, "", "2\n"), result


@pytest.mark.interps("3.11")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
def test_without_privileges(interp, tmp_path):
    """Nobody may ask the kernel who executes what: /proc is looked through, and the script runs in the target."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    result, out = both(tmp_path, " ".join([*nobody, *interp.argv_of(TICKER)]), *nobody, harness.DTRACE, "-qn", SEEN)
    assert (result.code, out) == (0, ["armed", "tick", "tick"]) and re.fullmatch(harness.LATE, result.err), result


EXECS = """
import os, sys
def tick(): pass
for i in range(3):
    tick()
if len(sys.argv) < 3:
    os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
while sys.argv[1] == "forever":
    tick()
"""


@pytest.mark.interps("3.9", "3.13")
@pytest.mark.parametrize("provider", ["python*", "python$target"])
def test_under_another_root(interp, provider):
    """What is executed there does not find the agent's file by itself, so that its first calls may be missing."""
    script = (f'{provider}:::function-entry /copyinstr(arg1) == "tick"/ {{ n++; }} '
              f'{provider}:::function-entry /n > 3/ {{ exit(0); }} END {{ printf("more\\n"); }}')
    result = harness.run([*ALONE, harness.DTRACE, "-q", "-x", "agent=always", "-n", script, "-c",
                          interp.command(EXECS, "forever")])
    assert (result.code, result.out) == (0, "more\n") and re.fullmatch(harness.LATE, result.err), result


# Interpreters in files of their own that come and go, as those of package managers and tests do.
CHURN = r"""
for i in 1 2 3 4 5 6; do
    (while :; do cp /usr/bin/python3 py$i; ./py$i -S -c "import time; time.sleep(0.02)"; rm py$i; done) 2>/dev/null &
done
for i in $(seq 12); do "$@" || exit; done
"""


@pytest.mark.alone
def test_programs_that_are_removed(tmp_path):
    """Found in a process, gone or half written when it is to be armed: no reason to end a session about all others."""
    result = harness.run([*ALONE, "sh", "-c", CHURN, "sh", harness.DTRACE, "-qn", "python*:::gc-start { n++; } BEGIN { exit(0); }"],
                         cwd=tmp_path, timeout=300)
    assert result.code == 0 and re.fullmatch(rf"((dtrace: \d+ sites? \w+ left out: .*\n)|{harness.LATE})*", result.err), result
