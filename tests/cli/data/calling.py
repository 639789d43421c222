"""Calls of all shapes; with "witness" as argument it prints what sys.setprofile counts: calls by function, and by path."""
import collections
import json
import sys
import threading
import time

calls, paths = [], []        # appending is one step, for threads, too


def profile(frame, event, arg):
    if event != "call" or frame.f_code.co_filename != __file__:
        return
    name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    calls.append(frame.f_code.co_name)
    path = [name]
    while (frame := frame.f_back):
        if frame.f_code.co_filename == __file__:
            path.append(getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
    paths.append(";".join(reversed(path)))


def leaf(n):
    return n


def recurses(n):
    return leaf(n) if n == 0 else recurses(n - 1)


def generates(n):
    for i in range(n):
        yield leaf(i)


def raises():
    raise ValueError


def catches():
    try:
        raises()
    except ValueError:
        pass


class Shop:
    def __init__(self):
        self.n = 0

    def sell(self, n):
        for i in range(n):
            self.n += leaf(i)

    @staticmethod
    def close():
        return sum(x for x in generates(3))


def nap():
    time.sleep(0.05)


def outer():
    shop = Shop()
    shop.sell(7)
    shop.close()
    recurses(5)
    sorted([3, 1, 2], key=leaf)
    catches()
    nap()


def main():
    for _ in range(3):
        outer()
    threads = [threading.Thread(target=outer) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if "witness" in sys.argv:
    threading.setprofile(profile)
    sys.setprofile(profile)
main()
sys.setprofile(None)
if "witness" in sys.argv:
    print(json.dumps([collections.Counter(calls), collections.Counter(paths)]))
