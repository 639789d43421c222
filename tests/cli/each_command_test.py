"""
Each command on each of three programs: an asyncio service, threads with a database, workers that are forked before they serve.

Each process of a program tells what it has done itself: the steps that it has made, each of which calls, raises, writes and
keeps so much.  Interpreters come in turn, one for each case; DTAP_NIGHTLY has all of them.
"""
import json
import os
import subprocess
import zlib

import pytest

import harness
from commands_test import COMMANDS, NOBODY, dtap, lines

pytestmark = pytest.mark.needs_root

COMMON = """
import gc, json, os, sqlite3, sys, threading, time
class StepError(LookupError):
    pass
steps, kept = [], []
data = os.open(__file__ + ".data", os.O_WRONLY | os.O_CREAT, 0o666)
def step(n):
    steps.append(n)
    kept.append(bytes(5000))
    os.getppid()
    sys.audit("shop.step", n)
    os.write(data, b"0123456789")
    try:
        raise StepError(n)
    except StepError:
        return n
def work(n):
    return sum([step(k) for k in range(n)])
def tell():
    gc.collect()
    os.write(1, json.dumps({"told": os.getpid(), "steps": len(steps)}).encode() + b"\\n")
"""

ASYNCIO = COMMON + """
import asyncio
async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(b"%d\\n" % work(int(line)))
        await writer.drain()
    writer.close()
async def client(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for n in range(1, 6):
        writer.write(b"%d\\n" % n)
        assert int(await reader.readline()) == n * (n - 1) // 2
    writer.close()
async def both():
    import colorsys
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(asyncio.create_task(client(port), name=f"client{k}") for k in range(3)))
    server.close()
asyncio.run(both())
tell()
"""

THREADS = COMMON + """
import http.server, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        db = sqlite3.connect(":memory:")
        n, = db.execute("select ?", (int(self.path[1:]),)).fetchone()
        db.close()
        body = b"%d" % work(n)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False
def client(port, n):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{n}") as answer:
        assert int(answer.read()) == n * (n - 1) // 2
import colorsys
server = Server(("127.0.0.1", 0), Handler)
serving = threading.Thread(target=server.serve_forever, args=(0.01,))
serving.start()
clients = [threading.Thread(target=client, args=(server.server_address[1], n)) for n in range(1, 8)]
for thread in clients:
    thread.start()
for thread in clients:
    thread.join()
server.shutdown()
server.server_close()
serving.join()
tell()
"""

WORKERS = COMMON + """
import socket
import colorsys
def answer(connection):
    with connection:
        n = int(connection.recv(100))
        connection.send(b"%d" % work(n))
    return n
def ask(port, n):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.send(b"%d" % n)
        return int(connection.recv(100))
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
for _ in range(2):
    if not os.fork():
        while answer(listener.accept()[0]):
            pass
        tell()
        os._exit(0)
work(3)
for n in range(1, 8):
    assert ask(port, n) == n * (n - 1) // 2
for _ in range(2):
    ask(port, 0)
for _ in range(2):
    os.wait()
tell()
"""
PROGRAMS = {"asyncio": ASYNCIO, "threads": THREADS, "workers": WORKERS}


def name_of(row):
    return row.get("function", "").rpartition(".")[2]


def summed(rows, what, where):
    """By process, of the rows for which @where holds."""
    found = {}
    for row in rows:
        if where(row):
            found[row["pid"]] = found.get(row["pid"], 0) + (row[what] if what else 1)
    return found


def of_step(what):
    return lambda rows: summed(rows, what, lambda row: name_of(row) == "step")


def at_step(row):
    return row["where"] and row["where"][0].endswith("(step)")


LINE = COMMON[:COMMON.index("    os.getppid()")].count("\n") + 1

# What is asked, and how many there are by process, which is the number of steps there.
COUNTS = {
    "calls": (["step"], of_step("calls")),
    "record": ([], of_step("calls")),
    "time": ([], of_step("calls")),
    "top": ([], of_step("calls")),
    "flow": (["step"], lambda rows: summed(rows, None, lambda row: name_of(row) == "step" and row["event"] == "call")),
    "trace": (["__main__:step"], lambda rows: summed(rows, None, lambda row: row["arguments"] == f"n={row['result']}")),
    "slow": (["__main__:step"], lambda rows: summed(rows, "count", lambda row: "count" in row)),
    "slow --waits": (["__main__:step"], lambda rows: summed(rows, "count", lambda row: "count" in row)),
    "waits": (["__main__:step"], lambda rows: summed(rows, "calls", lambda row: row["called"] == "getppid")),
    "exceptions": ([], lambda rows: summed(rows, "caught", lambda row: row["type"] == "StepError" and name_of(row) == "step")),
    "audit": ([], lambda rows: summed(rows, "count", lambda row: row["event"] == "shop.step")),
    "lines": (["step"], lambda rows: summed(rows, "count", lambda row: row["line"] == LINE)),
    "memory --least 4000": ([], lambda rows: summed(rows, "allocs", at_step)),
    "io": ([], lambda rows: {pid: n / 10 for pid, n in summed(
        rows, "bytes", lambda row: row["file"].endswith(".data") and row["what"] == "write" and at_step(row)).items()}),
}
# What is there besides, of which the program knows less.
OTHERS = {
    "gc": lambda rows, told: all(any(row["pid"] == pid and row["runs"] for row in rows) for pid in told),
    "imports": lambda rows, told: sum(row["times"] for row in rows if row["module"] == "colorsys") == 1,
    "tasks": lambda rows, told: {row["task"] for row in rows if row["task"].startswith("client")} in
    ({"client0", "client1", "client2"}, set()),
    "lock": lambda rows, told: all(row["waits"] > 0 and row["time_ns"] >= row["longest_ns"] for row in rows),
    "gil": lambda rows, told: {row["pid"] for row in rows} >= told.keys() and
    all(row["held_ns"] >= row["longest_hold_ns"] and row["waited_ns"] >= row["longest_wait_ns"] for row in rows),
    "sample": lambda rows, told: {row["pid"] for row in rows} <= told.keys(),
    "record --sample 97": lambda rows, told: {row["pid"] for row in rows} <= told.keys(),
}
KERNEL = {"gil", "io", "lock", "sample", "record --sample 97"}


def cases(commands, versions, programs=len(PROGRAMS)):
    """A program and a command with one interpreter, or with all; so many of the programs, in turn."""
    for n, command in enumerate(commands):
        for program in [*PROGRAMS, *PROGRAMS][n % len(PROGRAMS):][:programs]:
            turn = zlib.crc32(f"{program} {command}".encode()) % len(versions)
            for version in versions if harness.NIGHTLY else [versions[turn]]:
                yield pytest.param(program, command, version, id=f"{command.replace(' ', '')}-{program}-py{version}")


# What looks a hundred times a second, and after each look leaves the process alone nine times as long as that took, may miss a
# program of 50 ms, and where there is much to do one of a second.
LONGER = """
begun = time.monotonic()
while time.monotonic() - begun < 5:
    time.sleep(0.001)
"""


def result_of(made, program, command, words, longer="", **how):
    script = made.add(PROGRAMS[program] + longer)
    os.chmod(made.dir / "script.py", 0o644)
    os.chmod(made.dir, 0o777)
    result = dtap(*command.split(), "--json", "-c", " ".join([*made.argv, script]), *words, **how)
    assert result.code == 0, result
    assert not [line for line in result.err.splitlines() if not line.startswith("#")], result
    rows = lines(result.out)
    told = {row["told"]: row["steps"] for row in rows if "told" in row}
    assert len(told) == (3 if program == "workers" else 1) and sum(told.values()) > 10, result
    return [row for row in rows if "told" not in row], told, result


def check_counts(made, program, command, **how):
    words, count = COUNTS[command]
    rows, told, result = result_of(made, program, command, words, **how)
    told = {pid: n for pid, n in told.items() if n}
    assert count(rows) == told, (told, count(rows), result)


@pytest.mark.parametrize("program, command, made", cases(COUNTS, harness.VERSIONS), indirect=["made"])
def test_each_command_that_counts(made, program, command):
    check_counts(made, program, command)


@pytest.mark.parametrize("program, command, made", cases([c for c in COUNTS if c not in KERNEL], ["3.11"], 1), indirect=["made"])
def test_each_command_as_an_ordinary_user(made, program, command):
    check_counts(made, program, command, before=NOBODY)


@pytest.mark.parametrize("program, command, made", cases(OTHERS, harness.VERSIONS), indirect=["made"])
def test_each_other_command(made, program, command):
    rows, told, result = result_of(made, program, command, [])
    assert OTHERS[command](rows, told), result
    assert command not in ("gc", "imports") or rows, result
    assert bool(rows) == (program == "asyncio") or command != "tasks", result


def otherwise(command):
    """Has it a script for who may not have the kernel's probes?"""
    name, *options = command.split()
    path = COMMANDS / f"{name}.d" if not options else COMMANDS / name / f"{options[0][2:]}.d"
    return "@otherwise:" in path.read_text()


# What that one counts, if it counts.
INSTEAD = {
    "io": lambda rows: summed(rows, "calls", lambda row: row["what"] == "write" and row["file"].isdigit() and at_step(row)),
}


@pytest.mark.parametrize("program, command, made", cases([c for c in sorted(KERNEL) if otherwise(c)], ["3.11"]), indirect=["made"])
def test_what_an_ordinary_user_gets_instead(made, program, command):
    """Another script, which tells what is different."""
    rows, told, result = result_of(made, program, command, [], LONGER if "sample" in command else "", before=NOBODY)
    assert result.err.startswith(f"# dtap {command.split()[0]}: ") and " for root: " in result.err, result
    assert (rows or command == "lock") and {row["pid"] for row in rows} <= told.keys(), result
    if command in INSTEAD:
        assert INSTEAD[command](rows) == {pid: n for pid, n in told.items() if n}, result


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("command", [c for c in sorted(KERNEL) if not otherwise(c)])
def test_what_an_ordinary_user_cannot(interp, command):
    """It is said why, and what one can do."""
    result = dtap(*command.split(), "-c", interp.command("pass"), before=NOBODY)
    assert result.code != 0 and f"dtap {command.split()[0]}: " in result.err and "root" in result.err, result


# Makes steps until its input ends.
ENDLESS = COMMON + """
print("ready", flush=True)
import select
while not select.select([0], [], [], 0)[0]:
    work(3)
    del kept[:]
    time.sleep(0.002)
tell()
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in COUNTS if c not in ("io", "memory --least 4000")])
@pytest.mark.interps("3.13")
def test_each_command_on_a_process_that_runs(interp, start, command):
    """It sees steps, no more than there were, and the process goes on."""
    words, count = COUNTS[command]
    program = start(interp.argv_of(ENDLESS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    result = dtap(*command.split(), "--json", "-d", "1", "-p", program.pid, *words)
    assert result.code == 0 and program.poll() is None, result
    program.stdin.close()
    told = json.loads(program.stdout.readline())
    assert program.wait(harness.TIMEOUT_S) == 0
    found = count(lines(result.out))
    assert found.keys() <= {told["told"]} and found.get(told["told"], 0) <= told["steps"], (found, told)
    assert found or "nothing was seen" in result.err, result
