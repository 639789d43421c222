"""Sizes swept: see sizes.py.  Few in each run, make nightly all."""
import pytest

import harness
import sizes

pytestmark = pytest.mark.needs_bpf
NIGHT = [(language, name) for language, table in (("d", sizes.D), ("stp", sizes.STAP)) for name in table]


@pytest.mark.slow
@pytest.mark.parametrize("language,table", [("d", sizes.D), ("stp", sizes.STAP)], ids=["d", "stp"])
def test_few(language, table):
    """Compiled, and run in user space, where the kernel's verifier takes no time."""
    wrong = [bad for name in table for n in sizes.FEW if (bad := sizes.run(language, name, n, sizes.ways(language)[-1]))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("language,name", NIGHT if harness.NIGHTLY else [])     # an hour
def test_all(language, name):
    wrong = [bad for n in sizes.ALL for how in sizes.ways(language) if (bad := sizes.run(language, name, n, how))]
    assert not wrong, "\n".join(wrong)
