"""Structured output (-x oformat): what FreeBSD's dtrace(1) says of its form, read by Python's own parsers."""
import json
import xml.etree.ElementTree as ElementTree

import pytest

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"

SCRIPT = r"""
    BEGIN { trace("a\"b<>&\001\n"); trace(-1); printf("x %d %s\n", 3, "s"); }
    BEGIN { @c["k", 1] = count(); @c["k", 2] = count(); @c["k", 2] = count(); @q = quantize(5); @m = max(-5); }
    BEGIN { s = speculation(); t = speculation(); exit(4); }
    END { printa(@q); printa("%@d\n", @m); }"""


def test_json(dtrace):
    result = dtrace("-x", "oformat=json", "-n", SCRIPT)
    probes = json.loads(result.out)["dtrace"]["probes"]
    assert result.code == 4 and [p["name"] for p in probes] == ["BEGIN", "BEGIN", "END", "DROP"], result
    first = probes[0]
    assert list(first) == ["timestamp", "cpu", "id", "provider", "module", "function", "name", "output"]
    assert (first["id"], first["provider"], first["module"]) == (1, "dtrace", "")
    assert first["output"] == [{"value": 'a"b<>&\1\n'}, {"value": -1}, {"message": "x 3 s\n"}, {"value": 3},
                               {"value": "s"}]
    assert probes[1]["output"] == []
    assert probes[2]["output"] == [
        {"aggregation-data": [{"keys": [], "buckets": [{"value": 2, "count": 0}, {"value": 4, "count": 1},
                                                       {"value": 8, "count": 0}]}], "aggregation-name": "q"},
        {"aggregation-data": [{"keys": [], "max": -5}], "aggregation-name": "m"}]
    assert (probes[3]["kind"], probes[3]["count"], probes[3]["total"]) == (7, 1, 1)


def test_aggregations_of_the_end(dtrace):
    """-O prints those that the script did not."""
    result = dtrace("-O", "-x", "oformat=json", "-n", SCRIPT)
    probe = json.loads(result.out)["dtrace"]["probes"][3]
    assert probe["output"] == [{"aggregation-data": [{"keys": ["k", 1], "count": 1}, {"keys": ["k", 2], "count": 2}],
                                "aggregation-name": "c"}], result


def test_xml(dtrace):
    result = dtrace("-x", "oformat=xml", "-n", SCRIPT)
    root = ElementTree.fromstring(result.out)
    assert root.tag == "dtrace" and [p.findtext("name") for p in root] == ["BEGIN", "BEGIN", "END", "DROP"], result
    assert [output[0].text for output in root[0].findall("output")] == ['a"b<>&\ufffd\n', "-1", "x 3 s\n", "3", "s"]
    buckets = root[2].findall("output/aggregation-data/buckets")
    assert [(b.findtext("value"), b.findtext("count")) for b in buckets] == [("2", "0"), ("4", "1"), ("8", "0")]


def test_stacks_and_symbols(dtrace):
    result = dtrace("-x", "oformat=json", "-n", "pid$target::getpgid:entry { ustack(2); usym(arg1 ? 0 : ucaller); exit(0); }",
                    "-c", f"{PYTHON} -S -c 'import os; os.getpgid(0)'")
    output = [o for p in json.loads(result.out)["dtrace"]["probes"] for o in p["output"]]
    frame = output[0]["ustack-frames"][0]
    assert frame["name"] == "getpgid" and frame["module"].startswith("libc.so"), result
    assert frame["symbol"].startswith(f"{frame['module']}`getpgid"), result
    assert "usym" in output[1], result


def test_floating_point(dtrace):
    """As the number that it is, or as text where JSON has none."""
    result = dtrace("-x", "oformat=json", "-n", r"""struct p { double d; float f; }; BEGIN {
        this->p = (struct p *)alloca(sizeof (struct p)); *(long *)this->p = 0x3fd5555555555555;
        *(int *)((char *)this->p + 8) = 0xff800000; printf("%.2f %g", this->p->d, this->p->f); exit(0); }""")
    assert json.loads(result.out)["dtrace"]["probes"][0]["output"] == [{"message": "0.33 -inf"}, {"value": 1 / 3},
                                                                       {"value": "-inf"}], result


def test_stacks_as_keys(dtrace):
    """Their frames, not the number that stands for them."""
    script = "pid$target::getpgid:entry { @[ustack(2), pid == $target] = count(); }"
    command = f"{PYTHON} -S -c 'import os; os.getpgid(0)'"
    result = dtrace("-O", "-x", "oformat=json", "-n", script, "-c", command)
    (row,) = json.loads(result.out)["dtrace"]["probes"][-1]["output"][0]["aggregation-data"]
    frames = row["keys"][0]["ustack-frames"]
    assert frames[0]["name"] == "getpgid" and row["keys"][1] == 1 and row["count"] == 1, result
    result = dtrace("-O", "-x", "oformat=xml", "-n", script, "-c", command)
    (row,) = ElementTree.fromstring(result.out)[-1].findall("output/aggregation-data")
    assert row.findtext("keys/ustack-frames/name") == "getpgid" and row.findtext("count") == "1", result
