"""Attackers: processes of their own, most of them of a user that nobody has."""
import subprocess
import sys

STRANGER = 64321        # a user id that no account has

# What each of them begins with.  Messages are built in the layouts of all versions so far (src/abi/agent.h).
PRELUDE = r"""
import os, re, select, socket, struct, sys, time

def tracers(pid):
    "The names of the sockets of dtap process @pid."
    with open("/proc/net/unix") as f:
        return sorted(set(re.findall(r"@(dtap-%d-\w+)$" % pid, f.read(), re.M)))

def find(pid, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        names = tracers(pid)
        if names:
            return names[0]
        time.sleep(0.001)
    sys.exit("no socket of the tracer's")

def connect(name):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for _ in range(100):        # it has a name before it listens
        try:
            s.connect("\0" + name)
            return s
        except ConnectionRefusedError:
            time.sleep(0.01)
    s.connect("\0" + name)
    return s

HELLO, STATE, LOOK, SEGMENT, PROOF, ASK = 1, 2, 3, 4, 5, 6
READY = 1

def message(version, kind, proof=0, why=b"", can=0xfff):
    head = struct.pack("=HHIIIIIII", version, kind, 0, os.getpid(), READY, 0x030b0000, can, 0, 0)
    return head + (struct.pack("=Q", proof) if version > 2 else b"") + why.ljust(200, b"\0")

def hear(s, seconds=3):
    "The kinds of the messages that come, and how many descriptors; 'end' or 'silence' at the end."
    heard, end = [], time.monotonic() + seconds
    while True:
        if not select.select([s], [], [], max(0, end - time.monotonic()))[0]:
            return heard + ["silence"]
        try:
            data, fds, flags, _ = socket.recv_fds(s, 4096, 10)
        except ConnectionResetError:
            return heard + ["end"]
        if not data:
            return heard + ["end"]
        heard.append((struct.unpack_from("=HH", data)[1], len(fds)))
        s.last = data
"""


def attack(program, *args, user=STRANGER, **kwargs):
    """Start an attacker; its program follows PRELUDE."""
    words = [sys.executable, "-S", "-E", "-c", PRELUDE + program, *map(str, args)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            user=user, group=user, extra_groups=[], cwd="/", **kwargs)
