"""
Values of every integer type, extremes included, and strings with whatever may be in them: as records, as keys and as what an
aggregation holds; printed as text, JSON and XML and read back.  SystemTap: printed and extracted.  Stacks: the same, frame by
frame, against what the program says of itself.
"""
import json
import random
import re
import xml.etree.ElementTree as ElementTree

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

PLACES = pytest.mark.parametrize("place", ["kernel", "target"])
INTEGERS = [(f"{'' if sign else 'u'}int{bits}_t", v) for bits in (8, 16, 32, 64) for sign in (True, False)
            for v in ([-(1 << (bits - 1)), -1, 0, 1, (1 << (bits - 1)) - 1] if sign else [0, 1, (1 << (bits - 1)), (1 << bits) - 1])]
STRINGS = ["", " ", "plain", " blanks  at both ends ", "a\"b'c\\d", "<tag>&amp;</tag>]]>", "\u00e4\u20ac\U0001f600", "tab\tnewline\n",
           "{\"a\": [1]}", "%d%s%%", "-1", "0x10", "null", "a" * 255]


def literal(v):
    if isinstance(v, str):
        return '"' + v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
    return "(-9223372036854775807 - 1)" if v == -(1 << 63) else f"{v}ULL" if v > (1 << 63) - 1 else f"{v}"


def clauses():
    """(the value, its clauses): traced, a key alone, a key with another, minimum and maximum."""
    for k, (t, v) in enumerate([*INTEGERS, *[(None, s) for s in STRINGS]]):
        shown = f"(({t}){literal(v)})" if t else literal(v)
        text = f'BEGIN {{ trace({shown}); @k{k}[{shown}] = sum(-{k + 1}); @p{k}[{k}, {shown}, "x"] = count(); }}\n'
        shows = [f"k{k}", f"p{k}"]
        if t:
            text += f"BEGIN {{ @l{k} = min({shown}); @h{k} = max({shown}); }}\n"
            shows += [f"l{k}", f"h{k}"]
        yield v, text, shows


def run(place, tmp_path, form, first, last):
    """(values, what is in the output) of a part: the clauses of one probe make one program, which has its limit."""
    there = list(clauses())[first:last]
    script = tmp_path / "values.d"
    script.write_text("".join(text for _, text, _ in there) + "BEGIN { exit(0); }\nEND {\n"
                      + "".join(f"printa(@{name});\n" for _, _, shows in there for name in shows) + "}\n")
    result = harness.dtrace("-q", "-x", f"place={place}", "-x", f"oformat={form}", "-s", script)
    assert result.code == 0 and not result.err, result
    return [v for v, _, _ in there], result.out


PARTS = [(k, k + 8) for k in range(0, len(INTEGERS) + len(STRINGS), 8)]


def judge(v, k, traced, data):
    """@data: the rows of the aggregations of value @k, each keys and value."""
    assert traced == v
    rows = [row for name in ("k", "p", "l", "h") if f"{name}{k}" in data for row in [data[f"{name}{k}"]]]
    want = [([v], -(k + 1)), ([k, v, "x"], 1)] + ([] if isinstance(v, str) else [([], v), ([], v)])
    assert rows == want, f"{rows}, not {want}"


@PLACES
@pytest.mark.parametrize("first,last", PARTS)
def test_json(tmp_path, place, first, last):
    values, text = run(place, tmp_path, "json", first, last)
    outputs = [output for probe in json.loads(text)["dtrace"]["probes"] for output in probe["output"]]
    traced = [output["value"] for output in outputs if "value" in output]
    data = {}
    for output in outputs:
        if "aggregation-data" in output:
            [row] = output["aggregation-data"]
            keys = row.pop("keys")
            data[output["aggregation-name"]] = (keys, *row.values())
    for k, v in enumerate(values):
        judge(v, first + k, traced[k], data)


@pytest.mark.parametrize("first,last", PARTS)
def test_xml(tmp_path, first, last):
    values, text = run("target", tmp_path, "xml", first, last)
    outputs = list(ElementTree.fromstring(text).iter("output"))
    traced = [output.findtext("value") for output in outputs if output.find("value") is not None]
    data = {}
    for output in outputs:
        row = output.find("aggregation-data")
        if row is not None:
            *keys, value = [part.text or "" for part in row]
            data[output.findtext("aggregation-name")] = keys, value
    for k, v in enumerate(values):
        assert traced[k] == str(v)
        want = {"k": ([str(v)], str(-(first + k + 1))), "p": ([str(first + k), str(v), "x"], "1"), "l": ([], str(v)), "h": ([], str(v))}
        for name, row in want.items():
            if f"{name}{first + k}" in data:
                assert data[f"{name}{first + k}"] == row


@PLACES
def test_stap(tmp_path, place):
    """Printed plain, through a variable, as a key, and as what a statistic holds."""
    values = [v for t, v in INTEGERS if t == "int64_t" or t == "int32_t"] + [s for s in STRINGS if "\n" not in s]
    script = tmp_path / "values.stp"
    text = ""
    for k, v in enumerate(values):
        kind = "%s" if isinstance(v, str) else "%d"
        more = "" if isinstance(v, str) else f's{k} <<< v{k} printf(" {kind} {kind}", @min(s{k}), @max(s{k}))'
        text += (("" if isinstance(v, str) else f"global s{k}\n") + f"global v{k}, a{k}, w{k}\nprobe begin({k}) {{ v{k} = {literal(v)} "
                 f'a{k}[v{k}, {k}] = 1 w{k}["x"] = v{k} foreach ([x, y] in a{k}) printf("={k}|{kind}|{kind}|{kind}|", v{k}, x, w{k}["x"])\n'
                 f'print(v{k}, "|", sprint(v{k})) {more} print("\\n") delete a{k} delete w{k} delete v{k} '
                 + ("" if isinstance(v, str) else f"delete s{k}") + " }\n")
    script.write_text(text + "probe begin(1000000) { exit() }\n")
    result = harness.stap(f"--place={place}", script)
    assert result.code == 0, result
    rows = dict(re.findall(r"^=(\d+)\|(.*)$", result.out, flags=re.M))
    for k, v in enumerate(values):
        want = "|".join([str(v)] * 5) + ("" if isinstance(v, str) else f" {v} {v}")
        assert rows[str(k)] == want, f"{rows[str(k)]!r}, not {want!r}"


# --- stacks -----------------------------------------------------------------------------------------------------------

# Functions that call each other at random, each from some line; what the innermost one sees is printed.
CALLS = """
import sys
def show(frame):
    while frame:
        print(f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})")
        frame = frame.f_back
def leaf():
    show(sys._getframe())
"""
STACKS = """
python$target:::line /copyinstr(arg1) == "leaf" && !done/ {
    done = 1;
    pystack(DEPTH, "line"); @key[pystack(DEPTH, "line")] = count(); @second[7, pystack(DEPTH, "line"), "x"] = sum(-3);
    @user[ustack(99)] = count();
}
END { printa(@key); printa(@second); printa(@user); }
"""


def calls(rng):
    """A program of up to nine functions, one inside the other, and how many."""
    depth = rng.randint(1, 9)
    text, inner = CALLS, "leaf"
    for k in range(depth):
        text += f"def f{k}():\n" + "    pass\n" * rng.randint(0, 5) + f"    {inner}()\n"
        inner = f"f{k}"
    return text + f"{inner}()\n", depth + 2


def of_json(text):
    """Stacks as lists of frames: the record's, those of the keys."""
    outputs = [output for probe in json.loads(text)["dtrace"]["probes"] for output in probe["output"]]
    [record] = [output for output in outputs if "ustack-frames" in output]
    rows = {output["aggregation-name"]: output["aggregation-data"] for output in outputs if "aggregation-data" in output}
    [[key], [second], [user]] = rows["key"], rows["second"], rows["user"]
    assert key["count"] == 1 and second["sum"] == -3 and second["keys"][0] == 7 and second["keys"][2] == "x"
    return [[frame["symbol"] for frame in stack["ustack-frames"]] for stack in
            (record, key["keys"][0], second["keys"][1], user["keys"][0])]


def of_xml(text):
    outputs = list(ElementTree.fromstring(text).iter("output"))
    [record] = [output for output in outputs if output.find("ustack-frames") is not None]
    rows = {output.findtext("aggregation-name"): output.find("aggregation-data") for output in outputs}
    return [[frame.findtext("symbol") for frame in stack.iter("ustack-frames")] for stack in
            (record, rows["key"], rows["second"], rows["user"])]


def of_text(text):
    """What is indented by fourteen, a stack a run of lines."""
    stacks = [[]]
    for line in text.splitlines():
        if line.startswith(" " * 14 + "[") or "`" in line:
            stacks[-1].append(line.strip())
        elif stacks[-1]:
            stacks.append([])
    return stacks[:4]


@PLACES
@pytest.mark.parametrize("form,read", [("json", of_json), ("xml", of_xml), ("text", of_text)], ids=["json", "xml", "text"])
def test_stacks(tmp_path, interp, place, form, read):
    rng = random.Random(f"{interp.version} {form}")
    program, depth = calls(rng)
    taken = rng.randint(1, depth)
    script = tmp_path / "stacks.d"
    script.write_text(STACKS.replace("DEPTH", str(taken)))
    result = harness.dtrace("-q", "-x", f"place={place}", "-x", "agent=always", *(["-x", f"oformat={form}"] if form != "text" else []),
                            "-o", tmp_path / "out", "-s", script, "-c", interp.command(program))
    assert result.code == 0, result
    own = [f"[ {line} ]" for line in result.out.splitlines()]
    stacks = read((tmp_path / "out").read_text())
    assert len(own) == depth and stacks[:3] == [own[:taken]] * 3, (own, stacks)
    assert [frame for frame in stacks[3] if frame.startswith("[")] == own and not any(frame.isdigit() for frame in stacks[3])
