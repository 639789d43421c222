"""dtap diff, of files whose differences can be told by reading, and of runs of a program that says how often it calls; dtap view."""
import json
import os
import re
import tempfile
import xml.etree.ElementTree

import pytest

import harness

DTAP = harness.BUILD / "dtap"
NOBODY = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def dtap(*words, before=(), **kwargs):
    return harness.run([*before, DTAP, *words], **kwargs)


def tree(*nodes):
    """JSON lines of (depth, function, calls, self)."""
    return "".join(json.dumps({"calls": calls, "self_ns": own, "total_ns": own, "pid": 7, "depth": depth, "function": function,
                               "file": "a.py"}) + "\n" for depth, function, calls, own in nodes)


BEFORE = tree((0, "main", 1, 10), (1, "parse", 2, 100), (2, "read", 4, 50), (1, "gone", 1, 30))
AFTER = tree((0, "main", 1, 10), (1, "parse", 2, 40), (2, "read", 5, 250), (1, "new", 3, 7))
# By hand: the function, and how its own time, its total and its calls changed.
CHANGES = [("read", 200, 200, 1), ("new", 7, 7, 3), ("main", 0, 117, 0), ("gone", -30, -30, -1), ("parse", -60, 140, 0)]


@pytest.fixture
def files(tmp_path):
    def files(before, after):
        for name, text in (("before", before), ("after", after)):
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return [tmp_path / "before", tmp_path / "after"]
    return files


def rows(*words):
    result = dtap("diff", "--json", *words)
    assert result.code == 0, result
    return [json.loads(line) for line in result.out.splitlines()]


def changes(found):
    return [(row["function"], row["change_ns"], row["total_change_ns"], row["calls_change"]) for row in found]


# --- rows -----------------------------------------------------------------------------------------------------------------

def test_rows(files):
    found = rows(*files(BEFORE, AFTER))
    assert changes(found) == CHANGES
    assert all(row["after_ns"] - row["before_ns"] == row["change_ns"] and row["file"] == "a.py" for row in found)


def test_text(files):
    result = dtap("diff", "-n", "1", *files(BEFORE, AFTER))
    assert result.code == 0 and [line.split() for line in result.out.splitlines()] == [
        ["CHANGE", "BEFORE", "AFTER", "TOTAL", "CALLS", "FUNCTION", "FILE"],
        ["+200", "ns", "50", "ns", "250", "ns", "+200", "ns", "+1", "read", "a.py"],
        ["-60", "ns", "100", "ns", "40", "ns", "+140", "ns", "+0", "parse", "a.py"]], result


@pytest.mark.parametrize("limit, left", [("0", [0, 1, 2, 3, 4]), ("2", [0, 1, 3, 4]), ("9", [0, 1, 2, 3, 4])])
def test_ends(files, limit, left):
    assert changes(rows("-n", limit, *files(BEFORE, AFTER))) == [CHANGES[i] for i in left]


def test_recursion(files):
    """The total of a function that calls itself is counted once."""
    before = tree((0, "f", 1, 5), (1, "f", 1, 5), (2, "f", 1, 5))
    after = tree((0, "f", 1, 5), (1, "f", 1, 5), (2, "f", 2, 9))
    assert changes(rows(*files(before, after))) == [("f", 4, 4, 1)]


def test_the_same(files):
    result = dtap("diff", *files(BEFORE, BEFORE))
    assert (result.code, result.err) == (0, "# dtap diff: there is no difference\n"), result


FOLDED = "process 4;main;read 50\nprocess 5;main;read 20\nmain;a b 8\n", "process 9;main;read 60\nmain;a b 9\n"


def test_folded(files):
    """Frames may have blanks; processes are one; plain numbers, or times if that is said."""
    pair = files(*FOLDED)
    assert [(row["function"], row["change"], row["before"], row["after"]) for row in rows(*pair)] == [
        ("a b", 1, 8, 9), ("main", 0, 0, 0), ("read", -10, 70, 60)]
    assert {row["function"]: row["change_ns"] for row in rows("-t", *pair)} == {"a b": 1, "main": 0, "read": -10}


def test_shares(files):
    """The second run took twice as long, and is otherwise the same."""
    before, after = tree((0, "f", 1, 30), (0, "g", 1, 10)), tree((0, "f", 1, 60), (0, "g", 1, 20))
    assert [row["change_ns"] for row in rows(*files(before, after))] == [30, 10]
    assert dtap("diff", "-s", *files(before, after)).err == "# dtap diff: there is no difference\n"


# --- pictures -------------------------------------------------------------------------------------------------------------

def nodes(node):
    yield node
    for child in node[5]:
        yield from nodes(child)


def test_flame_graph(files, tmp_path):
    result = dtap("diff", "-o", tmp_path / "x.html", *files(BEFORE, AFTER))
    page = (tmp_path / "x.html").read_text()
    assert result.code == 0 and "isDifference = true" in page, result
    data = json.loads(re.search(r"^const data = (.*);$", page, re.M)[1])
    found = {node[0]: (node[2:5], node[6:9]) for node in nodes(data)}
    assert found == {"all": ([0, 0, 307], [0, 0, 190]), "main": ([1, 10, 307], [1, 10, 190]), "parse": ([2, 40, 290], [2, 100, 150]),
                     "read": ([5, 250, 250], [4, 50, 50]), "new": ([3, 7, 7], [0, 0, 0]), "gone": ([0, 0, 0], [1, 30, 30])}


def test_picture(files, tmp_path):
    """Red is more, blue is less, the most of each the strongest; what took no time after is not there."""
    assert dtap("diff", "-o", tmp_path / "x.svg", *files(BEFORE, AFTER)).code == 0
    svg = "{http://www.w3.org/2000/svg}"
    boxes = {group.find(svg + "title").text.split(" (")[0].split(":")[0]: group.find(svg + "rect").attrib
             for group in xml.etree.ElementTree.parse(tmp_path / "x.svg").iter(svg + "g")}
    colours = {name: [int(n) for n in re.findall(r"\d+", box["fill"])] for name, box in boxes.items()}
    assert set(boxes) == {"all", "main", "parse", "read", "new"}
    assert colours["read"][0] == colours["new"][0] == 5 and colours["parse"][0] == 215 and colours["main"][1] == 0, colours
    assert colours["read"][2] < colours["parse"][2] < colours["new"][2], colours
    widths = {name: float(box["width"]) for name, box in boxes.items()}
    assert widths["read"] / widths["main"] == pytest.approx(250 / 307, abs=0.001)


def test_hostile_names(files, tmp_path):
    """What a terminal or a browser would act upon."""
    pair = files(tree((0, "a\x1b[2Jb", 1, 5)), tree((0, "</script>\ud83d\ude00", 1, 5)))
    text = dtap("diff", *pair)
    assert text.code == 0 and "a?[2Jb" in text.out and "\U0001f600" in text.out, text
    assert dtap("diff", "-o", tmp_path / "x.html", *pair).code == 0
    data = (tmp_path / "x.html").read_text().partition("const data = ")[2].partition("\n")[0]
    assert "<" not in data and "\\u003c/script" in data


# --- mistakes -------------------------------------------------------------------------------------------------------------

NODE = '{"function":"f","depth":0,"self_ns":1}\n'


@pytest.mark.parametrize("text, message", [
    ("", "before: there is no stack with time or samples"),
    ("main 0\n", "before: there is no stack with time or samples"),
    ("main\n", "before:1: a line is a stack, functions with ';' between them, a blank and a number"),
    ("main 1.5\n", "before:1: the number at its end is no integer of 64 bits"),
    ("main 5\nmain 99999999999999999999\n", "before:2: the number at its end is no integer of 64 bits"),
    ("main -5\n", "before:1: a line is a stack, functions with ';' between them, a blank and a number"),
    ("f;" * 5000 + "f 1\n", "before:1: the stack has more than 4096 functions"),
    (f"main {2 ** 62}\n", "before:1: the sum of the numbers is too large"),
    (b"main\0 5\n", "before:1: it has a byte 0, so it is no text"),
    (b"\x1f\x8b\x08\n", "before:1: a line is a stack, functions with ';' between them, a blank and a number"),
    ("{}\n", "before:1: it is no node of a tree"),
    ('{"function":"f","depth":0}\n', "before:1: it is no node of a tree"),
    ('{"function":"f","depth":0,"self_ns":1,"self":1}\n', "before:1: it is no node of a tree"),
    (NODE + '{"function":"f","depth":2,"self_ns":1}\n', "before:2: depth 2 without the function around it"),
    ('{"function":"f","depth":-1,"self_ns":1}\n', "before:1: depth -1 without the function around it"),
    ('{"function":"f","depth":0,"self_ns":-1}\n', "before:1: calls and times are not negative"),
    ('{"function":"f"', "before:1: it is no flat object of JSON: at column 16 '}' is missing"),
    ('{"function":"f",,', "before:1: it is no flat object of JSON: at column 17 a text is missing"),
    ('{"function":["f"]}', "before:1: it is no flat object of JSON: at column 13 a text or a number is missing"),
    ('{"function":"f\n', "before:1: it is no flat object of JSON: at column 15 the end of a text is missing"),
    ('{"function":"\\x"}', "before:1: it is no flat object of JSON: at column 15 the letter of an escape is missing"),
    ('{"function":"\\u0000"}', "before:1: it is no flat object of JSON: at column 16 a character in four digits is missing"),
    ('{"depth":1e3}', "before:1: it is no flat object of JSON: at column 10 an integer of 64 bits is missing"),
    (NODE[:-1] + "x\n", "before:1: it is no flat object of JSON: at column 39 the end of the line is missing"),
])
def test_malformed_files(files, text, message):
    result = dtap("diff", *files(text, AFTER))
    assert result.code == 1 and result.out == "" and message in result.err and result.err.count("\n") == 1, result


def test_mistakes(files, tmp_path):
    pair = files(BEFORE, AFTER.replace("self_ns", "self"))
    assert dtap("diff", *pair).err == "dtap diff: one of the files has times, the other samples\n"
    assert f"dtap diff: cannot read {tmp_path}/no: No such file" in dtap("diff", tmp_path / "no", pair[1]).err
    result = dtap("diff", *files(BEFORE, AFTER), "-o", "x.pprof")
    assert result.code == 2 and ".html (a flame graph" in result.err and "pprof (" not in result.err, result
    for words in (["a"], ["a", "b", "c"], ["-n", "x", "a", "b"], ["-n", "-1", "a", "b"], ["--nosuch", "a", "b"]):
        assert dtap("diff", *words).code == 2


# --- of runs --------------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
def leaf(): pass
def more(n):
    for _ in range(n): leaf()
more(int(sys.argv[1]))
"""


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_of_runs(interp, tmp_path):
    """Both formats of record, as it writes them; the program says by its argument how often it calls."""
    for calls in (20, 50):
        for suffix in ("jsonl", "folded"):
            result = dtap("record", "-o", tmp_path / f"{calls}.{suffix}", "-c", interp.command(PROGRAM, calls))
            assert result.code == 0, result
    found = {row["function"]: row for row in rows(tmp_path / "20.jsonl", tmp_path / "50.jsonl")}
    assert found["leaf"]["calls_change"] == 30 and found["leaf"]["file"].endswith(".py"), found
    found = {row["function"]: row for row in rows("-t", tmp_path / "20.folded", tmp_path / "50.folded")}
    assert "calls_change" not in found["leaf"] and found["leaf"]["change_ns"] == found["leaf"]["after_ns"] - found["leaf"]["before_ns"]


# --- dtap view ------------------------------------------------------------------------------------------------------------

@pytest.fixture
def desk():
    """A folder of nobody's, with a picture and an xdg-open that writes down how it was called, and ends as the file "code" says."""
    with tempfile.TemporaryDirectory(prefix="dtap-", dir="/tmp") as folder:
        os.mkdir(f"{folder}/bin")
        with open(f"{folder}/bin/xdg-open", "w", encoding="utf-8") as program:
            program.write(f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/called\nexit $(cat {folder}/code)\n')
        for name, text in (("x.html", "<p>"), ("x.folded", "a 1\n"), ("x.pb.gz", ""), ("code", "0")):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(f"{folder}/bin/xdg-open", 0o755)
        os.chmod(folder, 0o777)
        yield folder


def view(desk, *words, display="DISPLAY", path=None, user=NOBODY if os.geteuid() == 0 else ()):
    env = {"PATH": path or f"{desk}/bin:/usr/bin:/bin", "DISPLAY": "", "WAYLAND_DISPLAY": "", display: ":7"}
    return dtap("view", *words, before=user, cwd=desk, env=env)


@pytest.mark.parametrize("display", ["DISPLAY", "WAYLAND_DISPLAY"])
def test_view(desk, display):
    result = view(desk, "x.html", display=display)
    assert (result.code, result.out, result.err) == (0, "", ""), result
    with open(f"{desk}/called", encoding="utf-8") as called:
        assert called.read() == f"{desk}/x.html\n"
    with open(f"{desk}/code", "w", encoding="utf-8") as code:
        code.write("3")
    result = view(desk, "x.html")
    assert result.code == 1 and result.err == f"dtap view: xdg-open could not open {desk}/x.html (status 3)\n", result


def test_view_without_a_display(desk):
    for kwargs, why in (({"display": "NO_DISPLAY"}, "there is no display"), ({"path": "/nonexistent"}, "there is no xdg-open"),
                        *([({"user": ()}, "browsers are not started for root")] if os.geteuid() == 0 else [])):
        result = view(desk, "./x.html", **kwargs)
        assert (result.code, result.out) == (0, f"{desk}/x.html\n") and result.err == f"# dtap view: {why}: open this in a browser\n"
    assert not os.path.exists(f"{desk}/called")


@pytest.mark.parametrize("name, code, message", [
    ("x.folded", 2, "x.folded is no picture, but a stack and its number in each line, as flamegraph.pl takes them; "),
    ("x.pb.gz", 2, "x.pb.gz is no picture, but a profile for pprof; dtap record -o FILE.html makes one, "),
    ("code", 2, "code is no picture; dtap record "), ("no.html", 1, "cannot read no.html: No such file or directory"),
    ("bin", 1, "bin is no file"),
])
def test_what_is_no_picture(desk, name, code, message):
    result = view(desk, name)
    assert result.code == code and result.err.startswith(f"dtap view: {message}"), result
    assert not os.path.exists(f"{desk}/called")
