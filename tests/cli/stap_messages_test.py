"""What SystemTap 4.8 itself prints for a command line, word for word: stap_messages.txt was made with it.

A block is the command's words behind $, the exit code, standard output behind > and standard error behind !.
"""
import pathlib
import re
import subprocess

import pytest

import harness

BLOCKS = (pathlib.Path(__file__).parent / "stap_messages.txt").read_text().split("\n\n")


@pytest.mark.needs_root
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: re.sub(r"[^\w]+", "_", block.splitlines()[0])[:60])
def test_message(block, tmp_path):
    command, code, *rest = block.splitlines()
    wanted = {mark: "".join(f"{line[2:]}\n" for line in rest if line.startswith(mark)) for mark in ">!"}
    done = subprocess.run(f"stap {command[2:]}", shell=True, executable="/bin/bash", text=True, cwd=tmp_path, capture_output=True,
                          env={"PATH": f"{harness.BUILD}:/usr/bin:/bin"}, timeout=harness.TIMEOUT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (int(code.split()[1]), wanted[">"], wanted["!"])
