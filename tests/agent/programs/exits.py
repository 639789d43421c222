import sys


def deep(n):
    try:
        if n:
            deep(n - 1)
        else:
            sys.exit(0)
    finally:
        last = n


def generator():
    try:
        yield deep(1)
    except SystemExit:
        yield 2
        raise


try:
    deep(2)
except SystemExit:
    pass
list_ = []
try:
    for x in generator():
        list_.append(x)
except SystemExit:
    pass
deep(3)
