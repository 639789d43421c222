import sys

n = dict.fromkeys(("down", "caught", "leaf", "chain", "__getattr__", "__eq__", "attempt"), 0)


def down():
    n["down"] += 1
    return down()


def caught(depth):
    n["caught"] += 1
    try:
        caught(depth + 1)
    except RecursionError:
        leaf(depth)


def leaf(depth):
    n["leaf"] += 1
    if depth % 100 == 0:
        leaf(depth + 1)


def chain():
    n["chain"] += 1
    yield from chain()


class Endless:
    def __getattr__(self, name):
        n["__getattr__"] += 1
        return getattr(self, name + "x")

    def __eq__(self, other):
        n["__eq__"] += 1
        return sorted([self, other], key=lambda x: x == other)


def attempt(fn, *args):
    n["attempt"] += 1
    try:
        fn(*args)
    except RecursionError:
        pass


for limit in 1000, 300, 150:
    sys.setrecursionlimit(limit)
    attempt(down)
    attempt(caught, 0)
    attempt(lambda: next(chain()))
    attempt(lambda: Endless().x)
    attempt(lambda: Endless() == 1)
sys.setrecursionlimit(1000)
for name, count in n.items():
    print(name, count)
