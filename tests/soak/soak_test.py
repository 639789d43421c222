"""Some seconds of soak.py and cycles.py; a long run is started by hand (tests/README.md)."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
import cycles  # noqa: E402
import soak  # noqa: E402


@pytest.mark.nightly
@pytest.mark.needs_bpf
def test_some_rounds(tmp_path, capsys):
    there = [version for version in harness.VERSIONS if not isinstance(harness.interpreters().get(version, ""), str)]
    if not there:
        pytest.skip("no interpreter")
    failed = soak.soak(soak.arguments(["--seconds", "8", "--rounds", "25", "--seed", "5", "--python", ",".join(there)]))
    assert not failed, capsys.readouterr().out


@pytest.mark.nightly
@pytest.mark.needs_bpf
def test_some_cycles(interp):
    try:
        cycles.cycles(interp.version, 20, 5)
    except cycles.Died as died:
        pytest.fail(str(died))
