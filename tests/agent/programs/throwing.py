def stubborn():
    try:
        yield 1
    except ValueError:
        yield 2
    finally:
        done = 1


def plain():
    yield 1
    yield 2


def outer():
    yield from stubborn()


g = stubborn()
next(g)
g.throw(ValueError("x"))
g.close()
g = plain()
next(g)
try:
    g.throw(KeyError("k"))
except KeyError:
    pass
g = outer()
next(g)
g.throw(ValueError("y"))
list(g)
