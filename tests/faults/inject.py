"""The other side of inject.c: which call is to fail in a process, and what became of it."""
import errno
import mmap
import os
import pathlib
import struct
import subprocess

import harness

LAYOUT = struct.Struct("<QQQiBBB64s2048s")

# In the order of inject.c.  What each kind of call fails with: an errno, or "short".
KINDS = {
    "none": (),
    "memory": (errno.ENOMEM,),                              # malloc, calloc, realloc, strdup
    "map": (errno.ENOMEM,),                                 # mmap
    "memfd": (errno.EMFILE,),                               # memfd_create
    "open": (errno.EMFILE, errno.EACCES),                   # open, openat, fopen, opendir
    "bpf": (errno.ENOMEM, errno.EPERM),                     # bpf
    "perf": (errno.EMFILE, errno.EACCES),                   # perf_event_open
    "ptrace": (errno.EPERM, errno.EIO),                     # ptrace
    "vm": (errno.EPERM, errno.EFAULT),                      # process_vm_readv, process_vm_writev
    "read": (errno.EIO, errno.EINTR, "short"),              # read, pread
    "write": (errno.ENOSPC, errno.EINTR, "short"),          # write, pwrite
    "thread": (errno.EAGAIN,),                              # pthread_create
    "fork": (errno.EAGAIN,),                                # fork, posix_spawn
    "socket": (errno.ENOBUFS,),                             # socket, socketpair, bind, connect, listen, accept, options
    "send": (errno.ENOBUFS,),                                # send, sendmsg
    "receive": (errno.ENOMEM, errno.EINTR),                 # recv, recvmsg
    "poll": (errno.ENOMEM, errno.EINTR),                    # poll, epoll_wait
    "descriptor": (errno.EMFILE,),                          # epoll_create, eventfd, pipe, dup, signalfd, timerfd, pidfd_open
    "control": (errno.EINVAL,),                             # ioctl, fcntl, ftruncate, fallocate, madvise
    "stat": (errno.EACCES,),                                # stat, readlink
}


def built():
    return harness.BUILD / "tests" / "faults" / "inject.so"


class Order:
    """A file that says what is to fail; environment() has a process take it."""

    def __init__(self, path, library=None):
        self.path, self.library = pathlib.Path(path), library or built()
        self.path.write_bytes(bytes(4096))
        self.path.chmod(0o666)
        with open(self.path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 4096)

    def set(self, kind="none", at=0, how=0, later=False, source=""):
        """The @at-th call of the kind fails by @how (0: none does), and all later ones if @later."""
        short = how == "short"
        LAYOUT.pack_into(self._map, 0, 0, 0, at, 0 if short else how, 0, later, short, source.encode(), b"")
        self._map[28] = list(KINDS).index(kind)         # last: from now on it counts

    def told(self):
        """Calls, failed ones, and the callers of the first that failed."""
        calls, failed, *_, where = LAYOUT.unpack_from(self._map)
        return calls, failed, where.split(b"\0")[0].decode()

    def where(self):
        """The callers of the call that failed, by name, for people."""
        rows = []
        for word in self.told()[2].split():
            path, _, offset = word.partition("+")
            name = subprocess.run(["addr2line", "-fse", path, hex(int(offset, 16) - 1)], stdout=subprocess.PIPE, text=True,
                                  check=False).stdout.split()
            rows.append(" ".join(name) if name and name[0] != "??" else word)
        return " < ".join(rows[:16])

    def environment(self, inside=str):
        """What a process needs in its environment; @inside: its names for paths."""
        env = dict(os.environ, LD_PRELOAD=inside(self.library), FAULT_ORDER=inside(self.path))
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + env.get("ASAN_OPTIONS", "")
        return env
