"""Calls of all kinds, whose stacks are kept as they come and go."""
import sys
import threading

leaf = lambda n: n


def rec(n, f):
    if n:
        return rec(n - 1, f)
    return f()


def deeper(f, *args):
    return f(*args)


def inner():
    try:
        leaf(1)
        yield 1
        leaf(2)
    except ValueError:
        leaf(3)
        yield 7
    finally:
        leaf(4)


def outer():
    leaf(5)
    yield from inner()
    leaf(6)


def outmost():
    yield from outer()


def resume(g):
    return next(g)


def thrower(g):
    try:
        g.throw(ValueError)
    except (StopIteration, ValueError):
        leaf(7)


def closer(g):
    g.close()


def profile(frame, event, arg):
    rec(2, lambda: None)


class Thing:
    def __init__(self):
        leaf(8)

    def __del__(self):
        leaf(9)

    @property
    def p(self):
        return leaf(10)


def make():
    return rec(2, Thing)


def make_again():
    return rec(2, Thing)


async def co(n):
    if n:
        return await co(n - 1)
    return leaf(11)


def boom():
    raise KeyError


def run():
    for use in (thrower, closer), (thrower, thrower, thrower), (resume, closer), (closer,):
        g = outmost()
        resume(g)
        for k, f in enumerate(use):
            try:
                deeper(deeper, f, g) if k % 2 else f(g)
            except StopIteration:
                pass
    for _ in range(10):
        make().p
        make_again().p
    try:
        co(5).send(None)
    except StopIteration:
        pass
    rec(30, lambda: leaf(12))
    rec(150, lambda: leaf(12))
    sorted([3, 1, 2], key=lambda v: (leaf(v), v)[1])
    try:
        rec(4, boom)
    except KeyError:
        leaf(13)
    [*map(lambda v: deeper(leaf, v), range(3))]
    exec("def made(): pass\nmade()", {})
    sys.setprofile(profile)
    deeper(leaf, 1)
    sys.setprofile(None)


def main(waits):
    if waits:
        print("ready", flush=True)
        sys.stdin.readline()
    run()
    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    run()


rec(10, lambda: main(sys.argv[1:] != ["now"]))
