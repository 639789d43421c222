"""A program that has given up all system calls but a few: what becomes of any other is the argument, SECCOMP_RET_... in hex."""
import ctypes
import struct
import sys
import time

# x86-64's numbers.
ALLOWED = {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "ioctl": 16, "select": 23, "madvise": 28, "nanosleep": 35,
    "getpid": 39, "exit": 60, "fcntl": 72, "gettid": 186, "futex": 202, "clock_gettime": 228, "clock_nanosleep": 230,
    "exit_group": 231, "openat": 257, "newfstatat": 262, "pselect6": 270, "getrandom": 318,
}
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2


def instruction(code, yes, no, k):
    return struct.pack("HBBI", code, yes, no, k)


program = [instruction(LOAD, 0, 0, 0)]
for number in ALLOWED.values():
    program += [instruction(EQUAL, 0, 1, number), instruction(RETURN, 0, 0, 0x7fff0000)]
program.append(instruction(RETURN, 0, 0, int(sys.argv[1], 16)))
code = ctypes.create_string_buffer(b"".join(program))


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def leaf():
    pass


libc = ctypes.CDLL(None)
assert not libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
assert not libc.prctl(SECCOMP, FILTER, ctypes.byref(Program(len(program), ctypes.addressof(code))), 0, 0)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(100):
    leaf()
    time.sleep(0.001)
print("alive", flush=True)
