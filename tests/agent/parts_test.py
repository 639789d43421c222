"""Parts of the agent, each by itself in each interpreter; the witness is the interpreter."""
import os
import pathlib
import random
import shutil
import subprocess

import pytest

import harness

PARTS = harness.BUILD / "tests/agent/agent-parts.so"
DATA = pathlib.Path(__file__).parent / "data"

pytestmark = pytest.mark.needs_root


def run(interp, program, *args):
    shutil.copy(PARTS, interp.dir / PARTS.name)
    done = subprocess.run(interp.argv_of(DATA / program, interp.inside(interp.dir / PARTS.name), *args), capture_output=True,
                          text=True, timeout=harness.TIMEOUT_S, env={**os.environ, "PYTHONIOENCODING": "utf-8:backslashreplace"})
    assert (done.returncode, done.stderr) == (0, ""), (args, done)
    return done.stdout.split()


def test_names(interp):
    assert run(interp, "parts_names.py", random.randrange(1 << 30)) == ["ok", "True", "True", "True"]


def test_slots(interp):
    """Trace and profile functions of the program, which fail, go and come back, beside the agent's."""
    assert run(interp, "parts_slots.py", random.randrange(1 << 30)) == ["ok", "60"]


def test_chain(interp):
    """Two agents and the program share the slots: each is told of each event once, whoever comes and goes at whatever moment."""
    other = interp.dir / "other-parts.so"
    shutil.copy(PARTS, other)
    assert run(interp, "parts_chain.py", interp.inside(other), random.randrange(1 << 30)) == ["ok"]
