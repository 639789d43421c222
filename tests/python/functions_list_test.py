"""Listing functions of Python by name: dtrace -l and stap -l of a process that runs, against what it says of itself."""
import json
import re
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_root

# The program writes what it has: by its own look at sys.modules, through the attributes of Python's objects.
PROGRAM = """
import functools, json, sys, types
class Order:
    def total(self, n, *rest, flag=False, **more):
        return [k for k in range(n)], lambda: (lambda: 1)
    @staticmethod
    def part(k): pass
    @classmethod
    def make(cls): pass
    @property
    def prop(self): return (k for k in "x")
    @prop.setter
    def prop(self, value): pass
    class Inner:
        async def deep(self): pass
def outer(word):
    def inner(q):
        class Local:
            def method(self): return word
        return Local
    return inner
def wraps(f):
    @functools.wraps(f)
    def wrapper(*args): return f(*args)
    return wrapper
@wraps
def wrapped(a): pass
def closes(f):
    def around(): return f()
    return around
around = closes(lambda hidden: 0)
@functools.lru_cache(None)
def cached(b): pass
def steps(): yield 1
def f\u00fcr\u4e2d_\U00020000(\u00f6): pass
small = lambda x: x
exec("class Many:\\n" + "".join("    def m%d(self): pass\\n" % k for k in range(300)))

have = {}
def note_code(code, name, module):
    have[module + ":" + name] = bool(code.co_flags & (0x20 | 0x80 | 0x200))
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            plain = name + (".<locals>." if code.co_flags & 1 else ".") + const.co_name
            note_code(const, getattr(const, "co_qualname", plain), module)
seen = set()
def note(value):
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, type):
        for inner in list(value.__dict__.values()):
            note(inner)
    elif isinstance(value, types.FunctionType):
        name = value.__globals__.get("__name__")
        note_code(value.__code__, getattr(value.__code__, "co_qualname", value.__qualname__), name if isinstance(name, str) else "")
        for cell in value.__closure__ or ():
            try:
                if isinstance(cell.cell_contents, types.FunctionType): note(cell.cell_contents)
            except ValueError:
                pass
        note(value.__dict__.get("__wrapped__"))
    elif isinstance(value, (staticmethod, classmethod)):
        note(value.__func__)
    elif isinstance(value, property):
        for inner in (value.fget, value.fset, value.fdel):
            note(inner)
    elif type(value) is type(cached):
        note(value.__wrapped__)
for module in list(sys.modules.values()):
    if isinstance(module, types.ModuleType):
        for value in list(module.__dict__.values()):
            note(value)
print(json.dumps({name: yields for name, yields in have.items() if name.split(":")[0] in ("__main__", "json.decoder", "functools")}),
      flush=True)
sys.stdin.read()
"""


@pytest.fixture
def process(interp, start):
    """The program, which waits for its input's end, and what it said."""
    child = start(interp.argv_of(PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return child.pid, json.loads(child.stdout.readline())


def listed(out):
    return set(re.findall(r"^ *\d+ +py\d+ +(\S+) +(\S+) (\S+)$", out, flags=re.M))


def test_what_there_is(dtrace, process):
    pid, want = process
    result = dtrace("-l", "-p", pid, "-n", "py$target:__main__::", "-n", "py$target:json.decoder::", "-n", "py$target:functools::")
    names = {True: ("entry", "return", "raise", "yield", "resume"), False: ("entry", "return", "raise")}
    have = {(*function.split(":"), name) for function, yields in want.items() for name in names[yields]}
    assert result.code == 0 and len(have) > 1000, result
    got = listed(result.out)
    assert got == have, (sorted(have - got)[:20], sorted(got - have)[:20])


def test_parameters(dtrace, process):
    pid, _ = process
    result = dtrace("-lv", "-p", pid, "-n", "py$target:__main__:Order.total:entry", "-n", "py$target:__main__:f*r*_*:line-3")
    assert result.code == 0 and listed(result.out) == {("__main__", "Order.total", "entry"),
                                                       ("__main__", "f\u00fcr\u4e2d_\U00020000", "line-3")}, result
    assert [part.split("\n\n")[0].split() for part in result.out.split("Python Parameters\n")[1:]] == [
        ['pyarg("self")', 'pyarg("n")', 'pyarg("flag")', 'pyarg("rest"):', "*rest", 'pyarg("more"):', "**more"],
        ['pyarg("\u00f6")']], result
    result = harness.stap("-x", pid, "-L", 'python3.module("__m*").function("Order.[tp][or]*").return')
    assert 'function("Order.total").return $self:string $n:string $flag:string $rest:string $more:string $return:string\n' in result.out, result


@pytest.mark.interps("3.13")
def test_stap(process):
    pid, want = process
    for point in "", ".call", ".return":
        result = harness.stap("-x", pid, "-l", f'python3.module("json.*").function("*"){point}')
        assert result.code == 0, result
        got = {tuple(row) for row in re.findall(r'^python3\.module\("(\S+)"\)\.function\("(\S+)"\)' + re.escape(point) + "$", result.out, flags=re.M)}
        assert {(m, f) for m, f in got if m == "json.decoder"} == {
            tuple(name.split(":")) for name in want if name.startswith("json.decoder:")}, result


@pytest.mark.interps("3.9", "3.14")
def test_nothing(dtrace, interp, process):
    pid, _ = process
    result = dtrace("-l", "-p", pid, "-n", "py$target:__main__:nothing:")
    assert result.code == 1 and "has no such function now" in result.err, result
    result = dtrace("-l", "-n", "py$target:::", "-c", interp.command("pass"))
    assert result.code == 1 and "has no modules of Python yet" in result.err, result
    result = harness.stap("-x", pid, "-l", 'python3.module("nowhere").function("*")')
    assert result.code == 1 and not result.out, result
