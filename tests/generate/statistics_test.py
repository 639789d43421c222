"""
Statistics of random lists, extremes among them, against exact arithmetic: what D prints as text, JSON and XML under keys of
both kinds, and what SystemTap extracts.  DTAP_SEED=N takes other lists.
"""
import collections
import json
import math
import os
import pathlib
import random
import re
import statistics
import struct
import sys
import xml.etree.ElementTree as ElementTree

import pytest

import harness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import ground  # noqa: E402
import machine  # noqa: E402

pytestmark = pytest.mark.needs_bpf

LOW, HIGH = -(1 << 63), (1 << 63) - 1
EDGES = (0, 1, -1, 2, -2, 3, 7, 8, -8, 9, 99, 100, 101, 999, 1000, -1000, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 62) - 1, 1 << 62,
         -(1 << 62), HIGH, HIGH - 1, LOW, LOW + 1)
LINEAR = (-20, 100, 7)
LOGLINEAR = (10, 0, 3, 20)


def lists():
    seed = int(os.environ.get("DTAP_SEED", "1"))
    print(f"DTAP_SEED={seed}")
    rnd = random.Random(seed)
    for size in (1, 2, 3, 5, 8, 9):
        yield [rnd.choice(EDGES) for _ in range(size)]
        yield [rnd.randint(-150, 150) for _ in range(size)]
        yield [rnd.choice((rnd.getrandbits(64) - (1 << 63), rnd.randint(0, 2000), rnd.choice(EDGES))) for _ in range(size)]


def keep(v):
    return (v - LOW) % (1 << 64) + LOW


def towards_zero(a, b):
    return -(-a // b) if a < 0 else a // b


def stddev(values):
    """libdtrace's: of the average of the squares less the square of the average, all integers."""
    mean = abs(towards_zero(keep(sum(values)), len(values)))
    squares = sum(v * v for v in values) % (1 << 128)
    return math.isqrt((squares // len(values) - mean * mean) % (1 << 128))


def power(v):
    """quantize()'s bucket: the last ones have all that is beyond."""
    if not v:
        return 0
    bound = 1 << min(abs(v).bit_length() - 1, 62)
    return bound if v > 0 else -bound


def linear(v):
    """lquantize()'s bucket by its number: 0 is below."""
    low, high, step = LINEAR
    levels = (high - low) // step
    return 0 if v < low else min((v - low) // step, levels) + 1


def loglinear(v):
    """llquantize()'s: the bucket's beginning, away from zero; 0 is below the first magnitude."""
    factor, first, last, steps = LOGLINEAR
    size = abs(v)
    if size < factor ** first:
        return 0
    if size >= factor ** (last + 1):
        at = factor ** (last + 1)
    else:
        k = first
        while size >= factor ** (k + 1):
            k += 1
        top = factor ** (k + 1)
        width = max(top // steps, 1)
        at = size // width * width
    return at if v > 0 else -at


SCALARS = {
    "count": ("count()", len),
    "sum": ("sum(%s)", lambda values: keep(sum(values))),
    "min": ("min(%s)", min),
    "max": ("max(%s)", max),
    "avg": ("avg(%s)", lambda values: towards_zero(keep(sum(values)), len(values))),
    "stddev": ("stddev(%s)", stddev),
}
BUCKETS = {
    "quantize": ("quantize(%s)", power),
    "llquantize": ("llquantize(%%s, %d, %d, %d, %d)" % LOGLINEAR, loglinear),
    "lquantize": ("lquantize(%%s, %d, %d, %d)" % LINEAR, linear),
}


def number(v):
    return "(-9223372036854775807 - 1)" if v == LOW else f"({v})"


def d_script(show, ends):
    """The values and the numbers of their lists are in the traced program's memory, one pair for each call."""
    calls = "".join(f'@{name}["list", this->k] = {call % "this->v" if "%s" in call else call};\n'
                    for name, (call, _) in {**SCALARS, **BUCKETS}.items())
    return f"""
int n;
python$target:::function-entry
/copyinstr(arg1) == "zprobe"/
{{
this->v = *(int64_t *)copyin({ground.BASE:#x} + 16 * n, 8);
this->k = *(int *)copyin({ground.BASE:#x} + 16 * n + 8, 4);
n++;
{calls}
}}
END {{
{"".join(show(name) for name in ends)}
}}"""


def traced(interp, place, show, ends, *options):
    """(the lists, the run)."""
    every = list(lists())
    pairs = b"".join(struct.pack("<qq", v, k) for k, values in enumerate(every) for v in values)
    assert len(pairs) <= ground.PAGE
    script = interp.dir / "statistics.d"
    script.write_text(d_script(show, ends))
    command = interp.command(ground.Memory(pairs, b"").program(len(pairs) // 16))
    result = harness.dtrace("-q", "-x", f"place={place}", *options, "-s", script, "-c", command)
    assert result.code == 0 and not [line for line in result.err.splitlines() if not line.startswith("#")], result
    return every, result


def same(every, name, k, got):
    want = SCALARS[name][1](every[k])
    assert got == want, f"{name} of {every[k]}: {got}, not {want}"


def same_buckets(every, name, k, got):
    """@got: [(value, count)] of all that is printed, in order."""
    want = collections.Counter(BUCKETS[name][1](v) for v in every[k])
    if name == "lquantize":             # by position: the first begins with the lowest that is there, or one before it
        shown = [n for _, n in got if n]
        assert shown == [want[bucket] for bucket in sorted(want)], f"{name} of {every[k]}: {got}, not {want}"
        return
    shown = {v: n for v, n in got if n}
    assert shown == want, f"{name} of {every[k]}: {shown}, not {dict(want)}"


PLACES = pytest.mark.parametrize("place", ["kernel", "target"])


@PLACES
@pytest.mark.interps("3.13")
def test_text(interp, place):
    every, result = traced(interp, place, lambda name: f'printa("{name} <%s> %d %@d\\n", @{name});\n', SCALARS)
    rows = re.findall(r"^(\w+) <list> (\d+) (-?\d+)$", result.out, flags=re.M)
    assert len(rows) == len(every) * len(SCALARS), result
    for name, k, value in rows:
        same(every, name, int(k), int(value))


@PLACES
@pytest.mark.interps("3.13")
def test_json(interp, place):
    every, result = traced(interp, place, lambda name: f"printa(@{name});\n", [*SCALARS, *BUCKETS], "-x", "oformat=json")
    shown = [output for probe in json.loads(result.out)["dtrace"]["probes"] for output in probe["output"]]
    assert {output["aggregation-name"] for output in shown} == {*SCALARS, *BUCKETS}
    for output in shown:
        name = output["aggregation-name"]
        assert len(output["aggregation-data"]) == len(every)
        for row in output["aggregation-data"]:
            word, k = row["keys"]
            assert word == "list"
            if name in SCALARS:
                same(every, name, k, row[name])
            else:
                same_buckets(every, name, k, [(b["value"], b["count"]) for b in row["buckets"]])


@pytest.mark.interps("3.13")
def test_xml(interp):
    every, result = traced(interp, "target", lambda name: f"printa(@{name});\n", [*SCALARS, *BUCKETS], "-x", "oformat=xml")
    shown = [o for o in ElementTree.fromstring(result.out).iter("output") if o.findtext("aggregation-name")]
    assert {o.findtext("aggregation-name") for o in shown} == {*SCALARS, *BUCKETS}
    for output in shown:
        name = output.findtext("aggregation-name")
        rows = output.findall("aggregation-data")
        assert len(rows) == len(every)
        for row in rows:
            word, k = [key.text for key in row.findall("keys")]
            assert word == "list"
            if name in SCALARS:
                same(every, name, int(k), int(row.findtext(name)))
            else:
                same_buckets(every, name, int(k), [(int(b.findtext("value")), int(b.findtext("count")))
                                                   for b in row.findall("buckets")])


# --- SystemTap -------------------------------------------------------------------------------------

STAP = {"count": len, "sum": lambda v: keep(sum(v)), "min": min, "max": max,
        "avg": lambda v: towards_zero(keep(sum(v)), len(v))}
SHIFTS = (0, 1, 4, 10, 31, 62)


def shift_of(k):
    return SHIFTS[k % len(SHIFTS)]


def stap_statistic(values, shift, linear=None):
    """What SystemTap's runtime makes of the values, step by step (machine.py)."""
    made = machine.Statistic((True, True, shift, "linear" if linear else "log", linear))
    for v in values:
        made.add(v)
    return made


def stap_script(every):
    """Each list in a statistic, and with a shift, bounds and keys in an array."""
    text = ""
    for k, values in enumerate(every):
        shift, bounds = shift_of(k), "%d, %d, %d" % LINEAR
        for s, key, variance, hist in ((f"s{k}", "", "", "@hist_log({})"),
                                       (f"t{k}", '["list", 1]', f", {shift}", f"@hist_linear({{}}, {bounds})")):
            hist = hist.format(s + key)
            words = [f"@{name}({s}{key})" for name in STAP] + [f"@variance({s}{key}{variance})"]
            text += f"global {s}\nprobe begin({k}) {{ {' '.join(f'{s}{key} <<< {number(v)};' for v in values)}\n"
            text += f'printf("{s} {" ".join("%d" for _ in words)}\\n", {", ".join(words)})\n'
            text += f'foreach (b in {hist}) if ({hist}[b]) printf("hist {s} %d %d\\n", b, {hist}[b])\n'
            text += f"delete {s} }}\n"
    return text + "probe begin(1000000) { exit() }\n"


@PLACES
def test_stap(tmp_path, place):
    every = list(lists())
    script = tmp_path / "statistics.stp"
    script.write_text(stap_script(every))
    result = harness.stap(f"--place={place}", script)
    assert result.code == 0, result
    hists = collections.defaultdict(dict)
    rows = re.findall(r"^([st])(\d+) (-?\d+) (-?\d+) (-?\d+) (-?\d+) (-?\d+) (-?\d+)$", result.out, flags=re.M)
    assert len(rows) == 2 * len(every), result
    for s, k, *got in rows:
        values, shift = every[int(k)], shift_of(int(k)) if s == "t" else 0
        want = [fn(values) for fn in STAP.values()] + [stap_statistic(values, shift).get("svariance")]
        assert [int(v) for v in got] == want, f"{values}, shift {shift}: {got}, not {want}"
    for s, bucket, n in re.findall(r"^hist (\w+) (-?\d+) (\d+)$", result.out, flags=re.M):
        hists[s][int(bucket)] = int(n)
    for k, values in enumerate(every):
        for s, bounds in ((f"s{k}", None), (f"t{k}", LINEAR)):
            want = stap_statistic(values, 0, bounds).buckets
            assert hists[s] == want, f"{s}, {values}: {hists[s]}, not {want}"


def test_the_steps_are_near():
    """What SystemTap's integers make of small values, against the variance itself: a shift makes them exact."""
    rnd = random.Random(2)
    for _ in range(300):
        values = [rnd.randint(-1000, 1000) for _ in range(rnd.randint(2, 40))]
        exact = statistics.variance(values)
        assert abs(stap_statistic(values, 16).get("svariance") - exact) <= 1
        assert abs(stap_statistic(values, 0).get("svariance") - exact) <= exact / 4 + 1000
