#!/usr/bin/python3
"""Asks SystemTap itself for its verdict on the scripts of parse/ (stap -p1) and check/ (stap -p2).

	agree.py KERNEL_BUILD_DIR [parse|check [PATTERN]]

KERNEL_BUILD_DIR is given to stap -r: a configured kernel tree, or a folder with .config (CONFIG_ lines) and
include/config/kernel.release, which is enough for these passes.  A script that the two judge differently on
purpose says so in a comment "stap: accepts" or "stap: refuses".  Prints the others; exit code 1 if there are any.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PASSES = {"parse": "-p1", "check": "-p2"}


def stap_refuses(build, stage, path, cache):
    done = subprocess.run(
        ["stap", "-r", build, PASSES[stage], str(path)],
        env=dict(os.environ, SYSTEMTAP_DIR=cache), capture_output=True, text=True, timeout=60)
    return done.returncode != 0


def main():
    build, stages = sys.argv[1], sys.argv[2:3] or list(PASSES)
    pattern = sys.argv[3] if len(sys.argv) > 3 else "*.stp"
    asked = differ = 0
    with tempfile.TemporaryDirectory() as cache:
        for stage in stages:
            for path in sorted((HERE / stage).glob(pattern)):
                text = path.read_text()
                ours = "/* error: " in text
                known = re.search(r"stap: (accepts|refuses)", text)
                want = known.group(1) == "refuses" if known else ours
                asked += 1
                if stap_refuses(build, stage, path, cache) != want:
                    differ += 1
                    print(f"{stage}/{path.name}: stap {'accepts' if want else 'refuses'}")
    print(f"{asked} scripts, {differ} judged differently")
    return differ > 0


sys.exit(main())
