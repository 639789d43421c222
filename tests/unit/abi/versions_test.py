#!/usr/bin/python3
"""
What the tracer and the agent of different builds have in common does not change unnoticed.

`versions`, beside this file, has for each version (the comment of ABI_VERSION in src/abi/record.h is the rule) a digest of
the code that it stands for.  When the code has changed: raise the version if one end would misunderstand the other, and
run this file with --write.
"""
import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
SRC = HERE.parents[2] / "src"
RECORD = HERE / "versions"
VERSIONS = {
    "ABI_VERSION": ("abi/record.h", ["abi/record.h", "abi/segment.h", "abi/python.h", "abi/unwind.h", "abi/task.def",
                                       "abi/values.def"]),
    "ABI_AGENT_VERSION": ("abi/agent.h", ["abi/agent.h", "abi/marker.h", "abi/marker.def"]),
}


def code(path):
    """The file without comments, versions and differences of white space."""
    text = re.sub(r"/\*.*?\*/", " ", (SRC / path).read_text(), flags=re.DOTALL)
    text = re.sub(r"\b(%s) = \d+" % "|".join(VERSIONS), r"\1", text)
    return " ".join(text.split())


def line(name):
    where, files = VERSIONS[name]
    number = re.search(r"\b%s = (\d+)" % name, (SRC / where).read_text())[1]
    digest = hashlib.sha256("\n".join(code(path) for path in files).encode()).hexdigest()
    return f"{name} {number} {digest[:16]}"


def main():
    lines = [line(name) for name in VERSIONS]
    if "--write" in sys.argv:
        RECORD.write_text("\n".join(lines) + "\n")
        return 0
    for now, then in zip(lines, RECORD.read_text().splitlines()):
        if now != then:
            name = now.split()[0]
            print(f"{', '.join(VERSIONS[name][1])} changed: {RECORD.relative_to(SRC.parent)} has {then}, it is {now}.\n"
                  f"Raise {name} in src/{VERSIONS[name][0]} if a tracer and an agent would misunderstand each other, "
                  f"then run {pathlib.Path(__file__).relative_to(SRC.parent)} --write")
    return lines != RECORD.read_text().splitlines()


if __name__ == "__main__":
    sys.exit(main())
