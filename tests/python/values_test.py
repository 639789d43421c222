"""Values of Python in scripts: pyarg(), pyint(), pylen(), pystr(), pytype(), against what the program itself says of them."""
import random
import re
import struct
import zlib

import pytest

import harness

pytestmark = [pytest.mark.needs_root, pytest.mark.interps(*harness.VERSIONS, "3.13t")]
TARGET = ("-q", "-x", "place=target")
N = 200

CLAUSE = 'python$target:::function-entry /copyinstr(arg1) == "probe"/ { %s }\n'
SCRIPT = "".join(CLAUSE % code for code in (
    'printf("\n%s", pytype(pyarg(0)));', 'printf("\t%d", pyint(pyarg(0)));', 'printf("\t%d", pylen(pyarg(0)));',
    'printf("\t%s", pystr(pyarg(0)));')).replace("\n%s", "\\n%s").replace("\t", "\\t")

PROGRAM = """
class Text(str): pass
class Bytes(bytes): pass
class Number(int): pass
class Row(tuple): pass
def probe(x): pass
with open(__file__ + ".values", "r", encoding="ascii") as f:
    values = eval(f.read())
with open(__file__ + ".want", "w", encoding="utf-8", errors="surrogateescape") as want:
    for x in values:
        line = type(x).__name__
        if isinstance(x, int) and -2**63 <= x < 2**63:
            line += "\\t%d" % x
        if isinstance(x, (str, bytes, list, tuple)):
            line += "\\t%d" % len(x)
        if isinstance(x, str):
            line += "\\t" + x
        if isinstance(x, bytes):
            line += "\\t" + x.decode("utf-8", "surrogateescape")
        want.write(line + "\\n")
        probe(x)
"""


def texts(rng):
    """Of each width, also mixed, and of a class of its own."""
    ranges = [(0x20, 0x7e), (0xa1, 0xff), (0x100, 0xd7ff), (0x10000, 0x1f9ff)]
    for _ in range(N):
        most = rng.randrange(4)
        text = "".join(chr(rng.randint(*ranges[rng.randint(0, most)])) for _ in range(rng.choice([0, 1, 7, 8, 40, 60])))
        yield rng.choice(["%a", "Text(%a)"]) % text


def some_bytes(rng):
    for _ in range(N):
        content = bytes(rng.choice([rng.randint(11, 127), rng.randint(128, 255)]) for _ in range(rng.choice([0, 1, 16, 33, 200])))
        yield rng.choice(["%a", "Bytes(%a)"]) % content


def numbers(rng):
    edges = [0, 1, 2**30, 2**60, 2**63, 2**64, 2**90, 2**120]
    for _ in range(N):
        v = rng.choice([rng.choice(edges) + rng.randint(-2, 2), rng.getrandbits(rng.randint(1, 130))]) * rng.choice([1, -1])
        yield rng.choice(["%d", "Number(%d)"]) % v
    yield "True"
    yield "False"


def containers(rng):
    for _ in range(N):
        items = list(range(rng.choice([0, 1, 3, 50])))
        yield rng.choice(["%r", "tuple(%r)", "Row(%r)"]) % items
    yield from ("None", "1.5", "{}", "set()", "probe", "Text", "...", "2j", "frozenset()", "memoryview(b'x')")


@pytest.mark.parametrize("kind", [texts, some_bytes, numbers, containers], ids=lambda f: f.__name__)
def test_as_the_program_says(dtrace, interp, kind):
    script = interp.add(PROGRAM)
    (interp.dir / "script.py.values").write_text("[" + ",\n".join(kind(random.Random(kind.__name__))) + "]")
    (interp.dir / "values.d").write_text(SCRIPT)
    out = interp.dir / "out"
    result = dtrace(*TARGET, "-s", interp.dir / "values.d", "-o", out, "-c", " ".join([*interp.argv, script]))
    assert result.code == 0, result
    want = (interp.dir / "script.py.want").read_bytes().split(b"\n")
    assert out.read_bytes().strip(b"\n").split(b"\n") == want[:-1], result.err[-1000:]
    faults = set(re.findall(r"\): (.*?) \(0x[0-9a-f]+\) at BPF", result.err))
    assert faults <= {"an object of another kind", "a number of more than 64 bits"}, faults


ARGUMENTS = """
import types
def plain(a, b, *rest, c, d=4, **more):
    x = y = 1
def captured(a, b, cell):
    inside = 5
    return lambda: (b, cell, inside)
def outer(word):
    number = 11
    def inner(q):
        z = number, word
        return [1 for item in (z,)]
    return inner
def steps(n):
    for k in range(n):
        yield k
def gone(x):
    del x
    raise KeyError(1)
plain(1, "two", 9, 9, c="three", e=5)
captured(6, 7, types.CellType("eight"))
outer("deep")(3)
list(steps(2))
try:
    gone(4)
except KeyError:
    pass
"""


def test_arguments(dtrace, interp):
    """Those by position and by keyword; what an inner function uses, too; keys and predicates."""
    clause = 'python$target:::function-entry /copyinstr(arg1) == "%s"/ { %s }\n'
    script = clause % ("plain", 'printf("%d %s %s %d\\n", pyint(pyarg(0)), pystr(pyarg(1)), pystr(pyarg(2)), pyint(pyarg(3)));')
    script += clause % ('plain" && pyint(pyarg(0)) == 1 && pytype(pyarg(1)) == "str', '@[pystr(pyarg(1)), pylen(pyarg(1))] = count();')
    script += "".join(clause % ("plain", f'trace(pyarg({n})); printf("there");') for n in (4, 5, -1, 100000))
    script += clause % ("captured", 'printf("%d %d %s\\n", pyint(pyarg(0)), pyint(pyarg(1)), pytype(pyarg(2)));')
    result = dtrace(*TARGET, "-n", script, "-c", interp.command(ARGUMENTS))
    assert result.code == 0 and "1 two three 4\n" in result.out and "there" not in result.out, result
    assert re.search(r"^ +two +3 +1$", result.out, flags=re.M), result
    assert "6 7 cell\n" in result.out, result
    assert len(re.findall("no such argument", result.err)) == 4, result


def test_names(dtrace, interp):
    """Parameters by name, and any variable: at entry and at return, in cells, of functions around it, of generators."""
    entry = 'python$target:::function-entry /copyinstr(arg1) == "%s"/ { %s }\n'
    leave = entry.replace("entry", "return")
    script = entry % ("plain", 'printf("%d %s %s %d ", pyint(pyarg("a")), pystr(pyarg("b")), pystr(pyarg("c")), pyint(pyarg("d")));'
                      'printf("%d %s\\n", pylen(pyarg("rest")), pytype(pyarg("more")));')
    script += leave % ("plain", 'printf("y %d\\n", pyint(pylocal("y")));')
    script += entry % ("captured", 'printf("%d %s\\n", pyint(pyarg("b")), pytype(pyarg("cell")));')
    script += leave % ("captured", 'printf("%d %s %d\\n", pyint(pyarg("b")), pytype(pylocal("cell")), pyint(pylocal("inside")));')
    script += entry % ("inner", 'printf("outside %d %s\\n", pyint(pylocal("number")), pystr(pylocal("word")));')
    script += leave % ("inner", 'printf("%s %s %d\\n", pytype(pylocal("z")), pystr(pylocal("word")), pyint(pyarg("q")));')
    script += leave % ("steps", '@[pyint(pyarg("n")), pyint(pylocal("k"))] = count();')
    script += "".join(clause % (function, f'trace({call}); printf("there");') for clause, function, call in (
        (entry, "plain", 'pyarg("x")'), (entry, "plain", 'pylocal("x")'), (entry, "inner", 'pyarg("number")'),
        (entry, "captured", 'pylocal("inside")'), (leave, "gone", 'pyarg("x")'), (entry, "gone", 'pylocal("nothing")'),
        (entry, "gone", 'pylocal("")'), (entry, "gone", f'pylocal("{"x" * 255}")')))
    result = dtrace(*TARGET, "-n", script, "-c", interp.command(ARGUMENTS))
    assert result.code == 0 and "there" not in result.out, result
    wanted = ["1 two three 4 2 dict", "y 1", "7 cell", "7 cell 5", "outside 11 deep", "tuple deep 3"]
    assert result.out.split("\n\n")[0].strip().split("\n") == wanted, result
    assert re.search(r"^ +2 +0 +1\n +2 +1 +2$", result.out, flags=re.M), result
    assert len(re.findall("no such argument, variable, attribute or item", result.err)) == 8, result


INTEGERS = """
class Own(int): pass
def f(n): pass
def only(*, n=8): pass
def cell(n): return lambda: n
def rest(*n): pass
def late(n): n = "text"
for x in (5, 0, -3, 2**30, -2**40, 2**62, True, Own(9), "text", None, 2**70, 1.5):
    f(x)
only()
only(n=2)
cell(4)
rest(1, 2)
late(6)
# Code objects at the addresses of others, with other variables.
for k in range(100):
    space = {}
    exec("def made(%s): pass" % ("n" if k % 2 else "m, n"), space)
    space["made"](*([k] if k % 2 else ["m", k]))
    del space
f(7)
"""


def test_integers(dtrace, interp):
    """A parameter and its integer, which are asked for at once: also where they cannot be answered so."""
    clause = 'python$target:::function-%s /copyinstr(arg1) == "%s"/ { %s }\n'
    script = "".join(clause % ("entry", name, f'printf("{name} %d\\n", pyint(pyarg("n")));') for name in ("f", "only", "cell", "rest"))
    script += clause % ("entry", "f", 'printf("again %d %s\\n", pyint(pyarg(0)), pytype(pyarg(0)));')
    script += clause % ("return", "late", 'printf("late %d\\n", pyint(pyarg("n")));')
    script += clause % ("entry", "made", '@ = sum(pyint(pyarg("n")));')
    script += 'END { printa("sum %@d\\n", @); }\n'
    result = dtrace(*TARGET, "-n", script, "-c", interp.command(INTEGERS))
    numbers = [(5, "int"), (0, "int"), (-3, "int"), (2**30, "int"), (-2**40, "int"), (2**62, "int"), (1, "bool"), (9, "Own"), (7, "int")]
    lines = result.out.split("\n")
    assert result.code == 0 and [line for line in lines if line[:2] == "f "] == [f"f {n}" for n, _ in numbers], result
    assert [line for line in lines if line.startswith("again")] == [f"again {n} {kind}" for n, kind in numbers], result
    assert [line for line in lines if line[:4] in ("only", "cell", "rest", "late", "sum ")] == \
        ["only 8", "only 2", "cell 4", f"sum {sum(range(100))}"], result
    # Of each clause: a text, None, a float; too large; a tuple; what the parameter is at the return.
    assert result.err.count("error in ") == 4 + 4 + 1 + 1, result


RESULTS = """
import sys
class Own(Exception):
    def __init__(self, x):
        sys.stdout.write("made\\n")      # at once, where there is no buffer, too
def give(x): return x * 2
def c_fails(): return int("zz")
def own(): raise Own(4)
def key(): return {}["q"]
def lasting(): return ValueError("returned")
def steps():
    got = yield 5
    yield got
give(21)
lasting()
for f in (c_fails, own, key):
    try:
        f()
    except Exception:
        pass
g = steps()
next(g)
g.send("sent")
try:
    g.throw(LookupError(2))
except LookupError:
    pass
sys.audit("my.event", 1, "two")
open("/dev/null").close()
"""


def test_results(dtrace, interp):
    """What functions return and yield, the exceptions that leave them, are raised, thrown in; audit events' arguments."""
    entry = 'python$target:::function-entry /copyinstr(arg1) == "%s"/ { printf("%s %%s\\n", %s); }\n'
    leave = entry.replace("entry", "return")
    script = leave % ("give", "give", "lltostr(pyint(pyret))") + leave % ("lasting", "lasting", "pytype(pyret)")
    script += leave % ("steps", "yield", "pytype(pyret)") + leave % ("steps", "leave", "pytype(pyexc)")
    script += entry % ("steps", "thrown", "pytype(pyexc)")
    script += "".join(leave % (f, f, "pytype(pyexc)") for f in ("c_fails", "own", "key"))
    script += 'python$target:::exception-raise /copyinstr(arg2) == "key"/ { printf("raise %s\\n", pytype(pyexc)); }\n'
    script += 'python$target:::audit /copyinstr(arg0) == "my.event"/ { printf("audit %d %s\\n", pyint(pyarg(0)), pystr(pyarg(1))); }\n'
    script += 'python$target:::audit /copyinstr(arg0) == "open"/ { @[pystr(pyarg(0))] = count(); }\n'
    script += 'python$target:::audit /copyinstr(arg0) == "my.event"/ { trace(pyarg(2)); }\n'
    # None of another event:
    script += 'python$target:::function-entry /copyinstr(arg1) == "give"/ { trace(pyret); }\n'
    script += 'python$target:::function-entry /copyinstr(arg1) == "give"/ { trace(pyexc); }\n'
    script += leave % ("give", "no", "pytype(pyexc)") + leave % ("own", "no", "pytype(pyret)")
    result = dtrace(*TARGET, "-n", script, "-c", interp.command(RESULTS))
    assert result.code == 0, result
    records, _, rows = result.out.partition("\n\n")
    assert [line for line in records.split("\n") if line != "made"] == [
        "give 42", "lasting ValueError", "c_fails ValueError", "own Own", "raise KeyError", "key KeyError", "yield int",
        "yield str", "thrown LookupError", "leave LookupError", "audit 1 two"], result
    assert records.count("made") == 1 and re.search(r"^ +/dev/null +1$", rows, flags=re.M), result
    # The two clauses of yields and of raises each miss what the other has.
    assert len(re.findall("no such argument", result.err)) == 5 + 1 + 2 + 2, result


ATTRIBUTES = """
import builtins, collections, dataclasses, enum, sys
calls = []
class Base:
    shared = "of the base"
    def method(self): pass
    @staticmethod
    def static(): pass
@dataclasses.dataclass
class Order(Base):
    total: int
    name: str = "Zoe"
    @property
    def computed(self): return calls.append("property")
class Many: pass
class Slots:
    __slots__ = ("one", "two")
class Both(Slots): pass
class Row(tuple): pass
class Number(int): pass
class Error(Exception): pass
class Color(enum.Enum):
    RED = "red"
class Asked:
    def __getattr__(self, name): calls.append(name)
class Always:
    def __init__(self): self.kept = "kept"
    def __getattribute__(self, name): calls.append(name)
class Key:
    def __hash__(self): return 5
    def __eq__(self, other): calls.append("eq")
class Odd(str):
    def __eq__(self, other): calls.append("str eq")
    def __hash__(self): return str.__hash__(self)

def probe(value, name): pass
order, many, gone, seen, slots, both, row, number, error = (
    Order(42), Many(), Order(1), Order(2), Slots(), Both(), Row((1,)), Number(2 ** 70), Error("text", 2))
for k in range(50):
    setattr(many, "name%d" % k, "value %d" % k)
del gone.name
gone.name = "again"
seen.__dict__["late"] = "late"
slots.two = both.two = "slot"
both.extra = row.extra = number.extra = error.extra = "extra"
for value, name in (
        (order, "total"), (order, "name"), (order, "shared"), (order, "method"), (many, "name0"), (many, "name49"),
        (gone, "name"), (gone, "total"), (seen, "late"), (seen, "total"), (slots, "two"), (both, "two"), (both, "extra"),
        (row, "extra"), (number, "extra"), (error, "extra"), (error, "args"), (error, "__cause__"), (Order, "shared"),
        (Order, "name"), (sys, "maxsize"), (builtins, "len"), (Color.RED, "_value_"), (Always(), "kept"), (Order, "computed"),
        (order, "computed"), (order, "static"), (order, "missing"), (Asked(), "missing"), (slots, "one"), (3, "real"), (3, "nothing"),
        ("text", "upper")):
    probe(value, name)
words = {"one": 1, "\u00fc\u20ac": "wide", "\U0001f600": "wider", "": "empty"}
mixed = {5: "five", -1: "below", True: "one", 2.0: "two", None: "none", (5,): "tuple", b"x": 3, "x": 4, 2 ** 61 + 7: "large"}
sparse = {k * 3: str(k) for k in range(5000)}
for k in range(0, 5000, 2):
    del sparse[k * 3]
ordered = collections.OrderedDict(a=1)
for value, name in (
        (words, "one"), (words, "\u00fc\u20ac"), (words, "\U0001f600"), (words, ""), (mixed, 5), (mixed, -1), (mixed, 1),
        (mixed, 2), (mixed, "x"), (mixed, 2 ** 61 + 7), (sparse, 3), (sparse, 14997), (seen.__dict__, "total"), (ordered, "a"),
        ([1, 2, 3], 2), ([1, 2, 3], -3), ((1, 2, 3), 0), (row, -1), (words, "two"), (words, 1), (sparse, 0), (sparse, 100000),
        ([1, 2], 2), ([1, 2], -3), ((), 0), ({Key(): 1}, 5), ({Odd("x"): 1}, "x"), ([1], "x"), ("text", 0), ({1}, 1)):
    probe(value, name)
print("calls:", calls, flush=True)
"""


def outcomes(dtrace, interp, find, program):
    """What each call of probe() prints: by the kind of its name, the value's type, or the fault's words."""
    clause = 'python$target:::function-entry /copyinstr(arg1) == "probe" && pytype(pyarg(1)) == "%s"/ { printf("\\n%%s", pytype(%s)); }\n'
    script = 'dtrace:::ERROR { printf("\\nfault %d", arg4); }\n'
    script += clause % ("str", f'{find}(pyarg(0), pystr(pyarg(1)))')
    if find == "pyitem":
        script += clause % ("int", "pyitem(pyarg(0), pyint(pyarg(1)))")
    result = dtrace(*TARGET, "-n", script, "-c", interp.command(program))
    assert result.code == 0 and "calls: []\n" in result.out, result
    return result.out.replace("calls: []\n", "").split()


def test_attributes_and_items(dtrace, interp):
    """Of each kind of object; what code of the program's would have to tell is a fault, and no code is run."""
    head, items = ATTRIBUTES.split("words = ")
    tail = ATTRIBUTES[ATTRIBUTES.index("print("):]
    found = outcomes(dtrace, interp, "pyattr", head + tail)
    wanted = """int str str function str str str int str int str str str str str str tuple NoneType str str int
        builtin_function_or_method str str fault 24 fault 24 fault 24 fault 23 fault 24 fault 23 fault 24 fault 23 fault 24"""
    assert found == wanted.split(), found
    head = head.split("for value, name")[0]
    found = outcomes(dtrace, interp, "pyitem", head + "words = " + items)
    wanted = """int str str str str str str str int str str str int int int int int int fault 23 fault 23 fault 23 fault 23
        fault 23 fault 23 fault 23 fault 24 fault 24 fault 22 fault 22 fault 22"""
    assert found == wanted.split(), found


SHOWN = """
import collections, dataclasses, enum, sys
called = []
class Text(str): pass
class Bytes(bytes): pass
class Number(int): pass
class Real(float): pass
class Items(list): pass
class Row(tuple): pass
class Words(dict): pass
class Group(set): pass
Pair = collections.namedtuple("Pair", "first second")
@dataclasses.dataclass
class Order:
    total: int
    name: str = "Zoe"
    hidden: int = dataclasses.field(default=3, repr=False)
    rest: object = None
@dataclasses.dataclass
class Slotted:
    __slots__ = ("second", "first")
    second: object
    first: object
class Color(enum.Enum):
    RED = "red"
    GREEN = 2
class Code(enum.IntEnum):
    OK = 200
class Error(Exception): pass
class Hostile:
    def __init__(self, x): self.x = x
    def __repr__(self): called.append("repr"); raise KeyError
    def __getattr__(self, name): called.append(name); raise KeyError
    def __eq__(self, other): called.append("eq"); raise KeyError
    def __hash__(self): called.append("hash"); return 5
    def __len__(self): called.append("len"); return 0
    @property
    def computed(self): called.append("property")
class Slots:
    __slots__ = ("one", "two")
    def __init__(self, x): self.one = x
class Both(Slots): pass
def both(x):
    o = Both(x)
    o.attribute = x
    return o
def inside(o):
    o.append(o)
    return o
def within(o):
    o["self"] = o
    return o
def probe(x): pass
# What is the program's own looks as pyshow() has it, not as it shows itself.
def want(x):
    if isinstance(x, Hostile):
        return "Hostile(x=%r)" % (x.__dict__["x"],)
    if type(x) is Both:
        return "Both(attribute=%r, one=%r)" % (x.attribute, x.one)
    if type(x) is Slots:
        return "Slots(one=%r)" % (x.one,)
    if sys.version_info < (3, 12) and isinstance(x, enum.Enum):     # Debian's 3.11 and 3.9 show IntEnum likewise
        return "<%s.%s: %r>" % (type(x).__name__, x._name_, x._value_)
    return repr(x)
with open(__file__ + ".values", "r", encoding="ascii") as f:
    values = eval(f.read())
with open(__file__ + ".want", "w", encoding="utf-8") as f:
    for x in values:
        f.write(want(x) + "\\n")
called.clear()
for x in values:
    probe(x)
with open(__file__ + ".want", "a", encoding="utf-8") as f:
    f.write("called: %r" % called)
"""


def leaf(rng):
    kind = rng.randrange(7)
    if kind == 0:
        return "%d" % (rng.choice([-1, 1]) * rng.getrandbits(rng.choice([1, 8, 29, 30, 31, 60, 64, 200, 3000])))
    if kind == 1:
        value = struct.unpack("<d", rng.getrandbits(64).to_bytes(8, "little"))[0] if rng.random() < 0.5 else \
            round(rng.uniform(-1e7, 1e7), rng.randint(-6, 8))
        return "float(%r)" % repr(value)
    if kind == 2:
        ranges = [(0, 0x7f), (0x20, 0x7e), (0x80, 0xff), (0x100, 0x2fff), (0xd700, 0xe100), (0xff00, 0x2ffff)]
        letters = [chr(rng.randint(*ranges[rng.randrange(1 + rng.randrange(6))])) for _ in range(rng.choice([0, 1, 8, 70]))]
        return ascii("".join(rng.choice([letter, letter, letter, "'", '"', "\\"]) if rng.random() < 0.2 else letter for letter in letters))
    if kind == 3:
        return ascii(bytes(rng.choice([rng.randrange(256), 39]) for _ in range(rng.choice([0, 1, 9, 100]))))
    return rng.choice(["None", "True", "False", "...", "0", "0.0", "-0.0", "1.0", "int", "Error", "Color.RED", "()"])


def tree(rng, depth=0):
    if depth > 2 or rng.random() < 0.3:
        return leaf(rng)
    items = [tree(rng, depth + 1) for _ in range(rng.choice([0, 1, 2, 5]))]
    keys = [rng.choice([ascii("k%d" % rng.randrange(99)), "%d" % rng.randrange(99), "(1, %d)" % rng.randrange(9)]) for _ in items]
    return rng.choice([
        "[%s]" % ", ".join(items), "tuple([%s])" % ", ".join(items), "Items([%s])" % ", ".join(items), "Row([%s])" % ", ".join(items),
        "{%s}" % ", ".join(map("%s: %s".__mod__, zip(keys, items))), "Words({%s})" % ", ".join(map("%s: %s".__mod__, zip(keys, items))),
        "set([%s])" % ", ".join(keys), "frozenset([%s])" % ", ".join(keys), "Group([%s])" % ", ".join(keys)])


def leaves(rng):
    for _ in range(N):
        text = leaf(rng)
        yield text
        if text.startswith(("'", '"')):
            yield "Text(%s)" % text
        if text.startswith("b"):
            yield "Bytes(%s)" % text
        if re.match(r"-?\d+$", text):
            yield "Number(%s)" % text
        if text.startswith("float"):
            yield "Real(%s)" % text


def trees(rng):
    for _ in range(N):
        yield tree(rng)
    yield from ("inside([1])", "within({1: 2})", "[1] * 300", "{k: k for k in range(0, 400, 3)}", "set(range(100))",
                "(lambda d: [d.pop(k) for k in list(d)[::2]] and d)({k: str(k) for k in range(50)})",
                "(lambda s: s.discard(5) or s)(set(range(20)))")


def instances(rng):
    for _ in range(N):
        x, y = tree(rng), tree(rng)
        yield rng.choice(["Pair(%s, %s)", "Order(%s, %s)", "Slotted(%s, %s)", "Error(%s, %s)", "ValueError(%s, %s)"]) % (x, y)
        yield rng.choice(["Hostile(%s)", "Slots(%s)", "both(%s)", "Error(%s)", "KeyError(%s)", "Order(%s)"]) % leaf(rng)
    yield from ("Color.GREEN", "Code.OK", "Error()", "probe", "Pair", "type", "object()", "Order(1).__eq__.__func__", "StopIteration")


# A debugger's trace function and a coverage tool at work at the same time; before 3.12 the latter has the profile function.
BESIDE = """
import sys
lines = [0, 0]
def debugger(frame, what, arg):
    lines[0] += 1
    return debugger
def coverage(*at): lines[1] += 1
if hasattr(sys, "monitoring"):
    m = sys.monitoring
    m.use_tool_id(m.COVERAGE_ID, "test coverage")
    m.register_callback(m.COVERAGE_ID, m.events.LINE, coverage)
    m.set_events(m.COVERAGE_ID, m.events.LINE)
else:
    sys.setprofile(coverage)
sys.settrace(debugger)
import atexit
atexit.register(lambda: min(lines) > 100 or print("not beside", lines))
"""


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside"])
@pytest.mark.parametrize("kind", [leaves, trees, instances], ids=lambda f: f.__name__)
def test_shown_as_repr(dtrace, interp, kind, beside):
    """As the program's own repr has it; none of its special methods is called.  Also with -O beside both other tools."""
    script = interp.add((BESIDE if beside else "") + SHOWN)
    (interp.dir / "script.py.values").write_text("[" + ",\n".join(kind(random.Random(kind.__name__))) + "]")
    (interp.dir / "show.d").write_text(CLAUSE % 'printf("\\n%s", pyshow(pyarg(0)));')
    out = interp.dir / "out"
    options = ["-O"] if beside else []
    result = dtrace(*TARGET, "-x", "strsize=65536", "-x", "bufsize=64m", "-s", interp.dir / "show.d", "-o", out,
                    "-c", " ".join([*interp.argv, *options, script]))
    assert result.code == 0 and not result.err and "not beside" not in result.out, result
    want = (interp.dir / "script.py.want").read_bytes().split(b"\n")
    found = out.read_bytes().strip(b"\n").split(b"\n")
    assert want[-1] == b"called: []", want[-1]
    assert len(found) == len(want) - 1
    assert [pair for pair in zip(found, want) if pair[0] != pair[1]] == []


def test_shown_of_c(dtrace, interp):
    """What C implements: type and address, whatever members the type has.  What is derived from it: the own attributes."""
    out = dtrace(*TARGET, "-n", CLAUSE % r'printf("%s\n", pyshow(pyarg(0)));', "-c", interp.command("""
import collections, functools, re, sqlite3, threading
class Mine(collections.deque):
    pass
class Slots(sqlite3.Connection):
    __slots__ = "own",
def probe(x): pass
mine, slots = Mine(), Slots(":memory:")
mine.a, slots.own = 1, "two"
for x in threading.Lock(), collections.deque([1]), functools.partial(int, "3"), sqlite3.connect(":memory:"), re.compile("a"):
    probe(x)
probe(mine)
probe(slots)
""")).out
    *of_c, mine, slots = out.strip().splitlines()
    names = ["lock", "deque", "partial", "Connection", "Pattern"]
    assert len(of_c) == len(names) and all(re.fullmatch(rf"<(\w+\.)*{name} object at 0x[0-9a-f]+>", line)
                                           for name, line in zip(names, of_c)), out
    assert mine == "Mine(a=1)"
    assert slots == "Slots(own='two')"



def test_shown_in_bounds(dtrace, interp):
    """Cut between characters, with dots; deep ones end in dots; as a key it is the text."""
    program = """
class Far: pass
def probe(x): pass
far = []
for k in range(40):
    far = [far]
for x in ("x" * 100, "\u20ac" * 100, list(range(100)), 7 ** 200, 1 << 20000, {"k": "v" * 100}, far):
    probe(x)
for k in range(3):
    probe((k % 2, "key"))
"""
    script = CLAUSE % '@[pyshow(pyarg(0))] = count(); printf("\\n%s", pyshow(pyarg(0)));'
    result = dtrace(*TARGET, "-x", "strsize=41", "-n", script, "-c", interp.command(program))
    assert result.code == 0 and not result.err, result
    records = [line for line in result.out.split("\n\n")[0].split("\n") if line]
    digits = str(7 ** 200)[:37] + "..."
    assert records[:7] == ["'" + "x" * 36 + "...", "'" + "\u20ac" * 12 + "...", str(list(range(100)))[:37] + "...", digits, "...",
                           "{'k': '" + "v" * 30 + "...", "[[[[[[[[[[...]]]]]]]]]]"], records
    assert re.search(r"^ +\(0, 'key'\) +2$", result.out, flags=re.M), result


def test_floats(dtrace, interp):
    """printf() and the like print them; pyscale() makes integers of them, to compute with."""
    program = "class Real(float): pass\ndef probe(x, y): pass\nprobe(1.25, 2)\nprobe(-0.5, 2 ** 62)\nprobe(Real(1e300), 'x')"
    script = CLAUSE % 'printf("\\n%.3f %g %e", pyfloat(pyarg(0)), pyfloat(pyarg(0)), pyfloat(pyarg(0)));'
    script += CLAUSE % 'printf("\\nscaled %d %d", pyscale(pyarg(0), 1000), pyscale(pyarg(1), 3));'
    script += CLAUSE % "@ = sum(pyscale(pyarg(0), 100));" + CLAUSE % "trace(pyscale(pyarg(0), -1));"
    result = dtrace(*TARGET, "-n", script, "-c", interp.command(program))
    assert result.code == 0, result
    assert "\n1.250 1.25 1.250000e+00\nscaled 1250 6" in result.out and "\n-0.500 -0.5 -5.000000e-01" in result.out, result
    assert result.out.count("scaled") == 1 and re.search(r"^ +75$", result.out, flags=re.M), result
    # The int that gets too large, and the float of 301 digits, three times.
    assert len(re.findall("a number of more than 64 bits", result.err)) == 1 + 3, result


MUTATED = """
import threading
items, stop = [], False
def probe(x): pass
def change():
    while not stop:
        items.extend("abc")
        items.append(1)
        items.clear()
thread = threading.Thread(target=change)
thread.start()
for _ in range(3000):
    probe(items)
stop = True
thread.join()
print("done")
"""


def test_while_another_thread_changes_it(dtrace, interp):
    def lost(result):
        """Without a GIL a list may be locked again and again: then there is no answer, and the script says so."""
        faults = result.err.count("it is being changed at this moment")
        assert result.code == 0 and result.out.startswith("done\n") and faults == len(result.err.splitlines()), result
        assert not faults or interp.version == "3.13t", result
        return faults

    result = dtrace(*TARGET, "-n", CLAUSE % "@[pylen(pyarg(0))] = count();", "-c", interp.command(MUTATED))
    counts = dict(map(int, line.split()) for line in result.out.splitlines()[1:] if line.strip())
    assert sum(counts.values()) + lost(result) == 3000 and set(counts) <= {0, 3, 4}, result
    result = dtrace(*TARGET, "-n", CLAUSE % "@[pyshow(pyarg(0))] = count();", "-c", interp.command(MUTATED))
    counts = dict(line.strip().rsplit(None, 1) for line in result.out.splitlines()[1:] if line.strip())
    assert sum(map(int, counts.values())) + lost(result) == 3000, result
    assert set(counts) <= {"[]", "['a', 'b', 'c']", "['a', 'b', 'c', 1]"}, result


@pytest.mark.interps("3.13")
def test_only_in_the_target_place(dtrace, interp):
    reason = harness.bpf_refusal()
    if reason:
        pytest.skip(reason)
    result = dtrace("-q", "-x", "place=kernel", "-x", "agent=always", "-n", CLAUSE % "trace(pyint(pyarg(0)));",
                    "-c", interp.command("pass"))
    assert result.code == 1 and "use -x place=target" in result.err, result


def test_no_objects(dtrace, interp):
    """Addresses that are none of an object, and objects of other kinds, are faults."""
    addresses = [0, 1, 8, 0x1000, 0x7fffffffe000, 0x800000000000, 0xffff888000001000, 0xfffffffffffffff8, 2**64 - 1]
    calls = [f"{name}((pyobj){address:#x})" for name in ("pyint", "pylen", "pystr", "pytype", "pyshow") for address in addresses]
    calls += [f"{name}(arg1)" for name in ("pyint", "pylen", "pystr")]          # characters of a name
    calls += [f"{call % address}" for call in ("pyattr((pyobj)%#x, \"name\")", "pyitem((pyobj)%#x, 1)", "pyitem((pyobj)%#x, \"x\")",
                                               "pyscale((pyobj)%#x, 2)") for address in addresses]
    calls += ["pyint(pyarg(1))", "pystr(pyarg(0))", "pylen(pyarg(0))"]
    script = "".join(CLAUSE % f'trace({call}); printf("there");' for call in calls)
    result = dtrace(*TARGET, "-n", script, "-c", interp.command("def probe(a, b): pass\nprobe(1, 'x')\nprint('done')"))
    assert result.code == 0 and result.out.strip() == "done", result
    assert len(re.findall("invalid address|an object of another kind", result.err)) == len(calls), result


FORGED = """
import ctypes, sysconfig
TYPE = 3 if sysconfig.get_config_var("Py_GIL_DISABLED") else 1     # the word that has an object's type
kept = []
def block(*words):      # memory that holds these, and whose other words are @rest
    kept.append((ctypes.c_uint64 * 64)(*words, *[rest] * (64 - len(words))))
    return ctypes.addressof(kept[-1])
def of_type(at): return block(*[1] * TYPE, at)
def probe(at): pass
n = 0
for rest in 0, 1, 2**64 - 1, id(str), id("text"), id(kept), id(None):
    own = block()
    ctypes.c_uint64.from_address(own + 8 * TYPE).value = own           # a type of itself
    for meta in 0, 1, own, id("text"), id(kept), id(print), 2**63, id(None):
        probe(of_type(of_type(meta)))
        n += 1
    probe(of_type(own))
    n += 1
class Meta(type): pass
class Far(metaclass=type("MetaMeta", (type,), {})("Meta", (Meta,), {})): pass
probe(id(Far()))
print("want", n)
"""


def test_forged(dtrace, interp):
    """What looks like an object but for its type's type is none; a metaclass of a metaclass makes objects."""
    names = "pyint", "pylen", "pystr", "pyshow"
    script = "".join(CLAUSE % f'trace({name}((pyobj)pyint(pyarg("at"))));' for name in names)
    script += CLAUSE % 'printf("type %s\\n", pytype((pyobj)pyint(pyarg("at"))));'
    result = dtrace(*TARGET, "-x", "bufsize=16m", "-n", script, "-c", interp.command(FORGED))
    assert result.code == 0, result
    want = int(re.search(r"^want (\d+)$", result.out, re.M).group(1))
    assert re.findall(r"type (\S+)", result.out) == ["Far"], result
    assert len(re.findall("invalid address", result.err)) == 5 * want, result


# Objects of each kind of which one word is anything, what a damaged extension leaves: the word is put back after the call.
BROKEN = """
import array, collections, ctypes, dataclasses, datetime, decimal, enum, functools, gc, mmap, random, sys, sysconfig, types, weakref
gc.disable()
rng = random.Random(%d)
TYPE = 3 if sysconfig.get_config_var("Py_GIL_DISABLED") else 1
def probe(o): pass
@dataclasses.dataclass
class Data:
    a: int = 5
    b: str = "xy"
class Slots:
    __slots__ = "a", "b"
    def __init__(self): self.a, self.b = 1, "t"
class Plain:
    def __init__(self): self.a, self.b = 1, [1, 2]
class List(list): pass
class Number(int): pass
class Tuple(tuple): pass
class Text(str): pass
class Own(Exception): pass
Pair = collections.namedtuple("Pair", "x y")
def failed():
    try:
        try: raise KeyError("a")
        except KeyError as e: raise Own("m", 2) from e
    except Own as e: return e
def closure():
    v = [1]
    return lambda: v
def generator(): yield 1
n = 0
def number():
    global n
    n += 1
    return n
MAKE = [lambda: 12345678901234567890123 + number(), lambda: 10**7 + number(), lambda: 1.5 * number(), lambda: "text%%d" %% number(),
        lambda: "\u20ac%%d" %% number(), lambda: "\U0001f600%%d" %% number(), lambda: b"bytes%%d" %% number(), lambda: bytearray(b"abc"),
        lambda: [1, "a", [2]], lambda: (1, "b", (number(),)), lambda: {"a": 1, 0: "z"}, lambda: {k: k for k in range(50)},
        lambda: {str(k): k for k in range(50)}, lambda: {1, 2, "x"}, lambda: frozenset("abc"), Data, Slots, Plain,
        lambda: List([1, 2]), lambda: Number(7), lambda: Tuple((1, 2)), lambda: Text("abc"), lambda: Pair(1, 2), failed, closure,
        generator, lambda: types.SimpleNamespace(a=1), lambda: range(5), lambda: slice(1, 2), lambda: complex(1, number()),
        lambda: collections.deque([1, 2]), lambda: collections.OrderedDict(a=1), lambda: collections.Counter("aab"),
        lambda: collections.defaultdict(list, a=[1]), lambda: array.array("i", [1, 2]), lambda: decimal.Decimal("1.5"),
        lambda: datetime.datetime(2020, 1, 1), lambda: functools.partial(len, [1]), lambda: memoryview(b"abc"),
        lambda: Plain().__init__, lambda: property(len), lambda: types.ModuleType("m"), lambda: weakref.ref(Plain)]
# Two pages that can be read and one behind them that cannot.
pages = mmap.mmap(-1, 3 * mmap.PAGESIZE)
pages[:] = b"A" * len(pages)
end = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + 2 * mmap.PAGESIZE
ctypes.CDLL(None).mprotect(ctypes.c_void_p(end), mmap.PAGESIZE, 0)
WORDS = [0, 1, 2, 7, 8, 0xff, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**47 - 8, 2**62, 2**63, 2**63 - 1, 2**64 - 1, 2**64 - 2, 2**64 - 8,
         2**64 - 4096, end - 8, end - 1, end, end - 24, end - 4096, id("text"), id(None), id(str), id([]), 0xdeadbeefdeadbeef]
calls = 0
for make in MAKE:
    for at in range(TYPE + 1, 14):
        for v in rng.sample(WORDS, 6):
            o = make()
            kind = type(o)
            room = sys.getsizeof(o) - 16 * gc.is_tracked(o) if kind in (int, str, bytes, tuple) else kind.__basicsize__
            if 8 * at + 8 > room: break
            w = ctypes.c_uint64.from_address(id(o) + 8 * at)
            was = w.value
            w.value = v
            probe(o)
            w.value = was
            calls += 1
print("want", calls, flush=True)
"""


def test_broken(dtrace, interp):
    """What the agent reads of a broken object is another value or a fault, in bounds, and the program goes on."""
    questions = ["pyshow(pyarg(0))", "pystr(pyarg(0))", "pytype(pyarg(0))", 'pyshow(pyattr(pyarg(0), "a"))', "pyargs()",
                 'pyshow(pyattr(pyarg(0), "__cause__"))', "pyshow(pyitem(pyarg(0), 0))", 'pyshow(pyitem(pyarg(0), "a"))']
    script = CLAUSE % "calls++;" + "".join(CLAUSE % f"@[{question}] = count();" for question in questions)
    script += CLAUSE % "@n = sum(pyint(pyarg(0)));" + CLAUSE % "@l = sum(pylen(pyarg(0)));"
    script += ' END { trunc(@); trunc(@n); trunc(@l); printf("got %d\\n", calls); }'
    seed = zlib.crc32(interp.version.encode())
    result = dtrace(*TARGET, "-x", "bufsize=16m", "-n", script, "-c", interp.command(BROKEN % seed))
    want, got = re.search(r"^want (\d+)$", result.out, re.M), re.search(r"got (\d+)$", result.out, re.M)
    assert result.code == 0 and want and got and want[1] == got[1] and int(got[1]) > 800, (seed, result.code, result.out[-500:])


CALLED = """
class Shop:
    def probe(self, kind, count=1, *rest, key=None, **others):
        return [kind, count]
def probe_fails(text):
    raise ValueError(text)
def probe_counts(n):
    yield n
    yield n + 1
def probe_cells(n, m):
    return lambda: n + m
def probe_loses(n):
    del n
def probe_nothing(): pass
shop = Shop()
shop.probe("apple")
shop.probe("pear", 2, 3, 4, key=b"k", size=1.5)
try:
    probe_fails("no")
except ValueError:
    pass
list(probe_counts(5))
__import__("gc").collect()
probe_cells(7, "m")
probe_loses(3)
probe_nothing()
probe_nothing.__name__
"""


def test_calls_shown(dtrace, interp):
    """pyargs() and pyresult() have what there is, and are never a fault: also where there is nothing."""
    script = '''python$target:::function-entry, python$target:::function-return
        /index(copyinstr(arg1), "probe") == 0/ { printf("%s (%s) %s\\n", copyinstr(arg1), pyargs(), pyresult()); }
        python$target:::gc-start /pyresult() != "" || index(pyargs(), "probe") >= 0/ { printf("probe at gc-start\\n"); }'''
    result = dtrace(*TARGET, "-n", script, "-c", interp.command(CALLED))
    assert result.code == 0 and not result.err, result
    found = [re.sub(r"self=<__main__.Shop object at 0x[0-9a-f]+>", "SELF", line) for line in result.out.splitlines() if line]
    assert "probe at gc-start" not in found
    calls = {
        "probe": [("SELF, kind='apple', count=1, key=None, rest=(), others={}", "['apple', 1]"),
                  ("SELF, kind='pear', count=2, key=b'k', rest=(3, 4), others={'size': 1.5}", "['pear', 2]")],
        "probe_fails": [("text='no'", "ValueError('no')")],
        "probe_cells": [("n=7, m='m'", None)],
        "probe_nothing": [("", "None")],
    }
    for name, cases in calls.items():
        lines = [line for line in found if line.startswith(name + " ")]
        assert len(lines) == 2 * len(cases), found
        for k, (arguments, end) in enumerate(cases):
            assert lines[2 * k] == f"{name} ({arguments}) ", found
            assert lines[2 * k + 1].startswith(f"{name} ({arguments}) {end or '<function probe_cells'}"), found
    assert [line for line in found if line.startswith("probe_loses ")] == ["probe_loses (n=3) ", "probe_loses (n=?) None"]
    counts = [line for line in found if line.startswith("probe_counts ")]
    assert counts[0] == "probe_counts (n=5) " and "probe_counts (n=5) 5" in counts and "probe_counts (n=5) 6" in counts, found
