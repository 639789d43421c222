"""Leading a thread to a point inside of a C library's function, with ptrace, and leaving it there, stopped as by SIGSTOP."""
import ctypes
import os
import signal

SEIZE, INTERRUPT, CONT, SINGLESTEP, DETACH, GETREGS, SETREGS, PEEK, POKE = 0x4206, 0x4207, 7, 9, 17, 12, 13, 1, 4
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs"
         " gs").split()


class Regs(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulong) for name in NAMES]


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, address=None, data=None):
    ctypes.set_errno(0)
    got = libc.ptrace(request, pid, address, data)
    if got == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


class Stepper:
    """A process whose first thread is stopped; of all its code only that thread's is looked at."""

    def __init__(self, pid):
        self.pid = pid
        ptrace(SEIZE, pid)
        ptrace(INTERRUPT, pid)
        self.wait()
        self.mem = open(f"/proc/{pid}/mem", "r+b", buffering=0)

    def wait(self):
        return os.waitpid(self.pid, 0x40000000)[1]      # __WALL

    def regs(self):
        regs = Regs()
        ptrace(GETREGS, self.pid, None, ctypes.byref(regs))
        return regs

    def code(self, address, size=16):
        self.mem.seek(address)
        return self.mem.read(size)

    def run_to(self, address, poke):
        """Let it run; @poke() makes it come to @address."""
        self.mem.seek(address)
        was = self.mem.read(1)
        self.mem.seek(address)
        self.mem.write(b"\xcc")
        ptrace(CONT, self.pid)
        poke()
        status = self.wait()
        assert os.WSTOPSIG(status) == signal.SIGTRAP, hex(status)
        self.mem.seek(address)
        self.mem.write(was)
        regs = self.regs()
        regs.rip = address
        ptrace(SETREGS, self.pid, None, ctypes.byref(regs))

    def step(self):
        """One instruction; where it was and what it is."""
        at = self.regs().rip
        code = self.code(at)
        ptrace(SINGLESTEP, self.pid)
        self.wait()
        return at, code

    def go(self):
        """Let go of it."""
        self.mem.close()
        ptrace(DETACH, self.pid)

    def leave_stopped(self):
        self.mem.close()
        ptrace(DETACH, self.pid, None, signal.SIGSTOP)
