"""A thread in each system call that waits, for an hour: a stop would end some of them with EINTR (signal(7), "Interruption of system
calls and library functions by stop signals"), the others go on.  Prints how many there are when all wait, and, for each line of its
input, which have returned.  The numbers are x86-64's."""
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

SETUPS = {"io_setup": 206, "io_uring_setup": 425, "semget": 64, "semctl": 66, "msgget": 68, "msgctl": 71, "msgsnd": 69, "inotify_init1": 294,
          "fcntl": 72, "mq_open": 240, "mq_unlink": 241, "mq_timedsend": 242}
IPC_NOWAIT, IPC_PRIVATE, IPC_RMID = 0o4000, 0, 0
AT_FDCWD, F_OFD_SETLKW, P_PID, WEXITED, FUTEX_PRIVATE, FUTEX_32 = -100, 38, 1, 4, 128, 2
HOUR = struct.pack("qq", 3600, 0)
MANY = 1 << 20

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
kept, ended = [], []


def memory(content):
    kept.append(ctypes.create_string_buffer(content, len(content)))
    return ctypes.addressof(kept[-1])


def call(number, *args):
    return libc.syscall(*map(ctypes.c_long, (number, *args)))


def set_up(name, *args):
    found = call(SETUPS[name], *args)
    if found < 0:
        raise OSError(ctypes.get_errno(), name)
    return found


def silent(full=False):
    """A socket from which nothing comes; if @full, nor does anything go there.  With timeouts: then no call goes on after a stop."""
    here, there = socket.socketpair()
    for option in socket.SO_RCVTIMEO, socket.SO_SNDTIMEO:
        here.setsockopt(socket.SOL_SOCKET, option, HOUR)
    kept.extend((here, there))
    try:
        while full:
            here.send(bytes(4096), socket.MSG_DONTWAIT)
    except BlockingIOError:
        pass
    return here.fileno()


def listening():
    server = socket.socket(socket.AF_UNIX)
    server.bind("\0waits-%d-%d" % (os.getpid(), len(kept)))
    server.listen(0)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, HOUR)
    kept.append(server)
    return server


def connecting():
    """To one that accepts nobody: its descriptor, address and the address's size."""
    address = listening().getsockname()
    first, second = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    first.connect(address)
    second.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, HOUR)
    kept.extend((first, second))
    packed = struct.pack("H", socket.AF_UNIX) + address
    return second.fileno(), memory(packed), len(packed)


def vector():
    return memory(struct.pack("QQ", memory(bytes(MANY)), MANY))


def message(more=b""):
    return memory(struct.pack("QI4xQQQQi4x", 0, 0, vector(), 1, 0, 0, 0) + more)


def queue(full=False):
    found = set_up("msgget", IPC_PRIVATE, 0o600)
    kept.append(("msgctl", found, IPC_RMID, 0))
    text = memory(struct.pack("q", 1) + bytes(2048))
    while full and call(SETUPS["msgsnd"], found, text, 2048, IPC_NOWAIT) == 0:
        pass
    return found, text, 2048


def semaphore():
    found = set_up("semget", IPC_PRIVATE, 1, 0o600)
    kept.append(("semctl", found, 0, IPC_RMID))
    return found, memory(struct.pack("HhH", 0, -1, 0)), 1


def context():
    at = memory(bytes(8))
    set_up("io_setup", 1, at)
    return struct.unpack("Q", ctypes.string_at(at, 8))[0], 1, 1, memory(bytes(32)), 0


def ring():
    return set_up("io_uring_setup", 8, memory(bytes(120))), 0, 1, 1, 0, 0


def pipe():
    out, into = os.pipe()
    os.write(into, bytes(4096))
    return out


def file():
    found = tempfile.TemporaryFile()
    found.write(bytes(MANY))
    found.seek(0)
    kept.append(found)
    return found.fileno()


def poller():
    kept.append(select.epoll())
    return kept[-1].fileno(), memory(bytes(12)), 1


def in_an_hour(clock):
    return memory(struct.pack("qq", int(time.clock_gettime(clock)) + 3600, 0))


def polled():
    return memory(struct.pack("ihh", os.pipe()[0], select.POLLIN, 0)), 1


def selected():
    fd = os.pipe()[0]
    return fd + 1, memory((1 << fd).to_bytes(128, "little")), 0, 0


def child():
    kept.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))
    return kept[-1].pid


def locked(how):
    """Two descriptions of a file, of which the first has its lock by @how(fd): the second one's descriptor."""
    first = file()
    how(first)
    return os.open(f"/proc/self/fd/{first}", os.O_RDWR)


def lock():
    return memory(struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))


def fifo():
    kept.append(tempfile.TemporaryDirectory())
    os.mkfifo(kept[-1].name + "/fifo")
    return AT_FDCWD, memory(kept[-1].name.encode() + b"/fifo\0"), os.O_RDONLY


def posix_queue(full=False):
    name = memory(b"waits-%d-%d\0" % (os.getpid(), len(kept)))
    found = set_up("mq_open", name, os.O_RDWR | os.O_CREAT, 0o600, memory(struct.pack("qqqq32x", 0, 1, 64, 0)))
    set_up("mq_unlink", name)
    if full:
        set_up("mq_timedsend", found, memory(bytes(64)), 64, 0, 0)
    return found, memory(bytes(64)), 64, 0, in_an_hour(time.CLOCK_REALTIME)


def full_pipe():
    into = os.pipe()[1]
    os.set_blocking(into, False)
    try:
        while os.write(into, bytes(4096)):
            pass
    except BlockingIOError:
        os.set_blocking(into, True)
    return into


CALLS = {
    "read": (0, lambda: (set_up("inotify_init1", 0), memory(bytes(4096)), 4096)),
    "write": (1, lambda: (silent(True), memory(bytes(MANY)), MANY)),
    "poll": (7, lambda: (*polled(), 3600000)),
    "readv": (19, lambda: (silent(), vector(), 1)),
    "writev": (20, lambda: (silent(True), vector(), 1)),
    "select": (23, lambda: (*selected(), memory(HOUR))),
    "pause": (34, lambda: ()),
    "nanosleep": (35, lambda: (memory(HOUR), 0)),
    "sendfile": (40, lambda: (silent(True), file(), 0, MANY)),
    "connect": (42, connecting),
    "accept": (43, lambda: (listening().fileno(), 0, 0)),
    "sendto": (44, lambda: (silent(True), memory(bytes(MANY)), MANY, 0, 0, 0)),
    "recvfrom": (45, lambda: (silent(), memory(bytes(100)), 100, 0, 0, 0)),
    "sendmsg": (46, lambda: (silent(True), message(), 0)),
    "recvmsg": (47, lambda: (silent(), message(), 0)),
    "wait4": (61, lambda: (child(), 0, 0, 0)),
    "semop": (65, semaphore),
    "msgsnd": (69, lambda: (*queue(True), 0)),
    "msgrcv": (70, lambda: (*queue(), 0, 0)),
    "fcntl": (72, lambda: (locked(lambda fd: set_up("fcntl", fd, F_OFD_SETLKW, lock())), F_OFD_SETLKW, lock())),
    "flock": (73, lambda: (locked(lambda fd: fcntl.flock(fd, fcntl.LOCK_EX)), fcntl.LOCK_EX)),
    "rt_sigtimedwait": (128, lambda: (memory(struct.pack("Q", 1 << (signal.SIGUSR2 - 1))), 0, memory(HOUR), 8)),
    "rt_sigsuspend": (130, lambda: (memory(bytes([255] * 8)), 8)),
    "futex": (202, lambda: (memory(bytes(4)), FUTEX_PRIVATE, 0, memory(HOUR), 0, 0)),
    "io_getevents": (208, context),
    "semtimedop": (220, lambda: (*semaphore(), memory(HOUR))),
    "clock_nanosleep": (230, lambda: (time.CLOCK_MONOTONIC, 0, memory(HOUR), 0)),
    "epoll_wait": (232, lambda: (*poller(), 3600000)),
    "mq_timedsend": (242, lambda: posix_queue(True)),
    "mq_timedreceive": (243, posix_queue),
    "waitid": (247, lambda: (P_PID, child(), 0, WEXITED, 0)),
    "openat": (257, fifo),
    "pselect6": (270, lambda: (*selected(), memory(HOUR), 0)),
    "ppoll": (271, lambda: (*polled(), memory(HOUR), 0, 8)),
    "splice": (275, lambda: (pipe(), 0, silent(True), 0, 4096, 0)),
    "tee": (276, lambda: (os.pipe()[0], os.pipe()[1], 100, 0)),
    "vmsplice": (278, lambda: (full_pipe(), vector(), 1, 0)),
    "epoll_pwait": (281, lambda: (*poller(), 3600000, 0, 0)),
    "accept4": (288, lambda: (listening().fileno(), 0, 0, 0)),
    "recvmmsg": (299, lambda: (silent(), message(bytes(8)), 1, 0, 0)),
    "sendmmsg": (307, lambda: (silent(True), message(bytes(8)), 1, 0)),
    "io_pgetevents": (333, lambda: (*context(), 0)),
    "io_uring_enter": (426, ring),
    "epoll_pwait2": (441, lambda: (*poller(), memory(HOUR), 0, 0)),
    "futex_waitv": (449, lambda: (memory(struct.pack("QQII", 0, memory(bytes(4)), FUTEX_PRIVATE | FUTEX_32, 0)), 1, 0,
                                  in_an_hour(time.CLOCK_MONOTONIC), time.CLOCK_MONOTONIC)),
}


def wait(name, number, args):
    returned = call(number, *args)
    ended.append(f"{name} {returned} {os.strerror(ctypes.get_errno())}")


def is_waiting(thread, number):
    try:
        with open(f"/proc/self/task/{thread.native_id}/syscall") as at:
            return at.read().split()[0] == str(number)
    except FileNotFoundError:       # it has ended
        return False


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
waiting = []
for name, (number, make) in CALLS.items():
    try:
        args = make()
    except OSError as e:
        print(f"left out: {e}", file=sys.stderr)
        continue
    waiting.append((threading.Thread(target=wait, args=(name, number, args), daemon=True), number))
    waiting[-1][0].start()
while not all(is_waiting(*each) for each in waiting) and not ended:
    time.sleep(0.01)
print(len(waiting), ended, flush=True)
for _ in sys.stdin:
    print(len(waiting), ended, flush=True)
for each in kept:
    if isinstance(each, tuple):
        set_up(*each)
    elif isinstance(each, subprocess.Popen):
        each.kill()
    elif isinstance(each, tempfile.TemporaryDirectory):
        each.cleanup()
os._exit(0)
