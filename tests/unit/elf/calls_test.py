#!/usr/bin/env python3
"""calls_test.py SHOW OBJDUMP:FILE...: what SHOW (calls_show.c) prints of each file, beside what objdump reads there.
Files and objdumps that are not there are skipped."""
import pathlib
import re
import shutil
import subprocess
import sys

ENTRY = re.compile(r"^0*([0-9a-f]+) <([\w.]+)(?:@[\w.]+)?@plt>:$", re.M)
CALL = re.compile(r"^ *([0-9a-f]+):\t(?:bnd )?(?:callq?|jmpq?|bl|b)[ \t]+[0-9a-f]+ <([\w.]+)(?:@[\w.]+)?@plt>", re.M)


def read(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def compare(show, objdump, path):
    text = read(objdump, "-d", "--no-show-raw-insn", path)
    theirs = {("entry", name, int(address, 16)) for address, name in ENTRY.findall(text)}
    # That one is called by code without call frame information, where instructions' starts are not known.
    theirs |= {("call", name, int(address, 16)) for address, name in CALL.findall(text) if name != "__gmon_start__"}
    ours = {(kind, name, int(address, 16)) for kind, name, address in map(str.split, read(show, path).splitlines())}
    print(f"{path}: {len(ours & theirs)} as objdump's")
    return [f"{path}: {who} alone: {kind} {name} {address:#x}" for who, some in (("ours", ours - theirs), ("objdump's", theirs - ours))
            for kind, name, address in sorted(some)] + ([f"{path}: nothing found"] if len(ours) < 20 else [])


def main():
    show, *pairs = sys.argv[1:]
    wrong, n = [], 0
    for objdump, path in (pair.split(":") for pair in pairs):
        if shutil.which(objdump) and pathlib.Path(path).exists():
            wrong += compare(show, objdump, path)
            n += 1
    print("\n".join(wrong[:20]))
    return bool(wrong) if n else 77


if __name__ == "__main__":
    sys.exit(main())
