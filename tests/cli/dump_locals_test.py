"""dtap dump --locals: the variables of each frame.  The witness is the program's own repr() of them."""
import json
import os
import random
import subprocess

import pytest

import harness

# Values whose repr() is the interpreter's own; each is told with its frame's name for it.
PROGRAM = r'''
import collections, enum, json, sys, threading

class Color(enum.Enum):
    RED = 1
class Text(str):
    pass
class Items(list):
    pass
class Error(Exception):
    pass
class Point:
    """Its text is what dtap has for an instance; dtap does not ask it."""
    def __init__(self):
        self.a = 1
        self.b = "two"
    def __repr__(self):
        return "Point(a=1, b='two')"
class Many:
    def __init__(self):
        for k in range(4):
            setattr(self, "name%d" % k, k)
        del self.name1
        self.name1 = "last"
    def __repr__(self):
        return "Many(name0=0, name2=2, name3=3, name1='last')"
class Slots(Point):
    __slots__ = "c", "never"
    def __init__(self):
        super().__init__()
        self.c = [3]
    def __repr__(self):
        return "Slots(a=1, b='two', c=[3])"
class Unkind:
    """Whoever asks it for anything ends the program."""
    def ends(self, *args):
        import os
        os._exit(3)
    __repr__ = __str__ = __eq__ = __hash__ = __getattribute__ = ends

told = {}

def tell(**values):
    told.update((name, repr(v)) for name, v in values.items())

def values(given, *rest, only, **more):
    zero, one, minus, large, larger, yes, no, none, dots = 0, 1, -1, 1 << 62, -(1 << 100) - 7, True, False, None, ...
    whole, tenth, tiny, huge, edge, small, least = 2.0, 0.1, 1.5e-05, 1e+16, 1e15, 0.0001, 5e-324
    most, below, endless = 1.7976931348623157e308, -123456.789, float("-inf")
    plain, quotes, both, wide, control = "plain", "it's", "it's \"both\"", "Größe 待つ \U0001f600", "\n\t\\\x00\x7f\x9b"
    octets, empty_text, empty_list, empty_tuple, empty_dict, empty_set = b"q\xff'\n", "", [], (), {}, set()
    nested = [1, [2, (3,), {}], {"k": [None], 2: (4, 5), (6,): "t"}]
    some, frozen = {7}, frozenset(["f"])
    itself = [1]
    itself.append(itself)
    member, error, derived, items = Color.RED, Error("m", 2), Text("derived"), Items([1, 2])
    point, many, slots, kind = Point(), Many(), Slots(), int
    removed = {k: k for k in range(6)}
    del removed[2]
    shared = "of two functions"
    def also():
        return shared
    del one
    tell(**{k: v for k, v in locals().items() if k not in ("also", "more", "rest", "given", "only")})
    tell(given=given, rest=rest, only=only, more=more)
    unkind = Unkind()
    ready.set()
    threading.Event().wait()

def generates():
    inside = "a generator"
    ready.set()
    threading.Event().wait()
    yield

ready = threading.Event()
for target in lambda: values(1, 2, "three", only=None, other=4.5), lambda: list(generates()):
    ready.clear()
    threading.Thread(target=target, daemon=True, name="named \N{SNOWMAN}").start()
    ready.wait()
print(json.dumps(told), flush=True)
sys.stdin.readline()
'''


def dump(pid, *args):
    result = harness.run([harness.BUILD / "dtap", "dump", "-p", pid, *args])
    assert (result.code, result.err) == (0, ""), result
    return result.out


def frames(pid, function):
    """The time for which it is stopped can end before the values are read: then another look."""
    def look():
        threads = [json.loads(line) for line in dump(pid, "--json", "--locals").splitlines()]
        found = [{**f, "complete": t["locals_complete"]} for t in threads for f in t["frames"] if f["function"] == function]
        return found if all("locals" in f for f in found) else None
    return harness.wait_until(look, what="the values")


@pytest.fixture
def running(interp, start):
    def run(source, *args):
        return start(interp.argv_of(source, *args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return run


@pytest.mark.needs_root
def test_values(running):
    child = running(PROGRAM)
    want = json.loads(child.stdout.readline())
    harness.wait_until_asleep(child.pid)
    frame, = frames(child.pid, "values")
    got = frame["locals"]
    assert got.pop("also").startswith("<function object at 0x")
    assert got.pop("unkind") == "Unkind()"
    assert got == want
    assert child.poll() is None
    frame, = frames(child.pid, "generates")
    assert frame["locals"] == {"inside": "'a generator'"}
    child.stdin.close()
    assert child.wait() == 0


@pytest.mark.needs_root
def test_text_and_names(running):
    child = running(PROGRAM)
    child.stdout.readline()
    harness.wait_until_asleep(child.pid)
    lines = dump(child.pid, "-l").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("    generates ("))
    assert lines[at + 1] == "        inside = 'a generator'"
    assert sum(line.startswith("Thread ") and ' "named \N{SNOWMAN}"' in line for line in lines) == 2
    assert not any(" = " in line for line in dump(child.pid).splitlines()[1:])
    names = [json.loads(line).get("python_name") for line in dump(child.pid, "--json").splitlines()]
    assert sorted(names, key=str) == [None, "named \N{SNOWMAN}", "named \N{SNOWMAN}"]


@pytest.mark.needs_root
def test_threads_that_run(running):
    """A thread is stopped while its variables are read: those of one moment agree with each other."""
    child = running("""
import sys
def counts():
    total = 0
    for i in range(1, 10 ** 15):
        total += i
        text = str(i)
        pair = (i, [text])
        if i == 1:
            print("ready", flush=True)
counts()
""")
    assert child.stdout.readline() == "ready\n"
    seen = set()
    while len(seen) < 10:
        assert child.poll() is None
        for frame in frames(child.pid, "counts"):
            # The time for which it is stopped can end before all is read.
            if "pair" not in frame.get("locals", ()) or "..." in str(frame["locals"]):
                assert not frame["complete"]
                continue
            i, pair, text = (frame["locals"][name] for name in ("i", "pair", "text"))
            assert pair in (f"({i}, ['{i}'])", f"({int(i) - 1}, ['{int(i) - 1}'])"), frame
            assert text in (f"'{i}'", f"'{int(i) - 1}'"), frame
            seen.add(i)


@pytest.mark.needs_root
def test_too_many_for_the_time(running):
    """A thread that runs is stopped for 2 ms: what is missing after these is told, and none of what is there is wrong."""
    child = running("""
import sys
sys.setrecursionlimit(10 ** 6)
def deep(n, table):
    text, more = [n, str(n)], [table, table]
    if n:
        return deep(n - 1, table)
    print("ready", flush=True)
    while True:
        pass
deep(900, {str(i): [i] for i in range(1000)})
""")
    assert child.stdout.readline() == "ready\n"

    def cut():
        thread = json.loads(dump(child.pid, "--json", "--locals"))
        return None if thread["locals_complete"] else thread
    thread = harness.wait_until(cut, what="a look that has no time for all")
    known = [f["locals"] for f in thread["frames"] if f.get("locals")]
    assert len(known) < 901
    for i, values in enumerate(known):
        text = values.get("text", "...")
        assert "..." in text or text == f"[{i}, '{i}']", (i, values)
    harness.wait_until(lambda: "\n    (it was stopped for 2 ms, in which not all variables could be read)\n" in dump(child.pid, "-l"),
                       what="a look that says so")


@pytest.mark.needs_root
def test_damaged(running):
    """Sizes and addresses that cannot be end a value, and nothing else."""
    child = running("""
import ctypes, gc, sys, threading
gc.disable()
def words(o):
    return ctypes.cast(id(o), ctypes.POINTER(ctypes.c_uint64))
def holds():
    items, text, table, plain, octets, group, number = [1, 2], "a text", {"k": 1}, "sound", b"bytes", {1, 2}, 1 << 70
    keep.extend((items, text, table, octets, group, number))
    ready.set()
    threading.Event().wait()
keep, ready = [], threading.Event()
threading.Thread(target=holds, daemon=True).start()
ready.wait()
places = [(keep[0], 2), (keep[0], 3), (keep[1], 2), (keep[2], 4), (keep[3], 2), (keep[4], 4), (keep[4], 5), (keep[5], 2)]
print("ready", flush=True)
for line in iter(sys.stdin.buffer.raw.readline, b""):
    value = int(line)
    kept = [words(o)[n] for o, n in places]
    for o, n in places:
        words(o)[n] = value
    sys.stdout.buffer.raw.write(b"damaged\\n")
    sys.stdin.buffer.raw.readline()
    for (o, n), k in zip(places, kept):
        words(o)[n] = k
    print("sound", flush=True)
""")
    assert child.stdout.readline() == "ready\n"
    names = {"items", "text", "table", "plain", "octets", "group", "number"}

    def whole():
        return harness.wait_until(lambda: next((f for f in frames(child.pid, "holds") if names == set(f.get("locals", ()))), None),
                                  what="a look at all locals")
    for value in (1 << 63) - 1, 1 << 40, 7, (1 << 64) - 1, 1, 0x7ffffffffff8:
        child.stdin.write(f"{value}\n")
        child.stdin.flush()
        assert child.stdout.readline() == "damaged\n"
        frame = whole()
        assert frame["locals"]["plain"] == "'sound'"
        assert all(len(v) <= 250 for v in frame["locals"].values())
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "sound\n"
    frame = whole()
    assert frame["locals"]["items"] == "[1, 2]" and frame["locals"]["table"] == "{'k': 1}"
    child.stdin.close()
    assert child.wait() == 0
