"""What commands tell, against another witness of the same interpreter: cProfile, sys.setprofile, sys.settrace, gc.get_stats, an
audit hook, -X importtime, tracemalloc; and strace for what is read and written.

The program does the same each time; a witness watches it in a run of its own, without dtap.
"""
import json
import re
import shutil
import subprocess

import pytest

import harness
from commands_test import dtap, lines

pytestmark = pytest.mark.needs_root

WORK = """
import gc, json, os, sys
class Error(ValueError):
    pass
class Part:
    def __init__(self, n):
        self.n, self.other = n, None
    def twice(self):
        return add(self.n, self.n)
def add(a, b):
    return a + b
def generates(n):
    for i in range(n):
        yield add(i, 1)
def recurses(n):
    return recurses(n - 1) + 1 if n else 0
def inner(n):
    if n % 3 == 0:
        raise Error(n)
    return abs(n)
def outer(n):
    try:
        return inner(n)
    except Error:
        return max(n, 0)
def swallows(n):
    try:
        inner(0)
    except Exception:
        return n
def cycles(n):
    for i in range(n):
        a, b = Part(i), Part(i)
        a.other, b.other = b, a
def keeps(n):
    for i in range(n):
        kept.append(bytes(3000 + i))
def audits(n):
    for i in range(n):
        sys.audit("witness.one", i)
def writes(n):
    fd = os.open(__file__ + ".out", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
    for i in range(n):
        os.write(fd, b"x" * (i + 1))
    os.lseek(fd, 0, 0)
    for i in range(3):
        os.read(fd, 10)
    os.close(fd)
def work():
    sum(generates(7))
    recurses(20)
    [outer(i) for i in range(10)]
    swallows(3)
    sorted(Part(i).twice() for i in range(5))
    cycles(4)
    gc.collect()
    cycles(3)
    gc.collect(1)
    keeps(12)
    audits(9)
    writes(5)
kept = []
gc.disable()
mode = sys.argv[1] if len(sys.argv) > 1 else ""
name = lambda code: getattr(code, "co_qualname", code.co_name).rpartition(".")[2]
told = {}
def count(*key):
    key = json.dumps(key)
    told[key] = told.get(key, 0) + 1
def ours(frame):
    return frame.f_code.co_filename == __file__ and frame.f_code is not count.__code__
flow = []
def profiles(frame, event, arg):
    if ours(frame) and event in ("call", "return"):
        flow.append([event, name(frame.f_code)])
    if event == "c_call" and ours(frame):
        count(name(frame.f_code), arg.__name__)
def traces(frame, event, arg):
    if not ours(frame):
        return None
    if event == "line":
        count("line", name(frame.f_code), frame.f_lineno)
    if event == "exception":
        count("exception", arg[0].__name__, name(frame.f_code))
    return traces
if mode == "cProfile":
    import cProfile, pstats
    profile = cProfile.Profile()
    profile.runcall(work)
    stats = pstats.Stats(profile).stats
    told = {json.dumps([key[2]]): value[1] for key, value in stats.items() if key[0] == __file__}
elif mode == "setprofile":
    sys.setprofile(profiles)
    work()
    sys.setprofile(None)
    told["flow"] = flow
elif mode == "settrace":
    sys.settrace(traces)
    work()
    sys.settrace(None)
elif mode == "gc":
    def stats():
        return {json.dumps([n]): [one["collections"], one["collected"]] for n, one in enumerate(gc.get_stats())}
    before = stats()
    work()
    told = {key: [*before[key], *value] for key, value in stats().items()}
elif mode == "audit":
    sys.addaudithook(lambda event, args: count(event) if event in ("witness.one", "open") else None)
    work()
elif mode == "tracemalloc":
    import tracemalloc
    tracemalloc.start()
    work()
    for stat in tracemalloc.take_snapshot().statistics("lineno"):
        if stat.traceback[0].filename == __file__:
            told[json.dumps([stat.traceback[0].lineno])] = stat.size, stat.count
else:
    work()
if mode:
    print(json.dumps(told))
"""
OWN = {"generates", "recurses", "inner", "outer", "swallows", "__init__", "twice", "add", "cycles", "keeps", "audits", "writes", "work"}


def witness(interp, mode):
    said = subprocess.run(interp.argv_of(WORK, mode), stdout=subprocess.PIPE, check=True, text=True).stdout
    return {tuple(json.loads(key)) if key[0] == "[" else key: value for key, value in json.loads(said).items()}


def rows_of(interp, *words, functions=()):
    result = dtap(*words, "--json", "-c", interp.command(WORK), *functions)
    assert (result.code, result.err) == (0, ""), result
    return lines(result.out)


def last(name):
    return name.rpartition(".")[2]


def by(rows, value, *keys):
    found = {}
    for row in rows:
        if row["file"].endswith("/script.py") and last(row["function"]) in OWN:
            key = tuple(last(row[k]) if k == "function" else row[k] for k in keys)
            found[key] = found.get(key, 0) + row[value]
    return found


@pytest.mark.parametrize("command", ["time", "top", "calls", "record"])
def test_cprofile(interp, command):
    """How often each function is called."""
    told = {key: n for key, n in witness(interp, "cProfile").items() if key[0] in OWN}
    rows = [row for row in rows_of(interp, command) if last(row["function"]) in OWN]
    assert by(rows, "calls", "function") == told and len(told) == len(OWN)
    if command == "time":
        assert all(row["total_ns"] >= row["self_ns"] >= 0 for row in rows), rows


def test_setprofile_flow(interp):
    """Calls and returns, one after the other."""
    told = [event for event in witness(interp, "setprofile")["flow"] if event[1] in OWN]
    rows = rows_of(interp, "flow", functions=["work"])
    assert [[row["event"], last(row["function"])] for row in rows if last(row["function"]) in OWN] == told


def test_setprofile_waits(interp):
    """Functions of C by who calls them."""
    told = {(*key,): n for key, n in witness(interp, "setprofile").items() if key != "flow" and key[0] in OWN}
    rows = [row for row in rows_of(interp, "waits", functions=["__main__:work"]) if last(row["caller"]) in OWN and row["line"]]
    found = {}
    for row in rows:
        key = last(row["caller"]), row["called"]
        found[key] = found.get(key, 0) + row["calls"]
    # Calls within a function of C that calls Python are that one's; sum() and sorted() are such.
    assert found.items() <= told.items() and {("audits", "audit"), ("writes", "write"), ("work", "sorted")} <= found.keys(), (found, told)


def test_settrace(interp):
    """Exceptions where they are raised and where they come to; each line as often as it runs."""
    told = witness(interp, "settrace")
    exceptions = {key[1:]: n for key, n in told.items() if key[0] == "exception" and key[1] == "Error"}
    assert by(rows_of(interp, "exceptions"), "count", "type", "function").items() >= exceptions.items() and len(exceptions) == 3
    found = by(rows_of(interp, "lines", functions=["keeps", "outer", "inner", "cycles"]), "count", "function", "line")
    assert found == {key[1:]: n for key, n in told.items() if key[0] == "line" and key[1] in ("keeps", "outer", "inner", "cycles")}


def test_gc_stats(interp):
    """What the interpreter itself counts, in the same run."""
    result = dtap("gc", "--json", "-c", interp.command(WORK, "gc"))
    assert (result.code, result.err) == (0, ""), result
    (told,), rows = [line for line in lines(result.out) if "[0]" in line], [line for line in lines(result.out) if "runs" in line]
    found = {row["generation"]: [row["runs"], row["objects"]] for row in rows}
    told = {int(key.strip("[]")): value for key, value in told.items()}
    # Some are before the agent is there, as the interpreter begins, and one is when it ends.
    for n, (runs_before, objects_before, runs, objects) in told.items():
        seen_runs, seen_objects = found.get(n, [0, 0])
        last = 1000 if n == 2 else 0
        assert runs - runs_before <= seen_runs <= runs + last and objects - objects_before <= seen_objects <= objects + last, (told, result)
    assert found.keys() >= {1, 2}, result


def test_audit_hook(interp):
    told = witness(interp, "audit")
    found = {row["event"]: row["count"] for row in rows_of(interp, "audit")}
    assert found["witness.one"] == told["witness.one",] == 9 and found["open"] >= told["open",]


def test_importtime(interp):
    """Each module that -X importtime has, and no other."""
    program = "import json, wave, colorsys\n"
    *start, script = interp.argv_of(program)
    said = subprocess.run([*start, "-X", "importtime", script], stderr=subprocess.PIPE, check=True, text=True).stderr
    told = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)", said, re.M)
    result = dtap("imports", "--json", "-c", interp.command(program))
    found = {row["module"]: row["times"] for row in lines(result.out) if row["found"]}
    wanted = {name for name in told if name.split(".")[0] in ("json", "wave", "colorsys")}
    assert wanted >= {"json", "json.decoder", "wave", "colorsys"} and {name: found.get(name) for name in wanted} == dict.fromkeys(wanted, 1)


def test_tracemalloc(interp):
    """What is kept: bytes and blocks of the line that keeps it."""
    line = WORK.splitlines().index("        kept.append(bytes(3000 + i))") + 1
    told = witness(interp, "tracemalloc")[line,]
    rows = [row for row in rows_of(interp, "memory", "--frames", "1", "--least", "2500")
            if row["where"] and row["where"][0].endswith("(keeps)")]
    # The list's own table is smaller than --least, and tracemalloc counts it.
    assert (sum(row["blocks"] for row in rows), sum(row["live"] for row in rows)) == (12, sum(range(3033, 3045)))
    assert 0 <= told[1] - 12 < 4 and 0 <= told[0] - sum(range(3033, 3045)) < 512


@pytest.mark.needs_bpf
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_strace(interp):
    """Reads and writes of a file: how many, and how many bytes."""
    log = interp.dir / "log"
    subprocess.run(["strace", "-f", "-y", "-o", log, "-e", "trace=read,write", *interp.argv_of(WORK)], check=True)
    told = {}
    for call, n in re.findall(r"(read|write)\(\d+<[^>]*\.out>.* = (\d+)$", log.read_text(), re.M):
        calls, size = told.get(call, (0, 0))
        told[call] = calls + 1, size + int(n)
    rows = [row for row in rows_of(interp, "io") if row["file"].endswith(".out")]
    found = {what: (sum(row["calls"] for row in rows if row["what"] == what), sum(row["bytes"] for row in rows if row["what"] == what))
             for what in ("read", "write")}
    assert found == told == {"write": (5, 15), "read": (3, 15)}, (found, told)
