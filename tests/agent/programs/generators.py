def count(n):
    for i in range(n):
        got = yield i
        if got:
            yield got


def delegate():
    result = yield from count(2)
    return result


list(count(3))
g = count(3)
next(g)
g.send("x")
del g
list(delegate())
sum(x * x for x in range(3))
unused = count(1)
del unused
