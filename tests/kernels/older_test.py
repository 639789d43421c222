"""What differs by kernel, on Debian's kernels in virtual machines (make check-kernels)."""
import importlib.machinery
import importlib.util
import re
import subprocess

import pytest

import harness

loader = importlib.machinery.SourceFileLoader("check_kernels", str(harness.TOP / "tools/check-kernels"))
check_kernels = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_kernels", loader))
loader.exec_module(check_kernels)


# tools/on-kernel asks qemu whether the machine's KVM is of use; where it is not, qemu may abort.  No traced program is
# on this side of the virtual machine.
@pytest.mark.nightly
@pytest.mark.first
@pytest.mark.dies("SIGABRT")
@pytest.mark.parametrize("kernel", check_kernels.KERNELS)
def test_kernel(kernel):
    done = subprocess.run([harness.TOP / "tools/check-kernels", harness.BUILD, kernel], cwd=harness.TOP,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1200, check=False)
    found = re.findall(rf"^\| {re.escape(kernel)} \| \w+ \| (\d+) \| (\d+) \| (\d+) \|$", done.stdout, re.M)
    assert len(found) == 2 and done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    if not any(int(passed) for passed, _, _ in found):
        pytest.skip(done.stdout.splitlines()[0])


@pytest.mark.parametrize("line, numbers", [
    ("= 2 failed, 31 passed, 4 skipped in 12.40s =", [31, 2, 4]), ("6 passed in 5.0s", [6, 0, 0]),
    ("1 error in 0.30s", [0, 1, 0]), ("3 passed, 40 deselected in 1.10s (0:00:01)", [3, 0, 0]), ("passed in 1.0s", None)])
def test_what_pytest_counted(line, numbers):
    assert check_kernels.numbers_of(f"...\n{line}\n") == numbers


def test_what_is_run_is_there(tmp_path):
    words = " ".join(part[2] for part in check_kernels.parts(tmp_path)).replace("'", "")
    named = re.findall(r"tests/[\w./-]+\.(?:py|d|ir)\b", words)
    assert len(set(named)) > 40 and all((harness.TOP / name).exists() for name in named)
    collect = check_kernels.pytest(tmp_path, check_kernels.TESTS, "--collect-only")
    done = subprocess.run(["sh", "-c", collect], cwd=harness.TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"{len(check_kernels.TESTS)} tests collected" in done.stdout, done.stdout + done.stderr
