def deep(n):
    if n == 0:
        raise ValueError(n)
    deep(n - 1)


def middle():
    try:
        deep(2)
    finally:
        x = 1


def caught():
    try:
        middle()
    except ValueError as e:
        return str(e)


def chained():
    try:
        caught()
        1 / 0
    except ZeroDivisionError as e:
        raise KeyError("k") from e


caught()
try:
    chained()
except KeyError:
    pass
with open("/dev/null") as f:
    y = 2
