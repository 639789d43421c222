#!/usr/bin/python3
"""Includes go up in README.md's list of folders, never down; and what enters other processes stays small."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
ORDER = re.findall(r"^src/(\w+) ", (TOP / "README.md").read_text(), re.MULTILINE)

# Folders that know less than stands above them: what they may include of others.
KNOWS = {
    "agent": ("abi/", "vm/", "base/cookie.h", "base/glob.h", "base/guarded.h", "base/utf8.h", "probe/pyoffsets.h"),     # all that goes into a traced process
    "vm": ("abi/", "arch/", "base/cookie.h"),
    "bpf": ("abi/", "arch/", "base/", "lang/", "ir/"),  # a pure function
    "d": ("base/", "lang/", "type/", "ir/", "abi/", "arch/"),
    "stp": ("base/", "lang/", "ir/", "abi/", "arch/"),
}

# These ask nothing of the live system: what a language needs to know of it comes in its environment (stp_env).
NOT_LIVE = ("stp", "ir", "bpf", "lang", "type")
LIVE = re.compile(r"\b(sysconf|[fl]?stat|get(pid|ppid|uid|euid|gid|egid|tid)|uname|gethostname|getenv|clock_gettime|time)\(")

# The commands that trace are callers of the library: they know its header and nothing below it.
CALLERS = ("dtrace.c", "dtrace_opts.c", "stap.c", "stap_opts.c", "stap_output.c", "dump.c", "diff.c", "view.c",
           "stream.c")


def includes(path):
    return re.findall(r'^\s*#\s*include "(\w+/[\w./]+)"', path.read_text(), re.MULTILINE)


def wrong(folder, include):
    other = include.split("/")[0]
    if other == folder or other not in ORDER:
        return None
    if ORDER.index(other) > ORDER.index(folder):
        return f"{other} stands below {folder} in README.md"
    if folder in KNOWS and not include.startswith(KNOWS[folder]):
        return f"{folder} may not know {other}"
    return None


def below_the_face(path):
    return [f"{path.relative_to(TOP)}: {include}: a caller of dtap.h knows nothing below it"
            for include in includes(path) if not include.startswith(("cmd/", "base/"))]


def main():
    folders = sorted(path.name for path in (TOP / "src").iterdir() if path.is_dir())
    errors = [f"README.md lists {name}, src has not" for name in ORDER if name not in folders]
    errors += [f"README.md does not list src/{name}" for name in folders if name not in ORDER]
    for folder in set(folders) & set(ORDER):
        for path in sorted((TOP / "src" / folder).rglob("*.[chd]*")):
            for include in includes(path):
                why = wrong(folder, include)
                if why:
                    errors.append(f"{path.relative_to(TOP)}: {include}: {why}")
            if folder in NOT_LIVE and (call := LIVE.search(path.read_text())):
                errors.append(f"{path.relative_to(TOP)}: {call[0]}): {folder} asks nothing of the live system")
    for path in [TOP / "src" / "cmd" / name for name in CALLERS] + [
            path for folder in ("ready", "serve") for path in sorted((TOP / "src" / "cmd" / folder).iterdir())]:
        errors += below_the_face(path)
    for error in errors:
        print(error)
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
