"""The life of a session: exit codes, signals, -c and -p, output files, scripts that name dtrace themselves."""
import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import harness
from harness import wait_until

pytestmark = pytest.mark.needs_bpf


def test_exit_code_of_the_script(dtrace):
    assert tuple(dtrace("-q", "-n", "BEGIN { exit(0); }")) == (0, "", "")
    assert tuple(dtrace("-q", "-n", "BEGIN { exit(3); }")) == (3, "", "")


def test_begin_end_and_left_aggregations(dtrace):
    result = dtrace("-q", "-n", """
        BEGIN { printf("begin\\n"); @["left over"] = count(); exit(0); }
        END { printf("end\\n"); }""")
    assert re.fullmatch(r"begin\nend\n\s*left over +1\n", result.out), result


def test_not_quiet(dtrace):
    """Without -q: the matched probes, a heading, and a row for each probe that fires."""
    result = dtrace("-n", "BEGIN { exit(0); }")
    assert result.code == 0
    assert "matched 1 probe" in result.err + result.out, result
    assert re.search(r"CPU +ID +FUNCTION:NAME\n", result.out), result
    assert re.search(r"^ +\d+ +1 +:BEGIN *$", result.out, re.M), result


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_signal_ends_the_session(how):
    tracer = harness.dtrace_start("-q", "-n", """
        BEGIN { printf("up\\n"); @["seen"] = count(); }
        END { printf("down\\n"); }""")
    assert tracer.stdout.readline() == b"up\n"      # BEGIN's output does not wait for the end
    tracer.send_signal(how)
    result = harness.finish(tracer, tracer.args)
    assert result.code == 0, result
    assert re.fullmatch(r"down\n\s*seen +1\n", result.out), result


def test_tick(dtrace):
    result = dtrace("-q", "-n", 'tick-50ms { printf("%d\\n", ++n); } tick-50ms /n == 3/ { exit(0); }')
    assert (result.code, result.out) == (0, "1\n2\n3\n"), result


def test_end_of_the_command_ends_the_session(dtrace):
    result = dtrace("-q", "-n", "END { printf(\"end\\n\"); }", "-c", "/bin/echo hello")
    assert result.code == 0 and sorted(result.out.split()) == ["end", "hello"], result


def test_failing_command_is_not_dtraces_failure(dtrace):
    result = dtrace("-q", "-n", "END { printf(\"end\\n\"); }", "-c", "/bin/false")
    assert result.code == 0 and result.out == "end\n", result


def test_command_not_found(dtrace):
    result = dtrace("-q", "-n", "BEGIN { exit(0); }", "-c", "/nonexistent/command")
    assert result.code == 1 and "/nonexistent/command" in result.err, result


def test_no_such_process(dtrace):
    result = dtrace("-q", "-n", "BEGIN { exit(0); }", "-p", "4194304")
    assert result.code == 1 and "4194304" in result.err, result


def test_target_variable(dtrace, start):
    sleeper = start(["sleep", "60"])
    result = dtrace("-q", "-n", "BEGIN { printf(\"%d\\n\", $target); exit(0); }", "-p", sleeper.pid)
    assert result.out == f"{sleeper.pid}\n", result


def test_attached_process_outlives_the_session(dtrace, start):
    sleeper = start(["sleep", "60"])
    assert dtrace("-q", "-n", "BEGIN { exit(0); }", "-p", sleeper.pid).code == 0
    assert sleeper.poll() is None


def test_output_file(dtrace, tmp_path):
    """-o appends, as in dtrace(1)."""
    path = tmp_path / "out"
    for _ in range(2):
        result = dtrace("-q", "-o", path, "-n", 'BEGIN { printf("to the file\\n"); exit(0); }')
        assert tuple(result) == (0, "", ""), result
    assert path.read_text() == "to the file\n\n" * 2


@pytest.mark.parametrize("line", ["#!{dtrace} -s", "#!{dtrace} -qs"])
def test_script_that_names_dtrace(tmp_path, line):
    script = tmp_path / "script.d"
    script.write_text(line.format(dtrace=harness.DTRACE) + """
        #pragma D option quiet
        BEGIN { printf("%s %d\\n", $$1, $2); exit(0); }""")
    script.chmod(0o755)
    result = harness.run([script, "word", 42])
    assert tuple(result) == (0, "word 42\n\n", ""), result


def test_script_on_standard_input(tmp_path):
    script = tmp_path / "script.d"
    script.write_text('BEGIN { printf("from a pipe\\n"); exit(0); }')
    with open(script, encoding="utf-8") as stdin:
        result = harness.run([harness.DTRACE, "-q", "-s", "/dev/stdin"], stdin=stdin)
    assert tuple(result) == (0, "from a pipe\n", ""), result


def test_several_scripts(dtrace, tmp_path):
    script = tmp_path / "one.d"
    script.write_text('BEGIN { printf("one\\n"); }')
    result = dtrace("-q", "-s", script, "-n", 'BEGIN { printf("two\\n"); exit(0); }')
    assert tuple(result) == (0, "one\ntwo\n", ""), result


def test_compile_only(dtrace):
    assert dtrace("-e", "-q", "-n", 'BEGIN { printf("never\\n"); }').out == ""


def test_destructive_is_told(dtrace):
    """dtrace(1M), -w, as the original's; not with -q."""
    told = "dtrace: allowing destructive actions\n"
    assert dtrace("-w", "-n", "BEGIN { exit(0); }").err.endswith("matched 1 probe\n" + told)
    assert told in dtrace("-n", "#pragma D option destructive\nBEGIN { exit(0); }").err
    assert dtrace("-w", "-q", "-n", "BEGIN { exit(0); }").err == "" and told not in dtrace("-n", "BEGIN { exit(0); }").err


def test_unmatched_probe(dtrace):
    description = "nosuchprovider:::nothing"
    result = dtrace("-q", "-n", description)
    assert result.code == 1 and description in result.err and "does not match any probes" in result.err, result
    result = dtrace("-q", "-Z", "-n", description, "-n", "BEGIN { exit(0); }")
    assert result.code == 0, result


def test_cpp(dtrace, tmp_path):
    script = tmp_path / "script.d"
    script.write_text('#define WORD "defined"\nBEGIN { printf("%s %d\\n", WORD, NUMBER); exit(0); }\n')
    result = dtrace("-q", "-C", "-D", "NUMBER=7", "-s", script)
    assert tuple(result) == (0, "defined 7\n", ""), result


@pytest.mark.interps("3.9")
def test_target_output_is_its_own(dtrace, interp):
    """The target writes to dtrace's standard output, and its last word is not lost."""
    result = dtrace("-q", "-n", "BEGIN { n = 0; }", "-c", interp.command("print('from the target')"))
    assert result.code == 0 and result.out == "from the target\n", result


def test_fault_fires_error_and_the_session_goes_on(dtrace):
    result = dtrace("-q", "-n", """
        BEGIN { trace(copyinstr(0)); printf("not reached\\n"); }
        BEGIN { printf("next clause\\n"); exit(0); }
        ERROR { printf("error %d\\n", arg4); }""")
    assert result.code == 0 and "not reached" not in result.out, result
    assert "next clause\n" in result.out and "error 1\n" in result.out, result      # 1: DTRACEFLT_BADADDR
    assert re.search(r"error in dt_clause_\d+ for probe ID 1 \(dtrace:::BEGIN\): invalid address \(0x0\) at BPF pc",
                     result.err), result


def test_division_by_zero(dtrace):
    result = dtrace("-q", "-n", "BEGIN { n = 0; trace(1 / n); } BEGIN { exit(0); }")
    assert result.code == 0 and "divide-by-zero" in result.err, result


def test_without_privilege():
    """One line that says which capability is missing."""
    with tempfile.TemporaryDirectory(prefix="dtap-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        copy = shutil.copy(harness.DTRACE, folder)
        result = harness.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, "-q", "-n",
                              "profile-997 { exit(0); }"])
    assert result.code == 1 and result.out == "", result
    assert re.search(r"CAP_(BPF|PERFMON|SYS_ADMIN)", result.err), result
    assert len(result.err.splitlines()) == 1, result


def test_closed_output():
    """A reader that goes (dtrace | head) ends the session; nothing hangs."""
    tracer = harness.dtrace_start("-q", "-n", 'tick-1ms { printf("%d\\n", n++); }')
    assert tracer.stdout.readline() == b"0\n"
    tracer.stdout.close()
    wait_until(lambda: tracer.poll() is not None, what="the end after the reader went")
    tracer.stderr.close()


def test_argument_that_no_script_reads(dtrace):
    result = dtrace("-q", "-n", "BEGIN { exit(0); }", "5")
    assert tuple(result) == (1, "", "dtrace: extraneous argument '5' ($1 is not referenced)\n"), result


@pytest.mark.parametrize("args", [["-l"], ["-q", "-n", 'BEGIN { printf("lost\\n"); exit(0); }']],
                         ids=["list", "trace"])
def test_full_disk(args):
    """What could not be written is said and counts as a failure."""
    with open("/dev/full", "wb") as full:
        tracer = subprocess.run([harness.DTRACE, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_S,
                                check=False)
    assert tracer.returncode == 1 and "No space left on device" in tracer.stderr, tracer


@pytest.mark.parametrize("options", [["-C"], []])
def test_matched_of_a_preprocessed_script(dtrace, tmp_path, options):
    """How many probes, and which stability: also when a preprocessor's #line says where the lines come from."""
    script = tmp_path / "x.d"
    script.write_text("BEGIN { n = 1; }\n" + ("" if options else '# 1 "other.d"\n') + "END { trace((int)curthread); exit(0); }\n")
    result = dtrace(*options, "-v", "-s", script, "-n", "BEGIN { exit(0); }")
    assert f"script '{script}' matched 2 probes" in result.err, result
    assert "Data Semantics:   Private" in result.out, result


# --- what is told of processes that do not do what was thought -------------------------------------------

def test_process_that_waits(dtrace, start):
    """A sampling probe sees nothing of it: silence has a reason, and there is another command."""
    sleeper = start(["sleep", "60"])
    wait_until(lambda: harness.waits(sleeper.pid), what="a process that sleeps")
    script = "profile-997 /pid == $target/ { @ = count(); } tick-200ms { exit(0); }"
    result = dtrace("-q", "-n", script, "-p", sleeper.pid)
    assert result.code == 0 and f"# dtrace: process {sleeper.pid} used no CPU time meanwhile" in result.err, result
    assert f"dtap dump -p {sleeper.pid}" in result.err, result


def test_command_that_holds_the_pipe():
    """Who waits for the end of the output is told why it does not come, also under -q."""
    master, slave = pty.openpty()
    reader, writer = os.pipe()
    child = subprocess.Popen([harness.DTRACE, "-q", "-n", "tick-50ms { exit(0); }", "-c", "sleep 60"], stdout=writer,
                             stderr=slave)
    os.close(writer)
    os.close(slave)
    text = b""
    while b"\n" not in text:
        text += os.read(master, 1000)
    said = re.search(rb"# dtrace: the command runs on, as process (\d+), and has the output's pipe open", text)
    if said:
        os.kill(int(said[1]), signal.SIGKILL)
    assert child.wait(harness.TIMEOUT_S) == 0 and said, text
    os.close(master)
    os.close(reader)


FAMILY = """
import os, subprocess, sys, time
def leaf(): pass
leaf()
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "again"])
while len(sys.argv) > 1 and not os.path.exists(__file__ + ".stop"):
    time.sleep(0.001)
    leaf()
"""


@pytest.mark.interps("3.9", "3.13")
def test_family(dtrace, interp, start):
    """python* of the command and its children; not of a Python beside it."""
    foreign = harness.running(start, interp)
    command = interp.command(FAMILY)
    script = f"""
        python*:::function-entry /copyinstr(arg1) == "leaf"/ {{ @[pid] = count(); }}
        python*:::function-entry /copyinstr(arg1) == "leaf" && !seen[pid]/ {{ seen[pid] = 1; n++; }}
        python*:::function-entry /n == 2 && !told/ {{ told = 1; system("touch {interp.dir}/script.py.stop"); }}"""
    result = dtrace("-q", "-w", "-x", "family", "-x", "switchrate=50hz", "-n", script, "-c", command)
    counted = dict(line.split() for line in result.out.splitlines() if line)
    assert result.code == 0 and len(counted) == 2 and "1" in counted.values() and str(foreign.pid) not in counted, result
    result = dtrace("-q", "-x", "family", "-x", "place=kernel", "-n", script, "-c", "/bin/true")
    assert result.code == 1 and "option family is for the target place" in result.err, result
    assert dtrace("-q", "-x", "family", "-n", "BEGIN { exit(0); }").code == 0


EXECUTES = """
import os, sys
def leaf(): pass
for _ in range(10): leaf()
if len(sys.argv) == 1:
    print("ready", flush=True)
    sys.stdin.readline()
    os.execv(sys.executable, [sys.executable, __file__, "again"])
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.mark.interps("3.9", "3.13")
@pytest.mark.parametrize("how", ["family", "target"])
def test_program_that_begins_before_it_is_traced(interp, start, how):
    """What may be missing of it is told, also where the session is of few processes."""
    child = start(interp.argv_of(EXECUTES), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    script = """python$target:::function-entry /copyinstr(arg1) == "leaf"/ { @ = count(); } BEGIN { printf("armed\\n"); }"""
    options = ["-x", "place=target"] if how == "target" else ["-x", "family"]
    tracer = start([harness.DTRACE, "-q", *options, "-n", script.replace("$target", "$target" if how == "target" else "*"), "-p", child.pid],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert tracer.stdout.readline() == "armed\n"
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "done\n"
    tracer.send_signal(signal.SIGINT)
    out, err = tracer.communicate(timeout=harness.TIMEOUT_S)
    assert tracer.returncode == 0 and re.fullmatch(harness.LATE, err) and (err or out.split() == ["10"]), (out, err)


BY_SHELL = """
import os, sys
def leaf(): pass
if len(sys.argv) == 1:
    print("ready", flush=True)
    sys.stdin.readline()
    os.execvp("sh", ["sh", "-c", 'echo shell; read line; exec "$@"', "sh", sys.executable, __file__, "again"])
while True: leaf()
"""


@pytest.mark.interps("3.9", "3.13")
def test_executed_programs_are_watched_where_nobody_tells(interp, start):
    """The agent's end tells of an exec.  What a program without the agent executes is asked of the kernel, from then on."""
    child = start(interp.argv_of(BY_SHELL), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    script = """python$target:::function-entry /copyinstr(arg1) == "leaf"/ { exit(0); } BEGIN { printf("armed\\n"); }"""
    tracer = start([harness.DTRACE, "-q", "-x", "place=target", "-n", script, "-p", child.pid],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def asks_the_kernel():
        fds = f"/proc/{tracer.pid}/fd"
        return any("bpf" in os.path.realpath(f"{fds}/{fd}") for fd in os.listdir(fds))      # one may be closed by now

    assert tracer.stdout.readline() == "armed\n"
    assert not asks_the_kernel()
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "shell\n"
    wait_until(asks_the_kernel, what="a tracer that watches what is executed")
    child.stdin.write("\n")
    child.stdin.flush()
    out, err = tracer.communicate(timeout=harness.TIMEOUT_S)
    assert (tracer.returncode, out.split()) == (0, []) and re.fullmatch(harness.LATE, err), (out, err)
