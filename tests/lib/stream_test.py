"""dtap stream: lines of JSON for programs, and its manual."""
import json
import re
import subprocess

import pytest

from harness import BUILD, TOP, run

PAGE = (TOP / "doc/man/dtap-stream.1").read_text()
DTAP = BUILD / "dtap"
SCRIPT = ('BEGIN { printf("%d %s", 5, "x\\"\\n"); @counts["a", -1] = count(); @sizes = quantize(7); @means = avg(3); exit(4); }\n'
          'END { trace($1); }')


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def members(lines):
    """{event: names of members}"""
    found = {}
    for line in lines:
        found.setdefault(line["event"], set()).update(line)
        for action in line.get("actions", ()):
            found["record"].update(action)
    return found


@pytest.mark.needs_bpf
def test_lines():
    result = run([DTAP, "stream", "--script", SCRIPT, "--command", "sh -c 'echo seen; cat'", "9"])
    assert result.code == 4 and "seen" not in result.out, result
    got = lines(result.out)
    begin, end = [line for line in got if line["event"] == "record"]
    assert begin["name"] == "BEGIN" and begin["actions"] == [{"name": "printf", "text": '5 x"\n', "values": [5, 'x"\n']}]
    assert end["name"] == "END" and end["actions"][0]["values"] == [9]
    rows = {line["aggregation"]: line for line in got if line["event"] == "row"}
    assert rows["counts"]["keys"] == ["a", -1] and rows["counts"]["value"] == 1
    assert [4, 1] in rows["sizes"]["buckets"] and (rows["means"]["count"], rows["means"]["sum"]) == (1, 3)
    assert got[-2] == {"event": "rows"} and (got[-1]["event"], got[-1]["error"], got[-1]["status"]) == ("end", "", 4)
    assert {"started", "message"} <= {line["event"] for line in got}
    described = {name: set(re.findall(r"\.Sy ([\w ,]+)", text)) for name, text in
                 re.findall(r"^\.It Sy (\w+)\n(.*?)(?=^\.It|^\.El)", PAGE, re.M | re.S)}
    for event, names in members(got).items():
        words = set(re.findall(r"\w+", " ".join(described[event]))) | {"event"}
        assert names <= words, (event, names - words)


@pytest.mark.needs_bpf
def test_requests():
    """Rows as they are now; the end of the caller is the end of the run."""
    child = subprocess.Popen([DTAP, "stream", "-n", "BEGIN, tick-1ms { @ = count(); }"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)

    def until(event):
        while True:
            line = json.loads(child.stdout.readline())
            if line["event"] == event:
                return line
    until("started")
    child.stdin.write("rows\n")
    child.stdin.flush()
    first = until("row")["value"]
    until("rows")
    child.stdin.close()
    assert until("row")["value"] >= first >= 1
    assert until("end")["error"] == "" and child.wait() == 0


@pytest.mark.parametrize("words, code, says", [
    (["-n", "BEGIN {"], 1, "dtrace: failed to compile"),
    (["-n", "BEGIN { exit(0); }", "-x", "nosuch"], 1, "there is no option 'nosuch'"),
    (["-n", "BEGIN { exit(0); }", "-l", "perl"], 2, "no language: 'perl'"),
    (["-n", "BEGIN { exit(0); }", "-p", "x"], 2, "no process id: 'x'"),
    (["-n", "BEGIN { exit(0); }", "--channel", "999"], 1, "no open descriptor"),
    ([], 2, "usage: dtap stream"),
])
def test_mistakes(words, code, says):
    result = run([DTAP, "stream", *words])
    assert result.code == code and says in result.out + result.err, result


def test_manual():
    """Its options are those of --help."""
    shown = run([DTAP, "stream", "--help"]).out
    in_help = set(re.findall(r"^  (?:-(\w), |    )--(\w+)", shown, re.M))
    in_page = {(names[0], names[1]) for names in re.findall(r"^\.It Fl (?:(\w) , Fl )?-(\w+)", PAGE, re.M)}
    assert in_help == in_page
