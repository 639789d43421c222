"""Actions of the tracer and on the process: system, freopen, ftruncate, setopt, raise, stop."""
import re
import subprocess

import pytest

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"


def test_system_runs_in_order(dtrace):
    result = dtrace("-w", "-q", "-n", """BEGIN { printf("a\\n"); system("echo %s %d", "hello", 3); printf("b\\n");
        system("exit 7"); exit(0); }""")
    assert tuple(result) == (0, "a\nhello 3\nb\n", ""), result


def test_destructive_by_pragma(dtrace):
    script = "#pragma D option destructive\nBEGIN { system(\"echo on\"); exit(0); }"
    assert dtrace("-q", "-n", script).out == "on\n"


def test_raise(dtrace):
    """The process gets the signal before it goes on."""
    result = dtrace("-w", "-q", "-n", "syscall::getppid:entry /pid == $target/ { raise(10); }", "-c",
                    f"{PYTHON} -c 'import os, signal\nsignal.signal(10, lambda *a: print(\"got it\"))\nos.getppid()\nprint(\"on\")'")
    assert result.out == "got it\non\n", result


def test_stop(dtrace):
    """It stays stopped until somebody lets it go on; it stops where it leaves the kernel, for which it needs a CPU."""
    result = dtrace("-w", "-q", "-n", """
        syscall::getppid:entry /pid == $target/ {
            stop();
            system("until ps -o stat= -p %d | grep T; do :; done; kill -CONT %d", pid, pid);
        }""",
        "-c", f"{PYTHON} -c 'import os\nos.getppid()\nprint(\"on\")'")
    assert re.match(r"T\S*\s+on\n", result.out), result


def test_freopen(dtrace, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two1"
    result = dtrace("-q", "-n", 'BEGIN { printf("a"); freopen("%s"); printf("b"); freopen("%s%%d", 1); printf("c"); '
                    'freopen(""); printf("d"); freopen("/nosuch/file"); exit(0); } END { printf("e"); }' % (one, tmp_path / "two"))
    assert result.code == 0 and result.out == "ade" and "freopen: /nosuch/file: No such file" in result.err, result
    assert (one.read_text(), two.read_text()) == ("b", "c")


def test_ftruncate(dtrace, tmp_path):
    dtrace("-q", "-o", tmp_path / "out", "-n", 'BEGIN { printf("x"); ftruncate(); printf("y"); exit(0); }')
    assert (tmp_path / "out").read_text() == "y\n"


def test_setopt(dtrace):
    result = dtrace("-q", "-n", 'BEGIN { @["a"] = sum(1); @["b"] = sum(2); setopt("aggsortrev"); setopt("nosuch", "1"); '
                    'exit(0); } END { printa("%s", @); }')
    assert result.out == "ba" and "nosuch" in result.err, result


def test_rand(dtrace):
    result = dtrace("-q", "-n", 'tick-1ms { @n = min(rand()); @m = max(rand()); } tick-1ms /++i == 50/ { exit(0); }')
    least, most = map(int, result.out.split())
    assert 0 <= least < most < 2 ** 31, result


def test_lines(dtrace):
    """A firing has its line if a clause records something or acts; assignments alone have none."""
    result = dtrace("-w", "-n", "BEGIN { x = 1; } BEGIN { raise(0); } BEGIN { exit(0); }")
    assert result.code == 0 and len(re.findall(r" :BEGIN *$", result.out, re.M)) == 2, result
