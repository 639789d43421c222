"""Trace Python programs from Python: dtap's scripts, their records and counts as objects.

    import dtap

    with dtap.trace(1234, 'python$target:::function-entry { trace(copyinstr(arg1)); }') as t:
        for record in t:
            print(record.pid, record.values)

    with dtap.calls("shop.orders:*") as counts:      # in this process
        handle(request)
    assert counts["shop.orders:Order.total"] == 3

The tracer is a process of its own, dtap's program, which this package contains; no compiler is needed, and no privilege for
processes of one's own.  In tests, the fixture ``dtap_counts`` of pytest is ``dtap.calls``.
"""
from dtap._calls import Calls, calls
from dtap._program import version
from dtap._stream import Action, Error, Message, Record, Row, Trace, trace

__all__ = ["Action", "Calls", "Error", "Message", "Record", "Row", "Trace", "calls", "trace", "version"]
__version__ = "0.1.0"
