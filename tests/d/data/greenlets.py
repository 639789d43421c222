"""Functions that run in greenlets, whose frames are put aside and come back in the middle of others' calls."""
import threading

from greenlet import greenlet, getcurrent

leaf = lambda n: n


def deep(n, other):
    leaf(n)
    if n:
        deep(n - 1, other)
    elif other:
        other.switch(n)
    leaf(-n)


def generates(n):
    for k in range(n):
        leaf(k)
        getcurrent().parent.switch(k)
        yield k


def runs(n):
    for k in generates(n):
        deep(k, getcurrent().parent)
    return n


def raises(n):
    try:
        deep(n, getcurrent().parent)
        raise KeyError(n)
    finally:
        leaf(n)


def work():
    several = [greenlet(runs) for k in range(3)]
    for k, g in enumerate(several):
        g.switch(4)
    for n in range(12):
        for g in several:
            if g:
                deep(n % 3, g)
    g = greenlet(raises)
    g.switch(3)
    try:
        g.switch()
    except KeyError:
        leaf(100)
    g = greenlet(raises)
    g.switch(2)
    try:
        g.throw(ValueError)
    except ValueError:
        leaf(101)
    g = greenlet(raises)
    g.switch(1)
    del g               # ends in it
    leaf(102)


for k in range(2):
    work()
threads = [threading.Thread(target=work) for k in range(3)]
for t in threads: t.start()
for t in threads: t.join()
