"""
A program whose memory has a place of each bad kind, at addresses that scripts know beforehand.

The addresses are constants, so that a script can name them; each has what a read of up to 4 bytes, and of a string, gives.
"""
BASE = 0x210000000000

SPARE = BASE + 0x800          # to be written to
# name -> (address, bytes that can be read there, the string there: None when there is none)
PLACES = {
    "null": (0, 0, None),
    "one": (1, 0, None),
    "no page": (BASE + 0x40000, 0, None),
    "the end of a page that is not there": (BASE + 0x40ffe, 0, None),
    "PROT_NONE": (BASE + 0x20000, 0, None),
    "write only": (BASE + 0x30000, 0, None),
    "last bytes": (BASE + 0xffc, 4, "end"),
    "the last byte": (BASE + 0xfff, 1, ""),
    "no end": (BASE + 0x10ffc, 4, None),
    "the last byte, no end": (BASE + 0x10fff, 1, None),
    "the last of user space": (0x7ffffffffffe, 0, None),
    "behind user space": (0x800000000000, 0, None),
    "non-canonical": (0x8000000000000000, 0, None),
    "kernel, direct map": (0xffff888000001000, 0, None),
    "kernel, text": (0xffffffff81000000, 0, None),
    "the last word": (0xfffffffffffffff8, 0, None),
    "the last byte of all": (0xffffffffffffffff, 0, None),
}

PROGRAM = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
base = {BASE:#x}
READ, WRITE, PRIVATE, FIXED, ANONYMOUS = 1, 2, 2, 0x10, 0x20

def page(at, what, protection):
    at += base
    assert libc.mmap(at, 4096, READ | WRITE, PRIVATE | FIXED | ANONYMOUS, -1, 0) == at
    ctypes.memmove(at, what, len(what))
    assert not libc.mprotect(at, 4096, protection)

page(0, (b"good string" + bytes(4096))[:4092] + b"end\\0", READ | WRITE)
page(0x1000, b"", 0)
page(0x10000, b"x" * 4096, READ | WRITE)
page(0x11000, b"", 0)
page(0x20000, b"none", 0)
page(0x30000, b"write", WRITE)

def probe():
    return 7

def main():
    total = 0
    for _ in range(int(sys.argv[1])):
        total += probe()
    libc.mprotect(base, 4096, READ)
    os.write(1, b"\\nresult %d %s\\n" % (total, ctypes.string_at(base)))

main()
"""
