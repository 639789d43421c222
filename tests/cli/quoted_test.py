"""Strings in quotes that the tracer makes from the record, and those that the program makes: the same, whatever is in them."""
import json

import pytest

import harness

pytestmark = pytest.mark.needs_bpf
ENV = {"PATH": "/usr/bin:/usr/sbin:/bin", "SYSTEMTAP_TAPSET": str(harness.TOP / "share" / "tapset")}

PROGRAM = r"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for text in [b"", b"plain", b'a"b\\c', b"\a\b\t\n\v\f\r\x1b\x7f\x80\xff", b"a%sb%%", "\u00e9".encode(), b"\x01" + b"x" * 3]:
    libc.chdir(b"/nosuch/" + text)
for n in range(495, 520):
    libc.chdir(b"/" + b"x" * n)
for n in range(120, 130):
    libc.chdir(b"/" + b"\xff" * n)
    libc.chdir(b"/" * 3 + b"\n" * (2 * n))
for address in (0, 1, 0x7fffffffffff, 2**64 - 1, 2**63):
    libc.chdir(ctypes.c_void_p(address))
"""


@pytest.mark.parametrize("options", [[], ["-DMAXSTRINGLEN=64"]])
def test_same(tmp_path, options):
    (tmp_path / "p.py").write_text(PROGRAM)
    # The second print adds something to the text, so the program has to make it.
    script = """probe syscall.chdir { if (pid() != target()) next
                  printf("%s\\n", argstr); println(argstr . "") }"""
    result = harness.stap(*options, "-e", script, "-c", f"/usr/bin/python3 {tmp_path}/p.py", env=ENV)
    lines = result.out.splitlines()
    assert result.code == 0 and len(lines) == 2 * 57 and lines[0::2] == lines[1::2], result


def test_values(tmp_path):
    """Against Python's own reading of the escapes; what cannot be read is its address; what is cut ends in dots."""
    (tmp_path / "p.py").write_text(PROGRAM)
    script = 'probe syscall.chdir { if (pid() == target()) printf("%s|%s\\n", name, argstr) }'
    result = harness.stap("-e", script, "-c", f"/usr/bin/python3 {tmp_path}/p.py", env=ENV)
    texts = [line.partition("|")[2] for line in result.out.splitlines()]
    assert result.code == 0 and texts[-5:] == ["0x0", "0x1", "0x7fffffffffff", "0xffffffffffffffff", "0x8000000000000000"], result
    wanted = [b"/nosuch/" + text for text in (b"", b"plain", b'a"b\\c', b"\a\b\t\n\v\f\r\x1b\x7f\x80\xff", b"a%sb%%", "\u00e9".encode(),
                                             b"\x01" + b"x" * 3)]
    assert [eval("b" + text) for text in texts[:7]] == wanted
    for text, n in zip(texts[7:32], range(495, 520)):
        assert len(text) <= 511 and (text == json.dumps("/" + "x" * n) if n + 3 <= 511 else text.endswith('"...') and len(text) == 511)
