"""The tools around the build: counting results, naming missing packages, installing."""
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile

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
