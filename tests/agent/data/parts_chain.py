"""parts_chain.py OBJECT OTHER SEED: two agents beside the program's functions, coming and going at any moment, also amid its events."""
import ctypes
import random
import sys
import threading

dice = random.Random(int(sys.argv[3]))
TRACE, PROFILE = 0, 1
SET = sys.settrace, sys.setprofile
FEW, MANY = 6, 300      # threads


def load(path):
    parts = ctypes.PyDLL(path)
    parts.parts_begin.restype = ctypes.c_char_p
    parts.parts_install.restype = ctypes.c_bool
    parts.parts_events.restype = ctypes.c_ulong
    why = parts.parts_begin()
    assert not why, why
    for kind in TRACE, PROFILE:
        assert parts.parts_install(kind)
        parts.parts_remove(kind)
    return parts


agents = [load(path) for path in sys.argv[1:3]]


def work(n):
    total = 0
    for i in range(n):
        total += len([i])
    return total


class Function:
    """A trace or profile function of the program, amid whose events agents may come and go: some of the time, @amid."""

    def __init__(self, kind, amid=0.0):
        self.kind, self.amid, self.seen, self.inside = kind, amid, [], False

    def __call__(self, frame, event, arg):
        if frame.f_code is not work.__code__ or self.inside:
            return self
        self.seen.append((event, frame.f_lineno))
        self.inside = True
        while dice.random() < self.amid:
            change(self.kind)
        self.inside = False
        return self


there = {TRACE: [False, False], PROFILE: [False, False]}


def change(kind):
    which = dice.randrange(2)
    on = dice.random() < 0.5
    if on:      # also if it is there: as when another function was set
        assert agents[which].parts_install(kind)
    else:
        agents[which].parts_remove(kind)
    there[kind][which] = on


def events(kind):
    return [agent.parts_events(kind) for agent in agents]


def told(f, n=4):
    f.seen.clear()
    SET[f.kind](f)
    work(n)
    return f.seen


def in_threads(kind, number, amid):
    """Threads with a function each, one after the other at work, and all there at the same time."""
    functions = [Function(kind, amid) for _ in range(number)]
    go = [threading.Semaphore(0) for _ in functions]
    done = threading.Semaphore(0)

    def run(k):
        SET[kind](functions[k])
        done.release()
        for _ in range(2):
            go[k].acquire()
            functions[k].seen.clear()
            work(4)
            done.release()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(number)]
    for thread in threads:
        thread.start()
        done.acquire()
    for _ in range(2):
        change(kind)
        for k in dice.sample(range(number), number):
            go[k].release()
            done.acquire()
            if amid:
                change(kind)
    for thread in threads:
        thread.join()
    assert all(f.seen == alone[kind] for f in functions), [f.seen for f in functions if f.seen != alone[kind]][:1]


alone = {kind: list(told(Function(kind))) for kind in (TRACE, PROFILE)}
SET[TRACE](None)
SET[PROFILE](None)
for k in range(300):
    kind = dice.randrange(2)
    f = Function(kind, dice.choice((0.0, 0.1, 0.5, 0.9)))
    for _ in range(dice.choice((0, 1, 3, 12))):
        change(kind)
    for _ in range(3):
        assert told(f) == alone[kind], (k, kind, f.seen)
        for _ in range(dice.choice((0, 1, 3, 12))):     # no event for the function in between
            change(kind)
    f.amid = 0.0
    assert told(f) == alone[kind], (k, kind, f.seen)
    events(kind)
    work(4)
    seen = events(kind)
    assert all((n >= len(alone[kind])) == on for n, on in zip(seen, there[kind])), (k, kind, seen, there[kind])
    assert not all(there[kind]) or seen[0] == seen[1], (k, kind, seen)
    SET[kind](None)
for kind in TRACE, PROFILE:
    in_threads(kind, FEW, 0.3)
    in_threads(kind, MANY, 0.0)
    for agent in agents:
        agent.parts_remove(kind)
    events(kind)
    work(4)
    work(4)
    assert events(kind) == [0, 0], kind
    assert told(Function(kind)) == alone[kind]
    SET[kind](None)
print("ok")
