"""
Threads that change the same objects all the time, and others whose calls have these as arguments.  A number that is stored
is a multiple of 2**40, a text is of one letter; the next one frees it.
"""
import sys
import threading


class Pair:
    def __init__(self):
        self.number = 2**40
        self.name = "n" * 40


class Slot:
    __slots__ = ("own",)


pair, slot, items, table = Pair(), Slot(), [], {"key": 2**40}
slot.own = 2**40
stop = False


def probe(pair, slot, items, table):
    return pair


def change():
    n = 0
    while not stop:
        n += 1
        number = (n % 1000 + 1) << 40
        pair.number, pair.name = number + 2**40, chr(97 + n % 26) * 40
        slot.own = number + 2**40
        table["key"] = number + 2**40
        table[n % 50] = str(n)
        if n % 50 == 49:
            for i in range(50):
                table.pop(i, None)
        items.append(number + 2**40)
        if len(items) > 100:
            items.clear()


def call(n):
    for _ in range(n):
        probe(pair, slot, items, table)


threads, n = map(int, sys.argv[1:])
changers = [threading.Thread(target=change) for _ in range(2)]
callers = [threading.Thread(target=call, args=(n,)) for _ in range(threads)]
for t in changers + callers:
    t.start()
for t in callers:
    t.join()
stop = True
for t in changers:
    t.join()
print("own calls", threads * n)
