"""Calls that fail: see sweep.py.  Each run takes a few of them, with sanitizers some more, make nightly all."""
import errno
import os
import random

import pytest

import harness
import inject
import sanitized
import sweep

SEED = os.environ.get("DTAP_SEED", "14")
# What a run takes that is not the nightly one.
FAULTS = 10 if sanitized.AGENT.exists() else 4
KINDS = ("memory", "map", "memfd", "open", "bpf")
WAYS = ("c-target", "p-target", "p-kernel", "stap-p-target", "later", "dump", "alone")

WAY_FRESH = next(way for way in sweep.WAYS if way.name == "p-first")

pytestmark = [pytest.mark.needs_bpf, pytest.mark.slow, pytest.mark.sanitizers]


@pytest.mark.parametrize("way", sweep.AGENT_WAYS if harness.NIGHTLY else [WAY_FRESH], ids=lambda way: way.name)
def test_agent(way, tmp_path):
    """The first calls of a kind, in a target that has never seen the agent."""
    rnd = random.Random(f"{SEED} agent {way.name}")
    run = sweep.AgentSweep(way, tmp_path, rnd)
    try:
        if harness.NIGHTLY:
            run.sweep(inject.KINDS)
        else:
            run.clean()
            for n in (1, 4, 7):
                run.fault("memory", n, errno.ENOMEM)
    finally:
        run.close()
    assert not run.wrong, f"{len(run.wrong)} of {run.runs}:\n" + "\n".join(run.wrong)


# What was wrong once: the way, whose calls, their kind, how they fail, and which.
FOUND = [
    ("stap-p-target", "libelf", "memory", errno.ENOMEM, range(1, 13)),      # the agent's file seemed to have no markers
    ("c-kernel-agent", "", "read", errno.EIO, range(20, 90)),               # likewise; and its interpreter no version, or another
    ("c-kernel-agent", "", "read", errno.EINTR, range(60, 65)),
    ("stap-p-target", "", "read", errno.EIO, range(147, 152)),              # the interpreter seemed to be none
    ("p-target", "", "poll", errno.EINTR, range(5, 10)),                    # was taken for a signal that asks to end
    ("p-target", "", "stat", errno.EACCES, range(46, 53)),                  # a null pointer as the executable's path
    ("later", "", "read", errno.EINTR, range(35, 42)),                      # the shell seemed to be of another machine
    ("later", "", "read", errno.EIO, range(290, 310)),                      # who asked for a session was dropped without a word
    ("attached", "", "open", errno.EMFILE, range(66, 69)),                  # the file of its mappings: it seemed to need no agent
    ("attached", "libelf", "read", errno.EIO, range(60, 120, 10)),          # the interpreter's file seemed to be none
]


@pytest.mark.parametrize("way, source, kind, how, which", FOUND, ids=lambda value: str(value).replace(" ", ""))
def test_found(way, source, kind, how, which, tmp_path):
    tmp_path.chmod(0o755)
    run = sweep.Sweep(next(one for one in sweep.WAYS if one.name == way), tmp_path, random.Random(1))
    run.source = source
    try:
        run.clean()
        if run.target:
            run.target.settle()
        for n in which:
            run.fault(kind, n, how)
    finally:
        run.close()
    assert not run.wrong, f"{len(run.wrong)} of {run.runs}:\n" + "\n".join(run.wrong)


@pytest.mark.parametrize("way", [way for way in sweep.WAYS if harness.NIGHTLY or way.name in WAYS], ids=lambda way: way.name)
def test_tracer(way, tmp_path):
    if way.python and isinstance(harness.interpreters()[way.python], str):
        pytest.skip(harness.interpreters()[way.python])
    rnd = random.Random(f"{SEED} {way.name}")
    print(f"DTAP_SEED={SEED}")
    tmp_path.chmod(0o755)
    run = sweep.Sweep(way, tmp_path, rnd)
    try:
        if harness.NIGHTLY:
            run.sweep(inject.KINDS)
        else:
            run.sweep(rnd.sample(KINDS, 2), FAULTS)
    finally:
        run.close()
    print(f"{run.runs} faults, {run.ends[1]} commands failed")
    assert not run.wrong, f"{len(run.wrong)} of {run.runs}:\n" + "\n".join(run.wrong)
