"""Everything that has a name in a table of dtap's is run by some test (named.py)."""
import pytest

import named


@pytest.mark.parametrize("kind", named.KINDS)
def test_is_run(kind):
    names, needless, count = named.missing(kind)
    assert count and not names, f"in no test that runs: {' '.join(names)} (see tests/README.md, named.py)"
    assert not needless, f"in named.exempt for nothing: {' '.join(needless)}"


def test_reasons_are_of_kinds():
    assert set(named.exempt()) <= set(named.KINDS)


def test_finds_what_is_missing(monkeypatch):
    """A name that is only in a comment, or in what documents a test, is not run."""
    monkeypatch.setitem(named.KINDS, "D action", (lambda: ["trace", "only_named_here"], named.called, "D"))
    assert named.missing("D action")[0] == ["only_named_here"]  # not only_named_here(1)
