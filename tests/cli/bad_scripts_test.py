"""Scripts with mistakes: each a located error and exit code 1, none a crash; most useful under sanitizers.

Nothing is traced (-e ends after compiling), but a compilation asks the machine for probes: needs_root.
"""
import pathlib
import random
import re
import shutil
import subprocess
import time

import pytest

import harness

FILE = pathlib.Path(__file__).with_suffix(".txt").with_name("bad_scripts.txt")
GOOD = "BEGIN { exit(0); }\n\n"

pytestmark = pytest.mark.needs_root


def scripts():
    lines = FILE.read_text().splitlines()
    return [line for line in lines if line and not re.match(r"# ", line)]


def compile_only(dtrace, script, *options):
    return dtrace("-q", "-e", *options, "-s", script)


@pytest.mark.parametrize("text", scripts())
def test_located(dtrace, tmp_path, text):
    script = tmp_path / "bad.d"
    script.write_text(f"{GOOD}{text}\n")
    result = compile_only(dtrace, script)
    assert result.code == 1 and result.out == "", result
    assert result.err.startswith("dtrace: failed to compile script "), result
    # A construct that is still open is noticed where the file ends.
    assert re.search(r"bad\.d: line [345]: ", result.err), result
    assert len(result.err) < 4000, result


def test_position_and_caret(dtrace, tmp_path):
    script = tmp_path / "bad.d"
    script.write_text("BEGIN\n{\n\ttrace(nosuch);\n}\n")
    result = compile_only(dtrace, script)
    assert result.code == 1, result
    assert re.match(r"dtrace: failed to compile script \S*bad\.d: line 3: ", result.err), result
    lines = result.err.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() == "trace(nosuch);")
    assert lines[at + 1].rstrip()[-1] == "^", result
    assert lines[at + 1].index("^") == lines[at].index("nosuch"), result


def test_tag_on_request(dtrace, tmp_path):
    script = tmp_path / "bad.d"
    script.write_text("BEGIN { trace(1 }\n")
    assert "[D_SYNTAX]" in compile_only(dtrace, script, "-x", "errtags").err
    assert "[D_SYNTAX]" not in compile_only(dtrace, script).err


@pytest.mark.parametrize("seed", range(20))
def test_binary_garbage(dtrace, tmp_path, seed):
    script = tmp_path / "bad.d"
    script.write_bytes(random.Random(seed).randbytes(1 << seed % 14))
    result = compile_only(dtrace, script)
    assert result.code == 1 and result.err.startswith("dtrace: "), result


WHOLE = """#pragma D option quiet
struct pair { int a; char *b : 3; };
inline int limit = 10 * sizeof (struct pair);
self int depth;
python*:::function-entry, BEGIN
/self->depth < limit && copyinstr(arg0) != "x\\n"/
{
	@calls[copyinstr(arg1), 0x1f] = lquantize(arg2, 0, 100, 5);
	this->x = (self->depth++ ? 'a' : $pid) << 2;
	printf("%-10s %*d\\n", basename(copyinstr(arg0)), 5, this->x);
	names[tid, "k"] = strjoin("a", lltostr(timestamp));
}
END { printa("%s %@d\\n", @calls); trunc(@calls, 3); }
"""


@pytest.mark.parametrize("seed", range(40))
def test_mutilated_script(dtrace, tmp_path, seed):
    """A script cut short, or with pieces removed, doubled and exchanged: any verdict but a crash."""
    rng = random.Random(seed)
    text = WHOLE[:rng.randrange(len(WHOLE))] if seed % 4 == 0 else WHOLE
    for _ in range(seed % 4 * 2):
        i, j, k = sorted(rng.randrange(len(text)) for _ in range(3))
        text = rng.choice((text[:i] + text[j:], text[:j] + text[i:], text[:i] + text[j:k] + text[i:j] + text[k:],
                           text[:i] + rng.choice("{}()/@;,:\"'\\*$#\0\xff") + text[i:]))
    script = tmp_path / "bad.d"
    script.write_text(text, encoding="latin-1")
    result = compile_only(dtrace, script)
    assert result.code in (0, 1), result
    assert result.code == 0 or result.err.startswith("dtrace: "), result


@pytest.mark.parametrize("text", ["", "\n", "/* only a comment */\n", "\0", "\ufeff"], ids=repr)
def test_empty_script(dtrace, tmp_path, text):
    script = tmp_path / "bad.d"
    script.write_text(text)
    result = compile_only(dtrace, script)
    assert result.code in (1, 2) and result.err.startswith("dtrace: "), result


@pytest.mark.parametrize("text", ["(" * 100000, "BEGIN { x = " + "(" * 100000, "BEGIN { x = " + "-" * 100000 + "1; }",
                                  "BEGIN { x = " + "1 + " * 100000 + "1; }", "BEGIN { x = \"" + "a" * 1000000 + "\"; }",
                                  "BEGIN { " + "if (1) { " * 20000, "int " + "*" * 100000 + "x;",
                                  "BEGIN { " + "x" * 100000 + " = 1; }", "BEGIN," * 50000 + "BEGIN { }"],
                         ids=lambda text: f"{text[:14]}...")
def test_huge_script(dtrace, tmp_path, text):
    """Depth and length have limits that are refusals, not crashes."""
    script = tmp_path / "bad.d"
    script.write_text(text)
    assert compile_only(dtrace, script).code in (0, 1)


OPTIONS = [
    # what, exit code, words of the message
    (["--nosuchoption"], 2, "Usage"),
    (["-Y"], 2, "Usage"),
    (["-s"], 2, "Usage"),
    (["-n"], 2, "Usage"),
    (["-p", "x", "-n", "BEGIN"], 1, "x"),
    (["-p", "", "-n", "BEGIN"], 1, ""),
    (["-p", "-5", "-n", "BEGIN"], 1, "-5"),
    (["-b", "lots", "-n", "BEGIN"], 1, "lots"),
    (["-x", "nosuchoption", "-n", "BEGIN"], 1, "nosuchoption"),
    (["-x", "cpu=100000", "-n", "BEGIN"], 1, "a CPU that the machine has"),
    (["-x", "bufsize=lots", "-n", "BEGIN"], 1, "bufsize"),
    (["-i", "x"], 1, "x"),
    (["-s", "/nonexistent/script.d"], 1, "/nonexistent/script.d"),
    (["-s", "/"], 1, "/"),
    (["-s", "/dev/null"], 1, ""),
    (["-n", ""], 1, ""),
    (["-n", "nosuch:::probe"], 1, "does not match any probes"),
    (["-n", "begin"], 1, "similar names are: BEGIN"),
    (["-n", "python:::line"], 1, "python$target is that of -c or -p"),
    (["-n", "python4194305:::line"], 1, "process 4194305 is not there"),
    (["-n", "syscall::opnat:entry"], 1, "similar functions are: openat"),
    (["-n", "syscall::openat:entri"], 1, "similar names are: entry"),
    (["-P", "nosuchprovider"], 1, "nosuchprovider"),
    (["-m", "nosuchmodule"], 1, "nosuchmodule"),
    (["-f", "nosuchfunction"], 1, "nosuchfunction"),
    (["-i", "4000000000"], 1, "4000000000"),
    (["-n", "BEGIN { exit(0); }", "-o", "/nonexistent/out"], 1, "/nonexistent/out"),
    (["-n", "BEGIN { trace(1 }"], 1, "invalid probe specifier BEGIN { trace(1 }: syntax error"),
    (["-q", "-n", "BEGIN { trace($1); exit(0); }"], 1, "$1"),
    ([], 2, ""),
]


DESCRIPTIONS = [    # alone on the command line: one line, as other DTraces have it
    (["-n", "not_a_probe"], "not_a_probe: probe description :::not_a_probe does not match any probes"),
    (["-m", "profile"], "profile: probe description :profile:: does not match any probes"),
    (["-P", "a:b"], 'a:b: invalid probe description "a:b": Overspecified probe description'),
    (["-f", "4.56"], "4.56: probe identifier 4 not permitted when specifying functions"),
    (["-m", "17"], "17: probe identifier 17 not permitted when specifying modules"),
]


@pytest.mark.parametrize("argv, words", DESCRIPTIONS, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_bad_description(dtrace, argv, words):
    result = dtrace(*argv)
    assert (result.code, result.out, result.err) == (1, "", f"dtrace: invalid probe specifier {words}\n"), result


def test_more_colons_than_parts(dtrace):
    """A leading colon is an empty part, which may be one more than -f has."""
    result = dtrace("-lf", ":vmlinux::")
    assert "failed to match vmlinux::::" in result.err, result


def test_exit_and_end_of_process(dtrace):
    """How the process ended is said when its end was that of the run, and not behind exit()."""
    run = [dtrace("-n", f"syscall::exit_group:entry /pid == $target/ {{ {action} }}", "-c", "/bin/true").err
           for action in ("exit(0);", "")]
    assert "has exited" not in run[0] and "runs on" not in run[0] and "has exited" in run[1], run


@pytest.mark.parametrize("argv, code, words", OPTIONS, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_bad_command_line(dtrace, argv, code, words):
    result = dtrace(*argv)
    assert result.code == code and words in result.err and result.out == "", result


@pytest.mark.needs_root
@pytest.mark.parametrize("description, words", [
    ("python$target:::function__entry", "similar names are: function-entry, "),
    ("python$target::function-entry", "three colons"),
    ("python$target:nosuch::line", "the provider's modules are: "),
    ("python$target:::nosuch", "the provider's names are: "),
    ("python$target:::line -p", 'a program "sleep"'),
    ("pyton*:::line", "there is no provider pyton; did you mean python$target?"),
    ("pyton$target:::line", "there is no provider pyton; did you mean python$target?"),
    ("pid$target:libsqlite3.so:sqlite3_open:entry", "what Python imports later, as libsqlite3, is found in a process that runs"),
    ("python$target:::line -c", "those of all that -c starts are python* with -x family, or with /progenyof($target)/"),
])
def test_description_of_nothing(dtrace, start, description, words):
    """What a person types who pastes a marker's name, or forgets a colon: the message says what to type."""
    description, option = (description.split() + [""])[:2]
    target = {"": ("-c", "/usr/bin/python3 -c pass"), "-c": ("-c", "timeout 9 /usr/bin/python3 -c pass")}.get(option)
    target = target or ("-p", str(start(["sleep", "60"]).pid))
    result = dtrace("-n", description, *target)
    assert result.code == 1 and words in result.err and result.out == "", result


def test_long_line(dtrace):
    """A script of the command line is not repeated as a whole with each of its mistakes."""
    script = "BEGIN { a = 1; " + "trace(a); " * 40 + "b = nosuch; " + "trace(a); " * 40 + "c = other; exit(0); }"
    result = dtrace("-n", script)
    lines = result.err.splitlines()
    assert result.code == 1 and len(result.err) < 1.5 * len(script), result
    assert lines[0].startswith("dtrace: invalid probe specifier BEGIN { a = 1; trace(a);") and "nosuch" in lines[0]
    assert lines[1].startswith("\t...") and lines[1].endswith("...") and len(lines[1]) < 180
    # The caret stands under the name.
    assert lines[1][lines[2].index("^"):].startswith("nosuch"), result


def test_function_of_another_language(dtrace):
    result = dtrace("-n", "python$target:::function-entry { @[str(arg0)] = count(); }", "-c", "/usr/bin/python3 -c pass")
    assert result.code == 1 and "copyinstr(arg0) reads the string at an address in the process" in result.err, result


def test_reason_is_said_once(dtrace):
    result = dtrace("-n", "pid4194305::malloc:entry")
    assert result.code == 1 and result.err.count("process 4194305: No such process") == 1, result


@pytest.mark.parametrize("command, argv", [
    ("dtrace", ["-qn", "python$target:::function-entry"]),
    ("stap", ["-e", 'probe process.mark("function__entry") { exit() }'])], ids=["dtrace", "stap"])
def test_program_without_the_agent(tmp_path, command, argv):
    """A copy of the program alone must not pass CPython 3.11 for a Python that calls no functions."""
    shutil.copy(harness.BUILD / "dtap", tmp_path / command)
    result = harness.run([tmp_path / command, *argv, "-c", "/usr/bin/python3 -c pass"])
    assert "agent is not installed: there is no" in result.err, result


def test_without_proc():
    command = f"umount -l /proc; exec {harness.BUILD}/dtrace -qn BEGIN -c /bin/true"
    result = harness.run(["unshare", "-m", "sh", "-c", command])
    assert result.code == 1 and "/proc" in result.err and ("is not mounted" in result.err or "another pid namespace" in result.err), result


@pytest.mark.parametrize("of", [["-c", "/bin/true"], ["-p", "1"]], ids=" ".join)
def test_proc_of_others(of):
    """Its pids mean other processes: they are not looked at, and still less changed."""
    result = harness.run(["unshare", "-pf", harness.DTRACE, "-qn", "python$target:::line { }", "-Z", *of])
    assert result.code == 1 and "/proc is that of another pid namespace" in result.err, result


@pytest.mark.parametrize("command", [["dtrace", "--help"], ["dtrace", "-V"], ["stap", "--help"], ["dtap", "--help"],
                                     ["stap", "-l", "begin"], ["dtrace", "-l", "-P", "dtrace"]], ids=" ".join)
def test_output_that_cannot_be_written(command):
    command = [str(harness.BUILD / command[0]), *command[1:]]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_S)
    assert done.returncode == 1 and done.stderr.endswith(": No space left on device\n"), done
    done = subprocess.run(["sh", "-c", '"$@" | true', "sh", *command], stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_S)
    assert done.stderr == "", done


@pytest.mark.parametrize("clause, hint", [
    ("pyton$target:::function-entry { }", "there is no provider pyton; did you mean python$target?"),
    ("pyton*:::function-entry { }", "there is no provider pyton; did you mean python$target?"),
    ("BEGIN { trace(str(arg0)); }", "copyinstr(arg0) reads the string at an address"),
    ("BEGIN { @ = hist(1); }", "@ = quantize(value)"),
    ("BEGIN { trace(copyinst(1)); }", "similar names are: copyinstr"),
])
def test_meant(dtrace, clause, hint):
    """What a name that is not there was meant to be."""
    result = dtrace("-q", "-n", clause, "-c", "/bin/true")
    assert result.code == 1 and hint in result.err, result


@pytest.mark.needs_bpf
@pytest.mark.parametrize("module", ["libc.so.6", "libc.so", "libc"])
def test_module_by_its_stem(dtrace, module):
    """A library with or without what follows .so, and without that."""
    result = dtrace("-q", "-l", "-n", f"pid$target:{module}:malloc:entry", "-c", "/bin/true")
    assert result.code == 0 and "malloc" in result.out, result


@pytest.mark.needs_bpf
def test_command_runs_on(dtrace):
    """Who waits for the end of what the command prints is told why there is none yet."""
    result = dtrace("-n", "BEGIN { exit(0); }", "-c", "/bin/sleep 0.3")
    assert result.code == 0 and "# dtrace: the command runs on, as process " in result.err, result


@pytest.mark.needs_bpf
def test_command_of_a_script_that_begin_ends(dtrace, tmp_path):
    """It is not killed: it does all that it would have done without a tracer."""
    script = tmp_path / "command.sh"
    script.write_text(f"#!/bin/sh\nsleep 0.3\necho done > {tmp_path}/new\nmv {tmp_path}/new {tmp_path}/done\n")
    script.chmod(0o755)
    result = dtrace("-q", "-n", "BEGIN { exit(0); }", "-c", str(script))
    assert result.code == 0, result
    end = time.monotonic() + harness.TIMEOUT_S
    while not (tmp_path / "done").exists():
        assert time.monotonic() < end, "the command did not go on"
        time.sleep(0.05)
