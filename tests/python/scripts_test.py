"""share/scripts: each script on a program of known shape, on each interpreter."""
import pathlib
import re

import pytest

import harness

pytestmark = [pytest.mark.needs_bpf, pytest.mark.alone]

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(__file__).parent / "data" / "toolkit.py"
SCRIPTS = sorted((TOP / "share" / "scripts").glob("py_*.d"))

FUNCTIONS = {"<module>": 1, "leaf": 5, "work": 1, "nap": 1, "spin": 1, "big": 1, "outer": 1}


@pytest.fixture
def run(interp):
    """run(name) -> what the script prints of the program, all rows.  In a pid namespace, since the scripts are about
    every Python there is."""
    def run(name):
        result = harness.run(["unshare", "--pid", "--mount-proc", "--fork", harness.DTRACE, "-Z", "-s",
                              TOP / "share" / "scripts" / f"py_{name}.d", "-c", interp.command(PROGRAM)])
        # Other Pythons of the machine may have more functions than there is room for; the program's own are looked at.
        err = re.sub(r"\d+ aggregation drops?", "", result.err)
        assert result.code == 0 and "drop" not in err and "error" not in err, result
        return result.out

    return run


def rows(text, pattern):
    return [m.groups() for m in re.finditer(pattern, text, re.M)]


def section(text, title):
    """The rows FILE FUNC NUMBER of toolkit.py under a title."""
    part = text[text.index(title):]
    return {func: int(n) for func, n in rows(part.split("\n\n")[0], r"^ +toolkit.py +(\S+) +(\d+) *$")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_compiles(dtrace, script):
    result = dtrace("-Z", "-e", "-s", script, "-c", "/bin/true")
    assert result.code == 0, result
    assert script.stat().st_mode & 0o111 and script.read_text().startswith("#!/usr/sbin/dtrace -Zs\n")


def test_funccalls(run):
    assert {f: int(n) for f, n in rows(run("funccalls"), r"^ toolkit.py +(\S+) +(\d+)$")} == FUNCTIONS


def test_calls(run):
    out = run("calls")
    assert ("leaf", "5") in rows(out, r"^ +\d+ func +(\S+) +(\d+)$"), out
    assert rows(out, r"^ +\d+ import +(os|time) +(\d+)$") or "import" in out, out


def test_who(run):
    assert rows(run("who"), r"^ +\d+ +(\d+) +(\d+) \S*toolkit.py$") == [("0", str(sum(FUNCTIONS.values())))]


def test_calltime(run):
    out = run("calltime")
    assert section(out, "Count,") == FUNCTIONS, out
    exclusive, inclusive = section(out, "Exclusive"), section(out, "Inclusive")
    assert exclusive["nap"] >= 50_000 and inclusive["spin"] >= 250_000, out
    assert exclusive["outer"] < 20_000 < 300_000 <= inclusive["outer"], out
    assert all(exclusive[f] <= inclusive[f] for f in FUNCTIONS), out
    assert inclusive["<module>"] >= inclusive["outer"] + inclusive["work"] + inclusive["big"], out


@pytest.mark.interps("3.9")
def test_cputime(run):
    """Sleeping takes no CPU, spinning a quarter of a second by the process's own clock."""
    out = run("cputime")
    inclusive = section(out, "Inclusive")
    assert inclusive["nap"] < 20_000 and 240_000 <= inclusive["spin"] <= 600_000, out


@pytest.mark.interps("3.9")
@pytest.mark.parametrize("name", ["calldist", "cpudist"])
def test_distributions(run, name):
    out = run(name)
    for title in ("Exclusive", "Inclusive"):
        part = out[out.index(title):]
        picture = part[part.index("toolkit.py, spin"):].split("\n\n")[0]
        (bucket,), = rows(picture, r"^ +(\d+) \|@+ +1 *$")
        assert 131072 <= int(bucket) and (name == "calldist" or int(bucket) <= 262144), out


def nest(out, pattern):
    """Calls by (caller, callee) from arrows, each return closing the call on top."""
    pairs, stack = {}, ["?"]
    for arrow, func in rows(out, pattern):
        if arrow == "->":
            pairs[stack[-1], func] = pairs.get((stack[-1], func), 0) + 1
            stack.append(func)
        elif stack[-1] == func:
            stack.pop()
    return pairs


@pytest.mark.parametrize("name, pattern", [
    ("flow", r"^ *\d+ +\d+ +(->|<-) toolkit.py:(\S+)$"),
    ("flowinfo", r"^ *\d+ +\d+ +\d+ +toolkit.py:\d+ +func +(->|<-) (\S+)$"),
    ("flowtime", r"^ *\d+ +\d+ +\d+ +toolkit.py +-- +(->|<-) (\S+)$"),
    ("syscolors", r"toolkit.py:\d+ +func +(->|<-) (\S+?)\033\[0m$"),
])
def test_flow(run, name, pattern):
    out = run(name)
    pairs = nest(out, pattern)
    assert pairs == {("?", "<module>"): 1, ("<module>", "work"): 1, ("work", "leaf"): 5, ("<module>", "outer"): 1,
                     ("outer", "nap"): 1, ("outer", "spin"): 1, ("<module>", "big"): 1}, out


def test_flow_indents(run):
    lines = rows(run("flow"), r"^ *\d+ +\d+ ( +)-> toolkit.py:(leaf|work)$")
    assert {len(blanks) for blanks, func in lines if func == "leaf"} == {
        len(blanks) + 2 for blanks, func in lines if func == "work"}


def test_syscalls(run):
    out = run("syscalls")
    assert rows(out, r"^ +\d+ toolkit.py +leaf +(\S+) +(\d+)$") == [("getppid", "5")], out
    assert rows(out, r"^ +\d+ toolkit.py +nap +(\w*(?:sleep|select)\w*) +(\d+)$"), out


def test_syscolors(run):
    out = run("syscolors")
    assert len(re.findall(r"\033\[2;31m.*-> getppid\033\[0m$", out, re.M)) == 5, out


def test_profile(run):
    """Ninety-seven samples a second: a quarter of a second of spinning gives some two dozen, sleeping next to none."""
    out = run("profile")
    samples = section(out, "Samples by Python function")
    assert 15 <= samples["spin"] <= 60 and samples.get("nap", 0) <= 3, out
    assert rows(out, r"^ +toolkit.py +spin +(\S+`\S+) +\d+ *$"), out


def test_malloc(run):
    """Seven times a hundred thousand bytes."""
    out = run("malloc")
    (calls, size), = rows(out, r"^ +toolkit.py +big +(\d+) +(\d+)$")
    assert 7 <= int(calls) <= 20 and 700_000 <= int(size) <= 800_000, out
    assert re.search(r"^ +65536 \|@+ +7 *$", out[out.index("toolkit.py, big"):], re.M), out


def test_mallocstk(run):
    out = run("mallocstk")
    part = out[out.index("toolkit.py, big\n"):]
    assert re.search(r"^ {14}libc\S*`malloc\n {14}python3\S*`", part, re.M), out
