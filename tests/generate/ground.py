"""
The memory that generated programs read and write, and what it holds by the rules of the machine.

The traced program maps it at a fixed address, so that a script can name its bytes.  Each case of a script has a window of
its own; all share the places that are bad to read or write.
"""
import pathlib

BASE = 0x220000000000
PAGE = 0x1000
WINDOW, WINDOWS = 64, 64
EDGE = BASE + 2 * PAGE          # the end of a page full of letters; nothing can be read from here on
READ_ONLY = BASE + 8 * PAGE
NONE = BASE + 16 * PAGE
WORDS = ("a", "ab", "x_.", "77", "/a/b.x", "B1", "abAB/.x_0")     # in memory and in scripts, so that they meet
BAD = (0, 8, NONE, NONE + 9, EDGE, EDGE + 100, 0x7fff_ffff_f000, 0xffff_8880_0000_1000)


class Fault(Exception):
    """A clause that ends: @kind as enum abi_fault has it, @value its value."""

    def __init__(self, kind, value=0):
        super().__init__(kind, value)
        self.kind, self.value = kind, value


BADADDR, BADALIGN, ILLOP, DIVZERO, NOSCRATCH = 1, 2, 3, 4, 5


def folder(text):
    """An option's folder, which is made if it is not there."""
    made = pathlib.Path(text)
    made.mkdir(parents=True, exist_ok=True)
    return made


def window(case):
    return BASE + case * WINDOW


class Memory:
    """A copy of what the program has there."""

    def __init__(self, first, read_only):
        self.pages = {BASE: bytearray(first), BASE + PAGE: bytearray(b"e" * PAGE), READ_ONLY: bytearray(read_only)}
        self.first, self.read_only = first, read_only

    @classmethod
    def random(cls, rnd):
        """Words and numbers: short strings are met everywhere."""
        def some(n):
            made = bytearray()
            while len(made) < n:
                made += rnd.choice((
                    lambda: bytes(rnd.choice(b"abAB/.x 10-_") for _ in range(rnd.randint(0, 12))) + b"\0",
                    lambda: rnd.choice(WORDS).encode() + b"\0",
                    lambda: rnd.getrandbits(64).to_bytes(8, "little"),
                    lambda: bytes(rnd.randint(1, 6)),
                    lambda: b"%d\0" % rnd.randint(-999, 99999),
                ))()
            return bytes(made[:n - 1]) + b"\0"

        return cls(some(PAGE), some(PAGE))

    def copy(self):
        return Memory(self.first, self.read_only)

    def _find(self, address):
        page = address & ~(PAGE - 1)
        return self.pages.get(page), address - page

    def read(self, address, n, blame=None):
        """@n bytes; none of them is a fault of the address, or of what is blamed for it."""
        made = bytearray()
        for at in range(address, address + n):
            page, off = self._find(at % (1 << 64))
            if page is None:
                raise Fault(BADADDR, address if blame is None else blame)
            made.append(page[off])
        return bytes(made)

    def string(self, address, size):
        """Up to its NUL, in @size bytes, all of which must be there, up to the NUL."""
        made = bytearray()
        for k in range(max(size, 1)):
            page, off = self._find((address + k) % (1 << 64))
            if page is None:
                raise Fault(BADADDR, address)
            if not page[off]:
                break
            made.append(page[off])
        return bytes(made[:max(size, 1) - 1])

    def write(self, address, what):
        """As far as it can."""
        for k, byte in enumerate(what):
            page, off = self._find(address + k)
            if page is None or page is self.pages[READ_ONLY]:
                raise Fault(BADADDR, address)
            page[off] = byte

    def program(self, calls):
        """The source of the program to be traced: zprobe(k) is called for each number below @calls."""
        return f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

def page(at, what, protection):
    assert libc.mmap(at, {PAGE}, 3, 0x32, -1, 0) == at
    ctypes.memmove(at, what, len(what))
    assert not libc.mprotect(at, {PAGE}, protection)

page({BASE:#x}, bytes.fromhex("{self.first.hex()}"), 3)
page({BASE + PAGE:#x}, b"e" * {PAGE}, 3)
page({EDGE:#x}, b"hidden", 0)
page({READ_ONLY:#x}, bytes.fromhex("{self.read_only.hex()}"), 1)
page({NONE:#x}, b"hidden", 0)

def zprobe(k):
    return k

for k in range({calls}):
    zprobe(k)
"""
