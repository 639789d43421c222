def plain():
    yield 1


g = plain()
try:
    g.throw(KeyError("k"))
except KeyError:
    pass
