"""
Random D: cases, each a few clauses on one probe with variables, arrays and aggregations of their own, and what they print.

A case is text and model at once (tree.py).  What a script prints is: of each firing the lines of its cases in their order,
a fault as the line "!CLAUSE KIND VALUE" of an ERROR clause, and at the end the aggregations' rows, which begin with "=".
"""
import itertools

import ground
import words
from ground import BADADDR, DIVZERO, Fault
from numbers_of_c import I8, I32, I64, U32, U64, TYPES, arith, integer, pad, promote, quotient, remainder, wider
from tree import STR, Expr, Form, Writer

ENTRY = "python$target:::function-entry"
OWN = "0x6f72707a == *(uint32_t *)copyin(arg1, 4)"      # "zpro": a string may be cut before that
LETTERS = "ab`AB/.x_0 19-"
STRSIZES = (2, 3, 8, 13, 16, 31, 32, 64, 256, 256, 256)


class State:
    """What a script has while it runs."""

    def __init__(self, memory, strsize):
        self.memory, self.strsize = memory.copy(), strsize
        self.vars, self.maps, self.aggs = {}, {}, {}
        self.token = b""
        self.out, self.record = [], []

    def show(self, line):
        self.record.append(line)

    def flush(self):
        """The record is written: at the end of a clause, around an if and at the ends of its branches."""
        self.out += self.record
        self.record = []

    def cut(self, s):
        return s[:self.strsize - 1]



# --- the language as tree.py needs it -------------------------------------------------------------------

class D:
    """Declarations that the forms of a case add."""

    def __init__(self):
        self.declared, self.constants = [], []

    def declare(self, case, name, type):
        self.declared.append(f"this {type if type == STR else type.d} {name};")
        return f"this->{name}"

    def assign(self, name, text):
        return f"{name} = {text};"

    def constant(self, case, e):
        name = f"k{case}_{len(self.constants)}"
        self.declared.append(f"{e.type if e.type == STR else e.type.d} {name};")
        self.constants.append(f"{name} = {e.make()};")
        return name


# --- expressions ----------------------------------------------------------------------------------------

def number(v, t=I32):
    """A literal of type @t, which has at least 32 bits."""
    suffix = {I32: "", U32: "U", I64: "LL", U64: "ULL"}[t]
    if v == -(1 << (t.bits - 1)) and t.sign:
        text = f"(-{-v - 1}{suffix} - 1)"
    else:
        text = f"({v}{suffix})" if v < 0 else f"{v}{suffix}"
    return Expr(t, lambda: text, lambda state: v, literal=True)


def quoted(s):
    return '"' + "".join({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}.get(c, c) for c in s) + '"'


def text_literal(s):
    return Expr(STR, lambda: quoted(s), lambda state: state.cut(s.encode()), literal=True)


BINARY = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}
COMPARE = {"==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
           ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}


def compute(op, t, a, b):
    """@a and @b are of type @t, but the count of a shift."""
    if op in ("/", "%"):
        if not b:
            raise Fault(DIVZERO)
        return t.keep((quotient if op == "/" else remainder)(a, b))
    if op == "<<":
        return t.keep(a << (b & 63))
    if op == ">>":
        return t.keep(a >> (b & 63))
    return t.keep(BINARY[op](a, b))


def of_constants(e):
    """@e, an operator's: of constants it is one."""
    e.constant = all(kid.constant and kid.type != STR for kid in e.kids)
    return e


def binary(op, a, b):
    t = promote(a.type) if op in ("<<", ">>") else wider(a.type, b.type)

    def fn(state, x, y):
        return compute(op, t, t.keep(x), y if op in ("<<", ">>") else t.keep(y))

    return of_constants(Expr(t, lambda x, y: f"({x} {op} {y})", fn, (a, b)))


def compare(op, a, b):
    if a.type == STR:
        return Expr(I32, lambda x, y: f"({x} {op} {y})", lambda state, x, y: int(COMPARE[op](x, y)), (a, b))
    t = arith(a.type, b.type)
    return of_constants(Expr(I32, lambda x, y: f"({x} {op} {y})", lambda state, x, y: int(COMPARE[op](t.keep(x), t.keep(y))), (a, b)))


def logic(op, a, b):
    def fn(state, x, y):
        if op == "&&":
            return int(bool(x()) and bool(y()))
        if op == "||":
            return int(bool(x()) or bool(y()))
        first = bool(x())
        return int(first != bool(y()))

    return of_constants(Expr(I32, lambda x, y: f"({x} {op} {y})", fn, (a, b), lazy=True))


def choice(cond, a, b):
    t = a.type if a.type == b.type else wider(a.type, b.type)

    def fn(state, c, x, y):
        v = x() if c() else y()
        return v if t == STR else t.keep(v)

    return of_constants(Expr(t, lambda c, x, y: f"({c} ? {x} : {y})", fn, (cond, a, b), lazy=True))


def known(a):
    """The string @a, which may be NULL: to read that is a fault, to compare it is none.  @a changes nothing."""
    return choice(compare("==", a, text_literal("")), text_literal(""), a)


def cast(t, a):
    return of_constants(Expr(t, lambda x: f"(({t.d}){x})", lambda state, x: t.keep(x), (a,)))


def unary(op, a):
    t = I32 if op == "!" else promote(a.type)
    fn = {"!": lambda v: int(not v), "-": lambda v: -v, "~": lambda v: ~v, "+": lambda v: v}[op]
    return of_constants(Expr(t, lambda x: f"({op} {x})", lambda state, x: t.keep(fn(x)), (a,)))


# --- variables ------------------------------------------------------------------------------------------

class Place:
    """A variable or an element: what can be assigned to."""

    def __init__(self, text, name, type, keys=(), permute=None):
        self.text, self.name, self.type, self.keys = text, name, type, list(keys)
        self.permute = permute or (lambda texts: texts)

    def make(self, *keys):
        return f"{self.text}[{', '.join(self.permute(list(keys)))}]" if self.keys else self.text

    def _keep(self, t, state, v):
        return state.cut(v) if t == STR else t.keep(v)

    def _at(self, state, keys):
        if not self.keys:
            return state.vars, self.name
        return state.maps.setdefault(self.name, {}), tuple(self._keep(t, state, v) for t, v in zip(self.types, keys))

    def get(self, state, keys):
        where, at = self._at(state, keys)
        return where.get(at, b"" if self.type == STR else 0)

    def put(self, state, keys, v):
        where, at = self._at(state, keys)
        where[at] = self._keep(self.type, state, v)
        return where[at]

    def read(self):
        return Expr(self.type, lambda *keys: self.make(*keys), lambda state, *keys: self.get(state, keys), self.keys)

    def assign(self, e):
        return Expr(self.type, lambda *parts: f"({self.make(*parts[:-1])} = {parts[-1]})",
                    lambda state, *parts: self.put(state, parts[:-1], parts[-1]), (*self.keys, e), pure=False)

    def update(self, op, e):
        """+= and its like."""
        t = promote(self.type) if op in ("<<", ">>") else wider(self.type, e.type)

        def fn(state, *parts):
            old = t.keep(self.get(state, parts[:-1]))
            new = parts[-1] if op in ("<<", ">>") else t.keep(parts[-1])
            return self.put(state, parts[:-1], compute(op, t, old, new))

        return Expr(self.type, lambda *parts: f"({self.make(*parts[:-1])} {op}= {parts[-1]})", fn, (*self.keys, e), pure=False)

    def step(self, op, behind):
        def fn(state, *keys):
            old = self.get(state, keys)
            new = self.put(state, keys, old + (1 if op == "++" else -1))
            return old if behind else new

        return Expr(self.type, lambda *keys: f"({self.make(*keys)}{op})" if behind else f"({op}{self.make(*keys)})", fn,
                    self.keys, pure=False)


# --- calls ----------------------------------------------------------------------------------------------

def call(name, type, fn, *kids, more=""):
    """@fn of the values; a string is cut."""
    def value(state, *values):
        v = fn(*values)
        return state.cut(v) if type == STR else type.keep(v)

    return Expr(type, lambda *parts: f"{name}({', '.join(parts)}{more})", value, kids)


def as_int(fn, *at):
    """@fn with the arguments at those places made ints."""
    return lambda *values: fn(*[I32.keep(v) if k in at else v for k, v in enumerate(values)])


def pointed(t, address, size, n):
    """*(T *)copyin(address, n), n not less than T's size."""
    def fn(state, at, many):
        raw = state.memory.read(at % (1 << 64), many % (1 << 64))
        return t.keep(int.from_bytes(raw[:t.bits // 8], "little"))

    return Expr(t, lambda a, m: f"(*({t.d} *)copyin({a}, {m}))", fn, (address, n))


def copied_string(address, size=None):
    def fn(state, at, many=None):
        limit = state.strsize if many is None else min(many % (1 << 64), state.strsize)
        return state.memory.string(at % (1 << 64), limit)

    return Expr(STR, lambda *parts: f"copyinstr({', '.join(parts)})", fn, (address,) if size is None else (address, size))


# --- statements -----------------------------------------------------------------------------------------

class Print:
    """printf() of @pieces: literal text, or (flags, width, precision, size, letter, expressions)."""

    def __init__(self, case, pieces):
        self.case, self.pieces = case, pieces

    def write(self, w):
        fmt, args = f"@{self.case} ", []
        for piece in self.pieces:
            if isinstance(piece, str):
                fmt += piece
                continue
            flags, width, prec, size, letter, parts = piece
            fmt += f"%{flags}{'' if width is None else width}{'' if prec is None else f'.{prec}'}{size}{letter}"
            args += [w.expr(part) for part in parts]
        return w.statement(f"printf({', '.join([quoted(fmt) [:-1] + chr(92) + 'n' + chr(34), *args])});")

    def run(self, state):
        made = f"@{self.case} ".encode()
        values = [None if isinstance(piece, str) else [part.value(state) for part in piece[5]] for piece in self.pieces]
        for piece, parts in zip(self.pieces, values):
            made += piece.encode() if isinstance(piece, str) else self._field(piece, parts)
        state.show(made)

    def _field(self, piece, parts):
        flags, width, prec, size, letter, exprs = piece
        if "-" in flags and "0" in flags:       # the later one counts
            flags = flags.replace("-" if flags.rindex("0") > flags.rindex("-") else "0", "")
        parts, types = list(parts), [e.type for e in exprs]
        if width == "*":
            width = I32.keep(parts.pop(0))
            types.pop(0)
            if width < 0:
                flags, width = flags + "-", -width
        if prec == "*":
            prec = I32.keep(parts.pop(0))
            types.pop(0)
            prec = None if prec < 0 else prec
        width = width or 0
        prec = prec or None             # none of zero: see out/dialect.h
        v, t = parts[0], types[0]
        if letter == "s":
            return pad(v if prec is None else v[:prec], flags, width)
        if letter == "c":
            return pad(bytes([v & 255]), flags, width)
        bits = {"": t.bits, "hh": 8, "h": 16, "l": 64, "ll": 64}[size]
        if letter in "di":
            sign = bool(size) or t.sign
            v = (type(t)(bits, True) if size else t).keep(v)
        else:
            sign = False
            v = type(t)(t.bits if letter == "p" else bits, False).keep(v)
        return integer(letter, flags, width, prec, v, sign)


class Do:
    """An expression for what it does."""

    def __init__(self, e):
        self.e = e

    def write(self, w):
        text = w.expr(self.e)
        return w.statement("" if w.form.named else text + ";")

    def run(self, state):
        self.e.value(state)


class If:
    def __init__(self, cond, yes, no):
        self.cond, self.yes, self.no = cond, yes, no

    def write(self, w):
        made = w.statement(f"if ({w.expr(self.cond, named=False)}) {{") + "".join(s.write(w) for s in self.yes)
        if self.no:
            made += "} else {\n" + "".join(s.write(w) for s in self.no)
        return made + "}\n"

    def run(self, state):
        state.flush()
        for s in self.yes if self.cond.value(state) else self.no:
            s.run(state)
        state.flush()


class Write:
    """copyout() and copyoutstr(): @what is a string, or an integer of a type by way of alloca()."""

    def __init__(self, address, what, size, name):
        self.address, self.what, self.size, self.name = address, what, size, name

    def write(self, w):
        if self.what.type == STR:
            what, address = w.expr(self.what), w.expr(self.address)
            return w.statement(f"copyoutstr({what}, {address}, {w.expr(self.size)});")
        t, what = self.what.type, w.expr(self.what)
        made = w.statement(f"{self.name} = ({t.d} *)alloca(16);\n*({t.d} *){self.name} = {what};")
        address = w.expr(self.address)
        return made + w.statement(f"copyout({self.name}, {address}, {w.expr(self.size)});")

    def run(self, state):
        v = self.what.value(state)
        raw = v + b"\0" if self.what.type == STR else (v % (1 << 64)).to_bytes(8, "little")[:self.what.type.bits // 8].ljust(16, b"\0")
        at = self.address.value(state) % (1 << 64)
        state.memory.write(at, raw[:self.size.value(state)])


def writing(what, address, size, e):
    """@e, after copyoutstr(): a write amid an expression, whose other parts may read the same bytes before it and after it."""
    def fn(state, text, at, n, value):
        text, at, n = text(), at(), n()
        state.memory.write(at % (1 << 64), (text + b"\0")[:n])
        return value()

    return Expr(e.type, lambda text, at, n, value: f"(copyoutstr({text}, {at}, {n}), {value})", fn, (what, address, size, e), lazy=True, pure=False)


class Block:
    """Memory of the clause's own, written and read: @steps are (offset, type, expression) and offsets that are shown."""

    def __init__(self, case, name, steps, source, shown):
        self.case, self.name, self.steps, self.source, self.shown = case, name, steps, source, shown

    def write(self, w):
        if self.source:
            made = w.statement(f"{self.name} = (char *)copyin({w.expr(self.source)}, 32);")
        else:
            made = w.statement(f"{self.name} = (char *)alloca(32);")
        for off, t, e in self.steps:
            made += w.statement(f"*({t.d} *)({self.name} + {off}) = {w.expr(e)};")
        values = "".join(f", *({t.d} *)({self.name} + {off})" for off, t in self.shown)
        made += w.statement(f'printf("@{self.case} {" ".join(["%d"] * len(self.shown))} %s\\n"{values}, '
                            f'stringof({self.name} + 24));')
        return made

    def run(self, state):
        if self.source:
            raw = bytearray(state.memory.read(self.source.value(state) % (1 << 64), 32))
        else:
            raw = bytearray(32)
        for off, t, e in self.steps:
            raw[off:off + t.bits // 8] = (e.value(state) % (1 << 64)).to_bytes(8, "little")[:t.bits // 8]
        values = " ".join(str(t.keep(int.from_bytes(raw[off:off + t.bits // 8], "little"))) for off, t in self.shown)
        text = bytes(raw[24:31])
        state.show(f"@{self.case} {values} ".encode() + state.cut(text.split(b"\0")[0]))


class Tokens:
    def __init__(self, case, s, ends, more):
        self.case, self.s, self.ends, self.more = case, s, ends, more

    def write(self, w):
        made = w.statement(f'printf("@{self.case} <%s>\\n", strtok({w.expr(self.s)}, {quoted(self.ends)}));')
        for ends in self.more:
            made += f'printf("@{self.case} <%s>\\n", strtok(NULL, {quoted(ends)}));\n'
        return made

    def run(self, state):
        rest = self.s.value(state)
        for ends in (self.ends, *self.more):
            one, rest = words.token(rest, state.cut(ends.encode()))
            if not one:
                raise Fault(BADADDR, 0)
            state.show(f"@{self.case} <".encode() + one + b">")


class Aggregate:
    def __init__(self, place, function, e):
        self.place, self.function, self.e = place, function, e

    def write(self, w):
        keys = [w.expr(key) for key in self.place.keys]
        value = w.expr(self.e) if self.e else ""
        return w.statement(f"{self.place.make(*keys)} = {self.function}({value});")

    def run(self, state):
        _, at = self.place._at(state, [key.value(state) for key in self.place.keys])
        value = self.e.value(state) if self.e else 1
        state.aggs.setdefault(self.place.name, {}).setdefault(at, []).append(I64.keep(value))


AGGREGATES = {
    "count": lambda values: len(values),
    "sum": lambda values: I64.keep(sum(values)),
    "min": min,
    "max": max,
    "avg": lambda values: quotient(I64.keep(sum(values)), len(values)),
}


# --- cases ----------------------------------------------------------------------------------------------

class Clause:
    def __init__(self, predicate, statements):
        self.predicate, self.statements = predicate, statements
        self.number = None

    def run(self, state):
        try:
            if self.predicate and not self.predicate.value(state):
                return
            for s in self.statements:
                s.run(state)
            state.flush()
        except Fault as fault:
            state.faulted, state.record = True, []
            state.out.append(f"!{self.number} {fault.kind} {fault.value % (1 << 64):x}".encode())


class Case:
    """One program: made of @rnd; @writes: it may change the traced program's memory."""

    SCALARS = list(TYPES.values())

    def __init__(self, rnd, number, writes):
        self.rnd, self.number, self.writes = rnd, number, writes
        self.aggs, self.maps = [], []
        self.keys = {}                  # of arrays and aggregations: how their keys are permuted
        self.form = Form()
        self.ints = [self._scalar(k, t) for k, t in enumerate(rnd.choices(self.SCALARS, k=rnd.randint(2, 4)))]
        self.strings = [self._scalar(k + 10, STR) for k in range(rnd.randint(1, 3))]
        for k in range(rnd.randint(0, 2)):
            self.maps.append(self._array(k))
        for k in range(rnd.randint(0, 2)):
            self.aggs.append((f"@a{number}_{k}", rnd.choice(list(AGGREGATES)), self._key_types()))
        self.clauses = [Clause(None, [Do(v.assign(self.int(0) if v.type != STR else self.text(0)))
                                      for v in (*self.ints, *self.strings)])]
        for _ in range(rnd.randint(1, 3)):
            predicate = self.int(2, pure=True) if rnd.random() < 0.3 else None
            self.clauses.append(Clause(predicate, [self.statement(2) for _ in range(rnd.randint(1, 5))]))

    # variables

    def _scalar(self, k, type):
        scope = self.rnd.choice(("", "this->", "this->", "self->"))
        name = f"v{self.number}_{k}"
        return Place(scope + name, name, type)

    def _key_types(self):
        return [self.rnd.choice((STR, *self.SCALARS)) for _ in range(self.rnd.randint(1, 3))]

    def _array(self, k):
        scope = self.rnd.choice(("", "", "self->"))
        return scope, f"m{self.number}_{k}", self.rnd.choice((STR, *self.SCALARS)), self._key_types()

    def _permuted(self, name, texts):
        if not self.form.permute:
            return texts
        return [texts[k] for k in self._order(name, len(texts))]

    def _order(self, name, n):
        if name not in self.keys:
            self.keys[name] = self.form.permute.sample(range(n), n)
        return self.keys[name]

    def _keyed(self, text, name, type, types, depth, pure):
        keys = [self.of(t, depth, pure) for t in types]
        place = Place(text, name, type, keys, lambda texts: self._permuted(name, texts))
        place.types = types
        return place

    def element(self, map, depth, pure=False):
        scope, name, type, types = map
        return self._keyed(scope + name, name, type, types, depth, pure)

    # expressions

    def of(self, type, depth, pure=False):
        if type == STR:
            return self.text(depth, pure)
        if self.rnd.random() < 0.6:     # few values, so that they meet
            return number(self.rnd.randint(0, 3))
        return self.int(depth, pure)

    def literal(self):
        t = self.rnd.choice((I32, I32, I32, U32, I64, U64))
        edge = self.rnd.choice((0, 1, 2, 3, 5, 7, 8, 10, 31, 63, 64, 100, 127, 128, 255, 256, 32767, 65535,
                                (1 << (t.bits - 1)) - 1, 1 << (t.bits - 1), (1 << t.bits) - 1, self.rnd.getrandbits(t.bits)))
        return number(t.keep(self.rnd.choice((edge, edge, -edge))), t)

    def int(self, depth, pure=False):
        rnd = self.rnd
        if depth <= 0:
            return self.literal() if not hasattr(self, "clauses") or rnd.random() < 0.5 else rnd.choice(self.ints).read()

        def sub(less=1):
            return self.int(depth - less, pure)

        def divided():
            op = rnd.choice("/%")
            by = sub()
            if by.constant and not by.value(None):
                by = rnd.choice(self.ints).read()
            return binary(op, sub(), by if rnd.random() < 0.3 else binary("|", by, number(1)))

        def shifted():
            what = sub()
            return binary(rnd.choice(("<<", ">>")), rnd.choice(self.ints).read() if what.constant else what,
                          binary("&", sub(), number(promote(what.type).bits - 1)))

        kinds = [
            (4, lambda: binary(rnd.choice("+-*&|^"), sub(), sub())),
            (1, divided),
            (1, shifted),
            (2, lambda: compare(rnd.choice(list(COMPARE)), sub(), sub())),
            (2, lambda: compare(rnd.choice(list(COMPARE)), self.text(depth - 1, pure), self.text(depth - 1, pure))),
            (2, lambda: logic(rnd.choice(("&&", "||", "^^")), sub(), sub())),
            (2, lambda: choice(sub(), sub(), sub())),
            (2, lambda: cast(rnd.choice(self.SCALARS), sub())),
            (2, lambda: unary(rnd.choice("!-~+"), sub())),
            (2, lambda: call("strlen", U64, words.length, self.text(depth - 1, pure))),
            (1, lambda: call("index", I32, as_int(words.index, 2), self.text(depth - 1, pure), self.text(depth - 1, pure), sub())),
            (1, lambda: call("index", I32, words.index, self.text(depth - 1, pure), self.text(0))),
            (1, lambda: call("rindex", I32, as_int(words.rindex, 2), self.text(depth - 1, pure), self.text(0), sub())),
            (1, lambda: call("rindex", I32, lambda s, part: s.rfind(part), self.text(depth - 1, pure), self.text(0))),
            (1, self.strtoll(depth, pure)),
            (2, lambda: self.memory(depth, pure)),
        ]
        if self.maps:
            kinds += [(2, lambda: self.int_element(depth, pure).read())]
        if not pure:
            kinds += [
                (1, lambda: self.int_place(depth).assign(sub())),
                (1, lambda: self.int_place(depth).update(rnd.choice("+-*&|^"), sub())),
                (1, lambda: self.int_place(depth).update(rnd.choice(("<<", ">>")), binary("&", sub(), number(31)))),
                (1, lambda: self.int_place(depth).update(rnd.choice("/%"), binary("|", sub(), number(1)))),
                (1, lambda: self.int_place(depth).step(rnd.choice(("++", "--")), rnd.random() < 0.5)),
            ]
            if self.writes:
                at = number(ground.window(self.number) + rnd.randint(0, 56), U64)
                kinds += [(3, lambda: writing(self.text(depth - 1), at, number(rnd.choice((1, 2, 8)), U64), sub()))]
        return rnd.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()

    def strtoll(self, depth, pure):
        base = self.rnd.choice((None, 10, 16, 8, 2, 36))
        return lambda: call("strtoll", I64, lambda s: words.number(s, base or 10), self.text(depth - 1, pure),
                            more="" if base is None else f", {base}")

    def int_element(self, depth, pure=False):
        maps = [m for m in self.maps if m[2] != STR]
        return self.element(self.rnd.choice(maps), depth - 1, pure) if maps else self.rnd.choice(self.ints)

    def int_place(self, depth):
        return self.int_element(depth) if self.rnd.random() < 0.4 else self.rnd.choice(self.ints)

    def string_place(self, depth):
        maps = [m for m in self.maps if m[2] == STR]
        if maps and self.rnd.random() < 0.4:
            return self.element(self.rnd.choice(maps), depth - 1)
        return self.rnd.choice(self.strings)

    def address(self, depth, pure, room, bad=0.02):
        """Of the case's own window, of shared memory that is only read, or bad."""
        rnd, dice = self.rnd, self.rnd.random()
        if dice < bad:
            return number(rnd.choice(ground.BAD), U64)
        if dice < 2 * bad:              # near the end of what is there
            return number(ground.EDGE - rnd.randint(1, 16), U64)
        base = number(ground.window(self.number), U64) if dice < 0.8 else number(ground.READ_ONLY + rnd.randint(0, 64) * 8, U64)
        limit = (1 << ((64 - room).bit_length() - 1)) - 1
        if rnd.random() < 0.5 or limit <= 0:
            return binary("+", base, number(rnd.randint(0, max(64 - room, 0)), U64))
        return binary("+", base, binary("&", self.int(depth - 1, pure), number(limit)))

    def memory(self, depth, pure):
        t = self.rnd.choice(self.SCALARS)
        n = t.bits // 8 + self.rnd.choice((0, 0, 0, 1, 8))
        return pointed(t, self.address(depth, pure, n), t.bits // 8, number(n, U64))

    def text(self, depth, pure=False):
        rnd = self.rnd
        if depth <= 0:
            if hasattr(self, "clauses") and rnd.random() < 0.5:
                string = rnd.choice(self.strings)
                return known(string.read()) if string.text.startswith("self->") else string.read()
            n = rnd.choice((0, 1, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 40)) if rnd.random() < 0.5 else rnd.randint(0, 6)
            return text_literal(rnd.choice(("0x1f", "-12", "", *ground.WORDS)) if rnd.random() < 0.3 else
                                "".join(rnd.choice(LETTERS) for _ in range(n)))

        def sub():
            return self.text(depth - 1, pure)

        def num():
            return number(rnd.randint(-4, 9)) if rnd.random() < 0.6 else self.int(depth - 1, pure)

        byte = lambda: number(ord(rnd.choice(LETTERS)))     # noqa: E731
        kinds = [
            (4, lambda: call("strjoin", STR, lambda a, b: a + b, sub(), sub())),
            (2, lambda: self.rest_of(sub(), num())),
            (2, lambda: call("substr", STR, as_int(words.substr, 1, 2), sub(), num(), num())),
            (1, lambda: known(call("strchr", STR, lambda s, c: words.strchr(s, c & 255), self.text(depth - 1, True), byte()))),
            (1, lambda: known(call("strrchr", STR, lambda s, c: words.strrchr(s, c & 255), self.text(depth - 1, True), byte()))),
            (1, lambda: known(call("strstr", STR, words.strstr, self.text(depth - 1, True), self.text(0)))),
            (1, lambda: call("basename", STR, words.basename, sub())),
            (1, lambda: call("dirname", STR, words.dirname, sub())),
            (1, lambda: call("toupper", STR, words.upper, sub())),
            (1, lambda: call("tolower", STR, words.lower, sub())),
            (1, lambda: call("lltostr", STR, lambda v: words.lltostr(I64.keep(v), 10), num())),
            (1, self.lltostr(num)),
            (4, lambda: copied_string(self.address(depth, pure, 8))),
            (1, lambda: copied_string(self.address(depth, pure, 8), number(rnd.choice((1, 2, 5, 8, 9, 300)), U64))),
            (2, lambda: choice(self.int(depth - 1, pure), sub(), sub())),
        ]
        if any(m[2] == STR for m in self.maps):
            kinds += [(2, lambda: known(self.element(rnd.choice([m for m in self.maps if m[2] == STR]), depth - 1, True).read()))]
        if not pure:
            kinds += [(1, lambda: self.string_place(depth).assign(sub()))]
        return rnd.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()

    @staticmethod
    def rest_of(s, first):
        """substr() without a count: as with one of strsize, which illumos takes."""
        def fn(state, text, at):
            return state.cut(words.substr(text, I32.keep(at), state.strsize))

        return Expr(STR, lambda a, b: f"substr({a}, {b})", fn, (s, first))

    def lltostr(self, num):
        base = self.rnd.choice((2, 8, 10, 16, 36))
        return lambda: call("lltostr", STR, lambda v: words.lltostr(I64.keep(v), base), num(), more=f", {base}")

    # statements

    def conversion(self, depth):
        rnd = self.rnd
        flags = "".join(sorted(set(rnd.choices("-+ #0", k=rnd.choice((0, 0, 1, 2))))))
        width = rnd.choice((None, None, 0, 3, 8, 20, "*"))
        prec = rnd.choice((None, None, None, 1, 4, 12, "*"))
        if rnd.random() < 0.5:
            flags, width, prec = "", None, None
        if width == 0:
            width = None
        parts = [cast(I32, binary("&", self.int(depth - 1), number(15))) for _ in range((width == "*") + (prec == "*"))]
        letter = rnd.choice("dddiuxXocsssss")
        if letter == "s":
            return flags.replace("#", "").replace("0", "").replace("+", "").replace(" ", ""), width, prec, "", "s", \
                [*parts, self.text(depth)]
        if letter == "c":
            parts = parts[:width == "*"]
            return flags.replace("#", "").replace("0", "").replace("+", "").replace(" ", ""), width, None, "", "c", \
                [*parts, binary("+", binary("&", self.int(depth - 1), number(31)), number(64))]
        size = rnd.choice(("", "", "", "hh", "h", "l", "ll"))
        if letter in "di":
            flags = flags.replace("#", "")
        if letter in "uoxX":
            flags = flags.replace("+", "").replace(" ", "")
        return flags, width, prec, size, letter, [*parts, self.int(depth)]

    def statement(self, depth):
        rnd = self.rnd
        kinds = [
            (8, lambda: Print(self.number, [piece for _ in range(rnd.randint(1, 4)) for piece in (self.conversion(depth), "|")])),
            (4, lambda: Do(self.int_place(depth).assign(self.int(depth)))),
            (4, lambda: Do(self.string_place(depth).assign(self.text(depth)))),
            (2, lambda: Do(self.int_place(depth).update(rnd.choice("+-*&|^"), self.int(depth)))),
            (1, lambda: Do(self.int_place(depth).step(rnd.choice(("++", "--")), rnd.random() < 0.5))),
            (1, lambda: Tokens(self.number, self.text(depth), rnd.choice(("/", "/.", "ab", " 1", "`")),
                               [rnd.choice(("/", "/.", "ab", "x", "`")) for _ in range(rnd.randint(0, 3))])),
            (1, lambda: self.block(depth)),
        ]
        if depth > 0:
            kinds += [(2, lambda: If(self.int(depth - 1), [self.statement(depth - 1) for _ in range(rnd.randint(1, 3))],
                                     [self.statement(depth - 1) for _ in range(rnd.randint(0, 2))]))]
        if self.aggs:
            kinds += [(3, lambda: self.aggregate(depth))]
        if self.writes:
            kinds += [(5, lambda: self.poke(depth))]
        return rnd.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()

    def aggregate(self, depth):
        name, function, types = self.rnd.choice(self.aggs)
        place = self._keyed(name, name, None, types, depth - 1, False)
        place.keys = [key if t == STR else cast(t, key) for t, key in zip(types, place.keys)]
        return Aggregate(place, function, None if function == "count" else cast(I64, self.int(depth)))

    def poke(self, depth):
        rnd = self.rnd
        name = f"this->p{self.number}"
        if rnd.random() < 0.6:
            n = rnd.choice((1, 2, 8))
            return Write(self.address(depth, False, n), self.text(depth), number(n, U64), name)
        t = rnd.choice(self.SCALARS)
        n = rnd.choice((1, t.bits // 8))
        return Write(self.address(depth, False, n), cast(t, self.int(depth)), number(n, U64), name)

    def block(self, depth):
        rnd = self.rnd

        def at():
            t = rnd.choice(self.SCALARS)
            return rnd.randrange(0, 32, t.bits // 8), t

        steps = [(*at(), self.int(depth - 1)) for _ in range(rnd.randint(1, 4))] + [(31, I8, number(0))]
        source = self.address(depth, False, 32) if rnd.random() < 0.4 else None
        return Block(self.number, f"this->b{self.number}", steps, source, [at() for _ in range(rnd.randint(1, 3))])

    def parts(self):
        """Lists of which a part may be left out."""
        yield self.clauses
        for clause in self.clauses:
            yield from self._lists(clause.statements)

    def _lists(self, statements):
        yield statements
        for s in statements:
            for lst in (getattr(s, "yes", None), getattr(s, "no", None)):
                if lst:
                    yield from self._lists(lst)

    # text

    def declarations(self):
        made = []
        for v in (*self.ints, *self.strings):
            scope = v.text[:-len(v.name)].replace("->", " ")
            made.append(f"{scope}{v.type if v.type == STR else v.type.d} {v.name};")
        for scope, name, type, types in self.maps:
            keys = self._permuted(name, [t if t == STR else t.d for t in types])
            made.append(f"{scope.replace('->', ' ')}{type if type == STR else type.d} {name}[{', '.join(keys)}];")
        made.append(f"this char *b{self.number};")
        made.append(f"this void *p{self.number};")
        return made

    def clause_texts(self, w, faulted):
        """(the clause it is of, its text) of each clause that there is in the form."""
        for clause in self.clauses:
            predicate = ""
            if clause.predicate:
                predicate = f"/{w.expr(clause.predicate, named=False)}/"
            if not self.form.split or faulted or len(clause.statements) < 2:
                yield clause, f"{ENTRY}\n/{self.own(predicate)}/\n{{\n{''.join(s.write(w) for s in clause.statements)}}}\n"
                continue
            ok = f"this->ok{self.number}"
            yield clause, f"{ENTRY}\n/{self.own('')}/\n{{\n{ok} = {'(' + predicate[1:-1] + ') != 0' if predicate else '1'};\n}}\n"
            for s in clause.statements:
                yield clause, f"{ENTRY}\n/{self.own(f'/{ok}/')}/\n{{\n{s.write(w)}}}\n"

    @staticmethod
    def own(predicate):
        return OWN + (f" && ({predicate[1:-1]})" if predicate else "")

    def rows(self, texts):
        """What shows the aggregations that are used."""
        for name, _, types in self.aggs:
            if not any(f"{name}[" in text for text in texts):
                continue
            conversions = ["%s" if t == STR else "%u" if t == U64 else "%d" for t in types]
            yield f'printa("={name[1:]} {" ".join(f"<{c}>" for c in self._permuted(name, conversions))} %@d\\n", {name});'

    def row_lines(self, state):
        for name, function, types in self.aggs:
            for key, values in state.aggs.get(name, {}).items():
                shown = [v.decode("latin1") if t == STR else str(v) for t, v in zip(types, key)]
                yield (f"={name[1:]} {' '.join(f'<{part}>' for part in self._permuted(name, shown))} "
                       f"{AGGREGATES[function](values)}").encode("latin1")


class Script:
    """Cases in one script, each in a form; @firings is how often the probe fires."""

    def __init__(self, cases, memory, strsize, firings, forms, permute):
        self.cases, self.memory, self.strsize, self.firings = cases, memory, strsize, firings
        self.language = D()
        for case, form in zip(cases, forms):
            case.form, case.keys = form, {}
            if form.permute:
                form.permute = permute
        self.texts, self.owners = self._write()

    def _run(self):
        state = State(self.memory, self.strsize)
        for case in self.cases:
            case.faulted = False
        for _ in range(self.firings):
            for case in self.cases:
                state.faulted = False
                for clause in case.clauses:
                    clause.run(state)
                case.faulted = case.faulted or state.faulted
        return state

    def _write(self):
        for clause in itertools.chain.from_iterable(case.clauses for case in self.cases):
            clause.number = 0
        self._run()
        texts, owners = [], []
        for case in self.cases:
            w = Writer(self.language, case.form, case.number)
            for clause, text in case.clause_texts(w, case.faulted):
                clause.number = len(texts)
                texts.append(text)
                owners.append(case)
        return texts, owners

    @property
    def text(self):
        lines = ["#pragma D option quiet", f"#pragma D option strsize={self.strsize}"]
        if any(case.writes for case in self.cases):
            lines.append("#pragma D option destructive")
        for case in self.cases:
            lines += case.declarations()
            if case.form.split:
                lines.append(f"this int ok{case.number};")
        lines += self.language.declared
        lines += self.texts
        # Behind the others, so that clauses have the numbers that the model knows.
        if self.language.constants:
            lines += ["BEGIN", "{", *self.language.constants, "}"]
        lines += ["ERROR", "{", 'printf("!%d %d %x\\n", arg2, arg4, arg5);', "}"]
        lines += ["END", "{", 'printf("!end\\n");', *[row for case in self.cases for row in case.rows(self.texts)], "}"]
        return "\n".join(lines) + "\n"

    def expected(self):
        """(the lines of the firings, the set of rows)."""
        state = self._run()
        return state.out, sorted(line for case in self.cases for line in case.row_lines(state))
