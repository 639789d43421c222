"""Options of the guide's table: what each changes, or why there is none."""
import os
import re
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"


def one_cpu():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def calls(n):
    return (f"{PYTHON} -S -c 'import ctypes; f = ctypes.CDLL(None).getpgid; f.argtypes = [ctypes.c_int]\n"
            f"for i in range({n}): f(i)'")


SCRIPT = """
    syscall::getpgid:entry /pid == $target/ { printf("%d ", arg0); }
    syscall::getpgid:entry /pid == $target && arg0 == 999/ { exit(3); }
    END { printf("end"); }"""


def test_ring(dtrace):
    """The last records are kept and printed at the end; what they displaced is no drop."""
    result = dtrace("-q", "-x", "bufpolicy=ring", "-x", "bufsize=4k", "-n", SCRIPT, "-c", calls(1000),
                    preexec_fn=one_cpu)
    words = result.out.split()
    assert result.code == 3 and result.err == "" and words[-1] == "end", result
    first = 1000 - len(words[:-1])
    assert words[:-1] == [str(i) for i in range(first, 1000)] and 20 < len(words) < 200, result


def test_fill(dtrace):
    """The first records are kept; the one that has no room ends it all, and END still has its own."""
    result = dtrace("-q", "-x", "bufpolicy=fill", "-x", "bufsize=4k", "-n", SCRIPT, "-c", calls(1000),
                    preexec_fn=one_cpu)
    words = result.out.split()
    assert result.code == 0 and words[-1] == "end", result
    assert words[:-1] == [str(i) for i in range(len(words) - 1)] and 20 < len(words) < 200, result
    assert re.fullmatch(r"dtrace: \d+ drops?\n", result.err), result


@pytest.mark.parametrize("policy", ["ring", "fill"])
def test_nothing_is_printed_before_the_end(policy, tmp_path):
    """What the command finds in the output file, some switches later; aggregations are as ever."""
    out = tmp_path / "out"
    result = harness.dtrace("-q", "-x", f"bufpolicy={policy}", "-x", "switchrate=1ms", "-o", out, "-n",
                            "syscall::getpgid:entry /pid == $target/ { trace(arg0); @ = count(); }", "-c",
                            f"{PYTHON} -S -c 'import os, time\nfor i in range(9): os.getpgid(0); time.sleep(0.01)\n"
                            f"print(os.path.getsize(\"{out}\"))'")
    assert result.code == 0 and result.out == "0\n", result
    assert out.read_text().split() == ["000000000", "9"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_cpu(dtrace, start):
    cpu = max(os.sched_getaffinity(0))
    start(["taskset", "-c", cpu, "sh", "-c", "while :; do :; done"])     # an idle one has no clock
    result = dtrace("-q", "-x", f"cpu={cpu}", "-n", "profile-997 { @[cpu] = count(); } tick-200ms { exit(0); }")
    assert result.code == 0 and [row.split()[0] for row in result.out.splitlines() if row] == [str(cpu)], result


def test_environment(dtrace):
    """DTRACE_OPT_NAME is -x name; what stands on the command line wins."""
    def run(*argv, **env):
        return dtrace(*argv, "-n", 'BEGIN { trace("abcdefghijklmnop"); exit(0); }', env={**os.environ, **env})

    assert run(DTRACE_OPT_QUIET="1", DTRACE_OPT_STRSIZE="8").out == "abcdefg"
    assert run("-x", "strsize=32", DTRACE_OPT_QUIET="1", DTRACE_OPT_STRSIZE="8").out == "abcdefghijklmnop"
    bad = run(DTRACE_OPT_STRSIZE="x")
    assert bad.code == 1 and "DTRACE_OPT_STRSIZE=x" in bad.err, bad


def test_status_rate(dtrace):
    """Losses are told that often, and the rest at the end."""
    seldom = dtrace("-q", "-x", "statusrate=1hour", "-n",
                    "syscall::getpgid:entry /pid == $target/ { s[arg0] = speculation(); }", "-c", calls(100))
    assert seldom.err == "dtrace: 99 failed speculations (no speculative buffer available)\n", seldom


def test_drop_tags(dtrace):
    result = dtrace("-q", "-x", "droptags", "-n", "BEGIN { a = speculation(); b = speculation(); exit(0); }")
    assert result.err == ("dtrace: [DTRACEDROP_SPECUNAVAIL] 1 failed speculation (no speculative buffer available)\n")


def test_cpp_by_name(dtrace, tmp_path):
    """-x define and the like are -D and the like."""
    (tmp_path / "three.h").write_text("#define THREE 3\n")
    script = tmp_path / "x.d"
    script.write_text("#include <three.h>\nBEGIN { printf(\"%d\", THREE + FOUR + FIVE); exit(0); }\n")
    result = dtrace("-q", "-x", "cpp", "-x", f"incdir={tmp_path}", "-x", "define=FOUR=4", "-x", "cppargs=-DFIVE=5 -DSIX",
                    "-s", script)
    assert result.code == 0 and result.out == "12", result
    result = dtrace("-q", "-C", "-x", f"incdir={tmp_path}", "-x", "define=FOUR=4", "-D", "FIVE=5", "-x", "undef=FOUR",
                    "-s", script)
    assert result.code == 1 and "FOUR" in result.err, result


def test_unused_arguments(dtrace):
    script = "BEGIN { trace($1); exit(0); }"
    assert dtrace("-q", "-n", script, "1", "2").code == 1
    assert dtrace("-q", "-x", "argref", "-n", script, "1", "2").out == "1"
    assert dtrace("-q", "-n", "#pragma D option argref\n" + script, "1", "2").out == "1"


def test_empty_script(dtrace, tmp_path):
    script = tmp_path / "x.d"
    script.write_text("int x;\n")
    assert dtrace("-e", "-s", script).code == 1
    assert dtrace("-e", "-x", "empty", "-s", script).code == 0


def test_setopt_of_what_is_settled(dtrace):
    result = dtrace("-n", 'BEGIN { setopt("quiet"); setopt("bufsize", "8m"); setopt("nosuch"); exit(0); }')
    assert result.code == 0 and "setopt: option 'bufsize' is read before" in result.err, result
    assert "setopt: there is no option 'nosuch'" in result.err, result


NONE = """agghist aggpack core ctfpath ctypes debugassert disasm dofversion dtypes errexit grabanon tree uresolve""".split()


def test_options_of_others(dtrace):
    """Each is refused with a sentence of its own, on the command line and in a script."""
    for name in NONE:
        result = dtrace("-x", f"{name}=1", "-n", "BEGIN")
        assert result.code == 1 and f"dtap has no option '{name}': " in result.err, result
    script = dtrace("-n", "#pragma D option cpppath=cpp\nBEGIN")
    assert script.code == 1 and "for the command line" in script.err, script
    script = dtrace("-n", "#pragma D option grabanon\nBEGIN")
    assert script.code == 1 and "no anonymous tracing state" in script.err, script


@pytest.mark.parametrize("option", ["bufpolicy=none", "bufresize=x", "cpu=-2", "nspec=-1", "specsize=-1",
                                    "oformat=html", "version=2.1", "version=1", "stdc=x", "temporal=off", "strsize=1",
                                    "aggrate=-1", "statusrate=never", "ustackframes=-1", "aggsize=8", "dynvarsize=1",
                                    "linktype=coff", "evaltime=never", "lockmem=x", "maxframes=128", "bufsize=8"])
def test_values_that_nobody_can_have(dtrace, option):
    result = dtrace("-x", option, "-n", "BEGIN")
    assert result.code == 1 and f"option '{option.split('=')[0]}' takes " in result.err, result


def test_stackindent(dtrace):
    """Of stacks, by whatever action and as keys; a width in a format says it there."""
    result = dtrace("-q", "-x", "stackindent=3", "-n", """
        syscall::getpgid:entry /pid == $target/ { ustack(1, 0); @[ustack(1, 0)] = count(); }
        syscall::getpgid:entry /pid == $target/ { printa(@); printa("%k", @); printa("%5k", @); }
        syscall::getpgid:entry /pid == $target/ { setopt("stackindent", "0"); exit(0); }
        END { printa(@); }""", "-c", f"{PYTHON} -Sc 'import os; os.getpgid(0)'")
    assert re.findall(r"^( *)\S+`", result.out, re.M) == [" " * n for n in (3, 3, 3, 5, 0)], result


CALLS = """
import ctypes, time
f = ctypes.CDLL(None).getpgid
f.argtypes = [ctypes.c_int]
print("ready", flush=True)
while True:
    f(0)
    time.sleep(0.01)
"""


def test_noresolve(dtrace, start):
    """Addresses of programs are numbers, behind the file's name; without it functions have names."""
    program = start([PYTHON, "-S", "-c", CALLS], stdout=subprocess.PIPE)     # its files are known while it runs
    assert program.stdout.readline() == b"ready\n"
    script = "syscall::getpgid:entry /pid == $target/ { @[usym(ucaller)] = count(); ustack(1); exit(0); }"
    number = dtrace("-q", "-x", "noresolve", "-n", script, "-p", program.pid)
    assert len(re.findall(r"^\s+\S+:0x[0-9a-f]+\b", number.out, re.M)) == 2, number
    assert "`" not in number.out and "`" in dtrace("-q", "-n", script, "-p", program.pid).out


def test_sizes_of_all_suffixes(dtrace):
    """A buffer is as large as it can be; -e without a script has nothing to object to."""
    for size in ("64", "1k", "1m", "1g", "1t"):
        result = dtrace("-b", size, "-e")
        assert tuple(result) == (0, "", ""), result
    result = dtrace("-q", "-b", "2t", "-x", "quietresize", "-n", "BEGIN { trace(1); exit(0); }")
    assert result.code == 0 and result.out == "1", result


def test_limited_address_space():
    """Where the tracer may not have the addresses that the shared memory takes, it says which limit that is."""
    if b"__asan" in harness.DTRACE.read_bytes():
        pytest.skip("a sanitizer takes more")
    child = subprocess.run(["sh", "-c", f"ulimit -v 300000; exec {harness.DTRACE} -x place=target -n 'BEGIN {{ exit(0); }}'"],
                           stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_S)
    assert child.returncode == 1 and "raise ulimit -v, or lower aggsize" in child.stderr, child
