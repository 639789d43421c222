"""
Values of every integer type, extremes included, and strings with whatever may be in them: as records, as keys and as what an
aggregation holds; printed as text, JSON and XML and read back.  SystemTap: printed and extracted.
"""
import json
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
