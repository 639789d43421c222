"""Some seconds of generate.py; a long run is started by hand (tests/README.md).  DTAP_SEED=N takes another seed."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
import generate  # noqa: E402

SCRIPTS = 4


@pytest.mark.slow
@pytest.mark.needs_bpf
@pytest.mark.parametrize("language", generate.LANGUAGES)
def test_some_programs(language):
    if isinstance(harness.interpreters().get("3.13", ""), str):
        pytest.skip("no Python 3.13")
    options = generate.arguments(["--seed", os.environ.get("DTAP_SEED", "5"), "--scripts", str(SCRIPTS),
                                  "--cases", "6", "--language", language, "--every"])
    failed = generate.generate(options)
    assert not failed, f"{len(failed)} wrong:\n" + "\n".join(failed)
