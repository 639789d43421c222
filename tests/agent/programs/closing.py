def plain():
    yield 1
    yield 2


def guarded():
    try:
        yield 1
    finally:
        done = True


g = guarded()
next(g)
g.close()
g = plain()
next(g)
g.close()
g = plain()
g.close()
