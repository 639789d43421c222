"""The fixture of pytest."""
from __future__ import annotations

from typing import Callable

import pytest

from dtap._calls import Calls, calls


@pytest.fixture
def dtap_counts() -> Callable[..., Calls]:
    """Count the calls of functions of this process: ``with dtap_counts("shop:*") as counts: ...``, see dtap.calls()."""
    return calls
