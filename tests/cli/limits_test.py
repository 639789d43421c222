"""
Limits made small: a golden script's output stays what it is, or a message says which limit was met.  A value is never wrong.

With more keys than there is room for, those that are there have what they must have, and the others are counted.
"""
import re
import shlex

import pytest

import harness
from golden import KERNEL_ONLY, Directives

pytestmark = pytest.mark.needs_bpf

TESTS = harness.TOP / "tests"
D_LIMITS = {
    "specsize": (("1", "64"), re.compile(r"\d+ speculative drops?")),
    "nspec": (("1",), re.compile(r"\d+ failed speculations?")),
}
STAP_LIMITS = {
    "MAXMAPENTRIES": (("1",), re.compile(r"Array overflow")),
    "MAXACTION": (("7",), re.compile(r"MAXACTION exceeded")),
    "MAXNESTING": (("1",), re.compile(r"MAXNESTING exceeded")),
}


def scripts(folder, suffix):
    """Goldens that the tracer runs by itself, with the output that they have."""
    for path in sorted((TESTS / folder / "run").glob(f"*{suffix}")):
        directives = Directives(path)
        if directives.program or directives.output is None or directives.get("exit") or "stderr" in directives:
            continue
        if "sort" in directives or "script-args" in directives:
            continue
        yield path, directives


def own_options(directives, default):
    return shlex.split(directives.get("options", default))


def lines(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def judge(path, limit, value, result, want, message):
    """What is wrong, or None."""
    said = message.search(result.err) or message.search(result.out)
    if lines(result.out) == lines(want):
        return None
    if said:
        return None
    if result.code and re.search(rf"{limit}|memory|too small|size|limit", result.err):
        return None
    return f"{path.name} with {limit}={value}: the output is another, and nothing says why\n{result!r}"


@pytest.mark.slow
@pytest.mark.parametrize("limit", D_LIMITS)
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_d(place, limit):
    values, message = D_LIMITS[limit]
    wrong, met, ran = [], 0, 0
    for path, directives in scripts("d", ".d"):
        text = path.read_text()
        if "speculat" not in text or re.search("-x place|-c", directives.get("options", "")):
            continue
        if place == "target" and KERNEL_ONLY.search(text):
            continue
        for value in values:
            result = harness.dtrace(*own_options(directives, "-q"), "-x", f"place={place}", "-x", f"{limit}={value}", "-s", path)
            bad = judge(path, limit, value, result, directives.output, message)
            wrong += [bad] if bad else []
            met += bool(message.search(result.err))
            ran += 1
    print(f"{ran} runs, the limit met in {met}")
    assert not wrong, f"{len(wrong)} of {ran}:\n" + "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("limit", STAP_LIMITS)
def test_stap(limit):
    values, message = STAP_LIMITS[limit]
    wrong, met, ran = [], 0, 0
    uses = {"MAXMAPENTRIES": r"\w+\[.*\] *(=|<<<|\+\+)", "MAXACTION": "for|while|foreach", "MAXNESTING": "function"}[limit]
    for path, directives in scripts("stp", ".stp"):
        if not re.search(uses, path.read_text()) or re.search("--place|-D", directives.get("options", "")):
            continue
        for value in values:
            result = harness.stap(*own_options(directives, ""), "--place=target", f"-D{limit}={value}", path)
            bad = judge(path, limit, value, result, directives.output, message)
            wrong += [bad] if bad else []
            met += bool(message.search(result.err))
            ran += 1
    print(f"{ran} runs, the limit met in {met}")
    assert not wrong, f"{len(wrong)} of {ran}:\n" + "\n".join(wrong)


KEYS, CALLS = 700, 2100
MANY = """
def limits_probe(k):
    pass

for k in range(%d):
    limits_probe(k)
""" % CALLS
CROWD = """
int n, a[int]; self int s[int];
python$target:::function-entry
/copyinstr(arg1) == "limits_probe"/
{
	a[n %% %d] = n + 1;
	self->s[n %% %d] = n + 2;
	@["agg", n %% %d] = sum(n);
	printf("line %%d %%d %%d\\n", n, a[n %% %d], self->s[n %% %d]);
	n++;
}
END { printa("%%s %%d %%@d\\n", @); }""" % ((KEYS,) * 5)
TOLD = {"aggsize": r"(\d+) aggregation drop", "dynvarsize": r"(\d+) dynamic variable drop", "bufsize": r"(\d+) drops?\b"}


@pytest.mark.interps("3.13")
@pytest.mark.parametrize("limit,value", [("aggsize", "16"), ("aggsize", "16k"), ("dynvarsize", "12"),
                                         ("dynvarsize", "16k"), ("bufsize", "4k"), (None, None)])
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_crowd(interp, place, limit, value):
    script = interp.dir / "crowd.d"
    script.write_text(CROWD)
    options = ["-x", f"{limit}={value}"] if limit else []
    result = harness.dtrace("-q", "-x", f"place={place}", "-x", "agent=always", *options, "-s", script, "-c", interp.command(MANY))
    assert result.code == 0, result
    lost = sum(map(int, re.findall(TOLD[limit], result.err))) if limit else 0
    rows = [tuple(map(int, row)) for row in re.findall(r"^agg (\d+) (\d+)$", result.out, flags=re.M)]
    shown = [tuple(map(int, row)) for row in re.findall(r"^line (\d+) (\d+) (\d+)$", result.out, flags=re.M)]
    absent = sum(1 for n, a, s in shown for v in (a, s) if not v)
    for key, total in rows:
        assert total == sum(range(key, CALLS, KEYS)), result
    for n, a, s in shown:
        assert a in (0, n + 1) and s in (0, n + 2), result
    missing = {"aggsize": (KEYS - len(rows)) * (CALLS // KEYS), "dynvarsize": absent, "bufsize": CALLS - len(shown), None: 0}
    for what, many in missing.items():
        met = many or what != limit or what in ("bufsize", None)
        assert met and many == (lost if what == limit else 0), f"{many} of {what} are missing, {lost} are told\n{result.err}"
