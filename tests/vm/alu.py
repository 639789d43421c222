#!/usr/bin/python3
"""Every arithmetic operation and comparison, in both widths, with a register and with a number, on edge values;
the results are computed here, with Python's integers."""

EDGES = [0, 1, 2, 7, 31, 63, 0x7f, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
         0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffffe, 0xffffffffffffffff]


def signed(v, bits):
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> (bits - 1) else v


def cut(a, b):
    """C's division: towards 0."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def sdiv(a, b, w):
    a, b = signed(a, w), signed(b, w)
    return cut(a, b) if b else 0


def smod(a, b, w):
    a, b = signed(a, w), signed(b, w)
    return a - cut(a, b) * b if b else a


ALU = {
    '+=': lambda a, b, w: a + b, '-=': lambda a, b, w: a - b, '*=': lambda a, b, w: a * b,
    '/=': lambda a, b, w: a // b if b else 0, '%=': lambda a, b, w: a % b if b else a,
    's/=': sdiv, 's%=': smod,
    '|=': lambda a, b, w: a | b, '&=': lambda a, b, w: a & b, '^=': lambda a, b, w: a ^ b,
    '<<=': lambda a, b, w: a << (b % w), '>>=': lambda a, b, w: a >> (b % w),
    's>>=': lambda a, b, w: signed(a, w) >> (b % w), '=': lambda a, b, w: b,
}
JUMP = {
    '==': lambda a, b, w: a == b, '!=': lambda a, b, w: a != b, '>': lambda a, b, w: a > b,
    '>=': lambda a, b, w: a >= b, '<': lambda a, b, w: a < b, '<=': lambda a, b, w: a <= b,
    '&': lambda a, b, w: (a & b) != 0,
    's>': lambda a, b, w: signed(a, w) > signed(b, w), 's>=': lambda a, b, w: signed(a, w) >= signed(b, w),
    's<': lambda a, b, w: signed(a, w) < signed(b, w), 's<=': lambda a, b, w: signed(a, w) <= signed(b, w),
}


def show(op, form, fn, bits, pairs):
    mask = (1 << bits) - 1
    print('-- asm')
    print(form)
    for a, b in pairs:
        print('-- args %#x %#x' % (a, b))
        print('-- result %#x' % (int(fn(a & mask, b & mask, bits)) & mask))


def program(dst, src, body):
    """The operands in the registers that the operation names, its result in r0."""
    return 'r6 = *(u64 *)(r1 + 0)\nr7 = *(u64 *)(r1 + 8)\nr%d = r6\nr%s = r7\n%s' % (dst, src, body)


def main():
    all_pairs = [(a, b) for a in EDGES for b in EDGES]
    for bits, r in ((64, 'r'), (32, 'w')):
        for op, fn in ALU.items():
            # Divisions and shifts have registers of their own on x86: r0 is rax, r3 rdx, r4 rcx.
            for dst, src in ((0, 1), (3, 0), (4, 3), (2, 4), (8, 9)):
                body = '%s%d %s %s%d\nr0 = r%d\nexit' % (r, dst, op, r, src, dst)
                show(op, program(dst, src, body), fn, bits, all_pairs if dst == 0 else all_pairs[::11])
            for imm in (-2147483648, -1, 1, 7, 31, 2147483647):
                if op in ('<<=', '>>=', 's>>=') and not 0 < imm < bits:
                    continue
                value = imm & 0xffffffffffffffff
                show(op, program(3, 1, '%s3 %s %d\nr0 = r3\nexit' % (r, op, imm)), fn, bits,
                     [(a, value) for a in EDGES])
            show(op, program(4, 4, '%s4 %s %s4\nr0 = r4\nexit' % (r, op, r)), fn, bits, [(a, a) for a in EDGES])
        for op, fn in JUMP.items():
            tail = 'r0 = 0\nexit\nyes:\nr0 = 1\nexit'
            show(op, program(3, 5, 'if %s3 %s %s5 goto yes\n%s' % (r, op, r, tail)), fn, bits, all_pairs)
            for imm in (-2147483648, -1, 0, 1, 2147483647):
                show(op, program(3, 1, 'if %s3 %s %d goto yes\n%s' % (r, op, imm, tail)), fn, bits,
                     [(a, imm & 0xffffffffffffffff) for a in EDGES])


main()
