"""The ready-made commands.  The witness is the traced program itself: what sys.setprofile counts in it."""
import base64
import csv
import fcntl
import gzip
import html
import io
import json
import os
import pathlib
import platform
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios

import pytest

import harness

DTAP = harness.BUILD / "dtap"
COMMANDS = harness.TOP / "share" / "commands"
PROGRAM = pathlib.Path(__file__).parent / "data" / "calling.py"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]

pytestmark = pytest.mark.needs_root


def dtap(*words, before=(), **kwargs):
    return harness.run([*before, DTAP, *words], **kwargs)


def witness(interp):
    """What the program itself says: calls by name, and by path."""
    said = subprocess.run(interp.argv_of(PROGRAM, "witness"), stdout=subprocess.PIPE, check=True, text=True).stdout
    return json.loads(said)


def lines(text):
    return [json.loads(line) for line in text.splitlines() if line]


def own(rows):
    return [row for row in rows if row["file"].endswith("/calling.py")]


def by_path(rows):
    """The paths of a tree whose nodes come with their depth, of the program's own functions alone."""
    stack, found = [], {}
    for row in rows:
        del stack[row["depth"]:]
        stack.append(row["function"] if row["file"].endswith("/calling.py") else None)
        path = ";".join(name for name in stack if name)
        if stack[-1] and row["calls"]:
            found[path] = found.get(path, 0) + row["calls"]
    return found


def functions(paths):
    """Without what runs before the witness looks: the module and the body of a class."""
    return {path: n for path, n in paths.items() if path not in ("<module>", "<module>;Shop")}


# --- counts against the program's own ------------------------------------------------------------------

def test_calls(interp):
    result = dtap("calls", "--json", "-c", interp.command(PROGRAM))
    assert (result.code, result.err) == (0, ""), result
    rows = own(lines(result.out))
    counted = {row["function"]: row["calls"] for row in rows}
    assert counted.pop("<module>") == counted.pop("Shop") == 1       # before the witness looks
    assert counted == witness(interp)[0]
    assert [row["calls"] for row in rows] == sorted((row["calls"] for row in rows), reverse=True)


def test_record(interp, tmp_path):
    """Every call, by its path; and a function that sleeps has that time of its own."""
    result = dtap("record", "-o", tmp_path / "tree.jsonl", "-c", interp.command(PROGRAM))
    assert (result.code, result.out, result.err) == (0, "", ""), result
    rows = lines((tmp_path / "tree.jsonl").read_text())
    found = by_path(rows)
    # The path of a function of the main thread begins with the module, that of another thread with its first function.
    assert functions(found) == witness(interp)[1]
    naps = [row for row in own(rows) if row["function"] == "nap"]
    assert all(row["self_ns"] >= 50_000_000 * row["calls"] for row in naps), naps
    assert all(row["total_ns"] >= row["self_ns"] >= 0 for row in rows)


BUSY = """
import json, os, sys, threading, time
def busy():
    end = time.thread_time_ns() + 200_000_000
    while time.thread_time_ns() < end:
        pass
def sleeps():
    for i in range(20): time.sleep(0.01)
def calls():
    for i in range(1000):
        one(i)
def one(i):
    return i
def in_turn():
    for f in busy, sleeps, calls:
        wall, cpu = time.monotonic_ns(), time.thread_time_ns()
        f()
        told[name[threading.current_thread()], f.__name__] = time.thread_time_ns() - cpu, time.monotonic_ns() - wall
def aside():
    in_turn()
told, other = {}, threading.Thread(target=aside)
name = {threading.current_thread(): "<module>", other: "aside"}
other.start()
in_turn()
other.join()
print(json.dumps([[*key, *value] for key, value in told.items()]))
"""


def of_threads(rows):
    """{(outermost function of the program's own, function): row}"""
    stack, found = [], {}
    for row in rows:
        del stack[row["depth"]:]
        stack.append(row["function"] if row["file"].endswith("/script.py") else None)
        if stack[-1]:
            found[next(name for name in stack if name), row["function"]] = row
    return found


def test_record_cpu(interp):
    """The same calls as without; and of each thread its own CPU time, which its own clock encloses."""
    result = dtap("record", "--cpu", "--json", "-c", interp.command(PROGRAM))
    assert (result.code, result.err) == (0, ""), result
    assert functions(by_path(lines(result.out))) == witness(interp)[1]
    result = dtap("record", "--cpu", "--json", "-c", interp.command(BUSY))
    assert (result.code, result.err) == (0, ""), result
    told, *rows = lines(result.out)
    rows = of_threads(rows)
    for thread, name, cpu, wall in told:
        row = rows[thread, name]
        assert 0 <= row["cpu_self_ns"] <= row["cpu_total_ns"] <= cpu and row["total_ns"] <= wall, (row, cpu, wall)
        if name == "busy":
            assert row["cpu_self_ns"] >= 198_000_000 and row["self_ns"] >= 198_000_000, row
        elif name == "sleeps":
            assert row["self_ns"] >= 199_000_000, row
        else:
            assert rows[thread, "one"]["calls"] == 1000, rows
    assert len(told) == 6


@pytest.mark.needs_bpf
def test_record_sample(interp):
    """What computes is sampled on a CPU; what sleeps is not, and all of its sleep is there."""
    result = dtap("record", "--sample", "997", "--json", "-c", interp.command(BUSY))
    assert (result.code, result.err) == (0, ""), result
    told, *rows = lines(result.out)
    rows = of_threads(rows)
    for thread in "<module>", "aside":
        busy, sleeps = rows[thread, "busy"], rows[thread, "sleeps"]
        assert 100_000_000 <= busy["cpu_total_ns"] <= 300_000_000, busy
        # A few sleeps may be missing: leaving some threads of a machine the kernel tells of no switch (oncpu_test.py).
        assert sleeps["total_ns"] >= 100_000_000 and sleeps["cpu_total_ns"] <= 50_000_000, sleeps
    assert "calls" not in rows["<module>", "busy"]


def test_record_of_frames_that_resume(interp):
    """The same calls by path as the interpreter's own witness counts, where most of them are added without the program."""
    program = PROGRAM.parent / "resuming.py"
    said = subprocess.run(interp.argv_of(program, "witness"), stdout=subprocess.PIPE, check=True, text=True).stdout
    want = [{path: n for path, n in paths.items() if not path.endswith("profile")} for paths in json.loads(said)]
    result = dtap("record", "--json", "-c", interp.command(program))
    assert (result.code, result.err) == (0, ""), result
    rows = lines(result.out.replace("/resuming.py", "/calling.py"))
    found = [by_path([row for row in rows if row["pid"] == pid]) for pid in dict.fromkeys(row["pid"] for row in rows)]
    for paths in found:
        for path in ("<module>", "<module>;Pair", "<module>;Ready"):        # before the witness looks
            paths.pop(path, None)
    assert found == want or found[::-1] == want


@pytest.mark.interps("3.9", "3.13")
def test_time(interp):
    result = dtap("time", "--json", "-c", interp.command(PROGRAM))
    assert (result.code, result.err) == (0, ""), result
    rows = {row["function"].rpartition(".")[2]: row for row in own(lines(result.out)) if "<" not in row["function"]}
    counts = witness(interp)[0]
    assert {name: row["calls"] for name, row in rows.items()} == \
        {"Shop": 1} | {name: n for name, n in counts.items() if "<" not in name}
    assert rows["nap"]["self_ns"] >= 5 * 50_000_000
    assert rows["outer"]["total_ns"] >= rows["outer"]["self_ns"] + rows["nap"]["total_ns"]
    # Once, though it calls itself.
    assert rows["recurses"]["total_ns"] <= rows["outer"]["total_ns"]


@pytest.mark.interps("3.13")
def test_deep_recursion(interp):
    """No call is lost where a stack is deeper than what is recorded of it."""
    program = """
import sys
def deep(n):
    if n:
        deep(n - 1)
sys.setrecursionlimit(3000)
deep(500)
deep(3)
"""
    result = dtap("record", "--json", "-c", interp.command(program))
    rows = [row for row in lines(result.out) if row["function"] in ("deep", "(in deeper stacks)")]
    assert sum(row["calls"] for row in rows) == 505 and max(row["depth"] for row in rows) == 120, result


# --- events ---------------------------------------------------------------------------------------------

@pytest.mark.interps("3.9", "3.13")
def test_flow(interp):
    """Calls and returns nest as the program's own do."""
    result = dtap("flow", "--json", "-c", interp.command(PROGRAM), "calling.py:main", "calling.py:outer")
    assert (result.code, result.err) == (0, ""), result
    stacks, paths = {}, {}
    for row in own(lines(result.out)):
        stack = stacks.setdefault(row["tid"], [])
        if row["event"] == "return":
            assert (stack.pop(), row["depth"]) == (row["function"], len(stack)) and row["duration_ns"] >= 0
            continue
        assert row["duration_ns"] is None and len(stack) == row["depth"]
        stack.append(row["function"])
        paths[";".join(stack)] = paths.get(";".join(stack), 0) + 1
    said = {}
    for path, n in witness(interp)[1].items():      # by qualified names
        path = ";".join(name.rpartition(".")[2] for name in path.removeprefix("<module>;").split(";"))
        said[path] = said.get(path, 0) + n
    assert paths == said


@pytest.mark.interps("3.13")
def test_flow_as_text(interp):
    result = dtap("flow", "-n", "2", "-c", interp.command(PROGRAM), "sell")
    rows = [line.split() for line in result.out.splitlines()]
    assert rows[0] == ["TIME", "PID", "TID", "DURATION", "FUNCTION", "LINE", "FILE"]
    assert [row[3:5] for row in rows[1:]] == [["->", "sell"], ["->", "leaf"]], result
    # The second is indented by a level.
    assert result.out.splitlines()[2].index("leaf") == result.out.splitlines()[1].index("sell") + 2


@pytest.mark.first
@pytest.mark.interps("3.9", "3.13")
def test_trace(interp):
    result = dtap("trace", "--json", "-c", interp.command(PROGRAM), "outer", "nap", "leaf")
    rows, counts = lines(result.out), witness(interp)[0]
    assert all(row["arguments"] == f"n={row['result']}" for row in rows if row["function"] == "leaf"), rows
    assert len([row for row in rows if row["function"] == "leaf"]) == counts["leaf"]
    rows = [row for row in rows if row["function"] != "leaf"]
    assert sorted(row["function"] for row in rows) == ["nap"] * counts["nap"] + ["outer"] * counts["outer"]
    assert all(row["duration_ns"] >= 50_000_000 and row["depth"] == (row["function"] == "nap") for row in rows), rows
    assert all(row["end"] == "return" and row["module"] == "__main__" for row in rows)
    assert {(row["arguments"], row["result"]) for row in rows} == {("", "None")}
    assert dtap("trace", "--json", "--least", "60000000", "-c", interp.command(PROGRAM), "leaf").out == ""
    rows = lines(dtap("trace", "--json", "-c", interp.command(PROGRAM), "__main__:Shop.*", "raises", "generates").out)
    assert {row["result"] for row in rows if row["function"] == "raises"} == {"ValueError()"}
    ends = {}
    for row in rows:
        ends[row["function"], row["end"]] = ends.get((row["function"], row["end"]), 0) + 1
    n = counts["outer"]
    assert ends == {("Shop.__init__", "return"): n, ("Shop.sell", "return"): n, ("Shop.close", "return"): n,
                    ("Shop.close.<locals>.<genexpr>", "yield"): 3 * n, ("Shop.close.<locals>.<genexpr>", "return"): n,
                    ("generates", "yield"): 3 * n, ("generates", "return"): n, ("raises", "raise"): n}, ends
    result = dtap("trace", "-c", "true", "x.py:f")
    assert result.code == 2 and "it is MODULE:FUNCTION here" in result.err
    result = dtap("trace", "-c", "true", "f{exit(0);}")
    assert result.code == 2 and "a name has letters" in result.err
    assert "name the functions" in dtap("trace", "-c", "true").err


@pytest.mark.interps("3.9", "3.13")
def test_slow(interp):
    command, counts = interp.command(PROGRAM), witness(interp)[0]

    def ask(*words):
        """The rows of the distribution, and the slowest calls."""
        rows = lines(dtap("slow", "--json", *words[:-1], "-c", command, words[-1]).out)
        return [row for row in rows if "count" in row], [row for row in rows if "count" not in row]

    rows, slowest = ask("nap")
    assert sum(row["count"] for row in rows) == counts["nap"] and all(row["calls"] == counts["nap"] for row in rows)
    assert all(row["from_ns"] >= 33_554_432 and row["longest_ns"] >= row["average_ns"] >= 50_000_000 for row in rows), rows
    durations = [row["duration_ns"] for row in slowest]
    assert durations[0] == rows[0]["longest_ns"] and durations == sorted(durations, reverse=True), (rows, slowest)
    assert all(row["function"].endswith("nap") and row["ended"] == "return" for row in slowest), slowest
    rows, slowest = ask("--by", "n", "recurses")
    found = {row["by"]: row["calls"] for row in rows}
    assert found == {str(n): counts["outer"] for n in range(6)}, rows
    assert re.fullmatch(r"(self=.*, )?n=5", slowest[0]["arguments"]), slowest
    text = dtap("slow", "-c", command, "nap").out
    assert re.match(r"nap, __main__, pid \d+: calls 5, average [\d.]+ m?s, longest ", text), text
    assert sum(int(n) for n in re.findall(r"\| *#* +(\d+)$", text, re.M)) == counts["nap"]
    assert re.search(r"\n\nDURATION +WHEN +PID +TID +FUNCTION +END +ARGUMENTS\n +[\d.]+ m?s ", text), text


SLOWEST = """
import json, sys, time
own = {}
def f(n):
    begin = time.monotonic_ns()
    try:
        time.sleep(n / 1000)
        if n == 90:
            raise KeyError
    finally:
        own["n=%d" % n] = time.monotonic_ns() - begin
for n in 1, 60, 2, 100, 3, 70:
    f(n)
try:
    f(90)
except KeyError:
    pass
print(json.dumps(own), file=sys.stderr)
"""


def test_slowest_calls(interp):
    """
    Those that took at least half as long as the longest, with the arguments; no more than -n.  The witness is the program, for
    which each call is a little shorter: a call may take long that is meant to be short.
    """
    def ask(*words):
        result = dtap("slow", "--json", *words, "-c", interp.command(SLOWEST), "__main__:f")
        return {row["arguments"]: row for row in lines(result.out) if "arguments" in row}, json.loads(result.err)
    found, own = ask()
    took = [row["duration_ns"] for row in found.values()]
    assert took == sorted(took, reverse=True) and min(took) >= max(took) // 2, (found, own)
    assert all(found[n]["duration_ns"] >= own[n] if n in found else own[n] <= max(took) // 2 for n in own), (found, own)
    assert all(row["ended"] == ("raise" if n == "n=90" else "return") for n, row in found.items()), found
    assert len(ask("-n", "1")[0]) == 1


TASKS = """
import asyncio, time
def busy(n):
    time.sleep(n / 1000)
async def works(n, times):
    for _ in range(times):
        busy(n)
        await asyncio.sleep(0)
async def main():
    await asyncio.gather(*[asyncio.create_task(works(n, times), name=name)
                           for name, n, times in (("short", 1, 3), ("long", 40, 2), ("middle", 10, 4))])
busy(0)
asyncio.run(main())
"""


@pytest.mark.interps("3.9", "3.14")
def test_slow_by_task(interp):
    """By the names of asyncio's tasks; the first are those that took most time, and -n cuts the others off."""
    command = interp.command(TASKS)
    rows = [row for row in lines(dtap("slow", "--json", "--by", ":task", "-c", command, "busy").out) if "count" in row]
    assert {row["by"]: row["calls"] for row in rows} == {"short": 3, "long": 2, "middle": 4, "(none)": 1}, rows
    spent = [sum(row["from_ns"] * row["count"] for row in rows if row["by"] == name) for name in dict.fromkeys(row["by"] for row in rows)]
    assert spent == sorted(spent, reverse=True), rows
    text = dtap("slow", "-n", "1", "--by", ":task", "-c", command, "busy").out
    assert text.count(": calls ") == 1 and "\nand 3 more, in which less time was spent: -n 4 shows all\n" in text, text


def pending_interrupt():
    """Before execve(2): Ctrl-C has come already when the program begins."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("command, suffix", [("flow", "json"), ("record", "json"), ("record", "html"), ("slow", "jsonl"), ("calls", "csv")])
def test_interrupted_at_once(tmp_path, command, suffix):
    """What is written is complete, though empty, whether that is noticed before tracing begins or as it does."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
    functions = ["f"] if command == "slow" else []
    try:
        result = dtap(command, "-o", tmp_path / f"x.{suffix}", "-p", program.pid, *functions, preexec_fn=pending_interrupt)
    finally:
        program.kill()
        program.wait()
    assert (result.code == 1 and result.err.endswith(f"# dtap {command}: interrupted before tracing began\n")) or result.code == 0, result
    written = (tmp_path / f"x.{suffix}").read_text()
    if suffix == "json":
        json.loads(written)
    elif suffix == "html":
        assert written.endswith("</html>\n")


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("command, suffix, end", [("record", "html", "</html>"), ("flow", "json", "]")])
def test_interrupted_when_the_file_is_opened(tmp_path, start, command, suffix, end):
    """The signal is not lost, and the file is whole, whether it is noticed before tracing began or after it."""
    written = tmp_path / f"x.{suffix}"
    child = start(["strace", "-o", tmp_path / "log", "-P", written, "-e", "trace=openat", "-e", "inject=openat:delay_exit=500000:when=1",
                   DTAP, command, "-o", written, "-c", "sleep 5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not written.exists():
        assert child.poll() is None
    [pid] = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    os.kill(int(pid), signal.SIGINT)
    result = harness.finish(child, child.args)      # with the end of sleep, which has the pipes too if it runs on
    at_once = result.code == 1 and result.err.endswith(f"# dtap {command}: interrupted before tracing began\n")
    assert at_once or result.code == 0 and result.err.endswith(f"# dtap {command}: the command runs on\n"), result
    assert written.read_text().rstrip().endswith(end), result


def test_interrupted_without_a_reader(tmp_path, start):
    """A FIFO that nobody opens."""
    os.mkfifo(tmp_path / "x.csv")
    child = start([DTAP, "calls", "-o", tmp_path / "x.csv", "-c", "sleep 99"], stderr=subprocess.PIPE, text=True)
    openat = {"x86_64": "257", "aarch64": "56"}[platform.machine()]
    while True:
        call = pathlib.Path(f"/proc/{child.pid}/syscall").read_text().split()
        if call[0] == openat and int(call[3], 16) & os.O_TRUNC:      # not one of the dynamic loader's
            break
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    assert child.wait(harness.TIMEOUT_S) == -signal.SIGINT


# --- other markers --------------------------------------------------------------------------------------

WORLD = """
import gc, os, sys
gc.disable()
def fails(kind):
    raise kind
def tries():
    for kind in (KeyError, KeyError, OSError):
        try:
            fails(kind)
        except kind:
            pass
def loops():
    for i in range(3):
        x = i
    return x
tries()
loops()
folder = os.path.dirname(__file__)
for name, text in (("inner_one", ""), ("outer_one", "import inner_one")):
    with open(os.path.join(folder, name + ".py"), "w") as f:
        f.write(text)
import outer_one
try:
    import not_there
except ImportError:
    pass
for i in range(4):
    sys.audit("shop.sale", i)
for i in range(5):
    loop = []
    loop.append(loop)
    del loop
    gc.collect(0)
"""


@pytest.mark.interps("3.13")        # the markers themselves are tests/agent's, on all
@pytest.mark.parametrize("name", ["exceptions", "gc", "imports", "audit", "lines"])
def test_markers(interp, name):
    """What the program above does, as it can be read there."""
    result = dtap(name, "--json", "-c", interp.command(WORLD))
    assert (result.code, result.err) == (0, ""), result
    rows = lines(result.out)
    if name == "exceptions":
        found = {}
        for row in rows:
            if row["file"].endswith("/script.py") and row["function"] != "<module>":
                count, caught = found.get((row["function"], row["type"]), (0, 0))
                found[row["function"], row["type"]] = count + row["count"], caught + row["caught"]
        assert found == {("fails", "KeyError"): (2, 0), ("tries", "KeyError"): (2, 2),
                         ("fails", "OSError"): (1, 0), ("tries", "OSError"): (1, 1)}
    elif name == "gc":
        young, = (row for row in rows if row["generation"] == 0)
        assert young["runs"] >= 5 and young["objects"] >= 5 and young["total_ns"] >= young["longest_ns"] > 0
        assert young["average_ns"] == young["total_ns"] // young["runs"]
    elif name == "imports":
        found = {row["module"]: row for row in rows}
        assert found["outer_one"]["times"] == found["outer_one"]["found"] == 1
        assert found["outer_one"]["total_ns"] >= found["outer_one"]["self_ns"] + found["inner_one"]["total_ns"]
        assert found["not_there"]["found"] == 0
    elif name == "audit":
        assert {"event": "shop.sale", "count": 4}.items() <= next(r for r in rows if r["event"] == "shop.sale").items()
    else:
        found = {row["line"]: row["count"] for row in rows if row["function"] == "loops"}
        first = WORLD.splitlines().index("def loops():") + 1
        assert found == {first + 1: 4, first + 2: 3, first + 3: 1}


@pytest.mark.needs_bpf
@pytest.mark.interps("3.11")
def test_sample(interp):
    """In a second of work there are samples, in the function that works."""
    program = """
import time
def spins():
    while time.process_time() < 0.5:
        pass
spins()
"""
    result = dtap("sample", "--hz", "997", "--json", "-c", interp.command(program))
    assert result.code == 0, result
    assert sum(row["self"] for row in lines(result.out) if row["function"] == "spins") > 50, result


def test_tasks(interp):
    """A task has as many turns as it is let go on, and one that blocks keeps the loop."""
    program = """
import asyncio, time
async def query(n):
    for i in range(n):
        await asyncio.sleep(0)
async def blocks():
    await asyncio.sleep(0)
    time.sleep(0.06)
async def main():
    tasks = [asyncio.create_task(query(n), name=f"query-{n}") for n in (1, 2, 5)]
    tasks.append(asyncio.create_task(blocks(), name="blocks"))
    await asyncio.gather(*tasks)
    await asyncio.sleep(0.001)
asyncio.run(main())
"""
    result = dtap("tasks", "--json", "-c", interp.command(program))
    assert (result.code, result.err) == (0, ""), result
    rows = {row["task"]: row for row in lines(result.out)}
    assert [row["turns"] for row in rows.values() if row["coroutine"] == "main"] == [3], rows
    assert {name: row["turns"] for name, row in rows.items() if name.startswith("query")} == \
        {"query-1": 2, "query-2": 3, "query-5": 6}, rows
    assert rows["query-5"]["coroutine"] == "query" and rows["blocks"]["turns"] == 2
    assert rows["blocks"]["longest_ns"] >= 60_000_000 and rows["blocks"]["busy_ns"] >= rows["blocks"]["longest_ns"]


MEMORY = """
import os
def leaks(n):
    for i in range(n):
        block = bytes(5000)
        kept.append(block)
def churns(n):
    for i in range(n):
        bytes(70000)
def small(n):
    return [bytes(40) for i in range(n)]
kept = []
leaks(100)
churns(50)
small(10)
if not os.fork():
    kept.clear()
    leaks(3)
    os._exit(0)
os.wait()
"""


def test_memory(interp):
    """What is kept is in use at the end, where it was made; what is freed again is not; small blocks are left out.  A child has
    what it makes itself."""
    result = dtap("memory", "--least", "4000", "--frames", "2", "--json", "-c", interp.command(MEMORY))
    assert (result.code, result.err) == (0, ""), result
    rows = [row for row in lines(result.out) if row["where"] and re.search(r"script\.py:\d+ \((leaks|churns)\)", row["where"][0])]
    at = {MEMORY.splitlines()[int(re.search(r":(\d+) ", row["where"][0])[1]) - 1].strip(): row
          for row in sorted(rows, key=lambda row: row["allocs"])}
    assert [(row["live"], row["blocks"]) for row in rows if row["allocs"] == 3] == [(3 * 5033, 3)], rows
    size = 5000 + sys.getsizeof(b"")
    leak, churn = at["block = bytes(5000)"], at["bytes(70000)"]
    assert (leak["live"], leak["blocks"], leak["allocs"], leak["allocated"]) == (100 * size, 100, 100, 100 * size), rows
    assert (churn["live"], churn["blocks"], churn["allocs"], churn["allocated"]) == (0, 0, 50, 50 * (65000 + size)), rows
    assert churn["rate"] > leak["rate"] > 0 and all("<module>" in row["where"][1] for row in (leak, churn)), rows
    assert lines(result.out)[0]["live"] == max(row["live"] for row in lines(result.out))


LEAK = """
import sys
kept = []
def leaks():
    kept.append(bytes(5000))
print("ready", flush=True)
for line in sys.stdin:
    for i in range(int(line)):
        leaks()
    print("leaked", flush=True)
"""


@pytest.mark.interps("3.13")
def test_memory_at_intervals(interp, start):
    """What is in use is that since the start, also where an interval has added nothing; allocations are the interval's."""
    program = start(interp.argv_of(LEAK), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    command = start([DTAP, "memory", "--json", "-i", "0.2", "--least", "4000", "-p", str(program.pid)], stdout=subprocess.PIPE,
                    text=True)
    size = 5000 + sys.getsizeof(b"")
    for total in range(2, 200, 2):          # until it is traced, what is allocated is not seen
        program.stdin.write("2\n")
        program.stdin.flush()
        assert program.stdout.readline() == "leaked\n"
        if select.select([command.stdout], [], [], 0.5)[0]:
            break
    program.stdin.write("10\n")
    program.stdin.flush()
    assert program.stdout.readline() == "leaked\n"
    rows, quiet = [], []
    while len(quiet) < 2:                   # tables in which nothing is new
        row = json.loads(command.stdout.readline())
        if "leaks" in row["where"][0]:
            rows.append(row)
            quiet = [*quiet, row] if row["allocs"] == 0 else []
    seen = sum(row["allocs"] for row in rows)
    assert seen >= 12 and all((row["live"], row["blocks"]) == (seen * size, seen) for row in quiet), rows
    command.send_signal(signal.SIGINT)
    assert command.wait() == 0
    program.stdin.close()
    assert program.wait() == 0


WAITS = """
import json, os, sqlite3, time
def request(n, db):
    time.sleep(0.01)
    return helper(n, db)
def helper(n, db):
    os.getppid()
    sorted([3, 1, 2], key=callback)     # what it calls is inside of it
    return [db.execute("select 1") for i in range(n)]
def callback(x):
    return abs(x)
def other():
    os.getppid()
db = sqlite3.connect(":memory:")
begin = time.monotonic_ns()
for n in 1, 2, 4:
    request(n, db)
took = time.monotonic_ns() - begin
other()
print(json.dumps(took))
"""


def test_waits(interp):
    """The functions of C that calls of a function call, by their number and the program's own clock."""
    result = dtap("waits", "--json", "-c", interp.command(WAITS), "__main__:request")
    assert (result.code, result.err) == (0, ""), result
    took, *rows = lines(result.out)
    assert all(row["function"].endswith("request") for row in rows), rows
    calls = {(row["called"], row["caller"].rpartition(".")[2]): row for row in rows}
    found = {called: row["calls"] for (called, caller), row in calls.items() if caller in ("request", "helper")}
    listed = {"execute": 7} if ("execute", "helper") in calls else {}        # else in a frame of the list's own
    assert found == {"(all of it)": 3, "sleep": 3, "getppid": 3, "sorted": 3} | listed, rows
    assert sum(row["calls"] for row in rows if row["called"] == "execute") == 7 and "abs" not in [r["called"] for r in rows]
    assert 30_000_000 <= calls["sleep", "request"]["time_ns"] <= calls["(all of it)", "request"]["time_ns"] <= took, rows


LOCKS = """
import ctypes, json, sys, threading, time

def waits(lock, times):
    begin = time.monotonic_ns()
    with lock:
        times.append(time.monotonic_ns() - begin)

def holds(lock, times):
    with lock:
        thread = threading.Thread(target=waits, args=(lock, times))
        thread.start()
        while open(f"/proc/self/task/{thread.native_id}/syscall").read().split()[0] != "202":
            time.sleep(0.001)
        time.sleep(0.05)        # in which it waits, whatever else the machine does
    thread.join()

def spins():
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass

def address(lock):
    # of its semaphore; what has none is a mutex in the lock itself, 0 while it is free
    return ctypes.c_uint64.from_address(id(lock) + 16).value or id(lock)

told = {}
for lock in threading.Lock(), threading.RLock():
    times = []
    holds(lock, times)
    holds(lock, times)
    told[hex(address(lock))] = times
spinning = [threading.Thread(target=spins) for _ in range(2)]
for thread in spinning:
    thread.start()
for thread in spinning:
    thread.join()
print(json.dumps(told))
"""


@pytest.mark.needs_bpf
@pytest.mark.skipif(platform.machine() != "x86_64", reason="futex has another number")
def test_lock(interp):
    """Who waits for a lock is there with its address, as often and as long as it has waited; and who wants the GIL."""
    result = dtap("lock", "--json", "--frames", "1", "-c", interp.command(LOCKS))
    assert (result.code, result.err) == (0, ""), result
    told, *rows = lines(result.out)
    assert len(told) == 2, told
    found = {row["lock"]: row for row in rows if row["lock"] in told and row["where"][0].endswith("(waits)")}
    for address, times in told.items():
        row = found[address]
        assert row["waits"] == 2 and row["what"] == "lock", rows
        assert 100_000_000 <= row["time_ns"] <= sum(times) and 50_000_000 <= row["longest_ns"] <= max(times), (row, times)
    gil = [row for row in rows if row["lock"] == "GIL" and row["where"] and row["where"][0].endswith("(spins)")]
    assert sum(row["waits"] for row in gil if row["what"] == "lock") >= 2, rows


@pytest.mark.needs_bpf
def test_io(interp):
    """Files and sockets, with what the program moves, by the function that does it."""
    program = """
import os, socket
def stores(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    for i in range(7):
        os.write(fd, b"x" * 100)
    os.fsync(fd)
    os.lseek(fd, 0, 0)
    os.read(fd, 1000)
    os.close(fd)
def talks():
    a, b = socket.socketpair()
    for i in range(3):
        a.send(b"hello")
        b.recv(100)
def misses():
    try:
        os.open("/not/there", 0)
    except OSError:
        pass
stores(__file__ + ".data")
talks()
misses()
"""
    result = dtap("io", "--json", "-c", interp.command(program))
    assert (result.code, result.err) == (0, ""), result
    rows = [row for row in lines(result.out) if row["where"] and "script.py" in row["where"][0]]
    found = {}
    for row in rows:
        key = re.search(r"\((\w+)\)$", row["where"][0])[1], row["what"], row["file"].rpartition("/")[2]
        calls, moved = found.get(key, (0, 0))
        found[key] = calls + row["calls"], moved + row["bytes"]
        assert row["time_ns"] >= row["longest_ns"] > 0
    data = "script.py.data"
    assert found == {("stores", "open", data): (1, 0), ("stores", "write", data): (7, 700), ("stores", "sync", data): (1, 0),
                     ("stores", "read", data): (1, 700), ("talks", "write", "(socket)"): (3, 15),
                     ("talks", "read", "(socket)"): (3, 15), ("misses", "failed", "there"): (1, 0)}, found


# --- formats --------------------------------------------------------------------------------------------

@pytest.mark.first
@pytest.mark.interps("3.13")
def test_formats_of_a_tree(interp, tmp_path):
    """The same run is not the same twice, but its calls are: every format has the program's paths."""
    def written(suffix):
        result = dtap("record", "-o", tmp_path / f"tree{suffix}", "-c", interp.command(PROGRAM))
        assert result.code == 0, result
        return (tmp_path / f"tree{suffix}").read_text()

    paths = witness(interp)[1]
    rows = list(csv.DictReader(io.StringIO(written(".csv"))))
    for row in rows:
        row.update(depth=int(row["depth"]), calls=int(row["calls"]))
    assert functions(by_path(rows)) == paths
    folded = dict(line.rsplit(" ", 1) for line in written(".folded").splitlines())
    assert any(path.endswith("outer;nap") and int(n) >= 50_000_000 for path, n in folded.items()), folded
    scope = json.loads(written(".json"))
    profile, frames = scope["profiles"][0], scope["shared"]["frames"]
    assert scope["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert len(profile["samples"]) == len(profile["weights"]) and sum(profile["weights"]) == profile["endValue"]
    stacks = {";".join(frames[i]["name"] for i in sample) for sample in profile["samples"]}
    assert any(stack.endswith("main;outer;nap") for stack in stacks)
    assert "<title>nap (" in (svg := written(".svg")) and svg.endswith("</svg>\n")
    page = written(".html")
    data = json.loads(re.search(r"^const data = (.*);$", page, re.M)[1])
    assert "http" not in page.partition("const data")[0], "it is to be read without a network"

    def nodes(node):
        yield node
        for child in node[5]:
            yield from nodes(child)
    assert sum(node[2] for node in nodes(data) if node[0] == "leaf") == witness(interp)[0]["leaf"]
    assert all(node[4] == node[3] + sum(child[4] for child in node[5]) for node in nodes(data))


# --- protobuf: a decoder of its own, by protobuf.dev's "Encoding" ---------------------------------------------

def varint(data, at):
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def message(data):
    """{field: [numbers and bytes]} of a message."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        else:
            assert tag & 7 == 0, "neither a number nor a length"
        found.setdefault(tag >> 3, []).append(value)
    assert at == len(data)
    return found


def packed(data):
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


@pytest.mark.interps("3.13")
def test_pprof(interp, tmp_path):
    """By profile.proto: every path of the program with its calls, and the time of those that sleep."""
    assert dtap("record", "-o", tmp_path / "x.pb.gz", "-c", interp.command(PROGRAM)).code == 0
    profile = message(gzip.decompress((tmp_path / "x.pb.gz").read_bytes()))
    texts = [text.decode() for text in profile[6]]
    types = [[texts[message(one)[k][0]] for k in (1, 2)] for one in profile[1]]
    assert texts[0] == "" and types == [["calls", "count"], ["wall", "nanoseconds"]]
    functions = {one[1][0]: (texts[one[2][0]], texts[one[4][0]]) for one in map(message, profile[5])}
    locations = {one[1][0]: functions[message(one[4][0])[1][0]] for one in map(message, profile[4])}
    paths, naps = {}, 0
    for sample in map(message, profile[2]):
        stack = [locations[number] for number in reversed(packed(sample[1][0]))]
        calls, wall = packed(sample[2][0])
        path = ";".join(name for name, file in stack if file.endswith("/calling.py"))
        if stack[-1][1].endswith("/calling.py"):
            paths[path] = paths.get(path, 0) + calls
            naps += wall if stack[-1][0] == "nap" else 0
        label = message(sample[3][0])
        assert texts[label[1][0]] == "pid" and label[3][0] > 0
    found = {path: n for path, n in paths.items() if path not in ("<module>", "<module>;Shop") and n}
    assert found == witness(interp)[1]
    assert naps >= 5 * 50_000_000
    assert dtap("record", "-o", tmp_path / "x.pprof", "-c", interp.command("pass")).code == 0
    assert message(gzip.decompress((tmp_path / "x.pprof").read_bytes()))[6][0] == b""


@pytest.mark.skipif(not shutil.which("protoc"), reason="protoc is not installed")
@pytest.mark.interps("3.13")
def test_pprof_by_protoc(interp, tmp_path):
    """No field that pprof's format does not have, and the calls of each function of the program."""
    assert dtap("record", "-o", tmp_path / "x.pb.gz", "-c", interp.command(PROGRAM)).code == 0
    profile = decoded(gzip.decompress((tmp_path / "x.pb.gz").read_bytes()), "Profile")
    texts = profile["string_table"]
    functions = {one["id"][0]: (texts[int(one["name"][0])], texts[int(one["filename"][0])]) for one in profile["function"]}
    locations = {one["id"][0]: functions[one["line"][0]["function_id"][0]] for one in profile["location"]}
    found = {}
    for sample in profile["sample"]:
        name, file = locations[sample["location_id"][0]]
        if file.endswith("/calling.py"):
            found[name.rpartition(".")[2]] = found.get(name.rpartition(".")[2], 0) + int(sample["value"][0])
    counts = witness(interp)[0]
    assert {name: found[name] for name in ("leaf", "outer", "nap")} == {name: counts[name] for name in ("leaf", "outer", "nap")}


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.interps("3.13")
def test_formats_with_cpu_time(interp, tmp_path):
    """Each has both times of a function that computes and of one that sleeps: 200 ms, and next to nothing on a CPU."""
    def written(suffix):
        result = dtap("record", "--cpu", "-o", tmp_path / f"x{suffix}", "-c", interp.command(BUSY))
        assert result.code == 0, result
        return (tmp_path / f"x{suffix}").read_bytes()

    def is_right(name, wall, cpu):
        assert wall >= 198_000_000 and (cpu >= 198_000_000 if name == "busy" else cpu < 150_000_000), (name, wall, cpu)
        seen.append(name)
    seen = []
    for row in csv.DictReader(io.StringIO(written(".csv").decode())):
        if row["function"] in ("busy", "sleeps"):
            is_right(row["function"], int(row["self_ns"]), int(row["cpu_self_ns"]))
    for line in written(".folded").decode().splitlines():
        if line.split(" ")[0].endswith(";sleeps"):
            is_right("sleeps", int(line.split(" ")[-1]), 0)
    for line in written(".cpu.folded").decode().splitlines():
        name, n = line.rsplit(" ", 1)
        if name.endswith((";busy", ";sleeps")):
            is_right(name.rpartition(";")[2], 200_000_000, int(n))
    scope = json.loads(written(".json"))
    wall, cpu = [{tuple(scope["shared"]["frames"][i]["name"] for i in sample): weight
                  for sample, weight in zip(profile["samples"], profile["weights"])} for profile in scope["profiles"]]
    for stack, n in wall.items():
        if stack and stack[-1] in ("busy", "sleeps"):
            is_right(stack[-1], n, cpu.get(stack, 0))
    profile = message(gzip.decompress(written(".pprof")))
    texts = [text.decode() for text in profile[6]]
    assert [[texts[message(one)[k][0]] for k in (1, 2)] for one in profile[1]] == \
        [["calls", "count"], ["wall", "nanoseconds"], ["cpu", "nanoseconds"]]
    names = {one[1][0]: texts[one[2][0]] for one in map(message, profile[5])}
    for sample in map(message, profile[2]):
        calls, wall, cpu = packed(sample[2][0])
        name = names[packed(sample[1][0])[0]]      # a location has the number of its function
        if name in ("busy", "sleeps"):
            is_right(name, wall, cpu)
    text = written(".callgrind").decode()
    assert "\nevents: Nanoseconds CPU_nanoseconds\n" in text
    for number, name in re.findall(r"^fn=\((\d+)\) (busy|sleeps)$", text, re.M):
        for wall, cpu in re.findall(rf"^fn=\({number}\).*\n0 (\d+) (\d+)$", text, re.M):
            is_right(name, int(wall), int(cpu))
    page = written(".html").decode()
    nodes = [json.loads(re.search(r"^const data = (.*);$", page, re.M)[1])]
    for name, _, _, wall, _, children, cpu, _ in nodes:
        nodes += children
        if name in ("busy", "sleeps"):
            is_right(name, wall, cpu)
    # Two threads each; of .folded one function, and callgrind names it where it is first, as a caller or as what is called.
    assert seen.count("busy") >= 10 and seen.count("sleeps") >= 12, seen
    assert "<title>sleeps (" in written(".svg").decode() and "<title>busy (" in (svg := written(".cpu.svg").decode())
    width = {name: max(float(n) for n in re.findall(rf'<title>{name} \(.*?width="([\d.]+)"', svg)) for name in ("busy", "sleeps")
             if f"<title>{name} (" in svg}
    assert width["busy"] > 2 * width.get("sleeps", 0), width
    result = dtap("record", "-o", tmp_path / "x.cpu.svg", "-c", "true")
    assert result.code == 2 and "is of CPU time, which is not recorded; record --cpu and" in result.err, result


@pytest.mark.interps("3.13")
def test_callgrind(interp, tmp_path):
    """By valgrind's "Callgrind Format Specification": names are said once, costs are those of the tree."""
    assert dtap("record", "-o", tmp_path / "x.callgrind", "-c", interp.command(PROGRAM)).code == 0
    names, costs, calls, total, at = {}, {}, {}, {}, {}
    lines = (tmp_path / "x.callgrind").read_text().splitlines()
    assert lines[0] == "# callgrind format" and "events: Nanoseconds" in lines and "positions: line" in lines
    for line in lines[1:]:
        named = re.fullmatch(r"(c?f[ln])=\((\d+)\)(?: (.*))?", line)
        if named:
            key = named[1][-1], named[2]
            assert (named[3] is None) == (key in names), line
            names.setdefault(key, named[3])
            at[named[1]] = names[key]
        elif line.startswith("calls="):
            at["calls"] = int(line.split()[0][6:])
        elif re.match(r"0 \d+$", line) and "calls" in at:
            key = at["cfn"]
            calls[key] = calls.get(key, 0) + at.pop("calls")
            total[key] = total.get(key, 0) + int(line[2:])
        elif re.match(r"0 \d+$", line):
            costs[at["fn"]] = costs.get(at["fn"], 0) + int(line[2:])
    counts = witness(interp)[0]
    assert (calls["leaf"], calls["nap"]) == (counts["leaf"], counts["nap"])
    assert total["nap"] >= costs["nap"] >= 5 * 50_000_000


@pytest.mark.interps("3.13")
def test_trace_for_perfetto(interp, tmp_path):
    """By Perfetto's trace_packet.proto: slices begin and end in the tracks of their threads, which are below a process's."""
    counts = witness(interp)[0]
    for words, functions in ((["flow"], ["outer"]), (["trace"], ["nap", "leaf"])):
        path = tmp_path / f"{words[0]}.pftrace"
        assert dtap(*words, "-o", path, "-c", interp.command(PROGRAM), *functions).code == 0
        packets = [message(packet) for packet in message(path.read_bytes())[1]]
        assert packets[0][13] == [1] and all(packet[10] == [1] for packet in packets)
        tracks = {track[1][0]: track for track in (message(packet[60][0]) for packet in packets if 60 in packet)}
        assert all(5 not in track or tracks[track[5][0]][3] for track in tracks.values())
        events = sorted(((packet[8][0], i, message(packet[11][0])) for i, packet in enumerate(packets) if 11 in packet),
                        key=lambda event: event[:2])
        stacks, begun = {}, {}
        for time, _, event in events:
            stack = stacks.setdefault(event[11][0], [])
            assert 4 in tracks[event[11][0]], "a slice is of a thread"
            if event[9] == [1]:
                stack.append(time)
                name = event[23][0].decode()
                begun[name] = begun.get(name, 0) + 1
                notes = [message(note)[10][0].decode() for note in event[4]]
                assert "file" in notes or {"arguments", "result", "end"} <= set(notes)
            else:
                assert event[9] == [2] and time >= stack.pop()
        assert not any(stacks.values()) and begun[functions[0]] == counts[functions[0]]
        assert words == ["flow"] or begun == {"nap": counts["nap"], "leaf": counts["leaf"]}


STEPS = """
import asyncio
def work(n):
    return n
async def query(n):
    for i in range(n):
        work(i)
        await asyncio.sleep(0)
    return work(n)
async def main():
    work(0)
    await asyncio.gather(*[asyncio.create_task(query(n), name=f"query-{n}") for n in (1, 2, 5)])
work(0)
asyncio.run(main())
work(0)
"""


def decoded(data, kind="Trace"):
    """What protoc reads there: {field: [texts and such dictionaries]}."""
    text = subprocess.run(["protoc", f"--decode={kind}", f"-I{PROGRAM.parent}", f"{kind.lower()}.proto"], input=data,
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    stack = [{}]
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        assert not name[0].isdigit(), f"a field that is not known: {line}"
        if value == "{":
            stack.append({})
            stack[-2].setdefault(name, []).append(stack[-1])
        elif name == "}":
            stack.pop()
        else:
            stack[-1].setdefault(name.rstrip(":"), []).append(value.strip('"'))
    return stack[0]


@pytest.mark.skipif(not shutil.which("protoc"), reason="protoc is not installed")
@pytest.mark.parametrize("words", [["flow"], ["trace", "__main__:work", "__main__:query", "__main__:main"]], ids=lambda words: words[0])
def test_tasks_for_perfetto(interp, tmp_path, words):
    """A task's calls are in its own track below the thread's, from each step's begin to its end; others are in the thread's."""
    path = tmp_path / "x.pftrace"
    result = dtap(words[0], "-o", path, "-c", interp.command(STEPS), *words[1:])
    assert (result.code, result.err) == (0, ""), result
    packets = decoded(path.read_bytes())["packet"]
    tracks = {track["uuid"][0]: track for packet in packets for track in packet.get("track_descriptor", [])}
    assert all(packet["trusted_packet_sequence_id"] == ["1"] for packet in packets) and packets[0]["sequence_flags"] == ["1"]
    events = [(int(packet["timestamp"][0]), i, event) for i, packet in enumerate(packets) for event in packet.get("track_event", [])]
    stacks, counts = {}, {}
    for time, _, event in sorted(events, key=lambda e: e[:2]):
        track, = event["track_uuid"]
        stack = stacks.setdefault(track, [])
        if event["type"] == ["TYPE_SLICE_END"]:
            stack.pop()
            continue
        stack.append(event["name"][0])
        name = tracks[track]["name"][0] if "thread" not in tracks[track] else "(thread)"
        if stack[-1] in ("work", "query", "main") and (name, stack[-1]) != ("(thread)", "main"):    # there is one of site, too
            counts[name, stack[-1]] = counts.get((name, stack[-1]), 0) + 1
    assert not any(stacks.values()), stacks
    want = {("(thread)", "work"): 2}
    for n in (1, 2, 5):
        want |= {(f"query-{n}", "work"): n + 1, (f"query-{n}", "query"): n + 1}
    main = next(name for name, function in counts if function == "main")
    assert re.fullmatch(r"Task-\d+", main), counts
    assert counts == want | {(main, "work"): 1, (main, "main"): 2}, counts
    for track in tracks.values():
        if "name" in track:
            assert "thread" in tracks[track["parent_uuid"][0]]
        elif "thread" in track:
            assert "process" in tracks[track["parent_uuid"][0]]


@pytest.mark.interps("3.13")
def test_trace_for_chrome(interp, tmp_path):
    """Each call begins and ends, in its thread; a line that is a whole call has its duration."""
    counts = witness(interp)[0]
    assert dtap("flow", "-o", tmp_path / "x.json", "-c", interp.command(PROGRAM), "outer").code == 0
    open_calls, total = {}, 0
    for event in json.loads((tmp_path / "x.json").read_text()):
        stack = open_calls.setdefault((event["pid"], event["tid"]), [])
        if event["ph"] == "B":
            stack.append(event["name"])
            total += 1
        else:
            assert (event["ph"], stack.pop()) == ("E", event["name"])
        assert event["ts"] > 0 and event["args"]["file"].endswith(".py")
    assert total >= counts["outer"] + counts["leaf"] - 1 and not any(open_calls.values())
    assert dtap("trace", "-o", tmp_path / "x.json", "-c", interp.command(PROGRAM), "nap").code == 0
    events = json.loads((tmp_path / "x.json").read_text())
    assert [(e["ph"], e["name"]) for e in events] == [("X", "nap")] * counts["nap"]
    assert all(e["dur"] >= 50_000 for e in events)


ACTS = """
<script>
// Each step is what a hand would do; what the page then shows is kept for the test.
const steps = [], boxes = () => [...graph.children].map(div => [div.textContent, div.style.top, div.className, div.title, parseFloat(div.style.width)]);
const keep = (name, act) => {
	act();
	steps.push([name, boxes(), document.getElementById("found").textContent, search.validationMessage]);
};
const type = text => { search.value = text; search.oninput(); };
const named = title => [...graph.children].find(div => title.test(div.title));
keep("whole", () => {});
keep("zoomed", () => named(/^main .*calling\\.py/).click());
keep("searched", () => type("^(nap|leaf) "));
keep("wrong", () => type("("));
keep("inverted", () => { type(""); document.getElementById("invert").click(); });
keep("reset", () => document.getElementById("reset").click());
keep("cpu", () => document.getElementById("cpu").click());
document.body.textContent = "STEPS" + JSON.stringify(steps) + "END";
</script>
"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
@pytest.mark.interps("3.13")
def test_flame_graph_in_a_browser(interp, tmp_path):
    """The page as a browser has it: it zooms, searches, turns over and goes back."""
    assert dtap("record", "--cpu", "-o", tmp_path / "x.html", "-c", interp.command(PROGRAM)).code == 0
    page = (tmp_path / "x.html").read_text()
    (tmp_path / "acts.html").write_text(page.replace("</body>", ACTS + "</body>"))
    seen = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom",
                           f"--user-data-dir={tmp_path}/profile", f"file://{tmp_path}/acts.html"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True, timeout=harness.TIMEOUT_S).stdout
    steps = {name: rest for name, *rest in json.loads(html.unescape(seen.partition("STEPS")[2].partition("END")[0]))}
    names = {step: {text for text, *_ in boxes if text} for step, (boxes, *_) in steps.items()}
    assert {"<module>", "main", "outer", "nap"} <= names["whole"], names
    # What is around the zoomed function stays, paler; what is beside it goes.
    around = {text for text, _, kind, *_ in steps["zoomed"][0] if "around" in kind}
    assert "<module>" in around and {"main", "outer", "nap"} <= names["zoomed"], steps["zoomed"]
    assert "Thread.run" in names["whole"] - names["zoomed"]
    hits = [title.split(" ")[0] for _, _, kind, title, _ in steps["searched"][0] if "hit" in kind]
    assert set(hits) <= {"nap", "leaf"} and "nap" in hits
    assert re.fullmatch(r"found: \d+\.\d\d %", steps["searched"][1])
    assert steps["wrong"][2], "a pattern that is none is said to be"
    tops = {step: {text: int(top[:-2]) for text, top, *_ in steps[step][0] if text} for step in ("zoomed", "inverted")}
    assert tops["zoomed"]["main"] < tops["zoomed"]["nap"] and tops["inverted"]["main"] > tops["inverted"]["nap"]
    assert names["reset"] == names["whole"]
    # The boxes' width is then CPU time: a function that sleeps has hardly any, what falling asleep takes.
    naps = {step: [(title, width) for *_, title, width in steps[step][0] if title.startswith("nap ")] for step in ("whole", "cpu")}
    asleep = {step: sum(width for _, width in naps[step]) for step in naps}
    assert "<module>" in names["cpu"] and asleep["cpu"] < asleep["whole"] / 3, naps
    # As wide as the time is long, of which the program says how much it is.
    told = [re.search(r"\): ([\d.]+) (m?)s, .* ([\d.]+) %$", title).groups() for title, _ in naps["whole"]]
    assert sum(float(time) * (1 if milli else 1000) for time, milli, _ in told) >= 5 * 50, told
    assert all(abs(width - float(part)) < 0.01 for (_, width), (_, _, part) in zip(naps["whole"], told)), (naps, told)


SPEEDSCOPE = pathlib.Path(os.environ.get("DTAP_SPEEDSCOPE", "/var/cache/dtap/npm/node_modules/speedscope")) / "dist/release"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
@pytest.mark.skipif(not SPEEDSCOPE.exists(), reason="npm install --prefix /var/cache/dtap/npm speedscope has not been run")
@pytest.mark.parametrize("suffix, profiles", [(".json", ["dtap record", "dtap record, CPU time"]), (".folded", []), (".pb.gz", []),
                                              (".callgrind", ["x.callgrind -- Nanoseconds", "x.callgrind -- CPU_nanoseconds"])])
@pytest.mark.interps("3.13")
def test_speedscope_reads_it(interp, tmp_path, suffix, profiles):
    """Its own importer, in a browser, as its command has it load a file; the page then names the file and its profiles."""
    assert dtap("record", "--cpu", "-o", tmp_path / f"x{suffix}", "-c", interp.command(PROGRAM)).code == 0
    text = base64.b64encode((tmp_path / f"x{suffix}").read_bytes()).decode()
    (tmp_path / "load.js").write_text(f"speedscope.loadFileFromBase64('x{suffix}', '{text}')")
    page = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--use-gl=angle", "--use-angle=swiftshader",
                           "--enable-unsafe-swiftshader", "--virtual-time-budget=20000", "--dump-dom",
                           f"--user-data-dir={tmp_path}/profile", f"file://{SPEEDSCOPE}/index.html#localProfilePath={tmp_path}/load.js"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=harness.TIMEOUT_S).stdout
    named = profiles[0].partition(" --")[0] if profiles else f"x{suffix}"
    assert re.search(rf"<title>{re.escape(named)}.* - speedscope</title>", page), page
    text = re.sub(r"<[^>]*>", " ", page)
    assert all(re.search(rf" {re.escape(profile)} +[\d.,]+(ms|s)? ", text) for profile in profiles), text


@pytest.mark.interps("3.13")
def test_lines_are_whole(interp):
    """The program writes to the same pipe: between lines, never within one."""
    program = "import os\ndef f(n):\n    os.write(1, b'said\\n')\nfor n in range(3000):\n    f(n)\n"
    result = dtap("trace", "--json", "-c", interp.command(program), "__main__:f")
    said = [line for line in result.out.splitlines() if line == "said"]
    rows = [json.loads(line) for line in result.out.splitlines() if line != "said"]
    assert (result.code, len(said)) == (0, 3000), result.err
    assert [row["arguments"] for row in rows] == [f"n={n}" for n in range(3000)]


@pytest.mark.interps("3.13")
def test_hostile_names(interp):
    """What a terminal would act upon, and what JSON cannot have, comes from the program."""
    program = 'd = {}\nexec(compile("def f(): pass\\nf()", "a\\x1b[2Jb\\x9bc\\n", "exec"), d)\n'
    text = dtap("calls", "-c", interp.command(program), "f")
    assert text.code == 0 and "a?[2Jb?c?" in text.out and "\x1b" not in text.out, text
    row, = lines(dtap("calls", "--json", "-c", interp.command(program), "f").out)
    assert row["file"] == "a\x1b[2Jb\x9bc\n", row


@pytest.mark.parametrize("words", [["calls"], ["record"], ["flow"], ["slow", "f"], ["exceptions", "--json"]])
def test_nothing_to_see(words):
    """Silence has a reason, which is told."""
    result = dtap(*words, "-c", "/bin/true")
    assert result.code == 0 and result.err.startswith(f"# dtap {words[0]}: nothing was seen: no Python "), result


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("words", [["calls"], ["record"], ["calls", "-i", "0.1"], ["flow"], ["calls", "--help"], ["calls", "--script"]])
def test_output_that_nobody_reads(interp, words):
    """As with "| head": it ends, and says nothing of it."""
    child = subprocess.Popen(["sh", "-c", 'exec "$@" | :', "sh", DTAP, *words, "-c", interp.command(PROGRAM)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    result = harness.finish(child, child.args)
    assert not [line for line in result.err.splitlines() if not line.startswith("# ")], result


@pytest.mark.interps("3.13")
def test_text_and_csv_of_a_table(interp):
    result = dtap("calls", "-n", "3", "-c", interp.command(PROGRAM), "leaf", "calling.py:out*")
    counts = witness(interp)[0]
    rows = [line.split() for line in result.out.splitlines()]
    assert rows[0] == ["CALLS", "PID", "FUNCTION", "FILE"]
    assert [(row[0], row[2]) for row in rows[1:]] == [(str(counts["leaf"]), "leaf"), (str(counts["outer"]), "outer")]


def test_no_program(tmp_path):
    """What a command that is no Python leaves: an empty table, and the command's own exit code."""
    result = dtap("calls", "-o", tmp_path / "x.csv", "-c", "sh -c 'exit 7'")
    assert (result.code, (tmp_path / "x.csv").read_text()) == (7, "calls,pid,function,file\n"), result
    assert dtap("calls", "-c", "sh -c 'kill -9 $$'").code == 128 + signal.SIGKILL


# --- targets --------------------------------------------------------------------------------------------

FAMILY = """
import os, subprocess, sys
def leaf(): pass
def child():
    leaf()
    os._exit(0)
leaf()
if len(sys.argv) == 1:
    pid = os.fork()
    child() if pid == 0 else os.waitpid(pid, 0)
    subprocess.run([sys.executable, __file__, "executed"])
"""


@pytest.mark.interps("3.11")
def test_children(interp):
    """Those that are forked, and later Pythons; other Pythons of the machine are not touched."""
    result = dtap("calls", "--json", "-c", interp.command(FAMILY), "leaf")
    rows = lines(result.out)
    assert sorted(row["calls"] for row in rows) == [1, 1, 1] and len({row["pid"] for row in rows}) == 3, result


@pytest.mark.interps("3.13")
def test_processes(interp, start):
    """Two of three that run; an interval; Ctrl-C."""
    loops = [harness.running(start, interp) for _ in range(3)]
    traced = {loop.pid for loop in loops[:2]}
    child = subprocess.Popen([str(w) for w in (DTAP, "calls", "--json", "-i", "0.2", *(f"-p{pid}" for pid in traced), "leaf")],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rows = []
    while {row["pid"] for row in rows} != traced or len(rows) < 6:
        line = child.stdout.readline()
        assert line, harness.finish(child, child.args)
        rows.append(json.loads(line))
    child.send_signal(signal.SIGINT)
    result = harness.finish(child, child.args)
    assert result.code == 0, result
    assert {row["pid"] for row in rows + lines(result.out)} == traced
    assert all(loop.poll() is None for loop in loops)


@pytest.mark.interps("3.13")
def test_duration(interp):
    """-d ends the run, not the command, which is told to run on: until a file is there, or for a minute."""
    program = """
import os, time
os.close(1)
os.close(2)
deadline = time.monotonic() + 60
while not os.path.exists(__file__ + ".stop") and time.monotonic() < deadline:
    time.sleep(0.01)
"""
    command = interp.command(program)
    result = dtap("calls", "-d", "0.5", "-c", command)
    (interp.dir / "script.py.stop").touch()
    assert result.code == 0 and "# dtap calls: the command runs on\n" in result.err, result


@pytest.mark.interps("3.11")
def test_ordinary_user(interp):
    script = interp.add(PROGRAM)
    os.chmod(script, 0o644)
    for command in ("calls", "record"):
        result = dtap(command, "--json", "-c", f"{interp.argv[0]} {script}", before=NOBODY)
        assert result.code == 0, result
        counted = {}
        for row in own(lines(result.out)):
            name = row["function"].rpartition(".")[2]
            counted[name] = counted.get(name, 0) + row["calls"]
        assert counted["leaf"] == witness(interp)[0]["leaf"] and counted["outer"] == 5, result


EVERYBODY = """
import os, subprocess, sys, time
def leaf(): pass
if len(sys.argv) > 1:
    os.setuid(int(sys.argv[1]))
    print("ready", flush=True)
    while True:
        leaf()
        time.sleep(0.001)
children = [subprocess.Popen([sys.executable, __file__, user], stdout=subprocess.PIPE) for user in ("0", "65534")]
for child in children:
    child.stdout.readline()
found = subprocess.run(WORDS, stdout=subprocess.PIPE, text=True).stdout
print([str(child.pid) for child in children])
print(found, end="")
for child in children:
    child.kill()
    child.wait()
"""


@pytest.mark.alone
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("words, seen", [(["-a"], [0, 1]), (["-u", "65534"], [1]), (["-u", "root"], [0])])
def test_all_and_users(interp, words, seen):
    """In a pid namespace, whose Pythons these are all: one of root, one of nobody, and one that starts them."""
    words = [str(DTAP), "calls", "--json", "-d", "2", *words, "leaf"]
    program = EVERYBODY.replace("WORDS", repr(words))
    result = harness.run(["unshare", "--pid", "--mount-proc", "--fork", *interp.argv_of(program)])
    pids, _, found = result.out.partition("\n")
    pids = json.loads(pids.replace("'", '"'))
    assert {str(row["pid"]) for row in lines(found)} == {pids[i] for i in seen}, result


@pytest.mark.interps("3.13")
def test_top(interp, start):
    """On a terminal: a table that is drawn anew, sorted as keys say, until q; elsewhere lines."""
    loop = harness.running(start, interp)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(slave)
    child = subprocess.Popen([DTAP, "top", "-i", "0.2", "-p", str(loop.pid)], stdin=slave, stdout=slave, stderr=slave)
    screen = ""

    def until(text):
        nonlocal screen
        while text not in screen:
            screen += os.read(master, 65536).decode()
        screen = screen.partition(text)[2]
    until("by self")
    until("leaf")
    for key, column in (("c", "calls"), ("t", "total"), ("f", "function")):
        os.write(master, key.encode())
        until(f"by {column}")
    os.write(master, b"/leag\x7f")         # a letter that is taken back
    until("filter: lea_")
    os.write(master, b"f\n")
    until("FILE")
    until("leaf")
    os.write(master, b"/nothing_is_called_so\n")
    until("so\033[K")
    until("FILE")
    assert "leaf" not in screen.partition("\033[H")[0]
    os.write(master, b"/\x1b")
    until("\033[2J")
    until("leaf")
    os.write(master, b"p")
    until(", paused:")
    os.write(master, b"q")
    until("\033[?1049l")
    assert child.wait(harness.TIMEOUT_S) == 0 and loop.poll() is None
    assert termios.tcgetattr(slave) == before
    os.close(slave)
    os.close(master)
    result = dtap("top", "-d", "2", "-i", "0.2", "-p", str(loop.pid))
    assert result.code == 0 and result.out.count("FUNCTION") >= 2 and "\033" not in result.out, result


@pytest.mark.alone
@pytest.mark.interps("3.11")
def test_provider_of_another_program(interp, start, tmp_path):
    """A program that is no Python and has a provider "python" is not traced, and keeps nobody from Pythons."""
    (tmp_path / "x.c").write_text("""
#include <sys/sdt.h>
#include <unistd.h>
int main(void) { write(1, "ready\\n", 6); for (;;) { DTRACE_PROBE3(python, function__entry, "f", "g", 1); usleep(10000); } }
""")
    subprocess.run(["gcc", "-I", harness.TOP / "include", "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    other = start([tmp_path / "x"], stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"ready\n"
    for words in (["calls", "--json", "-c", interp.command(PROGRAM)], ["calls", "--json", "-u", "0", "-d", "1"]):
        result = dtap(*words)
        assert result.code == 0 and str(other.pid) not in {row["pid"] for row in lines(result.out)}, result
    result = harness.run([harness.DTRACE, "-x", "place=target", "-n", "python*:::nosuch-entry { }"])
    assert result.code != 0, result
    assert other.poll() is None


# --- the frame ------------------------------------------------------------------------------------------

def words_of(path):
    """What is the command of the file, and for whom: others than root get what is named by @otherwise."""
    if path.parent == COMMANDS:
        return [path.stem], ()
    above = path.parent.with_suffix(".d")
    words, user = words_of(above)
    if f"@otherwise: {path.stem}" in above.read_text():
        return words, NOBODY
    return [*words, f"--{path.stem}", *(["9"] if f"@option: {path.stem} int" in path.read_text() else [])], user


@pytest.mark.parametrize("path", sorted(COMMANDS.rglob("*.d")), ids=lambda path: str(path.relative_to(COMMANDS))[:-2].replace("/", "-"))
def test_command_is_sound(path):
    """It compiles, also as the script that --script prints, and help tells of it."""
    words, user = words_of(path)
    listed = dtap("--help").out
    assert re.search(rf"^  {words[0]} +\w", listed, re.M)
    told = dtap(*words, "--help", before=user).out
    assert ("--interval" in told) == bool(re.search(r"@output: (table|functions)$", path.read_text(), re.M)), told
    assert f"usage: dtap {words[0]} " in told and re.search(r"@summary: (.*)", path.read_text())[1] in told, told
    required = any("@functions: required" in p.read_text() for p in (path, path.parent.with_suffix(".d")) if p.exists())
    script = dtap(*words, "--script", *(["f"] if required else []), before=user).out
    assert script.startswith("#!/usr/bin/env -S dtrace -s\n")
    result = harness.run([harness.DTRACE, "-e", "-Z", "-s", "/dev/stdin", "-c", "/bin/true"], stdin=given(script))
    assert result.code == 0, result


def given(text):
    read, write = os.pipe()
    with os.fdopen(write, "w") as f:
        f.write(text)
    return read


HEAD = "/*\n * @summary: what it does\n * @output: table\n * @value: n N count\n * @key: f F text\n"
CLAUSE = " */\npython*:::function-entry { @n[copyinstr(arg1)] = count(); }\n"


@pytest.fixture
def folder(tmp_path):
    """A user's own folder of commands: folder(text) writes one, and runs it."""
    (tmp_path / "dtap/commands").mkdir(parents=True)

    def run(text, *words, **kwargs):
        (tmp_path / "dtap/commands/mine.d").write_text(text)
        return dtap("mine", *words, env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}, **kwargs)
    return run


@pytest.mark.interps("3.13")
def test_own_command(interp, folder):
    text = HEAD + " * @option: least int 3 no fewer\n * @option: name text none a name\n" + CLAUSE.replace(
        "{ @n", "/option_least < 5 && copyinstr(arg1) == option_name/ { @n")
    result = folder(text, "--json", "--name", "leaf", "-c", interp.command(PROGRAM))
    assert lines(result.out) == [{"n": witness(interp)[0]["leaf"], "f": "leaf"}], result
    assert folder(text, "--least=5", "--json", "-c", interp.command(PROGRAM)).out == ""
    result = folder(text, "--least=many", "-c", "true")
    assert (result.code, result.err) == (2, "dtap mine: 'many' is no number for --least; dtap mine --help explains it\n")


@pytest.mark.interps("3.13")
def test_variants(interp, folder, tmp_path):
    """With an option another script is the command, with the option's value; of two options it is one."""
    command = interp.command(PROGRAM)
    (tmp_path / "dtap/commands/mine").mkdir(parents=True)
    for name, head, least in ("wide", "", "0"), ("deep", " * @option: deep int 2 so deep\n", "option_deep"):
        (tmp_path / f"dtap/commands/mine/{name}.d").write_text(HEAD + head + CLAUSE.replace(
            "{ @n", '/copyinstr(arg1) == "leaf"/ { @n').replace("count()", f"sum(1 + {least})"))
    text = HEAD + " * @option: least int 3 no fewer\n * @variant: wide bool all of them\n * @variant: deep int so deep\n" + CLAUSE.replace(
        "{ @n", '/copyinstr(arg1) == "leaf" && $1 == 3/ { @n')
    calls = witness(interp)[0]["leaf"]
    for words, n in ([], 1), (["--wide"], 1), (["--deep", "4"], 5), (["--least=4"], 0):
        result = folder(text, "--json", *words, "-c", command)
        assert lines(result.out) == ([{"n": n * calls, "f": "leaf"}] if n else []), result
    for words, message in ((["--wide", "--deep", "1"], "it is --wide or --deep"), (["--deep", "x"], "'x' is no number for --deep"),
                           (["--deep"], "option --deep requires an argument"), (["--wide", "--least=3"], "there is no option --least")):
        result = folder(text, "-c", "true", *words)
        assert result.code == 2 and message in result.err, result
    told = folder(text, "--help").out
    assert re.search(r"^ +--wide +all of them$", told, re.M) and re.search(r"^ +--deep N +so deep$", told, re.M), told
    os.remove(tmp_path / "dtap/commands/mine/wide.d")
    result = folder(text, "--wide", "-c", "true")
    assert result.code == 1 and "dtap mine: it has no script 'wide'" in result.err, result
    result = folder(HEAD + " * @variant: all stack x\n" + CLAUSE, "-c", "true")
    assert result.code == 1 and "mine.d:6: an option's kind is int or text, that of a variant may be bool" in result.err, result


@pytest.mark.interps("3.13")
def test_additions(interp, folder, tmp_path):
    """With an option another script's clauses and columns come behind the script's; --script prints both."""
    command = interp.command(PROGRAM)
    (tmp_path / "dtap/commands/mine").mkdir(parents=True)
    (tmp_path / "dtap/commands/mine/more.d").write_text(
        "/*\n * @value: twice T count\n *\n * It counts twice.\n */\npython*:::function-entry "
        '/copyinstr(arg1) == "leaf"/ { @twice[copyinstr(arg1)] = sum(2); self->more = $2; }\n')
    text = HEAD + " * @addition: more of it\n * @option: least int 3 no fewer\n *\n * It counts.\n" + CLAUSE.replace(
        "{ @n", '/copyinstr(arg1) == "leaf" && option_more < 2 && $2 == 3/ { @n')
    calls = witness(interp)[0]["leaf"]
    assert lines(folder(text, "--json", "-c", command).out) == [{"n": calls, "f": "leaf"}]
    assert lines(folder(text, "--json", "--more", "-c", command).out) == [{"n": calls, "f": "leaf", "twice": 2 * calls}]
    assert "It counts.\n\n  -p" in folder(text, "--help").out
    assert "It counts.\n\nIt counts twice.\n\n  -p" in folder(text, "--more", "--help").out
    assert "option_more = 0;" in folder(text, "--script").out and "twice" not in folder(text, "--script").out
    script = folder(text, "--script", "--more").out
    assert "option_more = 1;" in script and "self->more = 3;" in script
    result = harness.run([harness.DTRACE, "-e", "-Z", "-s", "/dev/stdin", "-c", "/bin/true"], stdin=given(script))
    assert result.code == 0, result
    (tmp_path / "dtap/commands/mine/more.d").write_text("/*\n * @colour: red\n */\n")
    result = folder(text, "--more", "-c", "true")
    assert result.code == 1 and "more.d:2: there is no line '@colour:'" in result.err, result


@pytest.mark.interps("3.11")
def test_otherwise(interp):
    """Who may not have the kernel's probes gets another script, which says what is different."""
    mine = interp.dir / "dtap/commands/mine"
    mine.mkdir(parents=True)
    (mine / "other.d").write_text(HEAD + " * @note: other numbers\n" + CLAUSE)
    mine.with_suffix(".d").write_text(HEAD.replace("f F text", "f F int") + " * @needs: kernel\n * @otherwise: other\n */\n"
                                      "syscall::exit_group:entry /targeted/ { @n[1] = count(); }\n")
    environment, command = {**os.environ, "XDG_CONFIG_HOME": str(interp.dir)}, interp.command(PROGRAM)
    os.chmod(interp.dir / "calling.py", 0o644)
    result = dtap("mine", "--json", "-c", command, env=environment)
    assert {row["f"] for row in lines(result.out)} == {1} and result.err == "", result
    for path in (interp.dir / "dtap").rglob("*.d"):
        os.chown(path, 65534, 65534)
    result = dtap("mine", "--json", "-c", command, env=environment, before=NOBODY)
    assert result.err == "# dtap mine: other numbers\n" and "leaf" in {row["f"] for row in lines(result.out)}, result


READ = """
import json, threading, time
def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def sleeps():
    time.sleep(1)
def aside():
    busy(0.6)
thread = threading.Thread(target=aside)
thread.start()
busy(0.6)
sleeps()
thread.join()
print(json.dumps(time.process_time_ns()))
"""


def check_times(result):
    """The program says its CPU time: it is where it was used, and no more; waits are beside it."""
    used, = [int(line) for line in result.out.splitlines() if line.isdigit()]
    rows = [row for row in lines("\n".join(line for line in result.out.splitlines() if not line.isdigit()))
            if row["file"].endswith("/script.py")]
    cpu = {name: sum(row["cpu_self_ns"] for row in rows if row["function"] == name) for name in ("busy", "sleeps")}
    assert used / 4 < cpu["busy"] <= used and cpu["sleeps"] < cpu["busy"] / 4, (cpu, result)
    assert any(row["self_ns"] > row["cpu_self_ns"] for row in rows if row["function"] == "sleeps"), result
    assert not [row for row in rows if row["cpu_total_ns"] > row["total_ns"]], result


def test_stacks_read_from_outside(interp, folder):
    result = folder((COMMANDS / "record/sample/outside.d").read_text(), "--sample", "97", "--json", "-c", interp.command(READ))
    assert result.code == 0 and result.err.startswith("# dtap mine: the kernel's samples are for root"), result
    check_times(result)


@pytest.mark.interps("3.11")
def test_sample_as_an_ordinary_user(interp):
    command = interp.command(READ)
    os.chmod(interp.dir / "script.py", 0o644)
    result = dtap("record", "--sample", "97", "--json", "-c", command, before=NOBODY)
    assert result.code == 0 and result.err.startswith("# dtap record: the kernel's samples are for root"), result
    check_times(result)
    result = dtap("sample", "--hz", "50", "--json", "-c", command, before=NOBODY)
    used, = [int(line) for line in result.out.splitlines() if line.isdigit()]
    rows = lines("\n".join(line for line in result.out.splitlines() if not line.isdigit()))
    assert 5 <= sum(row["self"] for row in rows if row["function"].endswith("busy")) <= 50 * used / 1e9 + 5, result
    result = dtap("sample", "--hz", "0", "-c", command, before=NOBODY)
    assert result.code == 2 and "--hz: stacks can be read 1 to 1000 times a second" in result.err, result


GOES_ON = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
end = time.monotonic() + 1
while time.monotonic() < end:
    pass
print("ended")
"""


@pytest.mark.alone
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("rate", [97, 1000])
def test_reading_lets_a_process_go(interp, start, rate):
    """On a busy processor it stops only after who reads it has given up waiting: it must not stay so."""
    command = interp.command(GOES_ON)
    os.chmod(interp.dir / "script.py", 0o644)
    for _ in range(4):
        os.sched_setaffinity(start(["sh", "-c", "while :; do :; done"]).pid, {min(os.sched_getaffinity(0))})
    result = dtap("record", "--sample", rate, "--json", "-c", command, before=NOBODY)
    assert result.code == 0 and result.out.startswith("ended\n"), result


LOCKS_READ = """
import json, threading, time
def holds(lock):
    with lock:
        told.set()
        go.wait()
def wants(lock):
    ready.set()
    lock.acquire()
    lock.release()
for lock in threading.RLock(), threading.Lock():
    told, ready, go = threading.Event(), threading.Event(), threading.Event()
    threads = [threading.Thread(target=holds, args=(lock,))]
    threads[0].start()
    told.wait()
    threads.append(threading.Thread(target=wants, args=(lock,)))
    threads[1].start()
    print(json.dumps({"lock": hex(id(lock)), "owner": threads[0].native_id}), flush=True)
    ready.wait()
    time.sleep(0.6)
    go.set()
    for thread in threads:
        thread.join()
"""


def test_locks_read_from_outside(interp, folder):
    """Of a wait for an RLock and one for a Lock: which it is, who has it, where one waits, once."""
    if interp.version.endswith("t"):
        pytest.skip("its locks are not known")
    result = folder((COMMANDS / "lock/outside.d").read_text(), "--json", "--hz", "50", "-c", interp.command(LOCKS_READ))
    assert result.code == 0, result
    rows = [row for row in lines(result.out) if row.get("where") and row["where"][0].endswith("(wants)") and row["what"] == "lock"]
    told = [row for row in lines(result.out) if "where" not in row]
    owners = {row["lock"].split()[-1]: row["owner"] for row in rows}
    assert owners == {told[0]["lock"]: told[0]["owner"], told[1]["lock"]: 0}, result
    assert {row["lock"].split()[0] for row in rows} == {"threading.RLock", "threading.Lock"}, result
    assert {row["waits"] for row in rows} == {1} and all(row["longest_ns"] == row["time_ns"] > 0 for row in rows), result


@pytest.mark.interps("3.13")
def test_stacks_in_a_table(interp, folder):
    """A stack that is a key is a row of its own, and a list in JSON."""
    head = HEAD.replace("f F text", "stack STACK stack")
    clause = ' */\npython*:::function-entry /copyinstr(arg1) == "nap"/ { @n[pystack(2)] = count(); }\n'
    command = interp.command(PROGRAM)
    row, = lines(folder(head + clause, "--json", "-c", command).out)
    assert row["n"] == witness(interp)[0]["nap"] and len(row["stack"]) == 2, row
    assert re.fullmatch(r".*/calling\.py:\d+ \(nap\)", row["stack"][0]) and row["stack"][1].endswith("outer)"), row
    assert " < " in folder(head + clause, "-c", command).out


ALIKE = """
def f(n):
    pass
def g(n):
    pass
def calls():
    f(3); f(5)
    g(5); g(3)
calls()
"""


@pytest.mark.interps("3.13")
def test_stacks_that_look_alike(interp, folder):
    """Two calls on one line are one row: the least, the greatest and the average of both."""
    head = "/*\n * @summary: what it does\n * @output: table\n * @value: n N count\n * @value: least L int\n * @value: most M int\n" \
        " * @value: mean A int\n * @key: stack STACK stack\n * @functions: required\n */\n"
    clause = "$selected:entry { this->at = pystack(2, \"line\"); this->n = pyint(pyarg(0)); @n[this->at] = count();\n" \
        "@least[this->at] = min(this->n); @most[this->at] = max(this->n); @mean[this->at] = avg(this->n); }\n"
    result = folder(head + clause, "--json", "-c", interp.command(ALIKE), "f", "g")
    rows = [{name: row[name] for name in ("n", "least", "most", "mean")} for row in lines(result.out)]
    assert rows == 2 * [{"n": 2, "least": 3, "most": 5, "mean": 4}], result


@pytest.mark.parametrize("text, message", [
    ("python*:::function-entry { }", "1: a command begins with a comment"),
    (HEAD + " * @sort: nothing\n" + CLAUSE, "1: @sort: there is no column 'nothing'"),
    (HEAD + " * @colour: red\n" + CLAUSE, "6: there is no line '@colour:' in the head of a command"),
    (HEAD + " * @value: a\n" + CLAUSE, "6: @value: takes 3 words"),
    (HEAD + " * @value: a A colour\n" + CLAUSE, "6: there is no kind 'colour', but int, count"),
    (HEAD + " * @option: a int 1 one\n * @variant: a bool two\n" + CLAUSE, "7: option a is there twice"),
    (HEAD.replace("table", "events") + " * @reads: hz\n" + CLAUSE, "1: @reads: is for the outputs tree and table"),
    (HEAD.replace("table", "tree") + " * @reads: hz\n" + CLAUSE, "1: @reads: there is no @option 'hz' of the kind int"),
    (HEAD.replace("@summary", "summary") + CLAUSE, "1: the head has no line '@summary:'"),
])
def test_mistakes_in_a_head(folder, text, message):
    result = folder(text, "-c", "true")
    assert result.code == 1 and f"mine.d:{message}" in result.err, result


@pytest.mark.parametrize("words, remedy", [
    (["flow", "-i", "1", "-c", "true"], "each event when it happens"), (["trace", "-i", "1", "-c", "true", "f"], "each event when it happens"),
    (["record", "-i", "1", "-c", "true"], "-d SECONDS"), (["sample", "-i", "1", "-c", "true"], "-d SECONDS"),
    (["slow", "-i", "1", "-c", "true", "f"], "-d SECONDS"), (["dump", "-d", "1", "-p", "1"], "dtap sample -d SECONDS"),
    (["dump", "-i", "1", "-p", "1"], "dtap sample -d SECONDS"), (["gc", "-c", "true", "json:*"], "dtap calls, flow"), (["gc", "1234"], "by -p"),
])
def test_refusals_say_what_to_use(words, remedy):
    result = dtap(*words)
    assert result.code == 2 and result.out == "" and remedy in result.err, result


def test_functions_are_for_the_commands_that_are_named():
    """The list in that refusal is the whole."""
    about = {path.stem for path in COMMANDS.glob("*.d") if re.search(r"@functions: (required|optional)", path.read_text())}
    named = re.search(r"those that are: dtap ([\w, ]+)", dtap("gc", "-c", "true", "json:*").err)[1]
    assert set(named.split(", ")) == about


def test_another_users_command(folder, tmp_path):
    """Where sudo has kept HOME, a file there is not to be what root runs."""
    assert folder(HEAD + CLAUSE, "--script").code == 0
    os.chown(tmp_path / "dtap/commands/mine.d", 65534, 65534)
    result = dtap("mine", "--script", env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)})
    assert result.code == 2 and "there is no command 'mine'" in result.err, result


@pytest.mark.parametrize("word, answer", [
    ("recrod", "; did you mean 'record'?"), ("wait", "; did you mean 'waits'?"), ("dtracee", "; did you mean 'dtrace' or 'trace'?"),
    ("x", ""), ("", ""), ("qwertyuiop" * 10, ""),
])
def test_unknown_command(word, answer):
    """A name that is nearly one is answered with that one, any other with all."""
    result = dtap(word)
    first, *rest = result.err.splitlines()
    assert (result.code, result.out, first) == (2, "", f"dtap: there is no command '{word}'{answer}"), result
    assert bool(rest) == (not answer)


@pytest.mark.parametrize("words, message", [
    ([], "name what to trace: -p PID, -c COMMAND, -u USER or -a"),
    (["-a", "-p", "1"], "it is -a, or -u, or -c and -p"),
    (["-p", "x"], "'x' is no process id"),
    (["-d", "0", "-a"], "'0' is no number of seconds"),
    (["-n", "0", "-a"], "'0' is no number of rows"),
    (["-u", "nobody-at-all"], "there is no user 'nobody-at-all'"),
    (["--nosuch"], "there is no option --nosuch"),
    (["-o"], "option -o requires an argument"),
    (["-o", "x.pdf", "-c", "true"], "the suffix of 'x.pdf' says nothing; it is .txt"),
    (["-c", "true", "a.b"], "function pattern 'a.b': functions are known by their own names"),
    (["-c", "true", "f?"], "function pattern 'f?': of the shell's patterns only * is known"),
    (["-c", "true", ":f"], "function pattern ':f': a name is missing"),
])
def test_wrong_command_lines(words, message):
    result = dtap("calls", *words)
    assert (result.code, result.out) == (2, "") and message in result.err, result


PACKAGE = """
import sys, os
folder = os.path.dirname(__file__) + "/shop/orders"
os.makedirs(folder, exist_ok=True)
for name in ("shop/__init__", "shop/orders/__init__", "shop/orders/basket"):
    with open(os.path.dirname(__file__) + f"/{name}.py", "w") as f:
        f.write("def add_one(): pass\\ndef get_it(): pass\\ndef get_all(): pass\\n")
import shop, shop.orders, shop.orders.basket
for module in (shop, shop.orders, shop.orders.basket):
    module.add_one(), module.get_it(), module.get_all()
"""


@pytest.mark.first
@pytest.mark.interps("3.11")
def test_patterns(interp):
    """Which functions of which modules a pattern means."""
    command = interp.command(PACKAGE)
    init, orders, basket = "shop/__init__", "orders/__init__", "basket"

    def found(*patterns):
        result = dtap("calls", "--json", "-c", command, *patterns)
        assert result.code == 0, result
        return {(re.search(r"(\w+/__init__|\w+)\.py$", row["file"])[1], row["function"]) for row in lines(result.out)
                if "/shop/" in row["file"] and row["function"] != "<module>"}

    everything = {(file, name) for file in (init, orders, basket) for name in ("add_one", "get_it", "get_all")}
    assert found("*") == found() == everything
    assert found("get_*") == {(f, n) for f, n in everything if n.startswith("get_")}
    assert found("*_one", "*et_i*") == {(f, n) for f, n in everything if n in ("add_one", "get_it")}
    assert found("get*all") == {(f, n) for f, n in everything if n == "get_all"}
    assert found("shop.orders:add_one") == {(orders, "add_one")}
    assert found("shop.orders.basket:*") == {(basket, n) for n in ("add_one", "get_it", "get_all")}
    assert found("orders.*:get_it") == {(orders, "get_it"), (basket, "get_it")}
    assert found("basket.py:get_it", 'x"y') == {(basket, "get_it")}


# --- the documents --------------------------------------------------------------------------------------

def test_manual():
    """The commands, the options that all have, and the words of a head."""
    page = (harness.TOP / "doc/man/dtap.1").read_text()
    section = page.partition(".Sh COMMANDS")[2].partition(".Sh OPTIONS")[0]
    assert set(re.findall(r"^\.It Cm (\w+)(?: Ar .*)?$", section, re.M)) == {path.stem for path in COMMANDS.glob("*.d")}
    shown = set(re.findall(r"^  -(\w), --(\w+)", dtap("calls", "--help").out, re.M))
    assert set(re.findall(r"^\.It Fl (\w) , Fl -(\w+)", page, re.M)) == shown
    head = (harness.TOP / "src/cmd/ready/head.c").read_text()
    assert set(re.findall(r"^\.It Li @(\w+):", page, re.M)) == set(re.findall(r'{ "(\w+)", \d, \w+, ', head))


@pytest.mark.interps("3.11")
def test_own_command_is_not_waited_for(interp, tmp_path):
    """The command that dtap itself holds gets the agent when it goes on: nobody else lets it go."""
    naps = tmp_path / "naps"
    result = harness.run(["strace", "-o", naps, "-e", "trace=clock_nanosleep", harness.BUILD / "dtap", "calls", "-c", interp.command(PROGRAM)],
                         env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})       # it needs ptrace itself
    assert (result.code, result.err) == (0, "") and "outer" in result.out, result
    assert naps.read_text().count("clock_nanosleep(") < 50, naps.read_text()


@pytest.mark.needs_bpf
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("options, columns", ((["--sample", "1"], "self_ns,total_ns,cpu_self_ns,cpu_total_ns,"), ([], "calls,self_ns,total_ns,")))
def test_record_of_nothing(interp, tmp_path, options, columns):
    """The columns are those of the command, whatever was seen."""
    dtap("record", *options, "-o", tmp_path / "x.csv", "-c", "/bin/true")
    assert (tmp_path / "x.csv").read_text().startswith(columns)
