"""Speculations of a traced program: the guide's example, and busy threads (drops: tests/d/drops_test.py)."""
import pytest

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"


def test_only_failing_opens(dtrace):
    """The guide's specopen.d: all that happens in a call is printed only when it fails."""
    result = dtrace("-q", "-n", """
        syscall::openat:entry /pid == $target/ { self->spec = speculation(); }
        syscall::openat:entry /self->spec/ { speculate(self->spec); printf("open %s\\n", copyinstr(arg1)); }
        syscall::openat:return /self->spec/ { speculate(self->spec); printf("errno %d\\n", errno); }
        syscall::openat:return /self->spec && errno != 0/ { commit(self->spec); self->spec = 0; }
        syscall::openat:return /self->spec && errno == 0/ { discard(self->spec); self->spec = 0; }""",
        "-c", f"{PYTHON} -S -c 'import os\nfor p in (\"/etc/passwd\", \"/nosuch1\", \"/etc/passwd\", \"/nosuch2\"):\n"
              " try: os.close(os.open(p, 0))\n except OSError: pass'")
    assert result.code == 0 and "passwd" not in result.out, result
    assert result.out.endswith("open /nosuch1\nerrno 2\nopen /nosuch2\nerrno 2\n"), result


def test_threads(dtrace):
    """Eight threads, a speculation each at a time; each commit prints the lines of its own thread, whole."""
    result = dtrace("-q", "-x", "nspec=16", "-n", """
        syscall::getsid:entry /pid == $target/ { self->spec = speculation(); self->n = arg0; }
        syscall::getsid:entry /self->spec/ { speculate(self->spec); printf("\\n%d", tid); }
        syscall::getpgid:entry /self->spec/ { speculate(self->spec); printf(" %d", tid); }
        syscall::getppid:entry /self->spec/ { commit(self->spec); self->spec = 0; }""",
        "-c", f"{PYTHON} -S -c 'import os, threading\ndef f():\n for i in range(50): os.getsid(0); os.getpgid(0); os.getppid()\n"
              "ts = [threading.Thread(target=f) for i in range(8)]\nfor t in ts: t.start()\nfor t in ts: t.join()'")
    lines = [line.split() for line in result.out.split("\n") if line]
    assert len(lines) == 400 and all(len(l) == 2 and l[0] == l[1] for l in lines), (len(lines), result.err)
    assert len({l[0] for l in lines}) == 8 and "failed" not in result.err


def test_lines(dtrace):
    """Without -q: a clause that commits or discards has no line, what is committed has those of its clauses."""
    result = dtrace("-x", "nspec=2", "-n", """
        BEGIN { self->s = speculation(); self->t = speculation(); }
        BEGIN { speculate(self->s); printf("one"); }
        BEGIN { speculate(self->t); printf("never"); }
        BEGIN { speculate(self->s); n = 1; }
        BEGIN { commit(self->s); self->s = 0; }
        BEGIN { discard(self->t); }
        BEGIN { trace("two"); exit(0); }""")
    lines = [line.split()[1:] for line in result.out.splitlines()]
    assert lines == [["ID", "FUNCTION:NAME"], ["1", ":BEGIN", "one"], ["1", ":BEGIN"], ["1", ":BEGIN", "two"]], result
