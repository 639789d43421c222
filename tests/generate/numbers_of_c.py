"""Integers of C, and printf(3)'s conversions, as Python says them."""
import re


class Int:
    """An integer type: @bits, and whether it has a sign."""

    def __init__(self, bits, sign):
        self.bits, self.sign = bits, sign

    def keep(self, v):
        v &= (1 << self.bits) - 1
        return v - (1 << self.bits) if self.sign and v >> (self.bits - 1) else v

    @property
    def d(self):
        return f"{'' if self.sign else 'u'}int{self.bits}_t"

    def __repr__(self):
        return self.d

    def __eq__(self, other):
        return isinstance(other, Int) and (self.bits, self.sign) == (other.bits, other.sign)

    def __hash__(self):
        return hash((self.bits, self.sign))


TYPES = {f"{'iu'[not sign]}{bits}": Int(bits, sign) for bits in (8, 16, 32, 64) for sign in (True, False)}
I8, U8, I16, U16, I32, U32, I64, U64 = (TYPES[k] for k in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"))


def promote(t):
    return I32 if t.bits < 32 else t


def arith(a, b):
    """The usual arithmetic conversions."""
    a, b = promote(a), promote(b)
    return Int(max(a.bits, b.bits), not any(not t.sign and t.bits == max(a.bits, b.bits) for t in (a, b)))


def wider(a, b):
    """What D computes in, as the DTraces do: nothing becomes an int first."""
    return max((a, b), key=lambda t: (t.bits, not t.sign))


def quotient(a, b):
    """Towards zero."""
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def remainder(a, b):
    return a - b * quotient(a, b)


UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
                  rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}")


def pad(text, flags, width, zeros=False):
    """@text, bytes, in a field, whose width is in characters."""
    gap = max(0, width - len(UTF8.sub(b"c", text)))
    if "-" in flags:
        return text + b" " * gap
    if zeros:
        sign = 1 if text[:1] in (b"-", b"+", b" ") else 2 if text[:2] in (b"0x", b"0X") else 0
        return text[:sign] + b"0" * gap + text[sign:]
    return b" " * gap + text


def integer(letter, flags, width, prec, v, sign, mark_zero=False):
    """printf(3)'s %d (@sign) %u %o %x %X of @v; @mark_zero: # marks a zero, too, and whatever the digits are."""
    base = {"d": "d", "i": "d", "u": "d", "o": "o", "x": "x", "X": "X", "p": "x"}[letter]
    digits = format(abs(v), base)
    if prec == 0 and v == 0:
        digits = ""
    if prec is not None:
        digits = digits.rjust(prec, "0")
    if "#" in flags and base == "o" and (mark_zero or not digits.startswith("0")):
        digits = "0" + digits
    if "#" in flags and base in "xX" and (v or mark_zero):
        digits = f"0{base}{digits}"
    if sign:
        digits = ("-" if v < 0 else "+" if "+" in flags else " " if " " in flags else "") + digits
    return pad(digits.encode(), flags, width, "0" in flags and prec is None)
