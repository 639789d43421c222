"""Conversions whose output depends on the machine: against what Python finds there."""
import pathlib
import re
import socket
import time

import pytest

pytestmark = pytest.mark.needs_bpf


@pytest.mark.parametrize("port", [22, 80, 443])
def test_service(dtrace, port):
    """%P: a port by the name of its service."""
    try:
        name = socket.getservbyport(port)
    except OSError:
        pytest.skip("/etc/services does not know it")
    assert dtrace("-q", "-n", 'BEGIN { printf("[%%P]", %d); exit(0); }' % port).out == f"[{name}]"


def test_host(dtrace):
    """%I: an address by the name of its host."""
    found = re.search(r"^127\.0\.0\.1\s+(\S+)", pathlib.Path("/etc/hosts").read_text(), re.M)
    if not found:
        pytest.skip("/etc/hosts does not know 127.0.0.1")
    assert dtrace("-q", "-n", 'BEGIN { printf("[%I]", "127.0.0.1"); exit(0); }').out == f"[{found[1]}]"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_time(dtrace, zone, monkeypatch):
    """%Y and %T: local time, as strftime has it."""
    seconds = 1012745045
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    then = time.localtime(seconds)
    want = [f"{time.strftime('%Y %b', then)} {then.tm_mday:2} {time.strftime('%H:%M:%S', then)}",
            time.strftime("%a, %d %b %Y %H:%M:%S %Z", then)]
    result = dtrace("-q", "-n", 'BEGIN { printf("%%Y|%%T|%%25Y", %d, %d, %d); exit(0); }' % ((seconds * 10**9,) * 3))
    monkeypatch.undo()
    time.tzset()
    assert result.out == f"{want[0]}|{want[1]}|{want[0]:>25}", result
