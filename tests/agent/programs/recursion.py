def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def down(n):
    if n:
        return down(n - 1)
    raise ValueError


fib(6)
try:
    down(300)
except ValueError:
    pass
