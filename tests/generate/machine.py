"""
The IR as a machine that does what src/ir/ops.def and funcs.def say, one operation after the other: the witness of ir.py.

A program is made of lists (Program), so that parts of it can be taken out.  What only an execution knows (where scratch memory
lies) is a value of its own kind; a program that shows it is none for a test: Unknown.
"""
import re

import words
from ground import BADADDR, BADALIGN, DIVZERO, NOSCRATCH, PAGE, Fault
from numbers_of_c import I64, TYPES, U64, integer, quotient, remainder

ACTIONS, NESTING, OVERFLOW, EMPTY, ERROR = 16, 17, 18, 19, 20
SCRATCH_MAX = 1 << 20           # more than any clause gets
TRIES = 32                      # IR_MAX_TRIES


class Unknown(Exception):
    """Not foretold."""


class Endless(Exception):
    """It goes on for too long."""


class Pointer:
    """An address in scratch memory."""

    def __init__(self, memory, off=0):
        self.memory, self.off = memory, off


class Insn:
    def __init__(self, op, dst=None, attr=None, args=(), act=0):
        self.op, self.dst, self.attr, self.args, self.act = op, dst, attr, list(args), act


class Clause:
    def __init__(self, error=False):
        self.error, self.regs, self.blocks = error, [], []


class Map:
    """@stat: None, or (extremes, squares, shift, kind, bounds)."""

    def __init__(self, cls, keys, value=None, stat=None, frees=False, order=None, limit=0):
        self.cls, self.keys, self.value, self.stat = cls, keys, value, stat
        self.frees, self.order, self.limit = frees, order, limit


class Program:
    def __init__(self, strsize):
        self.strsize, self.nesting = strsize, 10
        self.vars, self.maps, self.iters, self.aggs, self.recs, self.clauses = [], [], [], [], [], []
        self.needs_target = False


def keep(v):
    return I64.keep(v)


def number(v):
    if not isinstance(v, int):
        raise Unknown
    return v


def slot_keep(slot, v):
    return v if slot == "s" else keep(TYPES[f"{slot[0]}{8 * int(slot[1])}"].keep(number(v)))


BINARY = {
    "add": lambda a, b: keep(a + b), "sub": lambda a, b: keep(a - b), "mul": lambda a, b: keep(a * b),
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: keep(a << (b & 63)), "shr": lambda a, b: keep(U64.keep(a) >> (b & 63)), "sar": lambda a, b: a >> (b & 63),
    "eq": lambda a, b: int(a == b), "ne": lambda a, b: int(a != b), "slt": lambda a, b: int(a < b), "sle": lambda a, b: int(a <= b),
    "ult": lambda a, b: int(U64.keep(a) < U64.keep(b)), "ule": lambda a, b: int(U64.keep(a) <= U64.keep(b)),
}
DIVIDE = {
    "sdiv": lambda a, b: keep(quotient(a, b)), "smod": lambda a, b: keep(remainder(a, b)),
    "udiv": lambda a, b: keep(U64.keep(a) // U64.keep(b)), "umod": lambda a, b: keep(U64.keep(a) % U64.keep(b)),
}
EXTRACT = ("scount", "ssum", "smin", "smax", "savg", "svariance")


class Statistic:
    """Of a map's element: words as src/abi/stat.h has them, and the list of all values."""

    def __init__(self, stat):
        self.extremes, self.squares, self.shift, self.kind, self.bounds = stat
        self.values, self.mean, self.sum_squares, self.buckets = [], 0, 0, {}

    def nbuckets(self):
        if self.kind != "linear":
            return 128 if self.kind == "log" else 0
        low, high, width = self.bounds
        return (high - low) // width + 3

    def add(self, v):
        """The variance by the steps of SystemTap's runtime/stat-common.c (_stp_stat_add): shifted, its difference an int."""
        self.values.append(v)
        shifted = keep(v << self.shift)
        if len(self.values) == 1:
            self.mean, self.sum_squares = shifted, 0
        else:
            delta = TYPES["i32"].keep(shifted - self.mean)
            self.mean = keep(self.mean + quotient(delta, len(self.values)))
            self.sum_squares = keep(self.sum_squares + delta * (shifted - self.mean))
        if self.kind == "log":
            at = 64 + (v.bit_length() if v >= 0 else -v.bit_length())
        elif self.kind == "linear":
            low, _, width = self.bounds
            at = 0 if v < low else min((v - low) // width + 1, self.nbuckets() - 1)
        else:
            return
        self.buckets[at] = self.buckets.get(at, 0) + 1

    def get(self, what):
        n, total = len(self.values), keep(sum(self.values))
        if what in ("scount", "ssum"):
            return n if what == "scount" else total
        if what == "smin":
            return min(self.values)
        if what == "smax":
            return max(self.values)
        if what == "savg":
            return quotient(total, n)
        if n < 2:
            return 0
        mean = quotient(keep(total << self.shift), n)       # _stp_stat_get, with one part
        off = keep(self.mean - mean)
        part = keep(n * keep(off * off) + (n - 1) * quotient(self.sum_squares, n - 1))
        return quotient(part, n - 1) >> (2 * self.shift & 63)

    def words(self):
        n = len(self.values)
        made = [n, keep(sum(self.values)), 0, 0, 0, 0, 0, 0, 0]
        if n and self.extremes:
            made[2:6] = min(self.values), 1, max(self.values), 1
        if n and self.squares:
            made[6:9] = self.mean, self.sum_squares, self.shift
        return made + [self.buckets.get(k, 0) for k in range(self.nbuckets())]


class Aggregated:
    """Of an aggregation: words as src/ir/aggs.def has them."""

    def __init__(self, fn, param, sign):
        self.fn, self.param, self.sign = fn, param, sign
        self.words = {}

    def put(self, *values):
        self.words = dict(enumerate(values))

    def add(self, args):
        w, v = self.words, args[0] if args else 0
        if self.fn == "count":
            self.put(w.get(0, 0) + 1)
        elif self.fn == "sum":
            self.put(keep(w.get(0, 0) + v))
        elif self.fn in ("min", "max"):
            def order(x):
                return x if self.sign else U64.keep(x)
            self.put((min if self.fn == "min" else max)([w[0], v] if w else [v], key=order), 1)
        elif self.fn == "avg":
            self.put(w.get(0, 0) + 1, keep(w.get(1, 0) + v))
        elif self.fn == "stddev":
            squares = (U64.keep(w.get(2, 0)) + (U64.keep(w.get(3, 0)) << 64) + v * v) % (1 << 128)
            self.put(w.get(0, 0) + 1, keep(w.get(1, 0) + v), keep(squares), keep(squares >> 64))
        else:
            at = self.bucket(v)
            w[at] = keep(w.get(at, 0) + args[1])

    def bucket(self, v):
        if self.fn == "quantize":
            return 63 + v.bit_length() if v >= 0 else max(63 - (-v).bit_length(), 0)
        low, high, step = self.param[:3]
        return 0 if v < low else min((v - low) // step, (high - low) // step) + 1


class Machine:
    """@memory is the traced process's, which it changes."""

    def __init__(self, program, memory):
        self.p, self.memory = program, memory
        self.strsize = program.strsize
        self.globals, self.threads = {}, {}
        self.maps = [{} for _ in program.maps]
        self.aggs = [{} for _ in program.aggs]
        self.errors, self.steps = 0, 0
        self.out = []           # ("record", rec, fields, words), ("error", kind, value)

    def cut(self, s):
        return s[:self.strsize - 1]

    def fire(self, args):
        self.firing, self.locals, self.matched = {}, {}, None
        for number_of, clause in enumerate(self.p.clauses):
            if clause.error:
                continue
            try:
                self.run(clause, args)
            except Fault as f:
                self.out.append(("error", f.kind, f.value))
                for error in self.p.clauses:
                    if error.error:
                        self.handle(error, [0, 7, number_of, Unknown, f.kind, f.value, 0, 0, 0, 0])

    def handle(self, clause, args):
        try:
            self.run(clause, args)
        except Fault:
            pass                # ERROR is not fired for ERROR

    # --- code

    def run(self, clause, args):
        self.args, self.error, self.scratch, self.iters = args, clause.error, {}, {}
        self.matched, self.left, self.caught, self.raised = None, None, (0, 0, 0), b""
        calls, tries, frame, passed = [], [], {}, {}
        regs, block, at, spent = {}, 0, 0, False
        while True:
            i = clause.blocks[block][at]
            at += 1
            self.steps += 1
            if self.steps > 20000:
                raise Endless
            try:
                a = [regs[r] for r in i.args]
            except KeyError:
                raise Unknown from None
            try:
                if i.op == "ret":
                    return
                if i.op == "jmp":
                    block, at, spent = i.attr[0], 0, False
                elif i.op == "br":
                    block, at, spent = i.attr[0 if number(a[0]) else 1], 0, False
                elif i.op == "enter":
                    if len(calls) >= self.p.nesting:
                        raise Fault(NESTING, 0)
                    calls.append((i.attr[1], frame))
                    frame, passed, regs = passed, {}, {}
                    block, at, spent = i.attr[0], 0, False
                elif i.op == "leave":
                    (block, frame), at, regs, spent = calls.pop(), 0, {}, False
                elif i.op == "try":
                    if len(tries) >= TRIES:
                        raise Fault(NESTING, 0)
                    tries.append((i.attr[0], len(calls), frame))
                    block, at, spent = i.attr[1], 0, False
                elif i.op == "endtry":
                    tries.pop()
                elif i.op == "pass":
                    passed[i.attr] = slot_keep(self.p.vars[i.attr][1], a[0])
                elif i.op == "turn":
                    regs = {}
                elif i.op == "spend":
                    if not spent:
                        self.left -= sum(k.attr for k in clause.blocks[block] if k.op == "spend")
                        spent = True
                    if self.left < 0:
                        raise Fault(ACTIONS, 0)
                elif i.op == "fault":
                    raise Fault(i.attr, a[0])
                elif i.op == "raise":
                    self.raised = a[0]
                    raise Fault(ERROR, 0)
                else:
                    v = self.step(i, a, frame)
                    if i.dst is not None:
                        regs[i.dst] = v
            except Fault as f:
                if not tries:
                    raise
                block, depth, frame = tries.pop()
                del calls[depth:]
                regs, at, passed, spent = {}, 0, {}, False
                self.caught = (f.kind, f.value, i.act)

    def step(self, i, a, frame):
        op = i.op
        if op in BINARY:
            if op in ("add", "sub") and isinstance(a[0], Pointer):
                return Pointer(a[0].memory, a[0].off + (a[1] if op == "add" else -a[1]))
            return BINARY[op](number(a[0]), number(a[1]))
        if op in DIVIDE:
            if not number(a[1]):
                raise Fault(DIVZERO)
            return DIVIDE[op](number(a[0]), a[1])
        if op in EXTRACT:
            found = self.maps[i.attr].get(tuple(a))
            if not found:
                if op in ("scount", "ssum"):
                    return 0
                raise Fault(EMPTY)
            return found.get(op)
        return getattr(self, "op_" + op)(i, a, frame)

    def op_const(self, i, a, frame):
        return i.attr

    def op_strc(self, i, a, frame):
        return self.cut(i.attr)

    def op_mov(self, i, a, frame):
        return a[0]

    def op_neg(self, i, a, frame):
        return keep(-number(a[0]))

    def op_not(self, i, a, frame):
        return ~number(a[0])

    def op_ext(self, i, a, frame):
        return slot_keep(i.attr, a[0])

    def op_strcmp(self, i, a, frame):
        return (a[0] > a[1]) - (a[0] < a[1])

    def op_arg(self, i, a, frame):
        v = self.args[i.attr] if i.attr < 10 else 0
        if not isinstance(v, int):
            raise Unknown
        return v

    def op_builtin(self, i, a, frame):
        v = BUILTINS[i.attr][self.error]
        return v if isinstance(v, int) else self.cut(v)

    # --- variables and arrays

    def _var(self, n, frame):
        cls, slot = self.p.vars[n]
        where = {"global": self.globals, "thread": self.threads, "clause": self.firing, "local": self.locals, "frame": frame}[cls]
        return where, slot, cls

    def op_vld(self, i, a, frame):
        where, slot, cls = self._var(i.attr, frame)
        if i.attr not in where and cls in ("local", "frame"):
            raise Unknown
        return where.get(i.attr, b"" if slot == "s" else 0)

    def op_vst(self, i, a, frame):
        where, slot, _ = self._var(i.attr, frame)
        where[i.attr] = slot_keep(slot, a[0])

    def op_vadd(self, i, a, frame):
        where, slot, _ = self._var(i.attr, frame)
        old = self.op_vld(i, a, frame)
        where[i.attr] = slot_keep(slot, keep(old + number(a[0])))
        return old

    def op_mld(self, i, a, frame):
        return self.maps[i.attr].get(tuple(a), b"" if self.p.maps[i.attr].value == "s" else 0)

    def _room(self, m, elements, key):
        if key not in elements and m.order and len(elements) >= m.limit:
            if m.order == "ordered":
                raise Fault(OVERFLOW, m.limit)
            del elements[next(iter(elements))]

    def _store(self, n, key, v):
        m, elements = self.p.maps[n], self.maps[n]
        v = slot_keep(m.value, v)
        if m.frees and not v:
            elements.pop(key, None)
            return
        self._room(m, elements, key)
        elements[key] = v

    def op_mst(self, i, a, frame):
        self._store(i.attr, tuple(a[1:]), a[0])

    def op_madd(self, i, a, frame):
        old = self.maps[i.attr].get(tuple(a[1:]), 0)
        self._store(i.attr, tuple(a[1:]), keep(old + number(a[0])))
        return old

    def op_mhas(self, i, a, frame):
        return int(tuple(a) in self.maps[i.attr])

    def op_mdel(self, i, a, frame):
        self.maps[i.attr].pop(tuple(a), None)

    def op_mclear(self, i, a, frame):
        self.maps[i.attr].clear()

    def op_stat(self, i, a, frame):
        m, elements, key = self.p.maps[i.attr], self.maps[i.attr], tuple(a[1:])
        self._room(m, elements, key)
        if key not in elements:
            elements[key] = Statistic(m.stat)
        elements[key].add(number(a[0]))

    def op_sbucket(self, i, a, frame):
        found = self.maps[i.attr].get(tuple(a[1:]))
        if not found:
            raise Fault(EMPTY)
        return found.buckets.get(number(a[0]), 0)

    def op_agg(self, i, a, frame):
        fn, keys, param, sign = self.p.aggs[i.attr]
        n = {"count": 0, "quantize": 2, "lquantize": 2}.get(fn, 1)
        key = tuple(a[n:])
        self.aggs[i.attr].setdefault(key, Aggregated(fn, param, sign)).add([number(v) for v in a[:n]])

    # --- iterations: (map, sort, column, down, given)

    def op_iter(self, i, a, frame):
        which, sort, column, down, given = self.p.iters[i.attr]
        parts = [k for k in range(32) if given >> k & 1]
        rows = [(k, v) for k, v in self.maps[which].items() if all(k[part] == x for part, x in zip(parts, a[1:]))]
        if sort == "key":
            rows.sort(key=lambda row: row[0][column], reverse=down)
        elif sort == "value":
            rows.sort(key=lambda row: row[1], reverse=down)
        elif sort:
            rows.sort(key=lambda row: row[1].get("s" + sort), reverse=down)
        self.iters[i.attr] = [None] + rows[:number(a[0])]
        return 1

    def op_inext(self, i, a, frame):
        rows = self.iters[i.attr]
        rows.pop(0)
        return int(bool(rows))

    def op_ikey(self, i, a, frame):
        return self.iters[i.attr[0]][0][0][i.attr[1]]

    def op_ivalue(self, i, a, frame):
        return self.iters[i.attr][0][1]

    def op_idone(self, i, a, frame):
        del self.iters[i.attr]

    # --- records and the rest of the state

    def op_emit(self, i, a, frame):
        fields, stat = self.p.recs[i.attr][1:]
        made = []
        for slot, v in zip(fields, a):
            made.append(slot_keep(slot, v))
        words_of = None
        if stat is not None:
            found = self.maps[stat].get(tuple(a[len(fields):]))
            if not found:
                raise Fault(EMPTY)
            words_of = found.words()
        self.out.append(("record", i.attr, made, words_of))

    def op_budget(self, i, a, frame):
        self.left = i.attr

    def op_caught(self, i, a, frame):
        v = self.caught[i.attr]
        return number(v)

    def op_caughtstr(self, i, a, frame):
        if self.caught[0] != ERROR:
            raise Unknown
        return self.raised

    def op_failed(self, i, a, frame):
        self.errors += 1
        return self.errors - 1

    def op_match(self, i, a, frame):
        found = re.search(MATCHES[i.attr], a[0], re.DOTALL)
        self.matched = found or self.matched
        return int(bool(found))

    def op_sprintf(self, i, a, frame):
        made, rest = b"", list(a)
        for part in FORMATS[i.attr]:
            if isinstance(part, bytes):
                made += part
                continue
            letter, flags, width, prec = part
            v = rest.pop(0)
            if letter == "s":
                v = v if prec is None else v[:prec]
                made += v.ljust(width) if "-" in flags else v.rjust(width)
            else:
                sign = letter == "d"
                made += integer(letter, flags, width, prec, number(v) if sign else U64.keep(number(v)), sign)
        return self.cut(made)

    # --- memory

    def _load(self, i, address, size):
        if isinstance(address, Pointer):
            what = address.memory[address.off:address.off + size]
            if address.off < 0 or len(what) < size:
                raise Unknown
        else:
            what = self.memory.read(address % (1 << 64), size, address)
        return slot_keep(i.attr, int.from_bytes(what, "little"))

    def op_load(self, i, a, frame):
        if not isinstance(a[0], Pointer):
            raise Fault(BADADDR, a[0])          # ir.py has such addresses only as nothing can be read from
        return self._load(i, a[0], int(i.attr[1]))

    def op_uload(self, i, a, frame):
        return self._load(i, number(a[0]), int(i.attr[1]))

    def op_upeek(self, i, a, frame):
        try:
            return self._load(i, number(a[0]), int(i.attr[1]))
        except Fault:
            return 0

    def _block(self, i, what):
        """What this call gives, always the same memory."""
        if id(i) not in self.scratch:
            self.scratch[id(i)] = bytearray()
        self.scratch[id(i)][:] = what
        return Pointer(self.scratch[id(i)])

    def _put(self, pointer, what):
        if not isinstance(pointer, Pointer):
            raise Fault(BADADDR, pointer)
        if abs(pointer.off) >= SCRATCH_MAX:
            raise Fault(BADADDR, Unknown)
        if pointer.off < 0 or pointer.off + len(what) > len(pointer.memory):
            raise Unknown
        pointer.memory[pointer.off:pointer.off + len(what)] = what

    def _get(self, pointer, size):
        if not isinstance(pointer, Pointer) or pointer.off < 0 or not 0 <= size <= len(pointer.memory) - pointer.off:
            raise Unknown
        return bytes(pointer.memory[pointer.off:pointer.off + size])

    def op_call(self, i, a, frame):
        return getattr(self, "fn_" + i.attr)(i, *a)

    def fn_copyinstr(self, i, address, size):
        return self.memory.string(number(address) % (1 << 64), min(U64.keep(size), self.strsize))

    def fn_copyin(self, i, address, size):
        if U64.keep(size) >= SCRATCH_MAX:
            raise Fault(NOSCRATCH, size)
        return self._block(i, self.memory.read(number(address) % (1 << 64), size, address))

    def fn_alloca(self, i, size):
        if U64.keep(size) >= SCRATCH_MAX:
            raise Fault(NOSCRATCH, size)
        return self._block(i, bytes(size))

    def fn_bcopy(self, i, source, size, to):
        self._put(to, self._get(source, size))
        return 0

    def fn_copyinto(self, i, address, size, to):
        if not isinstance(to, Pointer):
            raise Fault(BADADDR, to)
        self._put(to, self.memory.read(number(address) % (1 << 64), size, address))
        return 0

    def fn_copyout(self, i, source, address, size):
        self._write(address, self._get(source, size))
        return 0

    def fn_copyoutstr(self, i, s, address, size):
        self._write(address, (s + b"\0")[:size])
        return 0

    def _write(self, address, what):
        """All or nothing is left open: a page at a time."""
        if number(address) % PAGE + len(what) > PAGE:
            raise Unknown
        if not what:
            return
        self.memory.write(address % (1 << 64), what)

    def fn_poke(self, i, pointer, v, size):
        what = (number(v) % (1 << 64)).to_bytes(8, "little")[:size]
        if isinstance(pointer, Pointer) and abs(pointer.off) < SCRATCH_MAX and pointer.off % size:
            raise Fault(BADALIGN, Unknown)
        self._put(pointer, what)
        return 0

    def fn_pokestr(self, i, pointer, s):
        if isinstance(pointer, Pointer) and 0 <= pointer.off and pointer.off + self.strsize > len(pointer.memory) and \
                abs(pointer.off) < SCRATCH_MAX:
            raise Unknown
        self._put(pointer, s + b"\0")
        return 0

    def fn_upoke(self, i, address, v, size):
        self._write(address, (number(v) % (1 << 64)).to_bytes(8, "little")[:size])
        return 0

    def fn_stringof(self, i, pointer):
        if not isinstance(pointer, Pointer):
            raise Fault(BADADDR, pointer)
        return self._get(pointer, self.strsize).split(b"\0")[0][:self.strsize - 1]

    # --- strings

    def fn_strlen(self, i, s):
        return len(s)

    def fn_strjoin(self, i, s, t):
        return self.cut(s + t)

    def fn_substr(self, i, s, first, count):
        return words.substr(s, first, count)

    def fn_index(self, i, s, t, at):
        return words.index(s, t, at)

    def fn_rindex(self, i, s, t, at):
        return words.rindex(s, t, at)

    def fn_strchr(self, i, s, c):
        return words.strchr(s, number(c) & 255)

    def fn_strrchr(self, i, s, c):
        return words.strrchr(s, number(c) & 255)

    def fn_strstr(self, i, s, t):
        return words.strstr(s, t)

    def fn_basename(self, i, s):
        return self.cut(words.basename(s))

    def fn_dirname(self, i, s):
        return self.cut(words.dirname(s))

    def fn_lltostr(self, i, v, base):
        return self.cut(str(number(v)).encode() if base == 10 else words.digits(U64.keep(number(v)), base).encode())

    def fn_toupper(self, i, s):
        return words.upper(s)

    def fn_tolower(self, i, s):
        return words.lower(s)

    def fn_slice(self, i, s, first, count):
        return words.slice_of(s, first, count)

    def fn_byteat(self, i, s, at):
        return s[at] if 0 <= at < len(s) else 0

    def fn_replace(self, i, s, old, new):
        return self.cut(words.replace(s, old, new))

    def fn_token(self, i, s, ends):
        return s.lstrip(ends).split(b"\0")[0] if not ends else re.match(b"[^%s]*" % re.escape(ends), s.lstrip(ends), re.DOTALL)[0]

    def fn_untoken(self, i, s, ends):
        return s.lstrip(ends)[len(self.fn_token(i, s, ends)) + 1:] if ends else b""

    def fn_strtol(self, i, s, base):
        return words.number(s, base)

    def fn_charstr(self, i, c):
        return bytes([number(c) & 255]).rstrip(b"\0")

    def fn_matched(self, i, group):
        return (self.matched[group] or b"") if self.matched and group <= self.matched.re.groups else b""


# Regular expressions of which Python and POSIX say the same, and formats with their parts: ours, then the witness's.
MATCHES = {b"[a-z]+": rb"[a-z]+", b"^a": rb"\Aa", b"x_*": rb"x_*", b"([0-9])[0-9]*$": rb"([0-9])[0-9]*\Z", b"(/).*b": rb"(/).*b",
           b"": rb"", b"[^a-zA-Z](.)": rb"[^a-zA-Z](.)", b"(ab)*x": rb"(ab)*x"}
FORMATS = {b"%d": [("d", "", 0, None)], b"<%5d|%-5d>": [b"<", ("d", "", 5, None), b"|", ("d", "-", 5, None), b">"],
           b"%s": [("s", "", 0, None)], b"%08d.%s": [("d", "0", 8, None), b".", ("s", "", 0, None)],
           b"%x:%-6s;": [("x", "", 0, None), b":", ("s", "-", 6, None), b";"], b"%.3s%10s": [("s", "", 0, 3), ("s", "", 10, None)],
           b"%u %o": [("u", "", 0, None), b" ", ("o", "", 0, None)]}


def page_of(memory):
    """The bytes of a page that repeats @memory."""
    return (memory * (PAGE // len(memory) + 1))[:PAGE]


# As tests/ir/run.c has them: of the probe, of ERROR.
BUILTINS = {"probemod": (b"libpython.so", b""), "probefunc": (b"eval", b""), "probename": (b"function-entry", b"ERROR"), "id": (7, 3)}
