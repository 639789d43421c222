"""A CPython that is newer than dtap knows: what is to be done is in doc/howto/python-version.md, which each failure here names."""
import os
import pathlib
import re
import subprocess

import pytest

import harness

PAGE = "see doc/howto/python-version.md"
LAST = int(re.search(r"CPYTHON_LAST (\d+)", (harness.TOP / "src/abi/cpython.h").read_text())[1])


def interpreters_of(root):
    """The minor versions of the Pythons in a root's /usr/bin and /usr/local/bin."""
    names = [path.name for folder in ("usr/bin", "usr/local/bin") for path in pathlib.Path(root, folder).glob("python3.*")]
    return {int(name.split(".")[1]) for name in names if re.fullmatch(r"python3\.\d+", name)}


def roots():
    listed = [found for found in harness.interpreters().values() if not isinstance(found, str)]
    return sorted({"/", *(argv[1] for argv in listed if argv[0] == "chroot")})


def test_no_unknown_version_is_here():
    for root in roots():
        newer = sorted(minor for minor in interpreters_of(root) if minor > LAST)
        assert not newer, f"CPython 3.{newer} in {root} is newer than 3.{LAST}, the last that dtap knows: {PAGE}"


def test_tables_have_the_last_version():
    """Where a version is a row, the last one has one."""
    assert harness.VERSIONS[-1] == f"3.{LAST}", f"VERSIONS of tests/harness.py end with another than 3.{LAST}: {PAGE}"
    assert f"3.{LAST}:python" in (harness.TOP / "tools/pythons").read_text(), f"tools/pythons has no 3.{LAST}: {PAGE}"
    offsets = (harness.TOP / "src/probe/pyoffsets.def").read_text()
    for row in ("PUBLISHED", "PUBLISHED_GIL", "SLOTS"):
        assert f"{row}(0x03{LAST:02x}," in offsets, f"src/probe/pyoffsets.def has no {row} for 3.{LAST}: {PAGE}"
    for name in ("README.md", "doc/markers.md"):
        assert f"3.{LAST}" in (harness.TOP / name).read_text(), f"{name} does not have 3.{LAST}: {PAGE}"
    assert (harness.TOP / PAGE.split()[-1]).exists()


# A program that passes for CPython 3.99: dtap and its agent ask no more of it than its version.
PROGRAM = r"""
#include <stdio.h>
const char *Py_GetVersion(void) { return "3.99.0 (main)"; }
const unsigned long Py_Version = 0x036300f0;
int main(void) { puts("ran"); return 0; }
"""


@pytest.mark.needs_root
def test_newer_one_is_refused_and_runs_on(tmp_path, dtrace):
    (tmp_path / "newer.c").write_text(PROGRAM)
    subprocess.run(["cc", "-rdynamic", "-o", tmp_path / "python3.99", tmp_path / "newer.c"], check=True)
    result = dtrace("-x", "agent=always", "-x", "place=target", "-n", "python$target:::function-entry { n++; }",
                    "-c", tmp_path / "python3.99")
    assert result.code == 1 and f"is CPython 3.99, and dtap knows 3.9 to 3.{LAST}" in result.err, result
    result = harness.run([tmp_path / "python3.99"], env={**os.environ, "LD_PRELOAD": str(harness.AGENT), "DTAP_AGENT_POLL": "1"})
    assert result.code == 0 and result.out == "ran\n" and result.err == "", result
