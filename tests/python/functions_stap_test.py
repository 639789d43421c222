"""SystemTap's points of Python's functions by name: python3.module("M").function("F"), .call, .return."""
import re

import pytest

import harness

PROGRAM = """
import sys
counts = {}
def tracer(frame, what, arg):
    if what in ("call", "return") and frame.f_code.co_name in ("total", "numbers", "fails"):
        counts[frame.f_code.co_name, what] = counts.get((frame.f_code.co_name, what), 0) + 1
    return tracer
class Order:
    def total(self, n):
        return sum(numbers(n))
def numbers(n):
    for k in range(n):
        yield k
def fails():
    raise ValueError
sys.settrace(tracer)
for k in range(4):
    Order().total(k)
    try: fails()
    except ValueError: pass
sys.settrace(None)
for (name, what), n in sorted(counts.items()):
    print("want", name, what, n)
"""

SCRIPT = """
global n
probe python3.module("%s").function("*").call { n[probefunc(), "call"]++ }
probe python3.module("%s").function("*").return { n[probefunc(), "return"]++ }
probe end { foreach ([f, what] in n) printf("got %%s %%s %%d\\n", f, what, n[f, what]) }
"""


def rows(text, prefix):
    return {(name.split(".")[-1], what): int(n) for name, what, n in re.findall(rf"^{prefix} (\S+) (\S+) (\d+)$", text, flags=re.M)}


PLACES = pytest.mark.parametrize("place", ["target", "kernel"])


@pytest.mark.needs_root
@PLACES
@pytest.mark.parametrize("module", ["__main__", "script", "scr*t"])
def test_against_settrace(interp, module, place):
    """What SystemTap's helper in Python traces by: calls and returns as sys.settrace has them, __main__ by its file's name."""
    result = harness.stap(f"--place={place}", "-e", SCRIPT % (module, module), "-c", interp.command(PROGRAM))
    got = {key: n for key, n in rows(result.out, "got").items() if key[0] in ("total", "numbers", "fails")}
    assert result.code == 0 and got == rows(result.out, "want") and len(got) == 6, result


@pytest.mark.parametrize("point, says", [
    ('python2.module("m").function("f")', "no probes in Python 2"),
    ('python3.module("m").function("f@m.py:3").call', "a line of a function has neither .call nor .return"),
    ('python3.module("m").function("f@m.py+3").return', "a line of a function has neither .call nor .return"),
    ('python3.module("m").function("f@:3")', "a function's pattern is NAME, NAME@FILE"),
    ('python3.module("m").function("@m.py")', "a function's pattern is NAME, NAME@FILE"),
])
@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_refused(interp, point, says):
    result = harness.stap("-e", f"probe {point} {{ println(1) }}", "-c", interp.command("pass"))
    assert result.code == 1 and says in result.err, result


# Functions of one name in two files of one module, and the lines that sys.settrace sees them come to.
FILES = """
import sys
want = {}
def tracer(frame, what, arg):
    if what in ("call", "line", "return"):
        key = frame.f_code.co_filename.rsplit("/")[-1], frame.f_code.co_name, what, frame.f_lineno if what == "line" else 0
        want[key] = want.get(key, 0) + 1
    return tracer
SOURCE = '''def work(n):
    total = 0
    for k in range(n):
        total += k
    return total
def wait(n):
    yield n
    if n:
        yield -n
'''
spaces = []
for file in "/srv/app/one.py", "/srv/app/two.py", "/srv/lib/one.py":
    spaces.append({"__name__": "app"})
    exec(compile(SOURCE, file, "exec"), spaces[-1])
sys.settrace(tracer)
for n, space in enumerate(spaces):
    space["work"](n + 1)
    list(space["wait"](n))
sys.settrace(None)
for (file, name, what, line), n in sorted(want.items()):
    print("want", file, name, what, line, n)
"""

FILES_SCRIPT = """
global n
probe python3.module("app").function("work@one.py").call { n["one.py work call 0"]++ }
probe python3.module("app").function("work@/srv/app/*").call { n["app work"]++ }
probe python3.module("app").function("w*@one.py").return { if (probefunc() == "wait") n["one.py wait return 0"]++ }
probe python3.module("app").function("work@one.py:4") { n["one.py work line 4"]++; if ($total != "0" && $k == "0") println("bad") }
probe python3.module("app").function("work@t?o.py+3") { n["two.py work line 4"]++ }
probe python3.module("app").function("wait@app/*.py+1") { n["app wait line 7"]++ }
probe python3.module("app").function("wait@two.py:9") { n["two.py wait line 9"]++ }
probe python3.module("app").function("wait@three.py") { println("bad") }
probe end { foreach (what in n) printf("got %s %d\\n", what, n[what]) }
"""


@pytest.mark.needs_root
@PLACES
def test_files_and_lines(interp, place):
    """NAME@FILE, and a line of that file or of the function, as sys.settrace sees them."""
    result = harness.stap(f"--place={place}", "-e", FILES_SCRIPT, "-c", interp.command(FILES))
    want = dict(line[5:].rsplit(" ", 1) for line in result.out.splitlines() if line.startswith("want "))
    got = dict(line[4:].rsplit(" ", 1) for line in result.out.splitlines() if line.startswith("got "))
    assert result.code == 0 and "bad" not in result.out, result
    assert got.pop("app work") == "2" and got.pop("app wait line 7") == "2", result
    assert got == {key: want[key] for key in got} and len(got) == 5, result


# The program writes each value as SystemTap's tapset python3.stp does, and a line for each event.
VALUES = """
import sys
want = open(__file__ + ".want", "w", encoding="utf-8")
def say(line): want.write(line + "\\n")
def text(v):
    if isinstance(v, str): return '"%s"' % v
    if isinstance(v, int): return "%#x" % (v % 2**64) if v else "0"
    if isinstance(v, tuple): return "(" + " ".join(map(text, v)) + ")"
    if isinstance(v, list): return "[" + " ".join(map(text, v)) + "]"
    if isinstance(v, dict): return "{" + " ".join(text(k) + ":" + text(x) for k, x in v.items()) + "}"
    return "<%s object at %#x>" % (type(v).__name__, id(v))
class Row(tuple): pass
class Words(dict): pass
class Text(str): pass
VALUES = [0, 1, -1, 42, True, False, 2**63 - 1, -2**63, "", "a", "\u00fc\u20ac\U0001f600", 'with "quotes"', Text("own"),
          (), (1,), (1, "two", (3, [])), [], [1, "x"], [[1], [2, [3]]], {}, {"a": 1}, {1: "b", (2,): [3]}, Words(x={}), Row((1, 2)),
          None, 1.5, b"bytes", {1}, object(), text, Row, ..., sys, list(range(12)), {str(k): k for k in range(7)}]
LIMIT = ["glob", 7]
class Order:
    def __init__(self, v): self.held, self.items, self.names = v, [v, 2], {"key": v, 3: v}
    def show(self, v, *rest, flag=0, **more):
        y = v
        inner = lambda: y
        say("leave %s|%s|%s|inner=%s y=%s" % (text(v), text(y), text(inner), text(inner), text(y)))
        return v
for v in VALUES:
    self = Order(v)
    say("enter " + "|".join(map(text, (v, v, v, v, v, LIMIT[0]))))
    say("parms self=%s v=%s flag=0x1 rest=%s more=%s" % (text(self), text(v), text((v, 1)), text({"m": v})))
    if type(v) not in (Row, Words, Text, type(sys)): say("repr " + repr(v))
    self.show(v, v, 1, flag=True, m=v)
def leaves():
    raise KeyError(1)
try: leaves()
except KeyError: pass
say("left " + text(None))
def many(v): pass
many("x" * 2000)
want.close()
"""

VALUES_SCRIPT = r'''
probe python3.module("__main__").function("Order.show") {
    printf("enter %s|%s|%s|%s|%s|%s\n", $v, $self->held, $self->items[0], $self->names["key"], $self->names[3], $LIMIT[0])
    printf("parms %s\n", $$parms)
    if (pytype(pyarg(1)) != "Row" && pytype(pyarg(1)) != "Words" && pytype(pyarg(1)) != "Text" && pytype(pyarg(1)) != "module")
        printf("repr %s\n", $v$)
}
probe python3.module("__main__").function("Order.show").return {
    printf("leave %s|%s|%s|%s\n", $return, $y, $inner, $$locals)
}
probe python3.module("__main__").function("leaves").return { printf("left %s\n", $return) }
probe python3.module("__main__").function("many") { if (strlen($v) < 100 || substr($v, 0, 3) != "\"xx") println("bad") }
'''


@pytest.mark.needs_root
@PLACES
def test_values(interp, place):
    """$name, ->, [], $$parms, $$locals and $return, as SystemTap's own tapset shows values; $name$ as repr() does."""
    script = interp.add(VALUES)
    result = harness.stap(f"--place={place}", "-e", VALUES_SCRIPT, "-c", " ".join([*interp.argv, script]))
    want = (interp.dir / "script.py.want").read_text(encoding="utf-8").splitlines()
    assert result.code == 0 and result.out.splitlines() == want and len(want) > 120, result


FUNCTIONS = """
class Order:
    def __init__(self): self.total, self.name = 2.5, "Zoe"
def probe(o, n, row, words):
    inside = "in"
    return n
def fails(): raise LookupError("text")
probe(Order(), 41, [1, b"two"], {"key": "value"})
try: fails()
except LookupError: pass
"""


@pytest.mark.needs_root
def test_functions(interp):
    """The functions that D has, too."""
    result = harness.stap("-e", """
        probe python3.module("__main__").function("probe").call {
            println(pyint(pyarg(1)) + 1, " ", pytype(pyarg(0)), " ", pystr(pyattr(pyarg(0), "name")), " ", pylen(pyarg(2)), " ",
                    pystr(pyitem(pyarg(2), -1)), " ", pystr(pykey(pyarg(3), "key")), " ", pyscale(pyattr(pyarg(0), "total"), 10), " ",
                    pyshow(pyarg(0)), " ", pyfloat(pyattr(pyarg(0), "total")) == 0x4004000000000000)
        }
        probe python3.module("__main__").function("probe").return { println(pystr(pylocal("inside")), " ", pyint(pyret())) }
        probe python3.module("__main__").function("fails").return { println(pyshow(pyexc())) }
        """, "-c", interp.command(FUNCTIONS))
    assert result.code == 0 and result.out.splitlines() == [
        "42 Order Zoe 2 two value 25 Order(total=2.5, name='Zoe') 1", "in 41", "LookupError('text')"], result


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
@pytest.mark.parametrize("what, says", [
    ("$$return", "$$parms, $$locals and $$vars"), ("@var(\"x\")", "without @var"), ("&$x", "without @var or &"),
    ("$x = \"y\"", "write to target variable not permitted"), ("$x->a" + "->b" * 8, "more than 8 parts"),
])
def test_refused_variables(interp, what, says):
    result = harness.stap("-e", f'probe python3.module("m").function("f") {{ {what if "=" in what else "println(" + what + ")"} }}',
                          "-c", interp.command("pass"))
    assert result.code == 1 and says in result.err, result


@pytest.mark.needs_root
@pytest.mark.interps("3.9", "3.14")
@pytest.mark.parametrize("what, says", [("$nothing", "no such argument, variable"), ("$n->attr", "no such argument, variable"),
                                        ("$n[0]", "of another kind")])
def test_faults(interp, what, says):
    result = harness.stap("-e", f'probe python3.module("__main__").function("probe") {{ println({what}) }}', "-c", interp.command(FUNCTIONS))
    assert result.code == 1 and says in result.err, result
