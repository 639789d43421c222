"""Some random programs of the IR (ir.py).  DTAP_SEED=N takes others, make nightly many more."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
import ir  # noqa: E402


def agree(ways, programs):
    words = [word for way in ways for word in ("--way", way)]
    if harness.NIGHTLY:
        programs *= 50
    os.environ.setdefault("DTAP_BUILD", str(harness.BUILD))
    failed = ir.generate(ir.arguments(["--seed", os.environ.get("DTAP_SEED", "1"), "--programs", str(programs), *words]))
    assert not failed, "\n".join(failed)


def test_in_the_target():
    agree(("interpreted", "compiled"), 120)


@pytest.mark.needs_bpf
@pytest.mark.machine_pids       # ir_run knows no other
def test_in_the_kernel():
    agree(("kernel", "turns"), 20)
