#!/usr/bin/python3
"""Asks SystemTap itself for its verdict on the scripts of parse/ (stap -p1) and check/ (stap -p2).

	agree.py [parse|check [PATTERN]]

A script that the two judge differently on purpose says so in a comment "stap: accepts" or "stap: refuses".  Prints the
others; exit code 1 if there are any.  All of them take some three minutes; agree_test.py asks about a part.
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PASSES = {"parse": "-p1", "check": "-p2"}


# What of a configured kernel's tree passes 1 and 2 look at.
CONFIG = ("X86_64", "MODULES", "UTRACE", "UPROBES", "KPROBES", "ARCH_SUPPORTS_UPROBES", "TRACEPOINTS", "PERF_EVENTS")


def systemtap():
    """The original's stap, or None: dtap's own may be found before it."""
    for folder in os.environ.get("PATH", "").split(":"):
        path = shutil.which("stap", path=folder)
        if path and "dtap" not in pathlib.Path(path).resolve().name:
            return path
    return None


class Original:
    """SystemTap with a kernel's tree, made in @folder, that is enough to judge scripts."""

    def __init__(self, folder):
        self.stap = systemtap()
        self.folder = pathlib.Path(folder)
        config = self.folder / "include/config"
        config.mkdir(parents=True)
        (config / "kernel.release").write_text(platform.release() + "\n")
        (self.folder / ".config").write_text("".join(f"CONFIG_{name}=y\n" for name in CONFIG))
        for name in ("Module.symvers", "System.map", "Makefile"):
            (self.folder / name).touch()

    def refuses(self, stage, path):
        done = subprocess.run([self.stap, "-r", self.folder, PASSES[stage], path], capture_output=True, text=True,
                              env=dict(os.environ, SYSTEMTAP_DIR=str(self.folder)), timeout=60)
        return done.returncode != 0

    def disagrees(self, stage, path):
        """What the original does with a script that ours, or the script's comment, says it does not; or None."""
        text = path.read_text()
        known = re.search(r"stap: (accepts|refuses)", text)
        want = known.group(1) == "refuses" if known else "/* error: " in text
        if self.refuses(stage, path) == want:
            return None
        return f"{stage}/{path.name}: stap {'accepts' if want else 'refuses'}"


def main():
    stages = sys.argv[1:2] or list(PASSES)
    pattern = sys.argv[2] if len(sys.argv) > 2 else "*.stp"
    asked = differ = 0
    with tempfile.TemporaryDirectory() as folder:
        original = Original(folder)
        for stage in stages:
            for path in sorted((HERE / stage).glob(pattern)):
                asked += 1
                what = original.disagrees(stage, path)
                if what:
                    differ += 1
                    print(what)
    print(f"{asked} scripts, {differ} judged differently")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
