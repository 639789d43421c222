"""Calls whose number can be told by reading: three greetings, and a loop that is counted down."""


def greet(name):
    return "hello " + name


def count(n):
    return count(n - 1) if n else 0


for name in ("ann", "bob", "cleo"):
    greet(name)
count(4)
