"""
The agent built with sanitizers, and interpreters that have the sanitizers' library.  Only a build with sanitizers has one
(make check-san).
"""
import os
import pathlib
import shutil
import subprocess

import harness

AGENT = harness.BUILD / "src/agent/san/dtap-agent.so"


def refusal():
    """Why there is none, or ""."""
    if not AGENT.exists():
        return "the build has no sanitizers"
    return "" if shutil.which("gcc") else "needs gcc, whose library it is"


def build(folder):
    """A build folder, in @folder, whose commands bring that agent."""
    (folder / "build/src/agent").mkdir(parents=True)
    (folder / "share").symlink_to(harness.TOP / "share")
    shutil.copy(harness.BUILD / "dtap", folder / "build/dtap")
    for name in ("dtrace", "stap"):
        (folder / "build" / name).symlink_to("dtap")
    (folder / "build/src/agent/dtap-agent.so").symlink_to(AGENT)
    return folder / "build"


def library(interp):
    """The sanitizers' library, where @interp finds it, by the host's name; None: it does not run with its C library."""
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    path = interp.dir / pathlib.Path(found).resolve().name
    shutil.copy(pathlib.Path(found).resolve(), path)
    words = words_with(interp, interp.inside(path), [])
    env = dict(os.environ, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0:exitcode=99")
    return None if subprocess.run([*words, "-c", ""], env=env, stderr=subprocess.PIPE).stderr else path


def words_with(interp, preload, more):
    """The words that start @interp with objects preloaded and its memory from malloc(); @more: variables."""
    words = ["/usr/bin/env", f"LD_PRELOAD={preload}", "PYTHONMALLOC=malloc", *more]
    return [*interp.argv[:2], *words, *interp.argv[2:]] if interp.root else [*words, *interp.argv]
