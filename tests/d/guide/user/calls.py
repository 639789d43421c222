import os


def outer(n):
    inner(n)
    inner(n + 1)


def inner(n):
    os.getppid()


outer(3)
