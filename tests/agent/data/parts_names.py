"""parts_names.py OBJECT SEED: names of code objects, types and builtins by the agent's parts and by the interpreter."""
import builtins
import ctypes
import gc
import random
import sys
import types

parts = ctypes.PyDLL(sys.argv[1])
for name in "begin", "file", "name", "qualname", "type", "method":
    getattr(parts, "parts_" + name).restype = ctypes.c_char_p
for name in "file", "name", "qualname", "type":
    getattr(parts, "parts_" + name).argtypes = [ctypes.py_object]
dice = random.Random(int(sys.argv[2]))
why = parts.parts_begin()
assert not why, why


def told(function, of):
    return function(of).decode("utf-8")


def expected(text):
    try:
        text.encode()
    except UnicodeEncodeError:      # without a UTF-8 form
        return "<unknown>"
    return text.split("\0")[0]


def inner(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from inner(const)


# --- any names at all ------------------------------------------------------------------------------------

LETTERS = ["a", "Z", "_", "1", ".", "<", ">", "é", "ß", "中", "\U0001f40d", "\ud800", " "]


def word():
    return "".join(dice.choice(LETTERS) for _ in range(dice.randint(1, 40)))


codes = 0
for _ in range(300):
    file, name = word(), word()
    changes = {"co_filename": file, "co_name": name}
    if sys.version_info >= (3, 11):
        changes["co_qualname"] = word()
    code = word.__code__.replace(**changes)
    assert told(parts.parts_file, code) == expected(file), (file, told(parts.parts_file, code))
    assert told(parts.parts_name, code) == expected(name), (name, told(parts.parts_name, code))
    if "co_qualname" in changes:
        assert told(parts.parts_qualname, code) == expected(changes["co_qualname"])
    codes += 1

# --- nested code: what a generated program's functions and classes say themselves ------------------------


def block(depth, indent):
    """Statements; each function and class that they make tells note() its own code and name."""
    out = []
    for n in range(dice.randint(1, 3)):
        name = "%s%d" % (dice.choice(["f", "__f", "g_", "é"]), n)
        kind = dice.choice(["def", "def", "class", "lambda", "async", "gen"]) if depth else "pass"
        rest = indent + "    "
        if kind in ("def", "class") and dice.random() < 0.2 and indent:
            out.append(indent + "global " + name)
        if kind == "def":
            params = dice.choice(["", "a=1", "a: int = 2, *, b=3", "*a, **k", "a=[i for i in range(3)]", "a=lambda: 1"])
            if dice.random() < 0.3:
                out.append(indent + "@kept")
            out.append(f"{indent}def {name}({params}){dice.choice(['', ' -> int'])}:")
            if dice.random() < 0.1:
                out.append(rest + "k = (" + ", ".join(str(1000 + i) + ".5" for i in range(300)) + ")")
            if dice.random() < 0.1:
                out += [f"{rest}k = {1000 + i}.25" for i in range(300)]
            out += block(depth - 1, rest)
            out.append(f"{indent}function({name})")
        elif kind == "class":
            bases = dice.choice(["", "(Base)", "(Base, metaclass=Meta)", "(*[Base])", "(Base, word='x')"])
            out.append(f"{indent}class {name}{bases}:")
            if dice.random() < 0.3:
                out.append(rest + "'a string to read'")
            out.append(rest + "klass(sys._getframe(), __qualname__)")
            out += block(depth - 1, rest)
        elif kind == "lambda":
            out.append(f"{indent}function({dice.choice(['lambda: 1', 'lambda a, *b, c=2: lambda: a', 'lambda: [i for i in ()]'])})")
        elif kind == "async":
            out.append(f"{indent}async def {name}():\n{rest}return [i async for i in ()]\n{indent}function({name})")
        elif kind == "gen":
            out.append(f"{indent}generator(i for i in (lambda: ())())")
        else:
            out.append(indent + "pass")
    return out


names = {}


def function(f):
    names[f.__code__] = f.__qualname__
    if not f.__code__.co_flags & 0x280:
        try:
            f()
        except TypeError:
            pass


def klass(frame, qualname):
    names[frame.f_code] = qualname


def generator(g):
    names[g.gi_code] = g.__qualname__


def kept(f):
    return f


class Meta(type):
    def __new__(cls, name, bases, space, **more):
        return super().__new__(cls, name, bases, space)


class Base(metaclass=Meta):
    def __init_subclass__(cls, **more):
        pass


late = []
for number in range(30):
    source = "\n".join(block(4, ""))
    code = compile(source, "made%d" % number, "exec")
    names.clear()
    space = {"function": function, "klass": klass, "generator": generator, "kept": kept, "Base": Base, "Meta": Meta, "sys": sys,
             "__name__": "made"}
    if number % 2 == 0:     # as if it ran while names are recorded: the outermost is asked first
        assert told(parts.parts_qualname, code) == "<module>"
        exec(code, space)
    else:                   # its functions are there before
        exec(code, space)
        parts.parts_learn()
    for of, name in names.items():
        got = told(parts.parts_qualname, of)
        assert got == name, (number, got, name, source)
        codes += 1
    late.append(space)

# --- types -----------------------------------------------------------------------------------------------

kinds = {type(o) for o in gc.get_objects()} | {t for t in vars(builtins).values() if isinstance(t, type)}
kinds |= {type(name, (), {"__qualname__": word()}) for name in (word() for _ in range(200)) if "\ud800" not in name}
for kind in kinds:
    name = type.__dict__["__name__"].__get__(kind)
    assert told(parts.parts_type, kind) == expected(name), (kind, told(parts.parts_type, kind))

# --- builtins --------------------------------------------------------------------------------------------

found = 0
for module in "builtins", "sys", "_thread", "gc", "time", "posix", "_imp", "marshal", "itertools":
    for name, value in vars(__import__(module)).items():
        method = parts.parts_method(module.encode(), name.encode())
        if isinstance(value, types.BuiltinFunctionType):
            assert method is not None and method.decode() == value.__name__, (module, name, method)
            found += 1
        else:
            assert method is None, (module, name, method)
assert parts.parts_method(b"sys", b"nosuch") is None and parts.parts_method(b"no.such", b"x") is None
print("ok", codes >= 350, len(kinds) >= 100, found >= 200)
