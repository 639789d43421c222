"""The tools around the build: counting results, naming missing packages, installing."""
import collections
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import platform
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
    count = check.count_meson(log)
    assert str(count) == want
    assert len(count.failures) == bool(count.failed) and all(f"x: {result}" in failure for failure in count.failures)


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


BENCH_MODULES = "import sys, types; sys.modules['peer'] = types.SimpleNamespace(VERSION='none'); import measure\n"


@pytest.mark.parametrize("ends", ["kill", "terminate"])
def test_what_a_bench_starts_ends_with_it(ends):
    """However the bench ends: nothing is left that would run for ever beside whatever is measured next."""
    text = BENCH_MODULES + """
child = measure.start([sys.executable, "-c", "print('up', flush=True)\\nwhile True: pass"], stdin=sys.stdin, stdout=-1)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
    paths = os.pathsep.join([str(harness.TOP / "bench"), str(harness.TOP / "tests")])
    bench = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             env={**os.environ, "PYTHONPATH": paths})
    with bench.stdout:
        pid = int(bench.stdout.readline())
        getattr(bench, ends)()
        bench.wait()
    harness.wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists() or
                       " Z " in pathlib.Path(f"/proc/{pid}/stat").read_text(), what="the end of what the bench started")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="single steps are counted on x86-64")
def test_bench_counts_instructions(monkeypatch):
    """Of a loop whose calls are known: in single steps, and how they are split."""
    monkeypatch.syspath_prepend(str(harness.TOP / "bench"))
    monkeypatch.setitem(sys.modules, "peer", types.SimpleNamespace(VERSION="none"))
    for name in "measure", "inside":
        monkeypatch.delitem(sys.modules, name, raising=False)
    asks = importlib.import_module("how_many_instructions_does_an_event_take")
    program = subprocess.Popen([sys.executable, "-c", "print('up', flush=True)\nwhile True: abs(-1)"], stdout=subprocess.PIPE)
    try:
        assert program.stdout.readline() == b"up\n"
        asks.steps(program.pid, 5000)       # the end of print()
        found = asks.calls([asks.steps(program.pid, 15000) for _ in range(2)], asks.Owners(program.pid))
        assert program.poll() is None
    finally:
        program.kill()
        program.communicate()
    sizes = collections.Counter(sum(call.values()) for call in found)
    assert len(found) >= asks.LEAST - 2 and sizes.most_common(1)[0][1] > len(found) / 2, found
    # The interpreter has 1 to 9; 9 is executed twice for each call, 100 and 101 are elsewhere.
    owners = {**{at: asks.OWN for at in range(1, 10)}, 100: "agent", 101: "libc"}
    call = [1, 2, 9, 3, 100, 100, 4, 9, 5, 101]
    found = asks.calls([[5, 101] + call * 15 + [1, 2], [3] + call * 15 + [5, 5, 5]], owners)
    assert len(found) in (15 + 14, 15 + 15) and all(one == {asks.OWN: 7, "agent": 2, "libc": 1} for one in found), found
    assert {asks.outside(one) for one in found} == {3}
    names = {"/a/libpython3.13.so.1.0": asks.OWN, "/usr/bin/python3.11": asks.OWN, "/x/dtap-agent.so": "agent", "/lib/libc.so.6": "libc",
             "/memfd:dtap (deleted)": "program", "/tmp/bare_hook.so": "program", "": "program", "[vdso]": "libc"}
    assert {path: asks.owner(path) for path in names} == names


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
