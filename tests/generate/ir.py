#!/usr/bin/env python3
"""
Random programs of the IR, which must leave behind what machine.py foretells, in the kernel, interpreted and compiled.

A program is a file for tests/ir/run.c, so what fails is a golden test when it is found; it is made smaller first.  Clauses have
arithmetic, strings, variables of all classes, arrays, statistics, aggregations, records, good and bad addresses of the traced
process and of scratch memory, branches, loops, iterations, procedures, regions that catch faults, and what raises them.

	DTAP_BUILD=build tests/generate/ir.py [--seed S] [--first N] [--programs N] [--seconds S] [--way WAY] [--keep FOLDER]
"""
import argparse
import copy
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import ground  # noqa: E402
import machine  # noqa: E402
from ground import BASE, NONE, PAGE, READ_ONLY  # noqa: E402
from machine import Clause, Endless, Insn, Machine, Map, Program, Unknown  # noqa: E402

WAYS = ("kernel", "turns", "interpreted", "compiled")
STRSIZES = (2, 3, 7, 8, 13, 16, 32, 61, 64, 128, 256, 256)
INTS = (0, 1, 2, -1, 3, 7, 8, 10, 31, 63, 64, 100, 255, 256, -128, 65535, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 32) - 1, 1 << 32,
        (1 << 62), (1 << 63) - 1, -(1 << 63), -(1 << 63) + 1)
TEXTS = (b"", b"a", b"ab", b"x_.", b"77", b"/a/b.x", b"B1", b"abAB/.x_0", b"-12", b"0x1f", b"//", b"a/", b"  ab  ", b"x" * 31, b"y" * 40,
         b"\xff\x80z", b"abababx")
EDGE = BASE + PAGE
BAD = (0, 8, NONE, NONE + 9, EDGE, EDGE + 100, EDGE - 3, 0x7fff_ffff_f000, -0x7780_0000_0000, 1 << 63, -1)
HELD = 192                      # bytes that a page repeats


def signed(v):
    return v - (1 << 64) if v >> 63 else v


class Memory(ground.Memory):
    """One page to read and write with nothing behind it, and one to read."""

    def __init__(self, first, read_only):
        super().__init__(machine.page_of(first), machine.page_of(read_only))
        del self.pages[BASE + PAGE]
        self.texts = first, read_only

    @classmethod
    def some(cls, rnd):
        made = super().random.__func__(ground.Memory, rnd)
        return cls(bytes(made.first[:HELD]), bytes(made.read_only[:HELD]))

    def again(self):
        return Memory(*self.texts)


# --- making a program -----------------------------------------------------------------------------------

class Maker:
    """Makes the clauses of one program; the program is made of choices of @rnd."""

    def __init__(self, rnd):
        self.rnd = rnd
        self.p = Program(rnd.choice(STRSIZES))
        self.p.needs_target = rnd.random() < 0.25
        self.p.nesting = rnd.choice((1, 3, 10, 10))
        for cls in ("global", "thread", "clause", "local", "frame"):
            for slot in rnd.sample(("i8", "i8", "u8", "i4", "u4", "i2", "u1", "i1"), 2) + ["s"]:
                self.p.vars.append((cls, slot))
        self.counters = [self.new_var("frame", "i8") for _ in range(4)]     # of loops: nothing else stores to them
        keys = [[rnd.choice(("i8", "i8", "s")) for _ in range(rnd.randint(1, 3))] for _ in range(6)]
        self.p.maps = [
            Map("global", keys[0], rnd.choice(("i8", "i4", "u2"))), Map("global", keys[1], "s"),
            Map("thread", keys[2], rnd.choice(("i8", "u1"))),
            Map("global", keys[3], rnd.choice(("i8", "s")), frees=True),
            Map("global", keys[4], rnd.choice(("i8", "i8", "s")), order=rnd.choice(("ordered", "wraps")), limit=rnd.randint(1, 6)),
            Map("global", keys[5], stat=(True, True, rnd.choice((0, 0, 3, 10, 62)), *rnd.choice((
                ("plain", None), ("log", None), ("linear", (-20, 100, 10)), ("linear", (0, 7, 3))))), order="ordered", limit=rnd.randint(2, 6)),
            Map("global", [], stat=(rnd.random() < 0.5, rnd.random() < 0.5, 0, "log", None), order="ordered", limit=1),
        ]
        for fn in ("count", "sum", "min", "max", "avg", "stddev", "quantize", "lquantize"):
            param = (-20, 100, 7, 0) if fn == "lquantize" else (0, 0, 0, 0)
            self.p.aggs.append((fn, [rnd.choice(("i8", "s")) for _ in range(rnd.randint(0, 2))], param,
                                fn in ("quantize", "lquantize") or rnd.random() < 0.5))

    def new_var(self, cls, slot):
        self.p.vars.append((cls, slot))
        return len(self.p.vars) - 1

    def program(self):
        for _ in range(self.rnd.randint(1, 3)):
            self.clause(False)
        if self.rnd.random() < 0.5:
            self.clause(True)
        return self.p

    # --- a clause: registers that have a value here are in self.have, those of scratch memory in self.pointers

    def clause(self, error):
        self.c = Clause(error)
        self.p.clauses.append(self.c)
        self.number = len(self.p.clauses) - 1
        self.have, self.pointers = {"i": [], "s": []}, []
        self.free = list(self.counters)
        self.at = self.block()
        self.safe = False               # nothing here may fault
        self.in_try = self.in_loop = 0
        self.procedures, self.todo = [], []
        self.spends = not error and self.rnd.random() < 0.3
        for v, (cls, slot) in enumerate(self.p.vars):
            if cls in ("local", "frame"):
                self.add("vst", None, v, [self.literal(slot[0] if slot == "s" else "i")])
        if self.spends:
            self.add("budget", None, self.rnd.choice((2, 9, 50)))
        self.statements(self.rnd.randint(3, 14), 3)
        self.end("ret")
        while self.todo:
            self.todo.pop()()

    def block(self):
        self.c.blocks.append([])
        return self.c.blocks[-1]

    def number_of(self, block):
        return next(k for k, b in enumerate(self.c.blocks) if b is block)

    def register(self, kind, args):
        """A new one, or at times one that is there already, whose value is lost; a string is not made of itself."""
        old = [r for r in self.have[kind] if kind == "i" or r not in args]
        if old and self.rnd.random() < 0.15:
            return self.rnd.choice(old)
        self.c.regs.append(kind)
        return len(self.c.regs) - 1

    def add(self, op, kind=None, attr=None, args=()):
        dst = self.register(kind, args) if kind else None
        self.at.append(Insn(op, dst, attr, args, self.rnd.randint(0, 9)))
        if kind and dst not in self.have[kind]:
            self.have[kind].append(dst)
        return dst

    def end(self, op, attr=None, args=()):
        self.at.append(Insn(op, None, attr, args, self.rnd.randint(0, 9)))

    def forget(self):
        self.have, self.pointers = {"i": [], "s": []}, []

    # --- values

    def literal(self, kind):
        if kind == "s":
            return self.add("strc", "s", self.rnd.choice(TEXTS))
        return self.add("const", "i", self.rnd.choice(INTS) if self.rnd.random() < 0.7 else signed(self.rnd.getrandbits(64)))

    def const(self, v):
        return self.add("const", "i", v)

    def value(self, kind):
        """One that is there, most often, or a new one."""
        have = [r for r in self.have[kind]]
        if have and self.rnd.random() < 0.7:
            return self.rnd.choice(have[-6:] if self.rnd.random() < 0.6 else have)
        return self.rnd.choice((self.literal, self.literal, self.variable, self.text if kind == "s" else self.argument))(kind)

    def variable(self, kind):
        return self.add("vld", kind, self.rnd.choice(self.vars_of(kind)))

    def vars_of(self, kind):
        return [k for k, (_, slot) in enumerate(self.p.vars) if k not in self.counters and (slot == "s") == (kind == "s")]

    def argument(self, kind):
        return self.add("arg", "i", self.rnd.choice((2, 4) if self.c.error else (0, 1, 2, 3, 12)))

    def fixed(self, v):
        """In a register that never has anything else: what must be a constant."""
        dst = self.fresh_of("i")
        self.at.append(Insn("const", dst, v))
        return dst

    def args(self, kinds):
        return [self.value(k) for k in kinds]

    def key(self, slots):
        """Few different ones, so that they meet."""
        made = []
        for slot in slots:
            if self.rnd.random() < 0.4:
                made.append(self.value(slot[0] if slot == "s" else "i"))
            elif slot == "s":
                made.append(self.add("strc", "s", self.rnd.choice(TEXTS[:4])))
            else:
                made.append(self.const(self.rnd.randint(0, 2)))
        return made

    def integer(self):
        rnd = self.rnd
        pick = rnd.random()
        if pick < 0.45:
            return self.add(rnd.choice(tuple(machine.BINARY)), "i", None, self.args("ii"))
        if pick < 0.52 and not self.safe:
            return self.add(rnd.choice(tuple(machine.DIVIDE)), "i", None, self.args("ii"))
        if pick < 0.62:
            return self.add(rnd.choice(("neg", "not", "mov")), "i", None, self.args("i"))
        if pick < 0.7:
            return self.add("ext", "i", rnd.choice(("i1", "u1", "i2", "u2", "i4", "u4", "i8")), self.args("i"))
        if pick < 0.76:
            order, zero = self.add("strcmp", "i", None, self.args("ss")), self.const(0)
            self.have["i"].remove(order)                # more than its sign is nobody's business
            return self.add(rnd.choice(("slt", "eq", "sle")), "i", None, [order, zero] if rnd.random() < 0.5 else [zero, order])
        if pick < 0.8:
            return self.add("vadd", "i", rnd.choice(self.vars_of("i")), self.args("i"))
        fn, kinds = rnd.choice((("strlen", "s"), ("index", "ssi"), ("rindex", "ssi"), ("byteat", "si"), ("strtol", "s#")))
        return self.call(fn, "i", kinds)

    def call(self, fn, kind, kinds):
        """#: a base."""
        return self.add("call", kind, fn, [self.const(self.rnd.choice((10, 16, 8, 2, 36))) if k == "#" else
                                           self.small() if k == "i" else self.value(k) for k in kinds])

    def small(self):
        if self.rnd.random() < 0.6:
            return self.const(self.rnd.choice((0, 1, 2, 3, 5, 9, 40, 97, 98, 120, -1, -2, -5)))
        return self.value("i")

    def text(self, kind="s"):
        rnd = self.rnd
        pick = rnd.random()
        if pick < 0.1:
            return self.add("sprintf", "s", (f := rnd.choice(tuple(machine.FORMATS))),
                            ["s" == part[0] and self.value("s") or self.value("i") for part in machine.FORMATS[f] if not isinstance(part, bytes)])
        if pick < 0.16:
            return self.add("builtin", "s", rnd.choice(("probefunc", "probename", "probemod")))
        if pick < 0.22:
            self.add("match", "i", rnd.choice(tuple(machine.MATCHES)), self.args("s"))
            return self.add("call", "s", "matched", [self.const(rnd.choice((0, 0, 1)))])
        if pick < 0.26:
            return self.add("mov", "s", None, self.args("s"))
        fn, kinds = rnd.choice((
            ("strjoin", "ss"), ("strjoin", "ss"), ("substr", "sii"), ("strchr", "si"), ("strrchr", "si"), ("strstr", "ss"), ("basename", "s"),
            ("dirname", "s"), ("lltostr", "i#"), ("toupper", "s"), ("tolower", "s"), ("slice", "sii"), ("replace", "sss"), ("token", "ss"),
            ("untoken", "ss"), ("charstr", "i")))
        return self.call(fn, "s", kinds)

    # --- memory

    def address(self, write=False):
        """Of the traced process: most are good."""
        rnd = self.rnd
        pick = rnd.random()
        if pick < 0.07 and not self.safe:
            return self.const(rnd.choice(BAD))
        if pick < 0.5:
            return self.const(rnd.choice((BASE, BASE if write else READ_ONLY)) + rnd.randrange(HELD))
        mask = self.const(rnd.choice((7, 63, 0xfff)) & (0xfff if not self.safe else 63))
        off = self.add("and", "i", None, [self.value("i"), mask])
        return self.add("add", "i", None, [self.const(BASE), off])

    def pointer(self):
        """(register, bytes) of scratch memory."""
        if self.pointers and self.rnd.random() < 0.6:
            return self.rnd.choice(self.pointers)
        size = self.rnd.choice((1, 8, 16, 24, 64))
        if self.rnd.random() < 0.3:
            size = self.p.strsize + 8
        dst = self.fresh()
        if self.rnd.random() < 0.5:
            self.at.append(Insn("call", dst, "alloca", [self.fixed(size)]))
        else:
            self.at.append(Insn("call", dst, "copyin", [self.address(), self.fixed(size)]))
        self.pointers.append((dst, size))
        return dst, size

    def fresh(self):
        self.c.regs.append("i")
        return len(self.c.regs) - 1

    def inside(self, room):
        """(register, bytes) of some place in scratch memory with room behind it."""
        pointer, size = self.pointer()
        if size < room:
            return pointer, size
        off = self.rnd.randint(0, size - room) // room * room
        if off:
            dst = self.fresh()
            self.at.append(Insn("add", dst, None, [pointer, self.const(off)]))
            return dst, size - off
        return pointer, size

    def touch(self):
        """Something with memory."""
        rnd = self.rnd
        pick = rnd.random()
        width = rnd.choice((1, 2, 4, 8))
        if pick < 0.2:
            self.add("call", "s", "copyinstr", [self.address(), self.const(rnd.choice((256, self.p.strsize, 1, 2, 7)))])
        elif pick < 0.4:
            self.add(rnd.choice(("uload", "upeek")), "i", f"{rnd.choice('iu')}{width}", [self.address()])
        elif pick < 0.5:
            at, size = self.inside(width)
            if size >= width:
                self.add("load", "i", f"{rnd.choice('iu')}{width}", [at])
        elif pick < 0.65:
            at, size = self.inside(width)
            if rnd.random() < 0.1 and not self.safe:
                far = self.fresh()
                self.at.append(Insn("add", far, None, [at, self.const(rnd.choice((1 << 20, -(1 << 20), 1 << 40)))]))
                at, size = far, 8
            if size >= width:
                self.add("call", "i", "poke", [at, self.value("i"), self.fixed(width)])
        elif pick < 0.72:
            at, size = self.pointer()
            if size >= (self.p.strsize + 7) // 8 * 8:
                self.add("call", "i", "pokestr", [at, self.value("s")])
                self.add("call", "s", "stringof", [at])
        elif pick < 0.78:
            at, size = self.pointer()
            if size >= self.p.strsize:
                self.add("call", "s", "stringof", [at])
        elif pick < 0.86:
            to, size = self.pointer()
            n = rnd.randint(1, size)            # of none the kernel still says that its own memory is not the user's
            if rnd.random() < 0.5:
                self.add("call", "i", "copyinto", [self.address(), self.const(n), to])
            else:
                source, held = self.pointer()
                self.add("call", "i", "bcopy", [source, self.const(min(n, held)), to])
        elif pick < 0.88 and not self.safe:
            dst = self.fresh()
            big = self.const(rnd.choice((-1, 1 << 40, 1 << 30)))
            self.at.append(Insn("call", dst, "alloca", [big]) if rnd.random() < 0.5 else
                           Insn("call", dst, "copyin", [self.const(BASE), big]))
        elif self.p.needs_target:
            if pick < 0.92:
                self.add("call", "i", "upoke", [self.address(True), self.value("i"), self.fixed(width)])
            elif pick < 0.96:
                self.add("call", "i", "copyoutstr", [self.value("s"), self.address(True), self.const(rnd.choice((0, 1, 3, 20, 256)))])
            else:
                source, size = self.pointer()
                self.add("call", "i", "copyout", [source, self.address(True), self.const(rnd.choice((0, size, rnd.randint(0, size))))])

    def overtake(self):
        """A string is read, what it was read from is written, and then it is used: it is what it was."""
        rnd = self.rnd
        new = self.value("s")
        kinds = ["variable", "array", "scratch"] + ["user"] * (2 if self.p.needs_target else 0)
        kind = rnd.choice(kinds)
        if kind == "variable":
            v = rnd.choice(self.vars_of("s"))
            s = self.add("vld", "s", v)
            self.add("vst", None, v, [new if new != s else self.literal("s")])
        elif kind == "array":
            key = self.key(self.p.maps[1].keys)
            self.add("mst", None, 1, [new] + key)
            other, s = self.literal("s"), self.fresh_of("s")
            self.at.append(Insn("mld", s, 1, key))
            self.add("mst", None, 1, [other] + key)
        elif kind == "scratch":
            pointer, s = self.fresh(), self.fresh_of("s")
            self.at.append(Insn("call", pointer, "alloca", [self.fixed((self.p.strsize + 7) // 8 * 8)]))
            other = self.literal("s")
            self.add("call", "i", "pokestr", [pointer, new])
            self.at.append(Insn("call", s, "stringof", [pointer]))
            self.add("call", "i", "pokestr", [pointer, other])
        else:
            address, size, v, s = self.const(BASE + rnd.randrange(HELD)), self.const(256), self.value("i"), self.fresh_of("s")
            width = self.fixed(rnd.choice((1, 2, 4, 8)))
            self.at.append(Insn("call", s, "copyinstr", [address, size]))
            self.add("call", "i", "upoke", [address, v, width])
        self.use(s)

    def use(self, s):
        pick = self.rnd.random()
        if pick < 0.4:
            self.p.recs.append((self.number, ["s"], None))
            self.add("emit", None, len(self.p.recs) - 1, [s])
        elif pick < 0.7:
            n = self.rnd.choice([k for k, (fn, keys, *_) in enumerate(self.p.aggs) if "s" in keys] or [0])
            fn, keys = self.p.aggs[n][:2]
            takes = {"count": 0, "quantize": 2, "lquantize": 2}.get(fn, 1)
            made = [s if slot == "s" else self.const(1) for slot in keys]
            self.add("agg", None, n, self.args("i" * takes) + made)
        else:
            self.add("mst", None, 1, [s] + self.key(self.p.maps[1].keys))

    # --- statements

    def statements(self, n, depth):
        for _ in range(n):
            self.statement(depth)

    def statement(self, depth):
        rnd = self.rnd
        makes = [(8, self.integer), (6, self.text), (7, self.touch), (6, self.store), (7, self.array), (4, self.aggregate), (6, self.emit), (4, self.overtake)]
        if depth:
            makes += [(4, lambda: self.branch(depth - 1))]
        if depth and not self.c.error:          # what no language has in ERROR
            makes += [(2, lambda: self.loop(depth - 1)), (2, lambda: self.iteration(depth - 1))]
            if not self.safe:
                makes += [(3, lambda: self.catch(depth - 1)), (2, lambda: self.procedure(depth - 1))]
        if self.spends and not self.safe:
            makes += [(3, lambda: self.add("spend", None, rnd.choice((1, 1, 3))))]
        rnd.choices([m for _, m in makes], [w for w, _ in makes])[0]()

    def store(self):
        kind = self.rnd.choice("iis")
        self.add("vst", None, self.rnd.choice(self.vars_of(kind)), [self.value(kind)])

    def array(self):
        rnd = self.rnd
        n = rnd.randrange(len(self.p.maps))
        m = self.p.maps[n]
        full = m.order == "ordered" and self.safe       # may fault
        key = self.key(m.keys)
        if m.stat:
            ops = ["scount", "ssum"] + ([] if full else ["stat"] * 4)
            if not self.safe:
                ops += ["savg"] + (["sbucket"] * 2 if m.stat[3] != "plain" else []) + (["smin", "smax"] if m.stat[0] else []) + (["svariance"] * 2 if m.stat[1] else [])
            op = rnd.choice(ops)
            if op not in ("stat", "scount", "ssum") and not full and rnd.random() < 0.8:
                for _ in range(rnd.randint(1, 3)):
                    self.add("stat", None, n, [self.value("i")] + key)
            first = [self.value("i")] if op == "stat" else [self.small()] if op == "sbucket" else []
            self.add(op, None if op == "stat" else "i", n, first + key)
            return
        kind = "s" if m.value == "s" else "i"
        ops = ["mld", "mld", "mdel"] + ([] if full else ["mst"] * 4)
        if not m.frees:
            ops += ["mhas"] + (["madd"] * 2 if kind == "i" and not full else [])
        if m.order and rnd.random() < 0.1:
            self.add("mclear", None, n)
            return
        op = rnd.choice(ops)
        first = [self.value(kind)] if op in ("mst", "madd") else []
        self.add(op, {"mld": kind, "madd": "i", "mhas": "i"}.get(op), n, first + key)

    def aggregate(self):
        n = self.rnd.randrange(len(self.p.aggs))
        fn, keys = self.p.aggs[n][:2]
        takes = {"count": 0, "quantize": 2, "lquantize": 2}.get(fn, 1)
        self.add("agg", None, n, self.args("i" * takes) + self.key(keys))

    def emit(self):
        rnd = self.rnd
        slots = [rnd.choice(("i8", "i8", "i4", "u2", "i1", "s")) for _ in range(rnd.randint(1, 5))]
        stat = rnd.choice((5, 6)) if rnd.random() < 0.1 and not self.safe else None
        self.p.recs.append((self.number, slots, stat))
        n = len(self.p.recs) - 1
        args = self.args(["s" if slot == "s" else "i" for slot in slots])
        key = self.key(self.p.maps[stat].keys) if stat is not None else []
        if stat is not None and rnd.random() < 0.8:
            self.add("stat", None, stat, [self.value("i")] + key)
        self.add("emit", None, n, args + key)

    def state(self):
        return {k: list(v) for k, v in self.have.items()}, list(self.pointers)

    def back(self, state):
        self.have, self.pointers = {k: list(v) for k, v in state[0].items()}, list(state[1])

    def within(self, block, fn):
        """Code in @block: the one where it ends."""
        outer, self.at = self.at, block
        fn()
        end, self.at = self.at, outer
        return end

    def jump(self, end, to):
        end.append(Insn("jmp", None, (to,)))

    def branch(self, depth):
        rnd = self.rnd
        cond, before = self.value("i"), self.state()
        # A register that both sides assign is there behind them.
        both = [(self.fresh_of(k), k) for k in rnd.choices("is", k=rnd.randint(0, 2))]
        ends, first, there = [], [], []
        for _ in range(2):
            self.back(before)
            start = self.block()
            first.append(start)

            def side():
                self.statements(rnd.randint(0, 3), depth)
                for r, k in both:
                    self.at.append(Insn("mov", r, None, [self.value(k)]))

            ends.append(self.within(start, side))
            there.append(self.state())
        leaves = rnd.random() < 0.1 and not self.in_try and not self.in_loop and not self.procedures
        self.end("br", tuple(self.number_of(b) for b in first), [cond])
        after = self.block()
        for k, end in enumerate(ends):
            if leaves and k:
                end.append(Insn("ret"))
            else:
                self.jump(end, self.number_of(after))
        self.have = {k: [r for r in v if all(r in have[k] for have, _ in there)] for k, v in before[0].items()}
        self.pointers = [pair for pair in before[1] if all(pair in pointers for _, pointers in there)]
        for r, k in both:
            self.have[k].append(r)
        self.at = after

    def fresh_of(self, kind):
        self.c.regs.append(kind)
        return len(self.c.regs) - 1

    def loop(self, depth):
        """Some turns of it, counted in a variable."""
        if not self.free:
            return
        counter = self.free.pop()
        self.add("vst", None, counter, [self.const(self.rnd.choice((0, 1, 2, 3, 5)))])
        head, body, after = self.block(), self.block(), self.block()
        self.end("jmp", (self.number_of(head),))
        self.at = head
        self.forget()
        self.in_loop += 1
        self.add("turn")
        left = self.add("vld", "i", counter)
        self.end("br", (self.number_of(body), self.number_of(after)), [left])

        def turn():
            self.add("vadd", "i", counter, [self.const(-1)])
            self.statements(self.rnd.randint(1, 4), depth)
            self.end("jmp", (self.number_of(head),))

        self.within(body, turn)
        self.in_loop -= 1
        self.forget()
        self.at = after
        self.free.append(counter)

    def iteration(self, depth):
        """Nothing in it changes the array, and no fault leads out of it into a TRY."""
        rnd = self.rnd
        if self.in_loop or self.procedures:
            return
        which = rnd.choice((4, 5))
        m = self.p.maps[which]
        sorts = [(None, 0), ("key", rnd.randrange(len(m.keys)))] + \
            ([(s, 0) for s in ("count", "sum", "min", "max", "avg", "variance")] if m.stat else [("value", 0)])
        given = 1 << rnd.randrange(len(m.keys)) if rnd.random() < 0.25 else 0
        sort, column = rnd.choice(sorts)
        self.p.iters.append((which, sort, column, bool(sort) and rnd.random() < 0.5, given))
        it = len(self.p.iters) - 1
        self.add("iter", "i", it, [self.const(rnd.choice((1, 2, 100)))] + self.key([s for k, s in enumerate(m.keys) if given >> k & 1]))
        head, body, after = self.block(), self.block(), self.block()
        self.end("jmp", (self.number_of(head),))
        self.at = head
        self.forget()
        self.add("turn")
        self.end("br", (self.number_of(body), self.number_of(after)), [self.add("inext", "i", it)])

        def turn():
            for k, slot in enumerate(m.keys):
                self.add("ikey", "s" if slot == "s" else "i", (it, k))
            if not m.stat:
                self.add("ivalue", "s" if m.value == "s" else "i", it)
            was, self.safe = self.safe, bool(self.in_try) or self.safe
            for _ in range(rnd.randint(1, 3)):
                rnd.choice((self.integer, self.text, self.store, self.aggregate, self.emit))()
            self.emit()
            self.safe = was
            if rnd.random() < 0.15:
                self.add("idone", None, it)
                self.end("jmp", (self.number_of(after),))
            else:
                self.end("jmp", (self.number_of(head),))

        self.within(body, turn)
        self.forget()
        self.at = after

    def catch(self, depth):
        handler, body, after = self.block(), self.block(), self.block()
        self.end("try", (self.number_of(handler), self.number_of(body)))
        self.at = body
        self.in_try += 1

        def inner():
            self.statements(self.rnd.randint(1, 4), depth)
            if self.rnd.random() < 0.4:
                self.risk()
            self.add("endtry")
            self.end("jmp", (self.number_of(after),))

        self.within(body, inner)
        self.in_try -= 1
        self.forget()

        def caught():
            self.show(2)
            self.statements(self.rnd.randint(0, 2), depth)
            self.end("jmp", (self.number_of(after),))

        self.within(handler, caught)
        self.forget()
        self.at = after

    def show(self, part):
        """Of the fault that was caught, and its text if it has one."""
        kind = self.add("caught", "i", 0)
        self.p.recs.append((self.number, ["i8", "i8"], None))
        self.add("emit", None, len(self.p.recs) - 1, [kind, self.add("caught", "i", part)])
        raised, after = self.block(), self.block()
        self.end("br", (self.number_of(raised), self.number_of(after)), [self.add("eq", "i", None, [kind, self.const(machine.ERROR)])])
        state = self.state()

        def inner():
            self.p.recs.append((self.number, ["s"], None))
            self.add("emit", None, len(self.p.recs) - 1, [self.add("caughtstr", "s")])
            self.end("jmp", (self.number_of(after),))

        self.within(raised, inner)
        self.back(state)
        self.at = after

    def risk(self):
        """Something that faults, or may."""
        rnd = self.rnd
        pick = rnd.random()
        if pick < 0.4:
            self.add(rnd.choice(tuple(machine.DIVIDE)), "i", None, [self.value("i"), self.const(0)])
        elif pick < 0.7:
            self.add("uload", "i", "i4", [self.const(rnd.choice(BAD))])
        else:
            cond, yes, after = self.value("i"), self.block(), self.block()
            self.end("br", (self.number_of(yes), self.number_of(after)), [cond])
            state = self.state()

            def inner():
                if rnd.random() < 0.5:
                    self.end("raise", None, [self.value("s")])
                else:
                    self.end("fault", rnd.choice((3, 10, 11)), [self.value("i")])

            self.within(yes, inner)
            self.back(state)
            self.at = after

    def procedure(self, depth):
        """A call, most often of one that is new; in it calls of those around it, while there is something left of a counter."""
        rnd = self.rnd
        if self.free and (not self.procedures or rnd.random() < 0.5):
            counter = self.free.pop()
            start = self.block()
            outer = list(self.procedures)

            def body():
                saved = self.at, self.state(), self.procedures, self.in_try, self.in_loop, self.free
                self.at, self.procedures, self.in_try, self.in_loop = start, outer + [(self.number_of(start), counter)], 0, 0
                self.free = [c for c in self.counters if c != counter]
                self.forget()
                for v, (cls, slot) in enumerate(self.p.vars):
                    if cls == "frame" and v != counter:
                        self.add("vst", None, v, [self.literal("s" if slot == "s" else "i")])
                self.statements(rnd.randint(1, 4), depth)
                self.end("leave")
                self.at, (self.have, self.pointers), self.procedures, self.in_try, self.in_loop, self.free = saved

            self.todo.append(body)
            self.enter(self.number_of(start), counter, [self.const(rnd.choice((0, 1, 2, 4)))])
            self.free.append(counter)
        elif self.procedures:
            # Only with less than this call has itself, so that it comes to an end; the first one checks.
            start, counter = self.procedures[-1]
            more, after = self.block(), self.block()
            left = self.add("vld", "i", counter)
            positive = self.add("slt", "i", None, [self.const(0), left])
            self.end("br", (self.number_of(more), self.number_of(after)), [positive])

            def again():
                less = self.add("add", "i", None, [self.add("vld", "i", counter), self.const(-1)])
                self.enter(start, counter, [less])
                self.end("jmp", (self.number_of(after),))

            self.within(more, again)
            self.forget()
            self.at = after

    def enter(self, start, counter, args):
        self.add("pass", None, counter, args)
        then = self.block()
        self.end("enter", (start, self.number_of(then)))
        self.forget()
        self.at = then


# --- its text -------------------------------------------------------------------------------------------

def quoted(s):
    return '"' + "".join(chr(c) if 32 <= c < 127 and chr(c) not in '"\\*' else f"\\x{c:02x}" for c in s) + '"'


def shown(v):
    return quoted(v) if isinstance(v, bytes) else str(v)


def attribute(i):
    if i.attr is None:
        return ""
    if isinstance(i.attr, bytes):
        return " " + quoted(i.attr)
    if isinstance(i.attr, tuple):
        letter = "" if i.op == "ikey" else "b"
        return "".join(f" {letter}{k}" for k in i.attr)
    return f" {i.attr}"


def code(p):
    lines = [f"strsize {p.strsize}", f"nesting {p.nesting}"]
    lines += [f'var "v{k}" {cls} {slot}' for k, (cls, slot) in enumerate(p.vars)]
    for k, m in enumerate(p.maps):
        if m.stat:
            extremes, squares, shift, kind, bounds = m.stat
            what = "stat" + " extremes" * extremes + " squares" * squares + f" shift {shift}"
            what += "" if kind == "plain" else " log" if kind == "log" else " linear %d %d %d" % bounds
        else:
            what = f"value {m.value}"
        lines.append(" ".join([f'map "m{k}" {m.cls} keys', *m.keys, what] + ["frees"] * m.frees +
                              ([f"{m.order} max {m.limit}"] if m.order else [])))
    for which, sort, column, down, given in p.iters:
        lines.append(f"iter {which}" + (f" sort {sort}" if sort else "") + (f" {column}" if sort == "key" else "") + " down" * down +
                     (f" given {given}" if given else ""))
    for k, (fn, keys, param, sign) in enumerate(p.aggs):
        lines.append(" ".join([f'agg "a{k}" {fn} keys', *keys] + (["param", *map(str, param)] if any(param) else []) + ["signed"] * sign))
    for clause, slots, stat in p.recs:
        lines.append(" ".join([f"rec {clause} fields", *slots] + ([f"stat {stat}"] if stat is not None else [])))
    for c in p.clauses:
        lines += ['clause "dtrace":"":"":"ERROR"' if c.error else 'clause "":"":"":"entry"', "regs " + "".join(c.regs)]
        for k, block in enumerate(c.blocks):
            lines.append(f"b{k}:")
            for i in block:
                dst = f"r{i.dst} = " if i.dst is not None else ""
                lines.append(f"\t{dst}{i.op}{attribute(i)}" + "".join(f" r{r}" for r in i.args) + (f" @{i.act}" if i.act else ""))
    return lines


def text(p, memory, firings):
    """The file: the code, and what it leaves behind."""
    lines = code(p)
    if p.needs_target:
        lines.append("#: only interpreted compiled because it writes to the traced process")
    for address, how, held in ((BASE, "rw", memory.texts[0]), (EDGE, "none", b""), (READ_ONLY, "r", memory.texts[1]), (NONE, "none", b"")):
        lines.append(f'#: page {address:#x} {how} "{held.hex()}"')
    m = Machine(p, memory.again())
    seen = [set() for _ in p.maps]
    for args in firings:
        lines.append("#: run " + " ".join(map(str, args)))
        del m.out[:]
        m.fire(list(args) + [0] * (10 - len(args)))
        for k, elements in enumerate(m.maps):
            seen[k] |= set(elements)
        for kind, *rest in m.out:
            if kind == "error":
                fault, v = rest
                lines.append(f"#: error {fault}" + (f" {v}" if isinstance(v, int) else ""))
            else:
                rec, fields, of_stat = rest
                lines.append(" ".join([f"#: record {rec}", *map(shown, fields)] + (["=", *map(str, of_stat)] if of_stat else [])))
    for k, v in sorted(m.globals.items()):
        lines.append(f"#: global {k} = {shown(v)}")
    for k, kept in enumerate(p.maps):
        for key in sorted(seen[k], key=repr):
            if not kept.stat:
                v = m.maps[k].get(key)
                lines.append(" ".join([f"#: map {k}", *map(shown, key), "=", "none" if v is None else shown(v)]))
    for k, rows in enumerate(m.aggs):
        for key, row in rows.items():
            lines.append(" ".join([f"#: agg {k}", *map(shown, key), "="] + [f"{at}:{v}" for at, v in sorted(row.words.items())]))
    lines.append(f'#: bytes {BASE:#x} "{bytes(m.memory.pages[BASE]).hex()[:2 * 400]}"')
    lines += [f"#: drops {k} = 0" for k in range(6)]
    return "\n".join(lines) + "\n"


class Case:
    def __init__(self, seed, number):
        self.name = f"{seed}-{number}"
        tries = 0
        while True:             # until all of it can be foretold
            rnd = random.Random(f"{self.name} {tries}")
            tries += 1
            self.p = Maker(rnd).program()
            self.memory = Memory.some(rnd)
            self.firings = [[rnd.choice((0, 1, 2, rnd.choice(INTS))) for _ in range(4)] for _ in range(rnd.randint(1, 4))]
            try:
                self.text = text(self.p, self.memory, self.firings)
                return
            except (Unknown, Endless):
                continue


# --- running it -----------------------------------------------------------------------------------------

def run(files, ways):
    program = pathlib.Path(os.environ.get("DTAP_BUILD", "build")) / "tests/ir/ir_run"
    words = [word for way in ways for word in ("-w", way)]
    done = subprocess.run([program, "-1", *words, *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


class Reducer:
    """Makes a case that fails in @way smaller."""

    def __init__(self, case, way, folder):
        self.case, self.way, self.file = case, way, pathlib.Path(folder) / "smaller.ir"
        self.kind = self.fails(case.p, case.firings)

    def fails(self, p, firings):
        try:
            made = text(p, self.case.memory, firings)
        except Exception:               # what is left is no program
            return None
        self.file.write_text(made)
        code, told = run([self.file], [self.way])
        if code in (0, 77):
            return None
        first = told.splitlines()[0] if told else "died"
        return " ".join(re.sub(r"[^ a-z]*[0-9][^ ]*|.*: ", "", first, count=0).split()[:9])

    def prune(self, c):
        """Blocks that nothing leads to are as short as can be."""
        found, todo = set(), [0]
        while todo:
            k = todo.pop()
            if k not in found:
                found.add(k)
                todo += [to for i in c.blocks[k] if i.op in ("jmp", "br", "try", "enter") for to in i.attr]
        for k, block in enumerate(c.blocks):
            if k not in found:
                block[:] = [Insn("ret")]

    def reduce(self, seconds=60):
        end = time.monotonic() + seconds
        p, firings = copy.deepcopy(self.case.p), list(self.case.firings)
        changed = True
        while changed and time.monotonic() < end:
            changed = False
            for k in reversed(range(len(firings))):
                if len(firings) > 1 and self.fails(p, firings[:k] + firings[k + 1:]) == self.kind:
                    firings, changed = firings[:k] + firings[k + 1:], True
            for c in p.clauses:
                for block in c.blocks:
                    step = max(len(block) // 2, 1)
                    while step and time.monotonic() < end:
                        at = len(block) - step
                        while at >= 0:
                            gone = block[at:at + step]
                            del block[at:at + step]
                            if gone and self.fails(p, firings) == self.kind:
                                changed = True
                            else:
                                block[at:at] = gone
                            at -= step
                        step //= 2
                    last = block[-1] if block else None
                    if last and last.op == "br":
                        for target in last.attr:
                            block[-1] = Insn("jmp", None, (target,))
                            if self.fails(p, firings) == self.kind:
                                changed = True
                                break
                            block[-1] = last
                self.prune(c)
        self.fails(p, firings)
        return text(p, self.case.memory, firings)


def arguments(words=None):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    p.add_argument("--seed", default=None)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--programs", type=int, default=None)
    p.add_argument("--seconds", type=float, default=None)
    p.add_argument("--way", choices=WAYS, action="append")
    p.add_argument("--no-reduce", dest="reduce", action="store_false")
    p.add_argument("--keep", type=ground.folder, help="a folder for what fails; made if it is not there")
    p.add_argument("--show", action="store_true", help="show the programs and run nothing")
    options = p.parse_args(words)
    options.seed = options.seed or str(random.randrange(1 << 32))
    return options


def generate(options):
    """What went wrong, a text each."""
    print(f"seed {options.seed}", flush=True)
    end = time.monotonic() + options.seconds if options.seconds else None
    number, failed, ways = options.first, [], options.way or WAYS
    with tempfile.TemporaryDirectory() as folder:
        while (options.programs is None or number < options.first + options.programs) and not (end and time.monotonic() > end):
            last = options.first + options.programs if options.programs is not None else number + 20
            cases = [Case(options.seed, k) for k in range(number, min(number + 20, last))]
            number += len(cases)
            for case in cases:
                case.file = pathlib.Path(folder) / f"{case.name}.ir"
                case.file.write_text(case.text)
                if options.show:
                    print(case.text)
            if options.show or run([case.file for case in cases], ways)[0] in (0, 77):
                continue
            for case in cases:
                for way in ways:
                    code, told = run([case.file], [way])
                    if code in (0, 77):
                        continue
                    made = Reducer(case, way, folder).reduce() if options.reduce else case.text
                    told = f"--seed {options.seed} --first {case.name.split('-')[-1]} --programs 1 --way {way}: ended with {code}\n{told}\n{made}"
                    failed.append(told)
                    print(told, flush=True)
                    if options.keep:
                        (options.keep / f"{case.name}-{way}.ir").write_text(made)
                    break
    print(f"{number - options.first} programs, {len(failed)} wrong")
    return failed


if __name__ == "__main__":
    sys.exit(bool(generate(arguments())))
