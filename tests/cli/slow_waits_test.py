"""
dtap slow --waits, and the arguments of functions of C that it tells: against what the program itself has passed, and its clock.
"""
import json
import os
import re

import pytest

import harness
from commands_test import NOBODY, dtap, lines

pytestmark = pytest.mark.needs_root

# Each function waits by one function of C; the program tells how long that took, and with what.
PROGRAM = """
import json, os, socket, sqlite3, sys, threading, time

told = {}
def timed(name, what, call, *args):
    begin = time.monotonic_ns()
    result = call(*args)
    told[name] = [time.monotonic_ns() - begin, what]
    return result

def query(db, n):
    return helper(db, n)
def helper(db, n):
    time.sleep(0.001)
    return db.execute("select hold(?), 'query'", (n,)).fetchone()
def fetches(db, n):
    rows = db.execute("select hold(?), 'rows' union all select hold(?), 'more'", (0, n))
    return rows.fetchall()
def receives(connection):
    return connection.recv(100)
def reads(pipe):
    return pipe.read(1)
def sleeps(how_long):
    time.sleep(how_long)
def computes():
    x = 0
    for i in range(1000):
        x += i

db = sqlite3.connect(":memory:")
db.create_function("hold", 1, lambda n: time.sleep(n / 1000) or n)
timed("query", "select hold(?), 'query'", query, db, 300)
timed("fetches", "select hold(?), 'rows' union all select hold(?), 'more'", fetches, db, 60)
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
def sends():
    time.sleep(0.06)
    client.send(b"x")
sending = threading.Thread(target=sends)
sending.start()
names = ["%s:%d" % at for at in (accepted.getsockname(), accepted.getpeername())]
timed("receives", " -> ".join(names), receives, accepted)
sending.join()
path = os.path.dirname(__file__) + "/fifo"
os.mkfifo(path)
def writes():
    with open(path, "wb", 0) as f:
        time.sleep(0.06)
        f.write(b"x")
writing = threading.Thread(target=writes)
writing.start()
pipe = open(path, "rb")
timed("reads", path, reads, pipe)
writing.join()
os.unlink(path)
timed("sleeps", "0.07", sleeps, 0.07)
timed("computes", "", computes)
print(json.dumps(told))
"""
WAITED_IN = {"query": "execute", "fetches": "fetchall", "receives": "recv", "reads": "read", "sleeps": "sleep"}


def check(interp, **how):
    """Of each call the function of C, with the statement, the addresses, the path; no shorter than the call itself has slept."""
    for name in WAITED_IN:
        result = dtap("slow", "--waits", "--json", "-c", interp.command(PROGRAM), f"__main__:{name}", **how)
        assert result.code == 0 and not [line for line in result.err.splitlines() if not line.startswith("#")], result
        rows = lines(result.out)
        told, = [row for row in rows if "sleeps" in row]
        row, = [row for row in rows if "duration_ns" in row]
        took, what = told[name]
        assert row["function"].endswith(name) and row["called"] == WAITED_IN[name], row
        # Who waits for another thread may come late.
        least = 0 if name in ("receives", "reads") else 50_000_000
        assert least < row["waited_ns"] <= row["duration_ns"] <= took, (row, told)
        assert what in (row["sql"] if name in ("query", "fetches") else row["with"]), (row, told)
        assert row["where"][0].endswith("(helper)" if name == "query" else f"({name})"), row


def test_what_slow_calls_waited_for(interp):
    check(interp)


@pytest.mark.interps("3.11")
def test_what_slow_calls_waited_for_as_an_ordinary_user(interp):
    script = interp.add(PROGRAM)
    os.chmod(script, 0o644)
    os.chmod(interp.dir, 0o777)
    check(interp, before=NOBODY)


def test_a_call_that_waits_for_nothing(interp):
    """It is said so; and the columns are told in the text."""
    result = dtap("slow", "--waits", "-c", interp.command(COMPUTES), "__main__:computes")
    assert result.code == 0, result
    assert re.search(r"\n\nDURATION .* WAITED +IN +WITH +SQL +WHERE\n.* return .*\(nothing\)", result.out), result


COMPUTES = """
def computes():
    x = 0
    while x < 1000:
        x += 1
computes()
"""

# What each call of a function of C is passed is told by the program, in order.
CALLS = """
import json, math
told = []
def tell(name, *args):
    told.append([name, [repr(arg) for arg in args]])
class Holder: pass
def calls(text, items, holder):
    tell("upper", text); text.upper()
    tell("replace", text, "a", "b"); text.replace("a", "b")
    tell("append", items, 5); items.append(5)
    tell("gcd", 12, 18); math.gcd(12, 18)
    tell("gcd", 1, 1); tell("gcd", 4, 6); [math.gcd(1, 1), math.gcd(4, 6)]
    tell("divmod", 17, 5); divmod(17, 5)
    tell("join", "-", ["a", "b"]); "-".join(["a", "b"])
    tell("gcd", 10, 20); holder.gcd(10, 20)
    tell("copy", items); items.copy()
    bound = items.index
    tell("index", items, 1); bound(1)
    tell("lower", "UNBOUND"); str.lower("UNBOUND")
    tell("replace", "x", "y", "z"); str.replace("x", "y", "z")
    pair = "a", "b"
    tell("replace", "ab", "a", "b"); "ab".replace(*pair)
    tell("sorted", [2, 1], True); sorted([2, 1], reverse=True)
    tell("divmod", 9, 2); tell("divmod", 4, 3); divmod(divmod(9, 2)[0], 3)
    tell("gcd", 3, 3); math.gcd(3, 3)
holder = Holder()
holder.gcd = math.gcd
calls("banana", [1, 2], holder)
calls("apple", [1, 3], holder)
print(json.dumps(told))
"""
ALWAYS = {"append", "join", "copy", "upper", "gcd"}     # plain calls of methods and functions


def test_arguments_of_functions_of_c(interp):
    """Those that were passed, in order, the object of a method first; or "?"; never others."""
    script = 'python$target:::cfunction-entry /copyinstr(arg1) == "calls"/ { printf("=%s %s\\n", copyinstr(arg3), pyargs()); }'
    result = harness.dtrace("-q", "-x", "place=target", "-n", script, "-c", interp.command(CALLS))
    assert result.code == 0, result
    told = json.loads(next(line for line in result.out.splitlines() if line.startswith("[")))
    found = [line[1:].partition(" ")[::2] for line in result.out.splitlines() if line.startswith("=")]
    assert [name for name, _ in found] == [name for name, _ in told], (found, told)
    for (name, text), (_, args) in zip(found, told):
        assert text in (", ".join(args), f"{args[0]}, ?", "?"), (name, text, args)
    assert ALWAYS <= {name for (name, text), (_, args) in zip(found, told) if text == ", ".join(args)}, found


def test_an_argument_of_a_function_of_c(interp):
    """By number, as an object; one that there is not is an error."""
    script = """python$target:::cfunction-entry /copyinstr(arg1) == "calls" && copyinstr(arg3) == "append"/
        { printf("=%s %d\\n", pytype(pyarg(0)), pyint(pyarg(1))); }"""
    result = harness.dtrace("-q", "-x", "place=target", "-n", script, "-c", interp.command(CALLS))
    assert (result.code, result.out.count("=list 5\n")) == (0, 2), result
    result = harness.dtrace("-q", "-x", "place=target", "-n", script.replace("(1)", "(2)"), "-c", interp.command(CALLS))
    assert "no such argument" in result.err and "=" not in result.out, result
