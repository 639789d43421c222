"""Probes of standard input: what a terminal, a pipe and a file send arrives byte by byte, and in lines."""
import os
import pty
import subprocess
import time

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

SCRIPT = r"""
probe begin { println("ready") }
probe input.char { printf("<%s>", char == "\n" ? "newline" : char) }
probe input.line { printf("[%s]", line) if (line == "end\n") exit() }
"""
TEXT = "ab\nend\nrest"
WANT = "ready\n<a><b><newline>[ab\n]<e><n><d><newline>[end\n]"


def start(**files):
    return subprocess.Popen([harness.BUILD / "stap", "-e", SCRIPT], stderr=subprocess.PIPE, text=True, **files)


@pytest.mark.parametrize("way", ["pipe", "file"])
def test_redirected(tmp_path, way):
    (tmp_path / "text").write_text(TEXT)
    with open(tmp_path / "text") as file:
        stap = start(stdin=file if way == "file" else subprocess.PIPE, stdout=subprocess.PIPE)
        out, err = stap.communicate(TEXT if way == "pipe" else None, timeout=60)
    assert (stap.returncode, out, err) == (0, WANT, "")


def test_terminal():
    """Keys arrive without a newline behind them; the terminal does not show them, and is as it was afterwards."""
    ours, theirs = pty.openpty()
    before = subprocess.run(["stty"], stdin=theirs, capture_output=True, text=True, check=True).stdout
    stap = start(stdin=theirs, stdout=theirs)
    shown = b""
    deadline = time.monotonic() + 60
    keys = [(b"ready\r\n", b"a"), (b"<a>", b"b\nend\n")]
    while b"[end\r\n]" not in shown and time.monotonic() < deadline:
        shown += os.read(ours, 4096)
        if keys and keys[0][0] in shown:
            os.write(ours, keys.pop(0)[1])
    assert stap.wait(60) == 0 and shown == WANT.replace("\n", "\r\n").encode(), (shown, stap.stderr.read())
    assert subprocess.run(["stty"], stdin=theirs, capture_output=True, text=True, check=True).stdout == before
