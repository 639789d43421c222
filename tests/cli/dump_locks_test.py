"""dtap dump: what threads wait for, and deadlocks.  The witness is the traced program: its threads' ids, and id(lock)."""
import json
import subprocess

import pytest

import harness

PROGRAM = '''
import concurrent.futures, json, queue, sys, threading, time

tell, ids = {}, {}

def start(name, target, *args):
    def begins():
        tell[name] = [threading.get_native_id(), threading.get_ident()]
        target(*args)
    thread = threading.Thread(target=begins, daemon=True)
    thread.start()
    return thread

def know(**objects):
    ids.update((name, id(o)) for name, o in objects.items())
    return list(objects.values())

def forever():
    threading.Event().wait()

def takes(first, second, meet):
    with first:
        meet.wait()
        with second:
            pass

def circle(prefix, a, b):
    meet = threading.Barrier(2)
    know(**{prefix + "a": a, prefix + "b": b})
    start(prefix + "1", takes, a, b, meet)
    start(prefix + "2", takes, b, a, meet)

circle("r", threading.RLock(), threading.RLock())
circle("l", threading.Lock(), threading.Lock())

def with_itself():
    with own:
        own.acquire()
own, = know(own=threading.Lock())
start("own", with_itself)

# Taken without `with`: it is seen in variables.
def holds(taken):
    mine = by_hand
    mine.acquire()
    taken.set()
    forever()
def holds_shared(taken):
    mine = shared
    def also():
        return mine
    mine.acquire()
    taken.set()
    forever()
def acquires(lock):
    lock.acquire()
by_hand, shared = know(by_hand=threading.Lock(), shared=threading.Lock())
for lock, holder, name in (by_hand, holds, "hand"), (shared, holds_shared, "shared"):
    taken = threading.Event()
    start(name + "1", holder, taken)
    taken.wait()
    start(name + "2", acquires, lock)

# Of a `with` that ended, values may be left where it had them.
def had(a, b, let_go, go):
    for _ in 1,:
        for _ in 1,:
            with a:
                pass
    let_go.set()
    go.wait()
    with b:
        pass
def has_now(a, let_go, taken):
    let_go.wait()
    a.acquire()
    taken.set()
    forever()
def has_other(a, b, taken, go):
    with b:
        taken.wait()
        go.set()
        a.acquire()
past_a, past_b, let_go, taken, go = know(past_a=threading.Lock(), past_b=threading.Lock(), x=threading.Event(),
                                         y=threading.Event(), z=threading.Event())
start("had", had, past_a, past_b, let_go, go)
start("has now", has_now, past_a, let_go, taken)
start("has other", has_other, past_a, past_b, taken, go)

# wait() has released the lock of the `with` that it is in.
def waits_inside(lock, condition):
    with lock:
        condition.wait()
def notifies(lock, condition):
    while True:
        with lock:
            if condition._waiters:
                condition.notify()
                forever()
outer, = know(outer=threading.Lock())
condition, = know(condition=threading.Condition(outer))
start("waits inside", waits_inside, outer, condition)
start("notifies", notifies, outer, condition)

class Mine(type(threading.RLock())):
    pass
def recursively(lock, taken):
    with lock, lock:
        taken.set()
        forever()
mine, taken = know(mine=Mine(), mine_taken=threading.Event())
start("mine1", recursively, mine, taken)
taken.wait()
start("mine2", acquires, mine)

def joins(lock, taken, threads):
    with lock:
        taken.set()
        threads.get().join()
def is_joined(lock, taken):
    taken.wait()
    lock.acquire()
joined, taken = know(joined=threading.Lock(), joined_taken=threading.Event())
threads = queue.Queue()
start("joins", joins, joined, taken, threads)
ended, = know(ended=start("is joined", is_joined, joined, taken))
threads.put(ended)

def in_time(lock):
    with lock:
        lock.acquire(timeout=100000)
timed, = know(timed=threading.Lock())
start("in time", in_time, timed)

event, = know(event=threading.Event())
know(event_condition=event._cond)
start("event", event.wait)
fifo, = know(fifo=queue.Queue())
know(fifo_condition=fifo.not_empty)
start("queue", fifo.get)
simple, = know(simple=queue.SimpleQueue())
start("simple", simple.get)
semaphore, = know(semaphore=threading.Semaphore(0))
know(semaphore_condition=semaphore._cond)
start("semaphore", semaphore.acquire)
future, = know(future=concurrent.futures.Future())
know(future_condition=future._condition)
start("future", future.result)
conditions = {"event": event._cond, "queue": fifo.not_empty, "semaphore": semaphore._cond, "future": future._condition}

while not all(c._waiters for c in conditions.values()) or len(tell) < 24:
    time.sleep(0.01)
for name, c in conditions.items():
    ids[name + "_lock"] = id(c._waiters[0])
print(json.dumps([tell, ids]), flush=True)
sys.stdin.readline()
'''


def dump(pid, *args):
    result = harness.run([harness.BUILD / "dtap", "dump", "-p", pid, *args])
    assert (result.code, result.err) == (0, ""), result
    return result.out


def threads(pid):
    return {t["tid"]: t for t in map(json.loads, dump(pid, "--json").splitlines())}


class Program:
    """The program when all its threads wait, and what it told."""
    def __init__(self, interp, start):
        self.child = start(interp.argv_of(PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        tell, self.ids = json.loads(self.child.stdout.readline())
        self.tid = {name: tid for name, (tid, ident) in tell.items()}
        self.ident = {name: ident for name, (tid, ident) in tell.items()}
        harness.wait_until_asleep(self.child.pid)
        self.read()

    def read(self):
        self.threads = threads(self.child.pid)
        return self.threads

    def waits(self, name):
        return self.threads[self.tid[name]]["waits"]

    def objects(self, name):
        return [(o["type"], o["address"]) for o in self.waits(name)["objects"]]

    def locks(self, name):
        """Function -> the locks of its frame: address, in `with`, maybe free."""
        return {f["function"].rpartition(".")[2]: [(o["address"], o["with"], o.get("maybe_free", False)) for o in f["locks"]]
                for f in self.threads[self.tid[name]]["frames"] if "locks" in f}


@pytest.mark.needs_root
def test_waits(interp, start):
    p = Program(interp, start)
    tid, ids = p.tid, p.ids
    assert p.threads[p.child.pid]["waits"] is None
    assert all(not p.waits(name)["timeout"] for name in tid if name != "in time")

    # Two RLocks: their owners are in the locks.
    for me, other, wants, has in ("r1", "r2", "rb", "ra"), ("r2", "r1", "ra", "rb"):
        assert p.objects(me) == [("threading.RLock", ids[wants])]
        w = p.waits(me)
        assert (w["owner"], w["owner_ident"], w["inside"]) == (tid[other], p.ident[other], [])
        assert (w["deadlock"], w["deadlock_sure"]) == ([tid[other], tid[me]], True)
        assert p.locks(me)["takes"][0] == (ids[has], True, False)

    # Two Locks: who is inside `with`.
    for me, other, wants, has in ("l1", "l2", "lb", "la"), ("l2", "l1", "la", "lb"):
        assert p.objects(me) == [("threading.Lock", ids[wants])]
        w = p.waits(me)
        assert "owner" not in w and w["inside"] == [tid[other]]
        assert (w["deadlock"], w["deadlock_sure"]) == ([tid[other], tid[me]], False)
        assert p.locks(me)["takes"][0] == (ids[has], True, False)

    assert p.objects("own") == [("threading.Lock", ids["own"])]
    assert p.waits("own")["inside"] == p.waits("own")["deadlock"] == [tid["own"]]

    for name, lock, holder in ("hand", "by_hand", "holds"), ("shared", "shared", "holds_shared"):
        assert p.objects(name + "2") == [("threading.Lock", ids[lock])]
        assert p.waits(name + "2")["inside"] == [] and "deadlock" not in p.waits(name + "2")
        assert p.locks(name + "1") == {holder: [(ids[lock], False, False)]}

    assert p.objects("had") == [("threading.Lock", ids["past_b"])]
    assert p.waits("had")["inside"] == [tid["has other"]]
    assert p.objects("has other") == [("threading.Lock", ids["past_a"])]
    assert p.waits("has other")["inside"] == []
    assert not any("deadlock" in p.waits(name) for name in ("had", "has other", "has now"))

    assert p.objects("waits inside") == [("threading.Lock", ids["outer"]), ("threading.Condition", ids["condition"])]
    assert p.waits("waits inside")["inside"] == [tid["notifies"]] and "deadlock" not in p.waits("waits inside")
    assert p.locks("waits inside")["waits_inside"] == [(ids["outer"], True, True)]
    assert p.locks("notifies")["notifies"] == [(ids["outer"], True, False)]

    assert p.objects("mine2") == [("threading.RLock", ids["mine"])] and p.waits("mine2")["owner"] == tid["mine1"]
    assert "deadlock" not in p.waits("mine2") and p.locks("mine1")["recursively"] == [(ids["mine"], True, False)]

    assert p.waits("joins")["for"] == "thread" and p.waits("joins")["owner"] == tid["is joined"]
    assert p.objects("joins") == [("threading.Thread", ids["ended"])]
    assert p.waits("joins")["deadlock"] == [tid["is joined"], tid["joins"]]
    assert p.waits("is joined")["deadlock"] == [tid["joins"], tid["is joined"]]
    assert p.waits("is joined")["inside"] == [tid["joins"]] and not p.waits("is joined")["deadlock_sure"]

    assert p.waits("in time")["timeout"] and p.waits("in time")["inside"] == [tid["in time"]]
    assert "deadlock" not in p.waits("in time")

    lock, condition = "threading.Lock", "threading.Condition"
    for name, type_, o in (("event", "threading.Event", "event"), ("queue", "queue.Queue", "fifo"),
                           ("semaphore", "threading.Semaphore", "semaphore"),
                           ("future", "concurrent.futures.Future", "future")):
        assert p.objects(name) == [(lock, ids[name + "_lock"]), (condition, ids[o + "_condition"]), (type_, ids[o])]
    assert p.objects("simple") == [("queue.SimpleQueue", ids["simple"])]


@pytest.mark.needs_root
def test_text(interp, start):
    p = Program(interp, start)
    blocks = {int(block.split()[0]): block.splitlines() for block in dump(p.child.pid).split("\nThread ")[1:]}

    def lines(name):
        return blocks[p.tid[name]]
    tid, at = p.tid, {name: f"{address:#x}" for name, address in p.ids.items()}
    assert lines("r1")[1:3] == [f"    waits for threading.RLock {at['rb']}, which thread {tid['r2']} has",
                                f"    deadlock: it waits for thread {tid['r2']}, which waits for thread {tid['r1']}"]
    assert any(f"  inside `with` of threading.RLock {at['ra']}" in line for line in lines("r1"))
    assert lines("l2")[1:3] == [f"    waits for threading.Lock {at['la']}; inside `with` of it: thread {tid['l1']}",
                                f"    deadlock: it waits for thread {tid['l1']}, which waits for thread {tid['l2']} "
                                "(unless a Lock was released inside its `with`)"]
    assert any(line.endswith(f")  a variable is threading.Lock {at['by_hand']}") for line in lines("hand1"))
    assert any(line.endswith(f")  inside `with` of threading.Lock {at['outer']}, which Condition.wait may have released")
               for line in lines("waits inside"))
    assert lines("joins")[1] == f"    waits for thread {tid['is joined']} to end, threading.Thread {at['ended']}"
    assert lines("queue")[1] == (f"    waits for threading.Lock {at['queue_lock']} of threading.Condition {at['fifo_condition']} "
                                 f"of queue.Queue {at['fifo']}")
    assert lines("in time")[1].endswith(", with a timeout")


@pytest.mark.needs_root
def test_the_gil(interp, start):
    """A thread holds it in C; the others want it."""
    child = start(interp.argv_of("""
import ctypes, sys, threading
def holds():
    ctypes.PyDLL(None).sleep(1000)
def wants():
    n = 0
    while True:
        n += 1
thread = threading.Thread(target=holds, daemon=True)
threading.Thread(target=wants, daemon=True).start()
print(thread.name, flush=True)
thread.start()
threading.Event().wait()
"""), stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline()
    harness.wait_until(lambda: any(t["waits"] and t["waits"]["for"] == "gil" for t in threads(child.pid).values()))
    harness.wait_until(lambda: any(t["gil"] and t["frames"][0]["function"] == "holds" for t in threads(child.pid).values()))

    def found():
        by_function = {t["frames"][-1]["function"] if len(t["frames"]) == 1 else t["frames"][0]["function"]: t
                       for t in threads(child.pid).values()}
        return by_function["wants"]["waits"], by_function["holds"]["waits"]
    harness.wait_until(lambda: found() == ({"for": "gil", "timeout": False, "objects": []}, None))


@pytest.mark.needs_root
def test_damaged(interp, start):
    """What is no lock any more is not told as one, and an owner that is no thread is none."""
    child = start(interp.argv_of("""
import ctypes, gc, sys, threading
gc.disable()
def takes(lock, taken):
    lock.acquire()
    taken.set()
    with lock:
        pass
def words(o):
    return ctypes.cast(id(o), ctypes.POINTER(ctypes.c_uint64))
rlock, lock, taken = threading.RLock(), threading.Lock(), threading.Event()
rlock.acquire()
for l in rlock, lock:
    threading.Thread(target=takes, args=(l, taken), daemon=True).start()
taken.wait()
print("taken", flush=True)
sys.stdin.readline()
keep = words(lock)[1], words(rlock)[3]
words(lock)[1] = 0x7ffffffffff0
words(rlock)[3] = 0xdeadbeef
print("damaged", flush=True)
sys.stdin.buffer.raw.readline()
words(lock)[1], words(rlock)[3] = keep
"""), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def waits():
        return sorted((o["type"], t["waits"].get("owner") == child.pid, t["waits"].get("owner_ident") == 0xdeadbeef)
                      for t in threads(child.pid).values() if t["waits"] for o in t["waits"]["objects"][:1])
    assert child.stdout.readline() == "taken\n"
    harness.wait_until(lambda: waits() == [("threading.Lock", False, False), ("threading.RLock", True, False)])
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "damaged\n"
    assert waits() == [("threading.RLock", False, True)]
    child.stdin.close()
    assert child.wait() == 0


@pytest.mark.needs_root
@pytest.mark.interps("3.9", "3.11", "3.14")
def test_what_becomes_another_object(interp, start):
    """While it is read, a lock becomes something else and a lock again: who waits for it, and who has it, may be told or not."""
    child = start(interp.argv_of("""
import ctypes, os, threading
def holds(lock, taken):
    with lock:
        taken.set()
        threading.Event().wait()
def wants(lock):
    lock.acquire()
lock, taken = threading.Lock(), threading.Event()
threading.Thread(target=holds, args=(lock, taken), daemon=True).start()
taken.wait()
threading.Thread(target=wants, args=(lock,), daemon=True).start()
word = ctypes.cast(id(lock) + 8, ctypes.POINTER(ctypes.c_uint64))
a, b = id(type(lock)), id(dict)
os.write(1, b"ready\\n")
while True:
    word[0] = b
    word[0] = a
"""), stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    for _ in range(60):
        found = [o["type"] for t in threads(child.pid).values() if t["waits"] for o in t["waits"]["objects"]]
        assert set(found) <= {"threading.Lock", "threading.Condition", "threading.Event"}, found


@pytest.mark.needs_root
def test_no_deadlock(interp, start):
    """Threads that wait for each other one after the other, and never at the same time."""
    child = start(interp.argv_of("""
import sys, threading
a, b, c, d = threading.RLock(), threading.RLock(), threading.Lock(), threading.Lock()
meet = threading.Barrier(3)
def takes():
    while True:
        for first, second in (a, b), (b, a), (c, d), (d, c):
            with first, second:
                pass
            meet.wait()
threads = [threading.Thread(target=takes, daemon=True) for _ in range(3)]
for t in threads:
    t.start()
print("ready", flush=True)
sys.stdin.readline()
"""), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    for _ in range(40):
        found = threads(child.pid).values()
        assert len(found) == 4 and not any(t["waits"] and "deadlock" in t["waits"] for t in found), found
    child.stdin.close()
    assert child.wait() == 0


@pytest.mark.needs_root
def test_a_wait_and_its_stack(interp, start):
    """Threads that wait in one place after the other: what is told of a wait is what the stack that is told waits for."""
    child = start(interp.argv_of("""
import queue, sys, threading
def in_queue(q):
    q.get()
def in_event(e):
    e.wait()
def in_barrier(b):
    b.wait()
def in_lock(l):
    with l:
        pass
queues, events, barrier, lock = [queue.Queue() for _ in range(4)], [threading.Event() for _ in range(4)], threading.Barrier(4), threading.Lock()
def runs(i):
    while True:
        queues[(i + 1) % 4].put(0)
        in_queue(queues[i])
        events[(i + 1) % 4].set()
        in_event(events[i])
        events[i].clear()
        in_lock(lock)
        in_barrier(barrier)
for i in range(4):
    threading.Thread(target=runs, args=(i,), daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
"""), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    types = {"in_queue": "queue.Queue", "in_event": "threading.Event", "in_barrier": "threading.Barrier", "in_lock": "threading.Lock"}
    for _ in range(60):
        for t in threads(child.pid).values():
            functions = [f["function"] for f in t["frames"]]
            if t["waits"] and t["waits"]["for"] == "lock" and (inside := types.keys() & set(functions)):
                # A Condition's own lock is waited for in __enter__ and __exit__.
                assert t["waits"]["objects"][-1]["type"] == types[inside.pop()] or functions[0].endswith("__"), (functions, t["waits"])
    child.stdin.close()
    assert child.wait() == 0
