"""share/scripts: each script on a program of known shape, on each interpreter."""
import os
import pathlib
import re
import signal
import subprocess

import pytest

import harness

# All of them on all interpreters at once below.
pytestmark = [pytest.mark.needs_bpf, pytest.mark.alone, pytest.mark.slow]

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(__file__).parent / "data" / "toolkit.py"
SCRIPTS = sorted((TOP / "share" / "scripts").glob("py_*.d"))

FUNCTIONS = {"<module>": 1, "leaf": 5, "work": 1, "nap": 1, "spin": 1, "big": 1, "outer": 1}


@pytest.fixture
def run(interp):
    """run(name) -> what the script prints of the program, all rows.  In a pid namespace where the script is about every
    Python there is."""
    def run(name):
        script = TOP / "share" / "scripts" / f"py_{name}.d"
        inside = [] if "$target" in script.read_text() else ["unshare", "--pid", "--mount-proc", "--fork"]
        result = harness.run([*inside, harness.DTRACE, "-Z", "-s", script, "-c", interp.command(PROGRAM)])
        # Other Pythons of the machine may have more functions than there is room for; the program's own are looked at.
        err = re.sub(r"\d+ aggregation drops?", "", result.err)
        assert result.code == 0 and "drop" not in err and "error" not in err, result
        return result.out

    return run


def rows(text, pattern):
    return [m.groups() for m in re.finditer(pattern, text, re.M)]


def section(text, title):
    """The rows PID FILE FUNC NUMBER of toolkit.py under a title."""
    part = text[text.index(title):]
    return {func: int(n) for func, n in rows(part.split("\n\n")[0], r"^ +\d+ +toolkit.py +(\S+) +(\d+) *$")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_compiles(dtrace, script):
    result = dtrace("-Z", "-e", "-s", script, "-c", "/bin/true")
    assert result.code == 0, result
    assert script.stat().st_mode & 0o111 and script.read_text().startswith("#!/usr/bin/env -S dtrace -Zs\n")


NAME = r"((?:self|this)->\w+|[a-z]\w*)(?:\[[^]]*\])?"


def test_sums_have_room():
    """A variable whose first value is a number written down is an int: nanoseconds do not fit, after four seconds."""
    for script in sorted((TOP / "share").rglob("*.d")):
        text = re.sub(r"/\*.*?\*/", "", script.read_text(), flags=re.S)
        first = {}
        for name, value in rows(text, NAME + r" = ([^;]*);"):
            first.setdefault(name, value)
        for name in {name for name, in rows(text, NAME + r" \+= ")}:
            bare = name.split("->")[-1]
            declared = re.search(rf"^\s*(?:self |this )?\w+ {bare}(?:\[[^]]*\])?;", text, re.M)
            assert declared or not first.get(name, "x").isdigit(), (script, name)


def test_runs_as_a_command(script=SCRIPTS[0]):
    """Whatever prefix dtap was installed below: dtrace is looked for in PATH."""
    result = harness.run([script, "-e", "-c", "/bin/true"], env={"PATH": f"{harness.BUILD}:/usr/bin:/bin"})
    assert (result.code, result.err) == (0, ""), result


def test_funccalls(run):
    assert {f: int(n) for f, n in rows(run("funccalls"), r"^ +\d+ toolkit.py +(\S+) +(\d+)$")} == FUNCTIONS


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
    inside = inclusive["nap"] + inclusive["spin"]
    assert abs(inclusive["outer"] - exclusive["outer"] - inside) <= 3 and inside >= 300_000, out     # each is rounded
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
        picture = part[re.search(r"^ +\d+, toolkit.py, spin", part, re.M).start():].split("\n\n")[0]
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
    ("flowtime", r"^ *\d+ +\d+ +\d+ +\d+ +toolkit.py +-- +(->|<-) (\S+)$"),
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


# The innermost function of a stack, after its row.
LEAF = r"\n +\[ \S*toolkit.py:\d+ \(%s\) \]$"


def test_syscalls(run):
    out = run("syscalls")
    assert rows(out, r"^ +\d+ (\S+) +(\d+)" + LEAF % "leaf") == [("getppid", "5")], out
    assert rows(out, r"^ +\d+ (\w*(?:sleep|select)\w*) +(\d+)" + LEAF % "nap"), out


def test_syscolors(run):
    out = run("syscolors")
    assert len(re.findall(r"\033\[2;31m.*-> getppid\033\[0m$", out, re.M)) == 5, out


def test_profile(run):
    """Ninety-seven samples a second: a quarter of a second of spinning gives some two dozen, sleeping next to none."""
    out = run("profile")
    functions, code = out.split("Samples by the code that ran")
    (spin,), nap = rows(functions, r"^ +\d+ +(\d+)" + LEAF % "spin"), rows(functions, r"^ +\d+ +(\d+)" + LEAF % "nap")
    assert 15 <= int(*spin) <= 60 and sum(int(n) for n, in nap) <= 3, out
    assert rows(code, r"^ +\d+ (\S+`\S+) +\d+" + LEAF % "spin"), out


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


JOB = """
import os, time

def NAME():
    n = len(bytearray(300_000)) + os.getppid()
    for i in range(10_000):
        n += i
    return n

while True:
    for i in range(20):
        NAME()
        time.sleep(0.001)
    os.write(1, b".")
"""


class Job:
    """A program that runs in the pid namespace of process @init, on one interpreter."""

    def __init__(self, init, version):
        found = harness.interpreters().get(version, "unknown")
        if isinstance(found, str):
            pytest.skip(f"no Python {version}: {found}")
        self.interp = harness.Interp(version, found)
        self.name = f"job{version.replace('.', '_')}"
        script = self.interp.add(JOB.replace("NAME", self.name), f"{self.name}.py")
        self.enter = subprocess.Popen(["nsenter", "-t", str(init), "-p", "-m", *found, script], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE)

    def done(self, rounds):
        """Wait until it has come round that often, what it has done already not counted."""
        os.set_blocking(self.enter.stdout.fileno(), False)
        self.enter.stdout.read()
        os.set_blocking(self.enter.stdout.fileno(), True)
        self.enter.stdout.read(rounds)

    @property
    def pid(self):
        return child_of(self.enter.pid)

    def close(self):
        self.enter.wait()
        self.enter.stdout.close()
        self.interp.close()


def child_of(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(text[0]) if text else None


@pytest.fixture(scope="module")
def five():
    """The namespace's first process, and a program on each interpreter."""
    unshare = subprocess.Popen(["unshare", "--pid", "--mount-proc", "--fork", "--kill-child", "sleep", "600"])
    jobs = []
    try:
        init = harness.wait_until(lambda: child_of(unshare.pid), what="the namespace")
        jobs += [Job(init, version) for version in harness.VERSIONS]
        for job in jobs:
            job.done(1)
        yield init, jobs
    finally:
        unshare.kill()
        unshare.wait()
        for job in jobs:
            job.close()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_all_interpreters_at_once(five, script, tmp_path):
    """Without a target: every Python that runs, of whatever version, in one session."""
    init, jobs = five
    out = tmp_path / "out"
    inside, target = ["nsenter", "-t", str(init), "-p", "-m"], []
    if "$target" in script.read_text():     # about one process, and progenyof() is for the first namespace
        jobs = jobs[-1:]
        inside, target = [], ["-p", str(jobs[0].pid)]
    enter = subprocess.Popen([*inside, harness.DTRACE, "-Z", "-x", "aggsize=16m", "-o", out, "-s", script, *target],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    harness.wait_until(lambda: enter.poll() is not None or out.exists() and out.stat().st_size)
    if enter.poll() is None:
        for job in jobs:
            job.done(12 if script.stem == "py_profile" else 2)      # samples, not events
        os.kill(child_of(enter.pid) if inside else enter.pid, signal.SIGINT)
    result = harness.finish(enter, enter.args)
    err = re.sub(r"\d+ (aggregation )?drops?", "", result.err)     # the machine may be slow
    assert result.code == 0 and "error" not in err, result
    text = out.read_text(errors="replace")
    missing = [job.name for job in jobs if job.name not in text]
    assert not missing, (missing, result, text[-2000:])
