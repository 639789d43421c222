"""A traced Python that writes what it likes to the memory that it shares with the tracer; see record_test.py.

It forks: the child is an honest one and counts its own calls.  What is done is named by the first argument.
The layouts are those of src/abi/segment.h; IMAGE and DATA_HEADER, the sizes of two of its structs, are put in front of this
text by record_test.py.
"""
import ctypes
import os
import random
import re
import struct
import sys
import time

OUT, LANE_HASH = 4, 7               # enum abi_map_kind
LIVE = 1                            # enum abi_elem_state
LANES_HIGH = 160                    # in the data
HEAD, TAIL = 64, 128                # in a lane
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
CALLS, ROUNDS = 200, 60


class Segment:
    def __init__(self):
        self.at = {}
        with open("/proc/self/maps") as maps:
            for line in maps:
                m = re.match(r"([0-9a-f]+)-([0-9a-f]+) .*/memfd:dtap-(image|data)", line)
                if m and m[3] not in self.at:
                    self.at[m[3]] = int(m[1], 16)
        image = self.read(self.at["image"], IMAGE)
        self.nmaps, _, _, self.nlanes = struct.unpack_from("<4I", image, 24)
        self.lanes_off, self.lane_size = struct.unpack_from("<2Q", image, 40)
        self.maps = []
        for k in range(self.nmaps):
            row = struct.unpack("<4I2Q2I", self.read(self.at["image"] + IMAGE + 40 * k, 40))
            self.maps.append(dict(zip(("kind", "key", "value", "entries", "off", "size", "buckets", "stride"), row)))
        self.data = self.at["data"]
        for n in range(self.nlanes):
            self.lane = self.data + self.lanes_off + n * self.lane_size
            if self.get(self.lane, U32) == os.getpid():
                break
        else:
            raise SystemExit("no lane of mine")

    @staticmethod
    def read(at, n):
        return ctypes.string_at(at, n)

    @staticmethod
    def write(at, what):
        ctypes.memmove(at, what, len(what))

    def get(self, at, form):
        return form.unpack(self.read(at, form.size))[0]

    def put(self, at, form, value):
        self.write(at, form.pack(value & (1 << 8 * form.size) - 1))

    def of_kind(self, kind):
        return [m for m in self.maps if m["kind"] == kind]

    def elements(self):
        """Address, key size and value size of each element of the lane's tables that is in use."""
        for m in self.of_kind(LANE_HASH):
            first = self.lane + m["off"] + (64 + 4 * m["buckets"] + 63 & ~63)
            for n in range(self.get(self.lane + m["off"], U32)):
                at = first + n * m["stride"]
                if self.get(at, U32) == LIVE:
                    yield at, m["key"], m["value"]

    def last_record(self, before):
        """The bytes of the first record behind @before."""
        ring = self.of_kind(OUT)[0]
        at = self.lane + ring["off"] + before % ring["entries"]
        return self.read(at + 8, self.get(at, U32))

    def append(self, record, size=None):
        ring = self.of_kind(OUT)[0]
        head = self.get(self.lane + HEAD, U64)
        pos = head % ring["entries"]
        if pos + 8 + len(record) > ring["entries"]:
            return
        at = self.lane + ring["off"] + pos
        self.write(at + 8, record)
        self.put(at, U32, len(record) if size is None else size)
        self.put(self.lane + HEAD, U64, head + 8 + len(record))


def leaf():
    pass


def mine():
    for _ in range(50):
        leaf()


def honest():
    for _ in range(ROUNDS):
        for _ in range(CALLS):
            leaf()
        time.sleep(0.02)


# --- what is done ------------------------------------------------------------------------------------------------------

def flip_keys(s):
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        for at, key, _ in s.elements():
            k = at + 16 + random.randrange(key)
            s.write(k, bytes([random.randrange(256)]))


def no_nul(s):
    mine()
    for at, key, _ in s.elements():
        s.write(at + 16 + 8, b"A" * (key - 8))


def states(s):
    right = s.get(s.data, U32)
    for state in 2, 0, 5, 2:
        s.put(s.data, U32, state)
        time.sleep(0.3)
    end = time.monotonic() + 50
    while s.get(s.data, U32) != right and time.monotonic() < end:       # until the tracer has put it right
        time.sleep(0.01)


def record_of(s):
    before = s.get(s.lane + HEAD, U64)
    leaf()
    return bytearray(s.last_record(before))


def sizes(s):
    good = bytes(record_of(s))
    for size in (0, 4, 12, len(good) - 8, len(good) + 8, 1 << 20, 0x7ffffff8, 0xfffffff8, 0xffffffff):
        leaf()
        s.append(good, size)
        time.sleep(0.05)
    for claimed in (0, 8, 31, len(good) + 1, 1 << 31, 0xffffffff):
        bad = bytearray(good)
        U32.pack_into(bad, 28, claimed)
        s.append(bytes(bad))
        time.sleep(0.02)


def indexes(s):
    good = record_of(s)
    for at, form in ((8, U32), (12, U32), (24, U32), (32, U64), (36, U32), (40, U64)):      # rec, probe, cpu, fields
        for value in (1, 77, 0x7fffffff, 0xfffffffb, 0xfffffffc, 0xfffffffd, 0xfffffffe, 0xffffffff, 1 << 63):
            bad = bytearray(good)
            form.pack_into(bad, at, value & (1 << 8 * form.size) - 1)
            for n in (0, 16, 56, 1000):
                s.append(bytes(bad) + bytes(n // 8 * 8))
        time.sleep(0.02)


def heads(s):
    for head in (1 << 60, 0, 3, (1 << 64) - 8, 1 << 63):
        s.put(s.lane + HEAD, U64, head)
        s.put(s.lane + TAIL, U64, random.getrandbits(64))
        time.sleep(0.1)
        leaf()


def numbers(s):
    """Counts of losses, the clock, how many lanes there are."""
    for value in (1 << 63, 5, (1 << 64) - 1, 0):
        for at in (*range(16, 128, 8), *range(144, 160, 8), 168, 176):
            s.put(s.data + at, U64, value)
        s.put(s.data + LANES_HIGH, U32, value)
        time.sleep(0.6)


def noise(s):
    """Any bytes in the whole of the lane but its ring's far end, and in what all share but the state."""
    end = time.monotonic() + 1.5
    size = min(s.lane_size, 1 << 21)
    while time.monotonic() < end:
        for _ in range(200):
            s.write(s.lane + random.randrange(size - 8), os.urandom(random.choice((1, 4, 8))))
        s.write(s.data + random.randrange(8, DATA_HEADER - 8), os.urandom(4))
        mine()


def future(s):
    """More than the tracer holds back of records whose time is to come, before the child's first call."""
    bad = record_of(s)
    U64.pack_into(bad, 0, (1 << 63) + 1)
    U32.pack_into(bad, 28, 32 << 10)
    bad += bytes((32 << 10) - len(bad))
    for _ in range(320):
        s.append(bytes(bad))


def take_lane(told):
    """With its first event a process has its lane, and none that its owner has written to."""
    os.write(told, b"1")


def main():
    what = globals()[sys.argv[1]]
    gate, open_gate = os.pipe()
    taken, told = os.pipe()
    child = os.fork()
    if not child:
        os.close(open_gate)
        take_lane(told)
        os.read(gate, 1)
        honest()
        if len(sys.argv) > 2:       # until the file is there
            while not os.path.exists(sys.argv[2]):
                time.sleep(0.05)
        os._exit(0)
    os.close(gate)
    os.read(taken, 1)
    mine()
    s = Segment()
    before = what in (states, future)
    if before:
        what(s)
    os.close(open_gate)
    if not before:
        what(s)
    os.waitpid(child, 0)
    # Not where the tracer prints a pipe's worth at a time, between two parts of which this could come.
    print("child", child, "calls", ROUNDS * CALLS, file=sys.stderr, flush=True)
    os._exit(0)


main()
