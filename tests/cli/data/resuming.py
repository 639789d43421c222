"""
Frames that resume under other callers, in threads and in a child, often enough that no call is new any more; with "witness"
as argument it prints the calls by path that sys.setprofile counts, of the parent and of the child.
"""
import collections
import json
import os
import sys
import threading

paths = []        # appending is one step, for threads, too


def name(frame):
    return getattr(frame.f_code, "co_qualname", frame.f_code.co_name)


def profile(frame, event, arg):
    if event != "call" or frame.f_code.co_filename != __file__:
        return
    path = []
    while frame:
        if frame.f_code.co_filename == __file__:
            path.append(name(frame))
        frame = frame.f_back
    paths.append(";".join(reversed(path)))


class Pair:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return self.n < other.n


def leaf():
    pass


def inner():
    while True:
        try:
            leaf()
            yield
        except KeyError:
            leaf()


def outer():
    yield from inner()


def one(generator):
    next(generator)


def two(generator):
    one(generator)
    next(generator)


def throws(generator):
    generator.throw(KeyError())


def raises(n):
    if not n:
        raise ValueError
    raises(n - 1)


def catches():
    try:
        raises(3)
    except ValueError:
        leaf()


async def waits(n):
    for _ in range(n):
        await Ready()


class Ready:
    def __await__(self):
        yield


def drives():
    coroutines = [waits(2), waits(3)]
    while coroutines:
        for coroutine in list(coroutines):
            try:
                coroutine.send(None)
            except StopIteration:
                coroutines.remove(coroutine)


def works():
    first, second = outer(), outer()
    for _ in range(30):
        one(first)
        two(second)
        throws(first)
        two(first)
        one(second)
        catches()
        drives()
        sorted([Pair(3), Pair(1), Pair(2)])
    first.close()
    second.close()


def main():
    works()
    threads = [threading.Thread(target=works) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def child():
    works()


if "witness" in sys.argv:
    threading.setprofile(profile)
    sys.setprofile(profile)
main()
sys.setprofile(None)
parents, paths = paths, []
pid = os.fork()
if not pid:
    if "witness" in sys.argv:
        threading.setprofile(None)
        sys.setprofile(profile)
    child()
    sys.setprofile(None)
    if "witness" in sys.argv:
        print(json.dumps([collections.Counter(parents), collections.Counter(paths)]), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
