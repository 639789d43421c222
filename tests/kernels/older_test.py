"""On the kernel that Debian 12 itself has, in a virtual machine: what a newer one does otherwise."""
import shlex
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.nightly, pytest.mark.first]

# The tests that differ: loops, iterations and strings; system-wide probes; the ends of processes; overlays.  Not
# parallel.ir: that kernel runs out of elements for a map for a moment, which counts as its overflow.
COMMAND = f"""
    for file in $(ls tests/ir/*.ir | grep -v /parallel); do {shlex.quote(str(harness.BUILD))}/tests/ir/ir_run $file || exit; done
    cd tests && DTAP_BUILD={shlex.quote(str(harness.BUILD))} exec timeout 300 /usr/bin/python3 -m pytest -q -p no:cacheprovider \\
        cli/process_test.py::test_members_of_arguments \\
        "python/howto_test.py::test_call_hierarchy[py3.13]" \\
        "python/howto_stap_test.py::test_direct[py3.9-zh]" \\
        "python/howto_stap_test.py::test_top[py3.9-zh]" \\
        cli/tapset_test.py::test_words_of_sockets \\
        "python/stap_points_test.py::test_script_means_its_interpreter[#!/usr/bin/python3 -u]"
"""


# tools/on-kernel asks qemu whether the machine's KVM is of use; where it is not, qemu may abort.  No traced program is
# on this side of the virtual machine.
@pytest.mark.dies("SIGABRT")
def test_debian_12():
    argv = [harness.TOP / "tools" / "on-kernel", "-t", "600", "linux-image-amd64", "sh", "-c", COMMAND]
    done = subprocess.run(argv, cwd=harness.TOP, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=700)
    if done.returncode == 125:
        pytest.skip(f"no virtual machine: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout + done.stderr
