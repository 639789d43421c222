"""In a container: a pid and a mount namespace of its own, a root that is another, /proc mounted anew.

A part of the end-to-end tests runs there: those about processes, what starts later, the agents, the ready-made commands.
"""
import os
import re
import subprocess
import sys

import pytest

import harness

pytestmark = [pytest.mark.nightly, pytest.mark.needs_bpf, pytest.mark.alone]

# Each root of an interpreter gets the container's /proc.  Nothing is seen outside, and all ends with process 1.
ENTER = r"""
    set -e
    root=$1 top=$2
    shift 2
    mount --make-rprivate /
    mount --rbind / "$root"
    for proc in $(awk -v under="$root/" '$5 ~ "/proc$" && index($5, under) == 1 { print $5 }' /proc/self/mountinfo); do
        umount -l "$proc"
        mount -t proc proc "$proc"
    done
    cd "$root$top"
    # Process 1 is this shell, which waits for whatever loses its parent, as a container's does.
    chroot "$root" sh -c 'cd "$0" && exec "$@"' "$top" "$@"
    exit $?
"""
TESTS = ("cli/process_test.py", "cli/session_test.py", "cli/stap_process_test.py", "cli/tapset_test.py",
         "cli/commands_test.py", "cli/dump_test.py", "python/pid_test.py", "python/howto_test.py",
         "python/agent_late_test.py", "python/agent_family_test.py", "python/target_place_test.py", "python/tasks_test.py",
         "cli/task_test.py", "d/oncpu_test.py")
# A task that is gone has no number but the machine's.
REFUSED = ("not test_processes_signals_and_sockets",)


def test_part_of_the_tests(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", " and ".join(REFUSED),
               *(f"tests/{name}" for name in TESTS)]
    done = subprocess.run(["unshare", "-mpf", "--mount-proc", "sh", "-c", ENTER, "sh", root, harness.TOP, *command],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3000, check=False,
                          env={**os.environ, "DTAP_BUILD": str(harness.BUILD)})
    found = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0 and found and int(found[1]) > 100, done.stdout[-6000:] + done.stderr[-2000:]
