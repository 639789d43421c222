"""SystemTap's own verdict on our scripts (agree.py), or on a part of them.

The part is drawn by a seed, which is printed; DTAP_SEED=N draws the same again, DTAP_AGREE=all takes all of them.
"""
import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import agree  # noqa: E402

PART = 25


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    if not agree.systemtap():
        pytest.skip("SystemTap is not installed")
    return agree.Original(tmp_path_factory.mktemp("kernel") / "tree")


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("stage", agree.PASSES)
def test_verdicts(original, stage):
    paths = sorted((agree.HERE / stage).glob("*.stp"))
    seed = int(os.environ.get("DTAP_SEED", random.randrange(1 << 32)))
    print(f"DTAP_SEED={seed}")
    if os.environ.get("DTAP_AGREE") != "all":
        paths = random.Random(seed).sample(paths, PART)
    judged = [what for what in (original.disagrees(stage, path) for path in paths) if what]
    assert not judged, f"DTAP_SEED={seed}: {judged}"
