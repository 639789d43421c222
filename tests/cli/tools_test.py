"""The tools around the build: counting results, naming missing packages, installing."""
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import xml.etree.ElementTree

import pytest

import harness

TOOLS = harness.TOP / "tools"


@pytest.fixture(scope="module")
def check():
    loader = importlib.machinery.SourceFileLoader("check", str(TOOLS / "check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
    loader.exec_module(module)
    return module


GOOD = "[==========] Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n[       OK ] b\n[  PASSED  ] 2 test(s).\n"
BAD = "[==========] Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n[  FAILED  ] b\n" \
      "[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] b\n"
CRASHED = "[==========] Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n"


@pytest.mark.parametrize("result, output, want", [
    ("OK", GOOD, "2 passed, 0 failed, 0 skipped"),
    ("FAIL", BAD, "1 passed, 1 failed, 0 skipped"),
    ("FAIL", CRASHED, "1 passed, 1 failed, 0 skipped"),
    ("FAIL", GOOD, "2 passed, 1 failed, 0 skipped"),        # a leak, found at its end
    ("OK", "not cmocka's", "1 passed, 0 failed, 0 skipped"),
    ("OK", "SKIP b: no gdb\n5 passed, 0 failed, 1 skipped\n", "5 passed, 0 failed, 1 skipped"),
    ("FAIL", "5 passed, 2 failed, 0 skipped\n", "5 passed, 2 failed, 0 skipped"),
    ("SKIP", "", "0 passed, 0 failed, 1 skipped"),
    ("TIMEOUT", "", "0 passed, 1 failed, 0 skipped"),
    ("ERROR", "", "0 passed, 1 failed, 0 skipped"),
])
def test_unit_tests_are_counted(check, tmp_path, result, output, want):
    log = tmp_path / "testlog.json"
    log.write_text(json.dumps({"name": "x", "result": result, "stdout": output}) + "\n")
    assert str(check.count_meson(log)) == want


def test_missing_packages_are_named():
    """As anybody but root: exactly what is missing and the command that helps."""
    with tempfile.TemporaryDirectory(prefix="dtap-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        shutil.copy(TOOLS / "need", folder)
        with open(f"{folder}/packages", "w", encoding="utf-8") as packages:
            packages.write("# a list\n\na: dtap-no-such-1 libc6\n\tdtap-no-such-2\n\nb: dtap-no-such-3\n")
        argv = [f"{folder}/need", "a"]
        if os.geteuid() == 0:
            argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "missing: dtap-no-such-1 dtap-no-such-2\n" in done.stderr
    assert "apt-get install --no-install-recommends dtap-no-such-1 dtap-no-such-2\n" in done.stderr


def test_install(tmp_path):
    """One binary and its links, which work from where they were put."""
    subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--destdir", tmp_path],
                   stdout=subprocess.DEVNULL, check=True)
    links = {path.name: path for path in tmp_path.rglob("bin/*")}
    assert not links["dtap"].is_symlink() and os.readlink(links["dtrace"]) == "dtap"
    result = harness.run([links["dtrace"], "-V"])
    assert result.code == 0 and "dtrace" in result.out, result
    result = harness.run([links["dtap"], "dtrace", "-V"])
    assert result.code == 0, result


def test_table_of_benches(monkeypatch, tmp_path, capsys):
    """Of lines that the benches themselves print, of numbers given here."""
    monkeypatch.syspath_prepend(str(harness.TOP / "bench"))
    monkeypatch.setitem(sys.modules, "peer", types.SimpleNamespace(VERSION="bpftrace 0"))
    for name in "measure", "inside":
        monkeypatch.delitem(sys.modules, name, raising=False)
    inside, measure = importlib.import_module("inside"), importlib.import_module("measure")
    print("dtap beside bpftrace 0, Linux 6, 2 processors\n\nwhat does a call cost?  One sentence, of 3 words (more or less)")
    for version, base in (("3.9", 20.0), ("3.13", 30.0)):
        answers = iter([base, base, base + 5, base + 7])
        program = types.SimpleNamespace(say=lambda words, answers=answers: next(answers), interp=types.SimpleNamespace(version=version))
        inside.turns(program, {"dtap, of 2": contextlib.nullcontext}, 1, {"": "1 1", ", and 4 threads": "5 4"})
    print("\nhow long does it take?  Another sentence")
    measure.row("dtap", [4.0, 5.0, 9.0], "ms", "a note")
    measure.ratio([4.0], [8.0])
    log = tmp_path / "log"
    log.write_text(capsys.readouterr().out)
    result = harness.run([TOOLS / "bench-table", log])
    assert result.code == 0 and result.out.splitlines() == [
        "dtap beside bpftrace 0, Linux 6, 2 processors.", "",
        "### What does a call cost?", "", "| | 3.9 | 3.13 |", "| --- | --- | --- |",
        "| dtap, of 2 | 5.0 | 5.0 |", "| dtap, of 2, and 4 threads | 7.0 | 7.0 |", "",
        "### How long does it take?", "", "| | median | range |", "| --- | --- | --- |",
        "| dtap | 5.0 ms | 4.0 to 9.0 |", "| ratio | 0.50 |  |"], result
    log.write_text("nothing\n")
    assert "has no results" in harness.run([TOOLS / "bench-table", log]).err


@pytest.mark.needs_root
def test_pictures_are_those_of_the_script(tmp_path):
    """What README shows is what the commands print today: the same functions, in pictures that are small and well formed."""
    result = harness.run([TOOLS / "pictures", tmp_path], env={**os.environ, "DTAP_BUILD": str(harness.BUILD)})
    assert result.code == 0, result
    shown = set(re.findall(r"\(doc/pictures/([\w.]+)\)", (harness.TOP / "README.md").read_text()))
    assert shown == {path.name for path in tmp_path.iterdir()} == {path.name for path in (harness.TOP / "doc/pictures").iterdir()}
    for name in shown:
        there, made = ((folder / name).read_text() for folder in (harness.TOP / "doc/pictures", tmp_path))
        assert len(there) < 150_000 and xml.etree.ElementTree.fromstring(there).tag.endswith("}svg")
        # The fourth row of a table of times may be another one each time.
        seen = "main" if name == "flame.svg" else r"pay|price|handle|\$ dtap \w+"
        words = [set(re.findall(rf">(?:[^<]*[^<\w])?({seen})\b", text)) for text in (there, made)]
        assert words[0] == words[1] and words[0], name
