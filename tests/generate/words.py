"""What the languages' functions of strings give, by their documents: strings are bytes, cut by the caller."""
from numbers_of_c import I64


def length(s):
    return len(s)


def index(s, part, start=0):
    return s.find(part, max(start, 0))


def rindex(s, part, last):
    return -1 if last < 0 else s.rfind(part, 0, last + len(part))


def strchr(s, byte):
    at = s.find(bytes([byte])) if byte else -1
    return s[at:] if at >= 0 else b""


def strrchr(s, byte):
    at = s.rfind(bytes([byte])) if byte else -1
    return s[at:] if at >= 0 else b""


def strstr(s, part):
    at = s.find(part)
    return s[at:] if at >= 0 else b""


def substr(s, first, count=None):
    """DTrace's: a negative index counts from the end, a negative count leaves so many off the end."""
    if first < 0:
        first += len(s)
        if first < 0:
            if count is not None:
                count = 0 if count < 0 or count + first < 0 else count + first
            first = 0
    end = len(s) if count is None else len(s) + count if count < 0 else first + count
    return s[first:max(end, first)]


def basename(s):
    if not s:
        return b"."
    return s.rstrip(b"/").rsplit(b"/", 1)[-1] if s.strip(b"/") else b"/"


def dirname(s):
    if not s.strip(b"/"):
        return b"/" if s else b"."
    s = s.rstrip(b"/")
    if b"/" not in s:
        return b"."
    return s[:s.rindex(b"/")].rstrip(b"/") or b"/"


def upper(s):
    return s.upper()


def lower(s):
    return s.lower()


DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def digits(v, base):
    made = ""
    while v or not made:
        v, digit = divmod(v, base)
        made = DIGITS[digit] + made
    return made


def lltostr(v, base):
    """illumos's: base 10 is signed, 16 and 8 say what they are."""
    if base == 10:
        return str(v).encode()
    v %= 1 << 64
    return (("0x" if base == 16 else "0" if base == 8 and v else "") + digits(v, base)).encode()


def number(s, base):
    """The number that @s begins with, as strtoll() has it; 0 when there is none."""
    minus = s.startswith(b"-")
    s = s[minus:].lower()
    if base == 0:
        base = 16 if s.startswith(b"0x") else 8 if s.startswith(b"0") else 10
    if base == 16 and s.startswith(b"0x"):
        s = s[2:]
    v = 0
    for c in s.decode("latin1"):
        at = DIGITS.find(c)
        if not 0 <= at < base:
            break
        v = v * base + at
    return I64.keep(-v if minus else v)


def token(s, ends):
    """The first token of @s and what is behind it, the byte that ended it first."""
    start = 0
    while start < len(s) and s[start] in ends:
        start += 1
    end = start
    while end < len(s) and s[end] not in ends:
        end += 1
    return s[start:end], s[end:] if len(s) > end + 1 else b""


def slice_of(s, first, count):
    """SystemTap's substr()."""
    return b"" if first < 0 or count < 0 else s[first:first + count]


def replace(s, old, new):
    return s.replace(old, new) if old else s
