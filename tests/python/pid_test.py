"""Provider pid: functions of C programs and of interpreters; gdb-free witnesses: the program, objdump, nm, Python."""
import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.needs_bpf

PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
NOINLINE long nine(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{ return a + b + c + d + e + f + g + h + i; }
NOINLINE int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
int main(void)
{
    printf("%ld %d\n", nine(1, 2, 3, 4, 5, 6, -7, 8, 9), fact(5));
    fflush(stdout);
    return write(1, "x\n", 2) != 2;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("pid") / "prog"
    subprocess.run([compiler, "-O1", "-x", "c", "-", "-o", path], input=PROGRAM, text=True, check=True)
    return path


def test_arguments(dtrace, program):
    """Six in registers, the rest on the stack; what write() is given is what comes out."""
    result = dtrace("-q", "-n", """
        pid$target:a.out:nine:entry {
            printf("%s %d %d %d %d %d %d %d %d %d\\n", probemod, arg0, arg1, arg2, arg3, arg4, arg5, arg6, arg7, arg8);
        }
        pid$target:libc.so.6:write:entry { printf("write %d %s", arg0, copyinstr(arg1, arg2 + 1)); }""",
        "-c", program)
    lines = result.out.splitlines()
    assert result.code == 0 and "prog 1 2 3 4 5 6 -7 8 9" in lines, result
    assert "write 1 31 120" in lines and "write 1 x" in lines, result


def test_return(dtrace, program):
    result = dtrace("-q", "-n", """
        pid$target:a.out:fact:entry { printf("> %d\\n", arg0); }
        pid$target:a.out:fact:return { printf("< %d %d\\n", arg0, (int)arg1); }""", "-c", program)
    events = [line for line in result.out.splitlines() if line[0] in "<>"]
    assert events == ["> 5", "> 4", "> 3", "> 2", "> 1", "< -1 1", "< -1 2", "< -1 6", "< -1 24", "< -1 120"], result


def instructions(program, func):
    """Their distances from the start, as objdump finds them."""
    text = subprocess.run(["objdump", "-d", f"--disassemble={func}", program], capture_output=True, text=True,
                          check=True).stdout
    at = [int(m, 16) for m in re.findall(r"^ +([0-9a-f]+):\t", text, re.M)]
    return [f"{a - at[0]:x}" for a in at]


@pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump")
def test_offsets(dtrace, program):
    at = instructions(program, "fact")
    listed = dtrace("-l", "-n", "pid$target:a.out:fact:", "-c", program)
    assert re.findall(r" fact (\S+)$", listed.out, re.M) == ["entry", "return"] + at, listed
    listed = dtrace("-l", "-n", "pid$target:a.out::", "-c", program)
    for func in ("fact", "nine"):
        each = ["entry", "return"] + instructions(program, func)
        assert re.findall(rf" {func} (\S+)$", listed.out, re.M) == each, listed
    counted = dtrace("-q", "-n", "pid$target:a.out:fact:%s { @ = count(); }" % at[1], "-c", program)
    assert counted.code == 0 and counted.out.split()[-1] == "5", counted
    middle = next(f"{n:x}" for n in range(1, 64) if f"{n:x}" not in at)
    refused = dtrace("-n", "pid$target:a.out:fact:%s" % middle, "-c", program)
    assert refused.code == 1 and "no instruction starts at 0x" + middle in refused.err, refused


def test_modules(dtrace, program):
    """a.out, the base name, the path, the library without its version; a pattern finds a function once."""
    for module in ("a.out", "prog", "pr*", "libc.so.6", "libc", ""):
        func = "write" if module.startswith("libc") else "main"
        listed = dtrace("-l", "-n", f"pid$target:{module}:{func}:entry", "-c", program)
        assert listed.code == 0 and len(listed.out.splitlines()) == 2, (module, listed)


def test_mistakes(dtrace, program):
    for desc, words in (("pid$target:a.out:nosuch:entry", "no function nosuch in a.out"),
                        ("pid$target:nolib:main:entry", "does not match any probes"),
                        ("pid:a.out:main:entry", "needs a process"),
                        ("pid999999999:a.out:main:entry", "process 999999999: No such process")):
        result = dtrace("-n", desc, "-c", program)
        assert result.code == 1 and words in result.err, result


def test_many(dtrace, program):
    """Every function of the C library at once; the program's output and end are as ever."""
    result = dtrace("-q", "-n", "pid$target:libc.so.6::entry { @[probefunc] = count(); }", "-c", program)
    assert result.code == 0 and "31 120" in result.out, result
    assert re.search(r"^ +printf +1$", result.out, re.M) and re.search(r"^ +write +2$", result.out, re.M), result


def test_another_process_is_left_alone(dtrace, program, start):
    other = start(["sh", "-c", f"while :; do {program} > /dev/null; done"])
    result = dtrace("-q", "-n", "pid$target:libc.so.6:write:entry { @[pid == $target] = count(); }", "-c", program)
    assert other.poll() is None
    assert result.code == 0 and re.findall(r"^ +(\d+) +(\d+)$", result.out, re.M) == [("1", "2")], result


def test_interpreter(dtrace, interp):
    """The calls of a function of CPython, as many as the script makes."""
    script = interp.command("import ctypes\nfor i in range(11): ctypes.pythonapi.PyGC_Collect()\nimport os; os._exit(0)\n")
    result = dtrace("-q", "-n", "pid$target:python3*:PyGC_Collect:entry, pid$target:python3*:PyGC_Collect:return, "
                    "pid$target:python3*:Py_BytesMain:entry { @[probefunc, probename] = count(); }", "-c", script)
    assert result.code == 0, result
    rows = dict(((f, n), int(c)) for f, n, c in re.findall(r"^ +(\S+) +(\S+) +(\d+)$", result.out, re.M))
    assert rows == {("Py_BytesMain", "entry"): 1, ("PyGC_Collect", "entry"): 11, ("PyGC_Collect", "return"): 11}, result


@pytest.mark.interps("3.9", "3.13")
def test_library_of_another_root(dtrace, interp):
    """The calls are in the interpreter's C library, not in that of the chroot(1) that starts it."""
    script = interp.command("import os\nfor i in range(7): os.kill(os.getpid(), 0)\n")
    result = dtrace("-q", "-n", "pid$target::kill:entry { @[arg1] = count(); }", "-c", script)
    assert result.code == 0 and result.out.split() == ["0", "7"], result


LATER = """
import ctypes, ctypes.util, sys, time
time.sleep(0.1)
lib = ctypes.CDLL("libbz2.so.1.0")
at, end = ctypes.cast(lib.BZ2_bzlibVersion, ctypes.c_void_p).value, time.time() + 50
while ctypes.string_at(at, 1) != b"\\xcc" and time.time() < end: time.sleep(0.01)     # the breakpoint
time.sleep(2)       # the return is armed at the same time
for i in range(13): lib.BZ2_bzlibVersion()
"""


@pytest.mark.parametrize("how", ["-c", "-p"])
def test_libraries_loaded_later(dtrace, start, how):
    """With -Z: what a process loads while it is traced is found; entry and return, each call."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import ctypes; ctypes.CDLL('libbz2.so.1.0')"]).returncode:
        pytest.skip("needs libbz2")
    script = "pid$target:libbz2*:BZ2_bzlibVersion: { @[probemod, probename] = count(); }"
    if how == "-c":
        result = dtrace("-q", "-Z", "-n", script, "-c", f"{python} -c '{LATER.replace(chr(39), chr(34))}'")
    else:
        other = start([python, "-c", "input()\n" + LATER], stdin=subprocess.PIPE)
        other.stdin.write(b"\n")
        other.stdin.flush()
        result = dtrace("-q", "-Z", "-n", script, "-p", str(other.pid))
    rows = dict((n, int(c)) for n, c in re.findall(r"^ +libbz2\S+ +(entry|return) +(\d+)$", result.out, re.M))
    assert result.code == 0 and rows == {"entry": 13, "return": 13}, result
    without = dtrace("-n", script, "-c", f"{python} -c pass")
    assert without.code == 1 and "does not match any probes" in without.err, without
