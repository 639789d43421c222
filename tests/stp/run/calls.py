"""Calls of functions of this file's own: outer() twice, each calls inner() three times."""


def inner(n):
    return n + 1


def outer(n):
    total = 0
    for i in range(3):
        total += inner(i)
    return total


outer(1)
outer(2)
