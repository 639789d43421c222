"""doc/book: each command is run, and prints what stands there.

A block of "console" has commands behind "$ ", each followed by what it prints.  Of that a time, an address, and a number of three
digits or more, stand for any; "..." for any lines; /srv/shop for the folder of the programs.  DTAP_BOOK=write in the environment
writes what was printed to the book, but for blocks with "...".
"""
import os
import re
import shutil

import pytest

import harness

BOOK = harness.TOP / "doc" / "book"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
TIME = re.compile(r"\d+(?:\.\d+)? (?:ns|us|ms|s)\b")
ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
NUMBER = re.compile(r"\d+\\\.\d{6}|\d{3,}")       # of a line that re.escape() has changed

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_bpf, pytest.mark.slow]


def blocks():
    for page in sorted(BOOK.glob("*.md")):
        for i, block in enumerate(BLOCK.finditer(page.read_text())):
            yield pytest.param(page, block[1], id=f"{page.stem}-{i}")


def commands(block):
    """(command, expected lines) of a block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def pattern(line):
    """What the line may be: blanks, times and numbers differ."""
    text = re.escape(" ".join(TIME.sub("\0", ADDRESS.sub("\1", line)).split()))
    text = NUMBER.sub(r"[\\d.]+", text.replace(r"\ ", r"\s+").replace("\0", TIME.pattern))
    return text.replace("\1", ADDRESS.pattern)


def matches(expected, printed):
    """"..." is any number of lines."""
    text = "".join(r"(?:.*\n)*?" if line == "..." else rf"\s*{pattern(line)}\s*\n" for line in expected if line.strip())
    return re.fullmatch(text, "".join(f"{line}\n" for line in printed if line.strip()))


@pytest.fixture
def shell(tmp_path):
    folder = tmp_path / "shop"
    shutil.copytree(BOOK / "programs", folder)
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    (bin_dir / "python3").symlink_to("/usr/bin/python3")
    env = {"PATH": f"{bin_dir}:{harness.BUILD}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def shell(command):
        result = harness.run(["sh", "-c", command], cwd=folder, env=env)
        # A program that is left before its end may have come to it meanwhile.
        err = [line for line in result.err.splitlines()
               if not line.endswith(": the command runs on") and not line.startswith("# stap: dtap's agent supplies ")]
        assert result.code == 0 and not err, result
        return result.out.replace(str(folder), "/srv/shop").splitlines()
    return shell


def write(page, block, printed):
    text = "".join(f"$ {command}\n" + "".join(f"{line}\n" for line in lines) for command, lines in printed)
    page.write_text(page.read_text().replace(f"```console\n{block}```", f"```console\n{text}```"))


@pytest.mark.parametrize("page, block", blocks())
def test_book(shell, page, block):
    printed = []
    for command, expected in commands(block):
        lines = shell(command)
        if os.environ.get("DTAP_BOOK") == "write" and "..." not in expected:
            printed.append((command, lines))
        elif os.environ.get("DTAP_BOOK") == "write":
            print("\n".join([command, *lines]))
            printed.append((command, expected))
        else:
            assert matches(expected, lines), "\n".join([command, *lines])
    if printed:
        write(page, block, printed)


def test_programs_are_used():
    text = "".join(page.read_text() for page in BOOK.glob("*.md"))
    assert all(path.name in text for path in (BOOK / "programs").iterdir())


PAGES = {path.stem for path in BOOK.glob("*.md")}


def test_build_makes_each_page():
    build = (harness.TOP / "doc/meson.build").read_text()
    assert set(re.findall(r"'([^']+)'", build.partition("foreach page : [")[2].partition("]")[0])) == PAGES


@pytest.mark.skipif(not shutil.which("pandoc"), reason="pandoc is not installed")
@pytest.mark.parametrize("page", sorted(PAGES))
def test_pages_for_a_browser(page):
    """Their links to each other hold there."""
    result = harness.run(["pandoc", "--standalone", "--from", "gfm", "--metadata", "pagetitle=dtap", "--lua-filter",
                          BOOK / "links.lua", BOOK / f"{page}.md"])
    assert result.code == 0, result
    links = set(re.findall(r'href="([\w-]+)\.(html|md)"', result.out))
    assert {kind for _, kind in links} <= {"html"} and {name for name, _ in links} <= PAGES
