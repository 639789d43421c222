"""How often functions are called: in this process, or in another one."""
from __future__ import annotations

import os
from types import TracebackType
from typing import Dict, Iterator, Mapping, Optional, Type

from dtap._stream import Error, Trace, trace

# The functions of the run itself, which begin and end it.
_OWN = "dtap."


def _probe(pattern: str) -> str:
    module, colon, function = pattern.partition(":")
    if not colon:
        module, function = "", pattern
    if not function or ":" in function:
        raise ValueError(f"{pattern!r} is no pattern of functions: FUNCTION, or MODULE:FUNCTION")
    return f"py$target:{module}:{function}:entry"


class Calls(Mapping[str, int]):
    """Counts of calls by function, made by calls(): a context manager, and a mapping.

    A key is MODULE:FUNCTION, the function's qualified name as in "shop.orders:Order.total"; or a qualified name alone, which
    is the sum over modules.  A function that was not called has 0.  Iteration is over the functions that were called.
    """

    def __init__(self, run: Trace) -> None:
        self._run = run
        self._counts: Dict[str, int] = {}
        self._is_done = False

    def __enter__(self) -> Calls:
        """Start the tracer; returns when calls are counted."""
        self._run.__enter__()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        """Stop counting.  Raises Error if calls were not counted, but not while an exception goes on."""
        try:
            self._run.stop()
            self._update()
        finally:
            self._is_done = True
            self._run.__exit__(kind, error, trace)
        missed = [m.text for m in self._run.messages if "does not supply everything" in m.text]
        if missed and not kind:
            raise Error(f"not all calls were counted: {missed[0].strip().lstrip('# ')}", self._run.messages)
        if self._run.lost and not kind:
            words = ", ".join([f"{n} {what}s" for what, n in self._run.lost.items()])
            raise Error(f"not all calls were counted: {words} lost", self._run.messages)

    def _update(self) -> None:
        if self._is_done:
            return
        counts: Dict[str, int] = {}
        for row in self._run.lines_of_rows():
            module, function = row["keys"]
            if not module.startswith(_OWN):
                counts[f"{module}:{function}"] = row["value"]
        self._counts = counts

    def __getitem__(self, function: str) -> int:
        self._update()
        if ":" in function:
            return self._counts.get(function, 0)
        return sum([n for name, n in self._counts.items() if name.partition(":")[2] == function])

    def __iter__(self) -> Iterator[str]:
        self._update()
        return iter(self._counts)

    def __len__(self) -> int:
        self._update()
        return len(self._counts)

    def __repr__(self) -> str:
        self._update()
        return f"Calls({self._counts})"


def calls(*functions: str, pid: Optional[int] = None) -> Calls:
    """Count the calls of functions, of all without a pattern.

    functions: patterns, FUNCTION or MODULE:FUNCTION, with the qualified name of the function; * stands for any text.
    pid: the process; this one without it, with all its threads.

    Functions that no pattern names cost nothing.  Each time a generator or coroutine goes on is no call of it.
    """
    probes = ",\n".join([_probe(pattern) for pattern in functions or ("*:*",)])
    script = f"{probes}\n{{ @[probemod, probefunc] = count(); }}"
    return Calls(trace(os.getpid() if pid is None else pid, script, options={"aggsize": "32m"}))
