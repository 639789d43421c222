"""How the processes of a test ended, told by the kernel: the witness that no traced program was harmed.

The kernel's process connector (netlink; connector/cn_proc.c, <linux/cn_proc.h>) tells of every fork, exec and exit.
Those that descend from this one are a test's: traced programs, tracers, whatever they start, also what another
process has waited for, or nobody.  A test in which one of them dies of a signal that stands for a crash has failed,
whatever it printed; one whose death is what the test is about says so by @pytest.mark.dies("SIGSEGV", ...).
"""
import os
import pathlib
import signal
import socket
import struct
import threading

CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT, signal.SIGFPE, signal.SIGSYS, signal.SIGTRAP}

NETLINK_CONNECTOR = 11
CN_IDX_PROC = CN_VAL_PROC = 1
PROC_CN_MCAST_LISTEN = 1
EVENT_FORK, EVENT_EXEC, EVENT_EXIT = 0x1, 0x2, 0x80000000
HEADERS = struct.calcsize("=IHHII") + struct.calcsize("=IIIIHH")     # struct nlmsghdr, struct cn_msg
EVENT = struct.calcsize("=IIQ")                                      # what, cpu, time
SYNC_S = 5


class Death:
    def __init__(self, pid, what, number):
        self.pid, self.what, self.signal = pid, what, signal.Signals(number).name

    def __str__(self):
        return f"process {self.pid} ({self.what}) died of {self.signal}"


class Watch:
    """Of this process's descendants.  OSError: the kernel does not tell."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR)
        self._socket.bind((0, CN_IDX_PROC))
        self._socket.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), 8 << 20)
        body = struct.pack("=IIIIHH", CN_IDX_PROC, CN_VAL_PROC, 0, 0, 4, 0) + struct.pack("=I", PROC_CN_MCAST_LISTEN)
        self._socket.send(struct.pack("=IHHII", HEADERS + 4, 3, 0, 0, 0) + body)
        self._family = {os.getpid()}
        self._names = {}
        self._deaths = []
        self._ended = set()         # children of sync()
        self._changed = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()
        self.sync()                 # does it tell?

    def _listen(self):
        while True:
            try:
                packet = self._socket.recv(4096)
            except OSError:         # ENOBUFS: there was no room for all that the kernel had to tell
                self._family |= children_of(os.getpid())
                continue
            self._take(packet)

    def _take(self, packet):
        what, = struct.unpack_from("=I", packet, HEADERS)
        if what == EVENT_FORK:
            parent, pid, tgid = struct.unpack_from("=4xIII", packet, HEADERS + EVENT)
            if parent in self._family and pid == tgid:
                self._family.add(tgid)
        elif what == EVENT_EXEC:
            tgid, = struct.unpack_from("=4xI", packet, HEADERS + EVENT)
            if tgid in self._family:
                self._names[tgid] = name_of(tgid)
        elif what == EVENT_EXIT:
            pid, tgid, code = struct.unpack_from("=III", packet, HEADERS + EVENT)
            if tgid in self._family and pid == tgid:
                self._exit(tgid, code)

    def _exit(self, pid, code):
        name = self._names.pop(pid, "it had executed nothing yet")
        with self._changed:
            self._family.discard(pid)
            if code & 0x7f in CRASHES:
                self._deaths.append(Death(pid, name, code & 0x7f))
            self._ended.add(pid)
            self._changed.notify_all()

    def sync(self):
        """Return when all that has happened so far is known.  OSError: the kernel does not tell."""
        # What it had no room to tell, when many processes come and go, may have been the end of this very child.
        if not any(self._has_told_of_a_child() for _ in range(3)):
            raise OSError("the kernel's process connector does not answer")

    def _has_told_of_a_child(self):
        pid = os.posix_spawn("/bin/true", ["true"], os.environ)
        os.waitpid(pid, 0)
        with self._changed:
            known = self._changed.wait_for(lambda: pid in self._ended, SYNC_S)
            self._ended.clear()
        return known

    def knows(self, name):
        """Has the kernel told that a process that is still there has executed what begins with @name?"""
        return any(words.startswith(name) for words in list(self._names.values()))

    def deaths(self):
        """Those since the last call."""
        self.sync()
        deaths, self._deaths = self._deaths, []
        return deaths


def name_of(pid):
    """Its words.  Who has ended has none, though it may still be there for its parent."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        words = []
    return b" ".join(words).decode(errors="replace").strip()[:200] or "gone before it could be looked at"


def children_of(pid):
    found = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            found |= {int(word) for word in (task / "children").read_text().split()}
        except OSError:
            pass
    return found | {grandchild for child in found for grandchild in children_of(child)}
