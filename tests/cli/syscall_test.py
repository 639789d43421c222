"""Provider syscall: against strace, and against what a program does itself."""
import os
import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"


def command(code):
    return f"{PYTHON} -S -c '{code}'"


def test_counts_are_straces(dtrace, tmp_path):
    """Each call of a program by name and number of times, but the exec before and the addresses' luck."""
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    file = tmp_path / "file"
    file.write_text("text\n")
    strace = subprocess.run(["strace", "-c", "-o", tmp_path / "counts", "cat", file], capture_output=True)
    assert strace.returncode == 0
    want = {row[-1]: int(row[3]) for row in map(str.split, (tmp_path / "counts").read_text().splitlines()[2:-2])}
    result = dtrace("-q", "-n", "syscall:::entry /pid == $target/ { @[probefunc] = count(); }", "-c", f"cat {file}")
    got = {name: int(n) for name, n in re.findall(r"^ +(\w+) +(\d+)$", result.out, re.M)}
    assert got.pop("exit_group") == 1, result
    want.pop("exit_group", None)
    want.pop("execve")
    for name in ("mmap", "munmap", "brk"):      # strace's environment moves the heap
        assert abs(got.pop(name, 0) - want.pop(name, 0)) <= 1, result
    assert got == want, result


def test_arguments_and_results(dtrace):
    result = dtrace("-q", "-n", """
        syscall::lseek:entry /pid == $target/ { printf("lseek %d %d %d\\n", arg0, arg1, arg2); }
        syscall::lseek:return /pid == $target/ { printf("%s %d %d %d\\n", probefunc, arg0, arg1, errno); }
        syscall::sendto:entry /pid == $target/ { printf("%d %d %x %x %d\\n", arg0, arg2, arg3, arg4, arg5); }
        syscall::mkdir:return /pid == $target/ { printf("mkdir %d %s\\n", arg0, errno == 17 ? "EEXIST" : "?"); }""",
        "-c", command('import os, socket; os.lseek(os.open("/etc/passwd", 0), 5, 1);\n'
                      "try: os.lseek(99, -7, 2)\nexcept OSError: pass\n"
                      "a = socket.socketpair(); a[0].send(b\"hello\", 0x40)\n"
                      "try: os.mkdir(\"/\")\nexcept OSError: pass"))
    lines = result.out.splitlines()
    start = next(i for i, line in enumerate(lines) if re.fullmatch(r"lseek \d+ 5 1", line))  # before: the start of Python
    assert lines[start + 1:start + 4] == ["lseek 5 5 0", "lseek 99 -7 2", "lseek -1 -1 9"], result
    assert re.fullmatch(r"\d+ 5 40 0 0", lines[start + 4]) and lines[start + 5:] == ["mkdir -1 EEXIST"], result


def test_predicates_of_several_clauses(dtrace):
    """Calls with the same clauses share a program, others have their own; each fires its own."""
    result = dtrace("-q", "-n", """
        syscall::getpid:entry, syscall::getppid:entry /pid == $target/ { @["either", probefunc] = count(); }
        syscall::getppid:entry, syscall::getuid:* /pid == $target/ { @["other", probefunc] = count(); }""",
        "-c", command("import os\nfor i in range(5): os.getpid(); os.getppid(); os.getuid()"))
    rows = re.findall(r"^ +(\S+) +(\S+) +(\d+)$", result.out, re.M)
    assert sorted(rows) == [("either", "getpid", "5"), ("either", "getppid", "5"), ("other", "getppid", "5"),
                            ("other", "getuid", "10")], result


@pytest.mark.alone
def test_other_processes_too(dtrace, start):
    other = start([PYTHON, "-c", "import os, time\nwhile 1: os.getsid(0); time.sleep(0.01)"])
    result = dtrace("-q", "-n", "syscall::getsid:entry /execname == \"python3\"/ { printf(\"%d %s\\n\", pid, execname); exit(0); }")
    assert result.out.split() == [str(other.pid), "python3"], result


def test_list(dtrace):
    result = dtrace("-l", "-P", "syscall")
    names = re.findall(r"^ +\d+ +syscall +vmlinux +(\w+) (entry|return)$", result.out, re.M)
    for name in ("read", "openat", "clone3", "futex", "io_uring_enter"):
        assert (name, "entry") in names and (name, "return") in names
    asm = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
    if os.path.exists(asm) and os.uname().machine == "x86_64":
        assert {n for n in re.findall(r"#define __NR_(\w+)", open(asm).read())} <= {n for n, _ in names}


def test_mistakes(dtrace):
    result = dtrace("-n", "syscall::nosuch:entry")
    assert result.code == 1 and "does not match any probes" in result.err, result
