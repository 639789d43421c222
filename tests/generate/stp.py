"""
Random SystemTap: cases, each a probe with variables, arrays and functions of its own, and what they print.

As in d.py a case is text and model at once.  An error that is caught is the line "@CASE ! TEXT".
"""
import re

import ground
import words
from ground import Fault
from numbers_of_c import I64, TYPES, integer, pad, quotient, remainder
from tree import STR, Expr, Form, Writer

LETTERS = "abAB/.x_0 19-,"
STRSIZES = (16, 31, 32, 64, 512, 512, 512)
POINT = 'process.mark("function__entry")'
OWN = 'if (user_string_n($arg2, 6) != "zprobe") next;'


class State:
    def __init__(self, memory, strsize):
        self.memory, self.strsize = memory, strsize
        self.vars, self.maps = {}, {}
        self.out = []

    def cut(self, s):
        return s[:self.strsize - 1]


class Error(Exception):
    """What a catch gets."""

    def __init__(self, text):
        super().__init__(text)
        self.text = text


class Leave(Exception):
    """break, continue."""


class Break(Leave):
    pass


class Continue(Leave):
    pass


class Stp:
    """Names that the forms of a case add."""

    def __init__(self):
        self.globals, self.shared = [], False

    def declare(self, case, name, type):
        return name

    def assign(self, name, text):
        return f"{name} = {text};"

    def constant(self, case, e):
        name = f"k{case}_{len(self.globals)}"
        self.globals.append(f"global {name} = {e.plain}")
        return name


# --- expressions ----------------------------------------------------------------------------------------

def literal(v):
    if v == -1 << 63:
        text = "(-9223372036854775807 - 1)"
    else:
        text = f"({v})" if v < 0 else str(v)
    e = Expr(I64, lambda: text, lambda state: v, literal=v != -1 << 63)
    e.plain = text.strip("()")
    return e


def quoted(s):
    return '"' + "".join({"\\": "\\\\", '"': '\\"', "\n": "\\n"}.get(c, c) for c in s) + '"'


def text_literal(s):
    e = Expr(STR, lambda: quoted(s), lambda state: state.cut(s.encode()), literal=True)
    e.plain = quoted(s)
    return e


def divide(op, a, b):
    if not b:
        raise Error("division by 0")
    return (quotient if op == "/" else remainder)(a, b)


BINARY = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63),
    ">>>": lambda a, b: (a % (1 << 64)) >> (b & 63),
    "/": lambda a, b: divide("/", a, b), "%": lambda a, b: divide("%", a, b),
}
COMPARE = {"==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
           ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}


def binary(op, a, b):
    return Expr(I64, lambda x, y: f"({x} {op} {y})", lambda state, x, y: I64.keep(BINARY[op](x, y)), (a, b))


def compare(op, a, b):
    return Expr(I64, lambda x, y: f"({x} {op} {y})", lambda state, x, y: int(COMPARE[op](x, y)), (a, b))


def logic(op, a, b):
    def fn(state, x, y):
        return int(bool(x()) and bool(y())) if op == "&&" else int(bool(x()) or bool(y()))

    return Expr(I64, lambda x, y: f"({x} {op} {y})", fn, (a, b), lazy=True)


def choice(cond, a, b):
    return Expr(a.type, lambda c, x, y: f"({c} ? {x} : {y})", lambda state, c, x, y: x() if c() else y(), (cond, a, b),
                lazy=True)


def unary(op, a):
    fn = {"!": lambda v: int(not v), "-": lambda v: -v, "~": lambda v: ~v}[op]
    return Expr(I64, lambda x: f"({op} {x})", lambda state, x: I64.keep(fn(x)), (a,))


def call(name, type, fn, *kids):
    def value(state, *values):
        v = fn(*values)
        return state.cut(v) if type == STR else I64.keep(v)

    return Expr(type, lambda *parts: f"{name}({', '.join(parts)})", value, kids)


def joined(a, b):
    return Expr(STR, lambda x, y: f"({x} . {y})", lambda state, x, y: state.cut(x + y), (a, b))


def matches(op, s, pattern):
    found = re.compile(pattern.encode())
    return Expr(I64, lambda x: f"({x} {op} {quoted(pattern)})",
                lambda state, x: int(bool(found.search(x)) == (op == "=~")), (s,))


def peeked(name, t, address, careful):
    """user_int() and its like: 0 of a bad address, or an error."""
    def fn(state, at):
        try:
            return t.keep(int.from_bytes(state.memory.read(at % (1 << 64), t.bits // 8), "little"))
        except Fault:
            if careful:
                raise Error(f"read fault [man error::fault] at 0x{at % (1 << 64):x}") from None
            return 0

    return Expr(I64, lambda a: f"{name}({a})", lambda state, at: I64.keep(fn(state, at)), (address,))


def string_at(address, n=None, instead=None):
    def fn(state, at, *more):
        more = list(more)
        room = state.strsize if n is None else min(max(more.pop(0), 0) + 1, state.strsize)
        try:
            return state.memory.string(at % (1 << 64), room)
        except Fault:
            if instead is not None:
                return more.pop(0)
            raise Error(f"user string copy fault -14 at 0x{at % (1 << 64):x} [man error::fault]") from None

    name = "user_string" if n is None else "user_string_n"
    return Expr(STR, lambda *parts: f"{name}({', '.join(parts)})", fn, [e for e in (address, n, instead) if e is not None])


class Place:
    """A variable or an element of an array."""

    def __init__(self, name, type, keys=(), permute=None):
        self.name, self.type, self.keys = name, type, list(keys)
        self.permute = permute or (lambda texts: texts)

    def make(self, *keys):
        return f"{self.name}[{', '.join(self.permute(list(keys)))}]" if self.keys else self.name

    def _at(self, state, keys):
        return (state.maps.setdefault(self.name, {}), tuple(keys)) if self.keys else (state.vars, self.name)

    def get(self, state, keys):
        where, at = self._at(state, keys)
        return where.get(at, b"" if self.type == STR else 0)

    def put(self, state, keys, v):
        where, at = self._at(state, keys)
        where[at] = state.cut(v) if self.type == STR else I64.keep(v)
        return where[at]

    def read(self):
        return Expr(self.type, self.make, lambda state, *keys: self.get(state, keys), self.keys)

    def there(self):
        return Expr(I64, lambda *keys: f"([{', '.join(self.permute(list(keys)))}] in {self.name})",
                    lambda state, *keys: int(tuple(keys) in state.maps.get(self.name, {})), self.keys)

    def assign(self, e):
        return Expr(self.type, lambda *parts: f"({self.make(*parts[:-1])} = {parts[-1]})",
                    lambda state, *parts: self.put(state, parts[:-1], parts[-1]), (*self.keys, e), pure=False)

    def update(self, op, e):
        def fn(state, *parts):
            old = self.get(state, parts[:-1])
            return self.put(state, parts[:-1], old + parts[-1] if op == "." else BINARY[op](old, parts[-1]))

        return Expr(self.type, lambda *parts: f"({self.make(*parts[:-1])} {op}= {parts[-1]})", fn, (*self.keys, e), pure=False)

    def step(self, op, behind):
        def fn(state, *keys):
            old = self.get(state, keys)
            new = self.put(state, keys, old + (1 if op == "++" else -1))
            return old if behind else new

        return Expr(I64, lambda *keys: f"({self.make(*keys)}{op})" if behind else f"({op}{self.make(*keys)})", fn, self.keys,
                    pure=False)

    def delete(self):
        return Delete(self)


EXTRACT = {"count": len, "sum": lambda v: I64.keep(sum(v)), "min": min, "max": max,
           "avg": lambda v: quotient(I64.keep(sum(v)), len(v))}


def extract(what, place):
    def fn(state, *keys):
        values = state.maps.get(place.name, {}).get(tuple(keys), [])
        if not values and what not in ("count", "sum"):
            raise Error("empty aggregate")
        return EXTRACT[what](values)

    return Expr(I64, lambda *keys: f"@{what}({place.make(*keys)})", fn, place.keys)


def sprintf(pieces):
    """A string from the pieces that Print has."""
    exprs = [e for piece in pieces if not isinstance(piece, str) for e in piece[4]]

    def fn(state, *values):
        return state.cut(fields(pieces, values))

    return Expr(STR, lambda *parts: f"sprintf({', '.join([quoted(format_of(pieces)), *parts])})", fn, exprs)


def format_of(pieces):
    made = ""
    for piece in pieces:
        if isinstance(piece, str):
            made += piece
        else:
            flags, width, prec, letter, _ = piece
            made += f"%{flags}{'' if width is None else width}{'' if prec is None else f'.{prec}'}{letter}"
    return made


def fields(pieces, values):
    made, values = b"", list(values)
    for piece in pieces:
        made += piece.encode() if isinstance(piece, str) else field(piece, [values.pop(0) for _ in piece[4]])
    return made


def field(piece, parts):
    flags, width, prec, letter, _ = piece
    width = parts.pop(0) if width == "*" else width or 0
    prec = parts.pop(0) if prec == "*" else prec
    v = parts[0]
    if letter == "s":
        return pad(v if prec is None else v[:prec], flags, width)
    prec = prec or None
    if letter == "c":
        return pad(bytes([v & 255]), flags, width)
    if letter == "p":
        flags += "#"
    sign = letter in "di"
    return integer(letter, flags, width, prec, v if sign else v % (1 << 64), sign, mark_zero=True)


# --- statements -----------------------------------------------------------------------------------------

class Print:
    def __init__(self, case, pieces):
        self.pieces = [f"@{case} ", *pieces, "\n"]

    def write(self, w):
        args = [w.expr(e) for piece in self.pieces if not isinstance(piece, str) for e in piece[4]]
        return w.statement(f"printf({', '.join([quoted(format_of(self.pieces)), *args])});")

    def run(self, state):
        values = [e.value(state) for piece in self.pieces if not isinstance(piece, str) for e in piece[4]]
        state.out.append(fields(self.pieces, values))


class Values:
    """println(), printd() and their like, and what has no format."""

    def __init__(self, case, name, between, exprs):
        self.case, self.name, self.between, self.exprs = case, name, between, exprs

    def write(self, w):
        args = [quoted(f"@{self.case} "), *[w.expr(e) for e in self.exprs]]
        if "d" in self.name[5:]:
            args.insert(0, quoted(self.between))
        made = w.statement(f"{self.name}({', '.join(args)});")
        return made if self.name.endswith("ln") else made + 'print("\\n");\n'

    def run(self, state):
        parts = [f"@{self.case} ".encode()]
        for e in self.exprs:
            v = e.value(state)
            parts.append(v if e.type == STR else str(v).encode())
        state.out.append((self.between.encode() if "d" in self.name[5:] else b"").join(parts) + b"\n")


class Do:
    def __init__(self, e):
        self.e = e

    def write(self, w):
        text = w.expr(self.e)
        return w.statement("" if w.form.named else text + ";")

    def run(self, state):
        self.e.value(state)


class Delete:
    def __init__(self, place, whole=False):
        self.place, self.whole = place, whole

    def write(self, w):
        if self.whole:
            return w.statement(f"delete {self.place.name};")
        return w.statement(f"delete {self.place.make(*[w.expr(key) for key in self.place.keys])};")

    def run(self, state):
        if self.whole:
            state.maps[self.place.name] = {}
            return
        where, at = self.place._at(state, [key.value(state) for key in self.place.keys])
        where.pop(at, None)


class Take:
    """s[...] <<< e"""

    def __init__(self, place, e):
        self.place, self.e = place, e

    def write(self, w):
        keys = [w.expr(key) for key in self.place.keys]
        return w.statement(f"{self.place.make(*keys)} <<< {w.expr(self.e)};")

    def run(self, state):
        at = tuple(key.value(state) for key in self.place.keys)
        v = self.e.value(state)
        state.maps.setdefault(self.place.name, {}).setdefault(at, []).append(v)


def body(w, statements):
    return "{\n" + "".join(s.write(w) for s in statements) + "}\n"


class If:
    def __init__(self, cond, yes, no):
        self.cond, self.yes, self.no = cond, yes, no

    def write(self, w):
        made = w.statement(f"if ({w.expr(self.cond)})") + body(w, self.yes)
        return made + ("else " + body(w, self.no) if self.no else "")

    def run(self, state):
        for s in self.yes if self.cond.value(state) else self.no:
            s.run(state)


class For:
    """@times turns, counted in a variable of its own."""

    def __init__(self, counter, times, statements, is_while):
        self.counter, self.times, self.yes, self.is_while = counter, times, statements, is_while

    def write(self, w):
        i = self.counter
        if self.is_while:
            return f"{i} = 0;\nwhile ({i}++ < {self.times}) " + body(w, self.yes)
        return f"for ({i} = 0; {i} < {self.times}; {i}++) " + body(w, self.yes)

    def run(self, state):
        state.vars[self.counter] = 0
        while state.vars[self.counter] < self.times:
            if self.is_while:
                state.vars[self.counter] += 1
            try:
                for s in self.yes:
                    s.run(state)
            except Break:
                return
            except Continue:
                pass
            if not self.is_while:
                state.vars[self.counter] += 1
        if self.is_while:
            state.vars[self.counter] += 1


class Foreach:
    """Over an array; @order is (part, sign), part -1 for the value."""

    def __init__(self, place, names, order, limit, statements):
        self.place, self.names, self.order, self.limit, self.yes = place, names, order, limit, statements

    def write(self, w):
        part, sign = self.order or (None, "")
        names = [name + (sign if part == k else "") for k, name in enumerate(self.names)]
        limit = w.statement(f"limit {w.expr(self.limit, named=False)}")[:-1] if self.limit else ""
        return (f"foreach ([{', '.join(self.place.permute(names))}] in {self.place.name}{sign if part == -1 else ''} {limit}) "
                + body(w, self.yes))

    def run(self, state):
        rows = list(state.maps.get(self.place.name, {}).items())
        limit = self.limit.value(state) if self.limit else len(rows)
        if self.order:
            part, sign = self.order
            rows.sort(key=lambda row: row[1] if part == -1 else row[0][part], reverse=sign == "-")
            # sort() keeps equal rows in their order, also in reverse
        for keys, _ in rows[:max(limit, 0)]:
            for name, key in zip(self.names, keys):
                state.vars[name] = key
            try:
                for s in self.yes:
                    s.run(state)
            except Break:
                return
            except Continue:
                pass


class Jump:
    def __init__(self, cond, word):
        self.cond, self.word = cond, word

    def write(self, w):
        return w.statement(f"if ({w.expr(self.cond)}) {self.word};")

    def run(self, state):
        if self.cond.value(state):
            raise Break() if self.word == "break" else Continue()


class Try:
    def __init__(self, case, statements, caught):
        self.case, self.yes, self.caught = case, statements, caught

    def write(self, w):
        name = f"e{self.case}"
        return f'try {body(w, self.yes)}catch ({name}) {{ printf("@{self.case} ! %s\\n", {name});\n' \
               f'{"".join(s.write(w) for s in self.caught)}}}\n'

    def run(self, state):
        try:
            for s in self.yes:
                s.run(state)
        except Error as error:
            state.out.append(f"@{self.case} ! ".encode() + state.cut(error.text.encode("latin1")) + b"\n")
            for s in self.caught:
                s.run(state)


class Raise:
    def __init__(self, e):
        self.e = e

    def write(self, w):
        return w.statement(f"error({w.expr(self.e)});")

    def run(self, state):
        raise Error(self.e.value(state).decode("latin1"))


class Tokens:
    def __init__(self, case, s, ends, more):
        self.case, self.s, self.ends, self.more = case, s, ends, more

    def write(self, w):
        made = w.statement(f'printf("@{self.case} <%s>\\n", tokenize({w.expr(self.s)}, {quoted(self.ends)}));')
        return made + "".join(f'printf("@{self.case} <%s>\\n", tokenize("", {quoted(ends)}));\n' for ends in self.more)

    def run(self, state):
        rest = self.s.value(state)
        for ends in (self.ends, *self.more):
            one, rest = words.token(rest, ends.encode())
            rest = rest[1:]
            state.out.append(f"@{self.case} <".encode() + one + b">\n")


class Function:
    """Its parameters are longs and strings; it may call itself with a smaller first one."""

    def __init__(self, name, params, type):
        self.name, self.params, self.type = name, params, type
        self.first, self.again, self.rest = None, None, None

    def write(self, w):
        params = ", ".join(f"{p.name}:{'string' if p.type == STR else 'long'}" for p in self.params)
        more = ""
        if self.again:
            again = w.expr(self.again)
            more = f"if ({self.params[0].name} > 0) {{\n" + w.statement(f"return {again};") + "}\n"
        return (f"function {self.name}:{'string' if self.type == STR else 'long'} ({params})\n{{\n{more}"
                + w.statement(f"return {w.expr(self.rest)};") + "}\n")

    def value(self, state, args):
        kept = {p.name: state.vars.get(p.name) for p in self.params}
        for p, v in zip(self.params, args):
            state.vars[p.name] = v
        try:
            if self.again and state.vars[self.params[0].name] > 0:
                return self.again.value(state)
            return self.rest.value(state)
        finally:
            state.vars.update(kept)

    def call(self, *args):
        return Expr(self.type, lambda *parts: f"{self.name}({', '.join(parts)})",
                    lambda state, *values: self.value(state, values), args)


# --- cases ----------------------------------------------------------------------------------------------

PEEKS = [(f"user_{name}{error}", t, bool(error)) for error in ("", "_error") for name, t in (
    ("int8", TYPES["i8"]), ("uint8", TYPES["u8"]), ("int16", TYPES["i16"]), ("uint16", TYPES["u16"]), ("int32", TYPES["i32"]),
    ("uint32", TYPES["u32"]), ("int64", TYPES["i64"]), ("int", TYPES["i32"]), ("long", TYPES["i64"]))]
PATTERNS = ("^a", "b$", "[0-9]+", "a.b", "x*y?1", "^[a-zA-Z/]*$", "[^ab]x", "(ab)+", "A|0", "^(/|x).*[.]")


class Case:
    def __init__(self, rnd, number, writes=False):
        self.rnd, self.number, self.writes = rnd, number, False
        self.form, self.keys, self.counters, self.locked = Form(), {}, 0, set()
        self.functions, self.inside = [], []
        self.ints = [Place(f"i{number}_{k}", I64) for k in range(rnd.randint(2, 3))]
        self.strings = [Place(f"s{number}_{k}", STR) for k in range(rnd.randint(1, 3))]
        self.globals = {p.name for p in (*self.ints, *self.strings) if rnd.random() < 0.4}
        self.maps = [(f"m{number}_{k}", rnd.choice((I64, I64, STR)), self._key_types()) for k in range(rnd.randint(0, 2))]
        self.stats = [(f"t{number}_{k}", self._key_types() if rnd.random() < 0.5 else []) for k in range(rnd.randint(0, 2))]
        first = [Do(p.assign(self.literal() if p.type == I64 else self.text(0))) for p in (*self.ints, *self.strings)
                 if p.name not in self.globals]
        for k in range(rnd.randint(0, 2)):
            self.functions.append(self.function(k))
        self.ready = True
        self.first = first
        self.clauses = [[self.statement(2) for _ in range(rnd.randint(1, 5))] for _ in range(rnd.randint(1, 3))]

    def _key_types(self):
        return [self.rnd.choice((I64, STR)) for _ in range(self.rnd.randint(1, 3))]

    def _order(self, name, n):
        if name not in self.keys:
            self.keys[name] = self.form.permute.sample(range(n), n)
        return self.keys[name]

    def _permuted(self, name, texts):
        return [texts[k] for k in self._order(name, len(texts))] if self.form.permute else texts

    def _keyed(self, name, type, types, depth):
        return Place(name, type, [self.key(t, depth) for t in types], lambda texts: self._permuted(name, texts))

    def key(self, type, depth):
        if type == STR:
            return self.text(depth)
        return literal(self.rnd.randint(-1, 3)) if self.rnd.random() < 0.6 else self.int(depth)

    def function(self, k):
        rnd = self.rnd
        f = Function(f"f{self.number}_{k}", [Place(f"p{self.number}_{k}_{n}", t) for n, t in
                                             enumerate((I64, *[rnd.choice((I64, STR)) for _ in range(rnd.randint(0, 2))]))],
                     rnd.choice((I64, STR)))
        self.inside = f.params
        if rnd.random() < 0.5:
            again = f.call(binary("-", f.params[0].read(), literal(1)),
                           *[self.of(p.type, 1) for p in f.params[1:]])
            f.again = joined(again, self.text(1)) if f.type == STR else binary("+", again, self.int(1))
        f.rest = self.of(f.type, 2)
        self.inside = []
        return f

    def called(self, type, depth):
        """A call of one of the functions, or None; a first argument that is small."""
        there = [f for f in self.functions if f.type == type]
        if not there or self.inside:
            return None
        f = self.rnd.choice(there)
        return f.call(binary("&", self.int(depth - 1), literal(3)), *[self.of(p.type, depth - 1) for p in f.params[1:]])

    def variables(self, type):
        """What may be read here."""
        if self.inside:
            return [p for p in self.inside if p.type == type]
        if not hasattr(self, "ready"):
            return []
        return self.ints if type == I64 else self.strings

    def of(self, type, depth):
        return self.text(depth) if type == STR else self.int(depth)

    def literal(self):
        rnd = self.rnd
        v = rnd.choice((0, 1, 2, 3, 5, 7, 8, 10, 63, 64, 100, 127, 128, 255, 65535, (1 << 31) - 1, 1 << 31, 1 << 32,
                        (1 << 63) - 1, 1 << 63, rnd.getrandbits(32), rnd.getrandbits(64)))
        return literal(I64.keep(rnd.choice((v, v, -v))))

    def int(self, depth):
        rnd = self.rnd
        if depth <= 0:
            there = self.variables(I64)
            return rnd.choice(there).read() if there and rnd.random() < 0.5 else self.literal()

        def sub():
            return self.int(depth - 1)

        def text():
            return self.text(depth - 1)

        free = not self.inside and hasattr(self, "ready")
        kinds = [
            (5, lambda: binary(rnd.choice(("+", "-", "*", "&", "|", "^", "<<", ">>", ">>>")), sub(), sub())),
            (1, lambda: binary(rnd.choice("/%"), sub(), sub() if rnd.random() < 0.3 else binary("|", sub(), literal(1)))),
            (2, lambda: compare(rnd.choice(list(COMPARE)), sub(), sub())),
            (2, lambda: compare(rnd.choice(list(COMPARE)), text(), text())),
            (2, lambda: logic(rnd.choice(("&&", "||")), sub(), sub())),
            (2, lambda: choice(sub(), sub(), sub())),
            (2, lambda: unary(rnd.choice("!-~"), sub())),
            (2, lambda: call("strlen", I64, len, text())),
            (1, lambda: call("stringat", I64, self.byte_at, text(), literal(rnd.randint(-1, 6)))),
            (1, lambda: call("isinstr", I64, lambda s, part: int(part in s), text(), self.text(0))),
            (1, lambda: call("strpos", I64, lambda s, part: s.find(part), text(), self.text(0))),
            (1, lambda: call("strtol", I64, words.number, text(), literal(rnd.choice((10, 16, 8, 2, 36))))),
            (1, lambda: call("isdigit", I64, lambda s: int(s[:1] in tuple(b"%d" % k for k in range(10))), text())),
            (1, lambda: matches(rnd.choice(("=~", "!~")), text(), rnd.choice(PATTERNS))),
            (2, lambda: peeked(*self.peek(depth))),
            (1, lambda: self.called(I64, depth) or sub()),
        ]
        maps = [m for m in self.maps if m[1] == I64]
        if free and maps:
            kinds += [(2, lambda: self._keyed(*rnd.choice(maps), depth - 1).read())]
        if free and self.maps:
            kinds += [(1, lambda: self._keyed(*rnd.choice(self.maps), depth - 1).there())]
        if free and self.stats:
            kinds += [(2, lambda: self.extracted(depth))]
        if free:
            kinds += [
                (1, lambda: self.int_place(depth).assign(sub())),
                (1, lambda: self.int_place(depth).update(rnd.choice(("+", "-", "*", "&", "|", "^", "<<", ">>")), sub())),
                (1, lambda: self.int_place(depth).update(rnd.choice("/%"), binary("|", sub(), literal(1)))),
                (1, lambda: self.int_place(depth).step(rnd.choice(("++", "--")), rnd.random() < 0.5)),
            ]
        return rnd.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()

    @staticmethod
    def byte_at(s, k):
        if not 0 <= k < len(s):
            raise Error("Position out of bounds")
        return TYPES["i8"].keep(s[k])

    def extracted(self, depth):
        name, types = self.rnd.choice(self.stats)
        what = self.rnd.choice(("count", "sum", "count", "sum", "min", "max", "avg"))
        return extract(what, self._keyed(name, None, types, depth - 1))

    def int_place(self, depth):
        maps = [m for m in self.maps if m[1] == I64 and m[0] not in self.locked]
        if maps and self.rnd.random() < 0.4:
            return self._keyed(*self.rnd.choice(maps), depth - 1)
        return self.rnd.choice(self.ints)

    def string_place(self, depth):
        maps = [m for m in self.maps if m[1] == STR and m[0] not in self.locked]
        if maps and self.rnd.random() < 0.4:
            return self._keyed(*self.rnd.choice(maps), depth - 1)
        return self.rnd.choice(self.strings)

    def address(self, depth, bad=0.05):
        rnd, dice = self.rnd, self.rnd.random()
        if dice < bad:
            return literal(I64.keep(rnd.choice(ground.BAD)))
        if dice < 2 * bad:
            return literal(ground.EDGE - rnd.randint(1, 16))
        base = literal(ground.window(self.number) if dice < 0.8 else ground.READ_ONLY + rnd.randint(0, 64) * 8)
        return binary("+", base, literal(rnd.randint(0, 56)) if rnd.random() < 0.5 else binary("&", self.int(depth - 1), literal(31)))

    def peek(self, depth):
        name, t, careful = self.rnd.choice(PEEKS)
        return name, t, self.address(depth), careful

    def text(self, depth):
        rnd = self.rnd
        if depth <= 0:
            there = self.variables(STR)
            if there and rnd.random() < 0.5:
                return rnd.choice(there).read()
            n = rnd.choice((0, 1, 7, 8, 9, 15, 16, 17, 40)) if rnd.random() < 0.3 else rnd.randint(0, 6)
            return text_literal(rnd.choice(("0x1f", "-12", "", *ground.WORDS)) if rnd.random() < 0.3 else
                                "".join(rnd.choice(LETTERS) for _ in range(n)))

        def sub():
            return self.text(depth - 1)

        def num():
            return literal(rnd.randint(-2, 9)) if rnd.random() < 0.6 else self.int(depth - 1)

        def shown():
            e = self.of(rnd.choice((I64, STR)), depth - 1)
            return call("sprint", STR, lambda v: v if e.type == STR else str(v).encode(), e)

        free = not self.inside and hasattr(self, "ready")
        kinds = [
            (4, lambda: joined(sub(), sub())),
            (3, lambda: call("substr", STR, words.slice_of, sub(), num(), num())),
            (2, lambda: call("str_replace", STR, words.replace, sub(), self.text(0), self.text(0))),
            (2, shown),
            (2, lambda: sprintf([self.conversion(depth - 1) for _ in range(rnd.randint(1, 2))])),
            (3, lambda: string_at(self.address(depth))),
            (1, lambda: string_at(self.address(depth), num())),
            (1, lambda: string_at(self.address(depth, 0.2), instead=sub())),
            (2, lambda: choice(self.int(depth - 1), sub(), sub())),
            (1, lambda: self.called(STR, depth) or sub()),
        ]
        maps = [m for m in self.maps if m[1] == STR]
        if free and maps:
            kinds += [(2, lambda: self._keyed(*rnd.choice(maps), depth - 1).read())]
        if free:
            kinds += [(1, lambda: self.string_place(depth).assign(sub())),
                      (1, lambda: self.string_place(depth).update(".", sub()))]
        return rnd.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()

    def conversion(self, depth):
        rnd = self.rnd
        flags = "".join(sorted(set(rnd.choices("-+ #0", k=rnd.choice((0, 0, 1, 2))))))
        width = rnd.choice((None, None, 3, 8, 20, "*"))
        prec = rnd.choice((None, None, None, 1, 4, 12, "*"))
        letter = rnd.choice("dddiuxXocpsssss")
        if letter in "scp":
            flags = "-" if "-" in flags else ""
        if letter in "di":
            flags = flags.replace("#", "")
        if letter in "uoxX":
            flags = flags.replace("+", "").replace(" ", "")
        if letter in "u":
            flags = flags.replace("#", "")
        if letter in "cp":
            prec = None
        if rnd.random() < 0.5:
            flags, width, prec = "", None, None
        parts = [binary("&", self.int(depth - 1), literal(15)) for _ in range((width == "*") + (prec == "*"))]
        if letter == "c":
            return flags, width, None, "c", [*parts, binary("+", binary("&", self.int(depth - 1), literal(31)), literal(64))]
        return flags, width, prec, letter, [*parts, self.text(depth) if letter == "s" else self.int(depth)]

    # statements

    def statement(self, depth, loop=False):
        rnd = self.rnd
        kinds = [
            (6, lambda: Print(self.number, [piece for _ in range(rnd.randint(1, 4)) for piece in (self.conversion(depth), "|")])),
            (2, lambda: Values(self.number, rnd.choice(("print", "println", "printd", "printdln")), rnd.choice((":", "", "--")),
                               [self.of(rnd.choice((I64, STR)), depth) for _ in range(rnd.randint(1, 3))])),
            (4, lambda: Do(self.int_place(depth).assign(self.int(depth)))),
            (4, lambda: Do(self.string_place(depth).assign(self.text(depth)))),
            (2, lambda: Do(self.string_place(depth).update(".", self.text(depth)))),
            (2, lambda: Do(self.int_place(depth).step(rnd.choice(("++", "--")), rnd.random() < 0.5))),
            (1, lambda: Tokens(self.number, joined(text_literal("-"), self.text(depth)), rnd.choice(("/", "/.", "ab", " 1", ",")),
                               [rnd.choice(("/", "/.", "ab", "x")) for _ in range(rnd.randint(0, 3))])),
        ]
        free = [m for m in self.maps if m[0] not in self.locked]
        if free:
            kinds += [(1, lambda: Delete(self._keyed(*rnd.choice(free), depth - 1))),
                      (1, lambda: Delete(Place(rnd.choice(free)[0], None), whole=True))]
        if self.stats:
            kinds += [(4, lambda: self.take(depth))]
        if loop:
            kinds += [(1, lambda: Jump(self.int(1), rnd.choice(("break", "continue"))))]
        if depth > 0:
            kinds += [
                (2, lambda: If(self.int(depth - 1), self.some(depth, loop), self.some(depth, loop) if rnd.random() < 0.5 else [])),
                (1, lambda: For(self.counter(), rnd.randint(0, 4), self.some(depth, True), rnd.random() < 0.3)),
                (2, lambda: Try(self.number, [*self.some(depth, loop), *([Raise(self.text(1))] if rnd.random() < 0.3 else [])],
                                self.some(depth, loop)[:1])),
            ]
            if self.maps:
                kinds += [(2, lambda: self.foreach(depth))]
        return rnd.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()

    def some(self, depth, loop):
        return [self.statement(depth - 1, loop) for _ in range(self.rnd.randint(1, 3))]

    def counter(self):
        self.counters += 1
        return f"n{self.number}_{self.counters}"

    def take(self, depth):
        name, types = self.rnd.choice(self.stats)
        return Take(self._keyed(name, None, types, depth - 1), self.int(depth))

    def foreach(self, depth):
        rnd = self.rnd
        name, type, types = rnd.choice(self.maps)
        was, self.locked = self.locked, self.locked | {name}
        names = [self.counter() for _ in types]
        order = (rnd.randint(-1, len(types) - 1), rnd.choice("+-")) if rnd.random() < 0.6 else None
        limit = literal(rnd.randint(0, 4)) if rnd.random() < 0.3 and not order else None
        pieces = [piece for key, t in zip(names, types)
                  for piece in (("", None, None, "s" if t == STR else "d", [Place(key, t).read()]), ":")]
        statements = [Print(self.number, ["each ", *pieces]), *self.some(depth, True)]
        self.locked = was
        return Foreach(Place(name, type, [None] * len(types), lambda texts: self._permuted(name, texts)), names, order, limit,
                       statements)

    def last(self):
        """Everything that there is, so that nothing is dead."""
        def piece(e):
            return "", None, None, "s" if e.type == STR else "d", [e]

        yield Print(self.number, ["vars "] + [one for p in (*self.ints, *self.strings) for one in (piece(p.read()), "|")])
        for name, type, types in self.maps:
            names = [f"a{name}_{k}" for k in range(len(types))]
            keys = [Place(key, t).read() for key, t in zip(names, types)]
            value = Place(name, type, keys, lambda texts, name=name: self._permuted(name, texts)).read()
            pieces = [f"{name} "] + [one for e in (*keys, value) for one in (piece(e), ":")]
            yield Foreach(Place(name, type, keys, lambda texts, name=name: self._permuted(name, texts)), names, None, None,
                          [Print(self.number, pieces)])
        for name, types in self.stats:
            names = [f"a{name}_{k}" for k in range(len(types))]
            keys = [Place(key, t).read() for key, t in zip(names, types)]
            place = Place(name, None, keys, lambda texts, name=name: self._permuted(name, texts))
            shown = Print(self.number, [f"{name} "] + [one for e in (*keys, extract("count", place), extract("sum", place))
                                                       for one in (piece(e), ":")])
            yield Foreach(place, names, None, None, [shown]) if types else shown

    def parts(self):
        yield self.clauses
        for statements in self.clauses:
            yield from self._lists(statements)

    def _lists(self, statements):
        yield statements
        for s in statements:
            for lst in (getattr(s, "yes", None), getattr(s, "no", None), getattr(s, "caught", None)):
                if lst:
                    yield from self._lists(lst)

    def write(self, language):
        w = Writer(language, self.form, self.number)
        functions = [f.write(w) for f in self.functions]
        split = self.form.split and not self.faulted
        shared = {p.name for p in (*self.ints, *self.strings)} if split else self.globals
        made = "".join(f"global {name}\n" for name in sorted(shared))
        made += "".join(f"global {name}\n" for name, *_ in (*self.maps, *self.stats)) + "".join(functions)
        first = "".join(s.write(w) for s in self.first)
        trials = [Try(self.number, statements, []) for statements in self.clauses]
        last = "".join(s.write(w) for s in self.last())
        if not split:
            return made + f"probe {POINT}\n{{\n{OWN}\n{first}{''.join(t.write(w) for t in trials)}{last}}}\n"
        pieces = [first, *[s.write(w) for t in trials for s in t.yes], last]
        return made + "".join(f"probe {POINT}\n{{\n{OWN}\n{piece}}}\n" for piece in pieces if piece)

    def run(self, state):
        for s in self.first:
            s.run(state)
        for statements in self.clauses:
            try:
                for s in statements:
                    s.run(state)
            except Error as error:
                self.faulted = True
                state.out.append(f"@{self.number} ! ".encode() + state.cut(error.text.encode("latin1")) + b"\n")
        for s in self.last():
            s.run(state)


class Script:
    def __init__(self, cases, memory, strsize, firings, forms, permute):
        self.cases, self.memory, self.strsize, self.firings = cases, memory, strsize, firings
        self.language = Stp()
        for case, form in zip(cases, forms):
            case.form, case.keys, case.faulted = form, {}, False
            if form.permute:
                form.permute = permute
        self._run()
        texts = [case.write(self.language) for case in cases]
        self.text = "\n".join([*self.language.globals, *texts])

    def _run(self):
        state = State(self.memory.copy(), self.strsize)
        for _ in range(self.firings):
            for case in self.cases:
                case.run(state)
        return state

    def expected(self):
        return b"".join(self._run().out).split(b"\n"), []
