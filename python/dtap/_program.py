"""The program dtap, and how it is started: the command, and the tracer of a run."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import NoReturn

# Instead of the package's own program; for tests of another one.
VARIABLE = "DTAP_PROGRAM"


def program() -> str:
    """The path of the program: that of DTAP_PROGRAM, the package's own, or the one in PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_program_files", "bin", "dtap")
    found = own if os.path.exists(own) else shutil.which("dtap")
    if not found:
        raise FileNotFoundError(f"dtap's program is not in the package ({own}), nor in PATH")
    return found


def version() -> str:
    """The version of the program."""
    return subprocess.run([program(), "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[1]


def main() -> NoReturn:
    """The command dtap: this process becomes the program."""
    path = program()
    sys.stdout.flush()
    os.execv(path, ["dtap", *sys.argv[1:]])
