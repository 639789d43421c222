def loop(n):
    while True:
        try:
            n -= 1
            if n % 2:
                continue
            if n < 0:
                break
        finally:
            n -= 1
    else:
        n = 0
    for i in range(3):
        if i == 1:
            break
    else:
        n = 1
    return n


def early(n):
    try:
        return n
    finally:
        n = 2


def swallow():
    for i in range(2):
        try:
            1 / 0
        except ZeroDivisionError:
            continue
        finally:
            i = 5


def ternary(a, b, c):
    return (a if b
            else c) and (a or
                         b)


def chained(a):
    return 0 < a < 10 and not a == 5


loop(7)
early(1)
swallow()
ternary(1, 0, 2)
ternary(0, 1, 2)
chained(3)
del loop
assert chained(4), "no"
