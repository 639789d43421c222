#!/usr/bin/env python3
"""unwind_test.py SHOW FILE...: the rows that SHOW (unwind_show.c) prints of each file, beside readelf's reading of its
call frame information.  Files that are not there are skipped."""
import bisect
import pathlib
import re
import subprocess
import sys

# readelf's names: stack pointer, frame pointer, return address.
NAMES = {"rsp": "sp", "rbp": "fp", "sp": "sp", "x29": "fp"}


def read(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=argv[0] != "readelf").stdout


def from_readelf(path):
    """(address, row in SHOW's words, or None where readelf's is none that it can say) of each row."""
    for part in read("readelf", "--debug-dump=frames-interp", path).split("\n\n"):
        head, *lines = part.strip().splitlines() or [""]
        if " FDE " not in head or len(lines) < 2:
            continue
        end = int(re.search(r"pc=\w+\.\.(\w+)", head)[1], 16)
        columns = lines[0].split()[2:]
        for line in lines[1:]:
            line = re.sub(r"(r\d+) \(\w+\)", r"\1", line)      # another register has it
            address, cfa, *saved = line.split()
            if int(address, 16) >= end:
                continue
            where = dict(zip(columns, saved))
            frame, back = (where.get("rbp", where.get("x29", "u")), where["ra"] if "ra" in where else "u")
            found = re.fullmatch(r"(\w+)\+(\d+)", cfa)
            yield int(address, 16), cfa, found and NAMES.get(found[1]) and f"{NAMES[found[1]]} {found[2]}", frame, back


def number(text):
    """u, or c-16 as -16; None for an expression, another register, undefined."""
    found = re.fullmatch(r"c([-+]\d+)", text)
    return "u" if text == "u" else str(int(found[1])) if found else None


def compare(show, path):
    rows = [line.split(maxsplit=1) for line in read(show, path).splitlines()]
    starts = [int(row[0], 16) for row in rows]
    same, wrong, unsaid = 0, [], 0
    links = "AArch64" in read("readelf", "-h", path)
    for address, cfa, base, frame, back in from_readelf(path):
        at = bisect.bisect_right(starts, address) - 1
        ours = rows[at][1] if at >= 0 and starts[at] >> 10 == address >> 10 else "unknown"
        if ours == "end":
            continue        # the return address is undefined, which readelf shows as not saved
        saved = number(frame), number(back)
        theirs = f"{base} {saved[0]} {saved[1]}" if base and None not in saved else "unknown"
        if ours == theirs:
            same += 1
        elif ours == "unknown":
            unsaid += 1     # more than a row can say
        else:
            wrong.append(f"{path}: {address:#x}: {ours}, readelf has {cfa} {frame} {back}")
    # What rows cannot say is rare: procedure linkage, code in assembly.
    print(f"{path}: {same} rows as readelf's, {len(wrong)} others, {unsaid} that our rows cannot say"
          f"{', with a link register' if links else ''}")
    return wrong + ([f"{path}: too many unknown rows"] if same < 1000 or unsaid * 50 > same else [])


def main():
    show, *paths = sys.argv[1:]
    paths = [path for path in paths if pathlib.Path(path).exists()]
    wrong = [line for path in paths for line in compare(show, path)]
    print("\n".join(wrong[:20]))
    return bool(wrong) if paths else 77


if __name__ == "__main__":
    sys.exit(main())
