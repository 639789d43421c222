"""What all ready-made commands have in common: -i, -n, -o, --json, --script, -a and -u, for root and for an ordinary user.

The program makes steps, as those of each_command_test.py do; each process tells how many.
"""
import ast
import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess

import pytest

import harness
from commands_test import COMMANDS, DTAP, NOBODY, dtap, lines
from each_command_test import COMMON, COUNTS, ENDLESS, KERNEL, OTHERS

pytestmark = pytest.mark.needs_root

FORMS = {"TABLE": "table", "EVENTS": "events", "DISTRIBUTION": "distribution", "TREE": "tree", "FUNCTION_TABLE": "functions"}
FORMATS = harness.TOP / "src/cmd/ready/formats.def"

# Once all that commands are about, in a process; what waits for the lock and the GIL, too.
STEPS = COMMON + """
import asyncio, colorsys
async def one():
    await asyncio.sleep(0.001)
async def some():
    await asyncio.gather(*(asyncio.create_task(one(), name=f"one{k}") for k in range(3)))
def holds():
    with lock:
        time.sleep(0.01)
lock = threading.Lock()
threads = [threading.Thread(target=holds) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
asyncio.run(some())
end = time.thread_time() + 0.1
while time.thread_time() < end:
    work(3)
gc.collect()
tell()
"""


def head(command, word):
    """The words behind @word: of a command's script."""
    path = COMMANDS / f"{command.split()[0]}.d"
    return re.findall(rf"^ \* @{word}: (.*)$", path.read_text(), re.M)


def form(command):
    return head(command, "output")[0]


def words_for(command):
    return COUNTS.get(command, ([], None))[0] or (["__main__:step"] if head(command, "functions") == ["required"] else [])


PLAIN = sorted(path.stem for path in COMMANDS.glob("*.d"))
EACH = sorted({*PLAIN, *(c.partition(" --least")[0] for c in [*COUNTS, *OTHERS])})


def test_each_command_is_here():
    """The walk-through has each ready-made command."""
    assert {command.split()[0] for command in [*COUNTS, *OTHERS]} == set(PLAIN)


def suffixes(command):
    found = []
    for suffix, forms in re.findall(r'^READY_FORMAT\(\w+,\s+"([^"]+)",\s+(.*?),\s+"', FORMATS.read_text(), re.M):
        wanted = next(word for word, name in FORMS.items() if name == form(command))
        if (forms == "ALL" or f"BIT(READY_{wanted})" in forms) and ".cpu." not in suffix and suffix not in found:
            found.append(suffix)
    return found


def check_file(path, suffix):
    data = path.read_bytes()
    assert data, path
    if suffix in (".pb.gz", ".pprof"):
        assert gzip.decompress(data)[:1] == b"\x0a"
    elif suffix == ".pftrace":
        assert data[:1] == b"\x0a"
    elif suffix == ".jsonl":
        assert lines(data.decode())
    elif suffix == ".json":
        text = data.decode()
        assert json.loads(text) if text.startswith(('{"$schema', "[")) or '"traceEvents"' in text[:200] else lines(text)
    elif suffix == ".csv":
        first, *rows = csv.reader(io.StringIO(data.decode()))
        assert rows and {len(row) for row in rows} == {len(first)}, data
    elif suffix in (".html", ".svg"):
        assert f"<{suffix[1:]}" in data.decode() and data.decode().rstrip().endswith(f"</{suffix[1:]}>")
    elif suffix == ".callgrind":
        assert data.startswith(b"# callgrind format\n") and b"\nfn=" in data
    elif suffix == ".folded":
        assert re.fullmatch(r"(?:.+ \d+\n)+", data.decode())
    else:
        assert suffix == ".txt" and data.decode().count("\n") > 1


# What may be absent of STEPS, since the kernel has not told of a wait, or none had to be waited for.
MAYBE = {"lock", "gil"}


@pytest.mark.slow
@pytest.mark.interps("3.11", "3.14")
@pytest.mark.parametrize("command", EACH)
def test_output_by_suffix(interp, command, tmp_path):
    """Each form of result, in each format that it has: a whole file, and nothing on a terminal."""
    every = suffixes(command)
    for suffix in every if command in ("record", "flow") else [s for s in every if s in (".txt", ".csv", ".html", ".pftrace")]:
        path = tmp_path / f"out{suffix}"
        result = dtap(*command.split(), "-o", path, "-c", interp.command(STEPS), *words_for(command))
        assert result.code == 0 and result.out.startswith('{"told"') and result.out.count("\n") == 1, result
        assert not [line for line in result.err.splitlines() if "nothing was seen" not in line], result
        if command not in MAYBE or "nothing was seen" not in result.err:
            check_file(path, suffix)


@pytest.mark.slow
@pytest.mark.interps("3.13")
@pytest.mark.parametrize("command", EACH)
def test_rows(interp, command):
    """-n: no more rows, in text, JSON and CSV, and these are the first ones of all."""
    if form(command) == "distribution":
        result = dtap(*command.split(), "-n", "2", "--json", "-c", interp.command(STEPS), *words_for(command))
        # Those that took half as long as the longest.
        took = [row["duration_ns"] for row in lines(result.out) if "duration_ns" in row]
        assert 1 <= len(took) <= 2 and min(took) >= max(took) // 2, result
        return
    for words, titles in (([], 1), (["--json"], 0), (["-o", interp.dir / "rows.csv"], 1)):
        once = ["-i", "1000"] if head(command, "live") else []
        result = dtap(*command.split(), *once, "-n", "2", *words, "-c", interp.command(STEPS), *words_for(command))
        assert result.code == 0, result
        text = result.out if words[:1] != ["-o"] else (interp.dir / "rows.csv").read_text()
        rows = [line for line in text.splitlines() if line and '"told"' not in line]
        if command in MAYBE and not rows:
            continue
        assert titles < len(rows) <= 2 + titles, (words, text)


# Of which the program of the next test does nothing, or not for sure.
SELDOM = {"imports", "tasks", "lock", "gil"}


@pytest.mark.interps("3.13")
@pytest.mark.parametrize("command", [c for c in EACH if form(c) in ("table", "functions") and " " not in c and c not in SELDOM])
def test_intervals(interp, start, command):
    """-i: a table each time, in which what was in an earlier one is not counted again; the process goes on."""
    program = start(interp.argv_of(ENDLESS.replace("time.sleep(0.002)", "time.sleep(0.002); gc.collect(0)")),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    tracer = subprocess.Popen([str(w) for w in (DTAP, command, "-o", interp.dir / "all.jsonl", "-i", "0.3", "-p", program.pid,
                                                *words_for(command))], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = interp.dir / "all.jsonl"

    def rows():
        whole = text.read_text().rpartition("\n")[0] if text.exists() else ""
        return lines(whole)
    first = harness.wait_until(rows, what="a table")
    harness.wait_until(lambda: len(rows()) >= 2 * len(first) or len(rows()) > len(first) + 3, what="another table")
    tracer.send_signal(signal.SIGINT)
    result = harness.finish(tracer, tracer.args)
    assert result.code == 0 and program.poll() is None, result
    program.stdin.close()
    told = json.loads(program.stdout.readline())
    if command in COUNTS and command not in ("io", "memory"):
        found = COUNTS[command][1](rows())
        assert 0 < found[told["told"]] <= told["steps"], (found, told)


@pytest.mark.alone
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("command", [c for c in EACH if c in COUNTS and form(c) == "table" and c not in ("waits", "io")])
def test_script_is_the_command(interp, command):
    """What --script prints is a script that dtrace runs, with the same numbers; of all Pythons, here those of a pid namespace."""
    words = words_for(command)
    script = interp.dir / "command.d"
    script.write_text(dtap(*command.split(), "--script", *words).out)
    result = harness.run(["unshare", "--pid", "--mount-proc", "--fork", harness.DTRACE, "-q", "-x", "place=target", "-s", script,
                          "-c", interp.command(STEPS)])
    assert result.code == 0, result
    told = json.loads(next(line for line in result.out.splitlines() if line.startswith('{"told"')))
    assert re.search(rf"\b{told['steps']}\b", result.out.replace(json.dumps(told), "")), result


EVERYBODY = """
import os, subprocess, sys
children = []
for user in (0, 65534):
    child = subprocess.Popen([sys.executable, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user, group=user)
    assert child.stdout.readline() == "ready\\n"
    children.append(child)
print([child.pid for child in children])
for tracer in [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for words in WORDS]:
    text = tracer.communicate()[0]
    print([tracer.returncode, text])
for child in children:
    child.kill()
    child.wait()
"""
# Waits for a lock as well, and has tasks and imports.
ALL_DO = ENDLESS.replace('__file__ + ".data"', 'f"{__file__}.{os.getpid()}.data"').replace("    time.sleep(0.002)", """
    sys.modules.pop("colorsys", None)
    import colorsys
    gc.collect(0)
    asyncio.run(turn())
    waits()""").replace('print("ready"', """
import asyncio
async def turn():
    await asyncio.create_task(asyncio.sleep(0.001), name="a turn")
def waits():
    lock.acquire()
    other = threading.Thread(target=lambda: (time.sleep(0.002), lock.release()))
    other.start()
    with lock:
        pass
    other.join()
lock = threading.Lock()
print("ready\"""")


# Most commands see something in each turn of the program, but it sleeps at most times when a sample is taken.
SECONDS = {"sample": 3, "record": 1.5}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("command", EACH)
def test_all_and_users(interp, command):
    """Three tracers at once in a pid namespace, whose Pythons these are all: one of root, one of nobody, and one that starts them."""
    made = interp.add(ALL_DO, "everybody.py")
    os.chmod(made, 0o644)
    os.chmod(interp.dir, 0o777)
    runs = [(["-a"], [0, 1], ()), (["-u", "65534"], [1], ()), (["-a"], [1], NOBODY)]
    if command in KERNEL and not head(command, "otherwise"):
        runs = runs[:2]
    seconds = str(SECONDS.get(command.split()[0], 0.7))
    words = [[*before, str(DTAP), *command.split(), "--json", "-d", seconds, *more, *words_for(command)] for more, _, before in runs]
    program = EVERYBODY.replace("WORDS", repr(words)).replace("PROGRAM", repr(made))
    result = harness.run(["unshare", "--pid", "--mount-proc", "--fork", *interp.argv_of(program)])
    assert result.out.count("\n") == 1 + len(runs), result
    pids, *found = [ast.literal_eval(line) for line in result.out.splitlines()]
    for (more, who, _), (code, text) in zip(runs, found):
        rows = lines("\n".join(line for line in text.splitlines() if line.startswith("{")))
        seen = {row["pid"] for row in rows} & set(pids)
        assert code == 0 and seen <= {pids[i] for i in who}, (more, text, result)
        # What frees of other threads share, processes of several users do not.
        assert seen == {pids[i] for i in who} or command in MAYBE or "is in another trust domain" in text, (more, text, result)
