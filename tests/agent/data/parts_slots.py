"""parts_slots.py OBJECT SEED: trace and profile functions of the program beside the agent's, in any order of coming and going."""
import ctypes
import random
import sys
import threading

parts = ctypes.PyDLL(sys.argv[1])
parts.parts_begin.restype = ctypes.c_char_p
parts.parts_install.restype = ctypes.c_bool
parts.parts_events.restype = ctypes.c_ulong
dice = random.Random(int(sys.argv[2]))
TRACE, PROFILE = 0, 1
SET, GET = (sys.settrace, sys.setprofile), (sys.gettrace, sys.getprofile)
why = parts.parts_begin()
assert not why, why


def work(n):
    total = 0
    for i in range(n):
        total += len([i])
    return total


class Function:
    """A trace or profile function of the program: counts what it is told of work()."""

    def __init__(self, leaves=False):
        self.seen, self.leaves = [], leaves

    def __call__(self, frame, event, arg):
        if frame.f_code is work.__code__:
            self.seen.append((event, frame.f_lineno))
            if self.leaves and len(self.seen) == 3:
                raise KeyError("left")
        return self


def done(kind, leaves=False):
    """What a function of the program is told of work(4), and whether it is still there."""
    f = Function(leaves)
    SET[kind](f)
    assert GET[kind]() is f
    try:
        work(4)
    except KeyError:
        pass
    there = GET[kind]()
    SET[kind](None)
    assert GET[kind]() is None
    return f.seen, there is f


alone = {(kind, leaves): done(kind, leaves) for kind in (TRACE, PROFILE) for leaves in (False, True)}
assert all(len(seen) >= 3 for seen, _ in alone.values())
rounds = 0


def in_thread(tell):
    try:
        for kind in (TRACE, PROFILE):
            tell.append(done(kind) == alone[kind, False])
    except BaseException as error:      # told by the main thread
        tell.append(repr(error))


for slot in (TRACE, PROFILE):      # where the slots are is measured in a thread that uses none, as the agent's own
    assert parts.parts_install(slot)
    parts.parts_remove(slot)
for _ in range(60):
    kind, leaves, before, threaded = dice.randrange(2), dice.random() < 0.3, dice.random() < 0.5, dice.random() < 0.3
    own = Function()
    if before:
        SET[kind](own)
    assert parts.parts_install(kind)
    assert GET[kind]() is (own if before else None)
    parts.parts_events(kind)
    work(2)
    assert parts.parts_events(kind) >= 2, (kind, before)
    assert bool(own.seen) == before
    if dice.random() < 0.7:     # the program changes its mind while ours is there
        assert done(kind, leaves) == alone[kind, leaves], (kind, leaves, before)
        parts.parts_events(kind)
        work(2)
        assert parts.parts_events(kind) >= 2, (kind, leaves, before)
        SET[kind](own if before else None)
    if threaded:
        tell = []
        thread = threading.Thread(target=in_thread, args=(tell,))
        thread.start()
        thread.join()
        assert tell == [True, True], tell
    parts.parts_remove(kind)
    assert GET[kind]() is (own if before else None)
    own.seen.clear()
    parts.parts_events(kind)
    work(2)
    assert bool(own.seen) == before
    SET[kind](None)
    parts.parts_events(kind)
    work(2)
    assert parts.parts_events(kind) == 0, kind
    assert done(kind, leaves) == alone[kind, leaves]
    rounds += 1
print("ok", rounds)
