"""
record on services: an asyncio server, threads with a database, workers that are forked before they serve.

The witness is in the same run: each process counts with sys.setprofile what its own functions are called from, and the tree of
record has the same calls by path.  How often a coroutine waits is up to the network, so two runs would not be the same.
"""
import json
import os

import pytest

import harness
from commands_test import by_path, dtap, functions, lines

pytestmark = pytest.mark.needs_root

WITNESS = """
import json, os, sys, threading

paths = {}

def profile(frame, event, arg):
    if event != "call" or frame.f_code.co_filename != __file__:
        return
    path = []
    while frame:
        if frame.f_code.co_filename == __file__:
            path.append(getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
        frame = frame.f_back
    path = ";".join(reversed(path))
    paths[path] = paths.get(path, 0) + 1

def tell():
    os.write(1, json.dumps({"told": os.getpid(), "paths": paths}).encode() + b"\\n")

def watched(main):
    threading.setprofile(profile)
    sys.setprofile(profile)
    main()
    sys.setprofile(None)
    tell()
"""

ASYNCIO = WITNESS + """
import asyncio

async def lookup(n):
    await asyncio.sleep(0.001 * (n % 3))
    return n * 2

def render(n):
    return f"{n}\\n".encode()

async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(render(await lookup(int(line))))
        await writer.drain()
    writer.close()

async def client(port, numbers):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for n in numbers:
        writer.write(b"%d\\n" % n)
        assert int(await reader.readline()) == 2 * n
    writer.close()

async def both():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(client(port, range(k, k + 10)) for k in range(4)))
    server.close()

def main():
    asyncio.run(both())

watched(main)
"""

THREADS = WITNESS + """
import http.server, sqlite3, urllib.request

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(report(int(self.path[1:]))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

def taxed(price):           # called by SQLite
    return price * 2

def rows(cursor, row):
    return list(row)

def report(n):
    db = sqlite3.connect(":memory:")
    db.row_factory = rows
    db.create_function("taxed", 1, taxed)
    db.execute("create table items (price integer)")
    db.executemany("insert into items values (?)", prices(n))
    found = db.execute("select taxed(price) from items").fetchall()
    db.close()
    return found

def prices(n):
    for price in range(n):
        yield price,

class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False  # so that closing it waits for them

def client(port, n):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{n}") as answer:
        assert json.load(answer) == [[2 * price] for price in range(n)]

def main():
    server = Server(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, args=(0.01,))
    serving.start()
    clients = [threading.Thread(target=client, args=(server.server_address[1], n)) for n in range(1, 9)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    server.shutdown()
    server.server_close()
    serving.join()

watched(main)
"""

WORKERS = WITNESS + """
import socket

def handle(n):
    return sum(square(k) for k in range(n))

def square(k):
    return k * k

def answer(connection):
    with connection:
        n = int(connection.recv(100))
        connection.send(b"%d" % handle(n))
    return n

def work(listener):
    while answer(listener.accept()[0]):
        pass

def ask(port, n):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.send(b"%d" % n)
        return int(connection.recv(100))

def main():
    listener = socket.create_server(("127.0.0.1", 0))
    for _ in range(3):
        if not os.fork():
            paths.clear()
            work(listener)
            sys.setprofile(None)
            tell()
            os._exit(0)
    port = listener.getsockname()[1]
    for n in range(1, 31):
        assert ask(port, n) == sum(k * k for k in range(n))
    for _ in range(3):      # each ends one of them
        ask(port, 0)
    for _ in range(3):
        os.wait()

watched(main)
"""


@pytest.mark.parametrize("program", [ASYNCIO, THREADS, WORKERS], ids=["asyncio", "threads", "workers"])
@pytest.mark.parametrize("option", [[], ["--cpu"]], ids=["", "cpu"])
def test_record_of_a_service(interp, program, option):
    """The same calls by path as sys.setprofile has counted, in each process."""
    result = dtap("record", *option, "--json", "-c", interp.command(program))
    assert (result.code, result.err) == (0, ""), result
    rows = lines(result.out.replace("/script.py", "/calling.py"))
    told = {row["told"]: row["paths"] for row in rows if "told" in row}
    assert len(told) == (4 if program == WORKERS else 1), result
    rows = [row for row in rows if "told" not in row]
    for pid, want in told.items():
        found = by_path([row for row in rows if row["pid"] == pid])
        # What is before the witness, and the witness.
        found = {path: n for path, n in found.items()
                 if not {"profile", "tell", "watched", "Handler", "Server"} & {path.rpartition(";")[2]}}
        assert functions(found) == want, (found, want)
    assert sum(sum(want.values()) for want in told.values()) > 30, told
