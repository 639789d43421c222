def many(a, b=2, *args, c, d=4, **kwargs):
    return a, b, args, c, d, kwargs


def defaults(x=[i for i in range(2)], y=(lambda: 1)()):
    return x, y


def annotated(a: int, b: "str" = "") -> list:
    c: int = 1
    return [*a, *b, c]


many(1, c=3)
many(*[1, 2, 3], **{"c": 1, "e": 5})
many(
    1,
    2,
    c=defaults(),
    d=annotated(
        [],
    ),
)
first, (second, *rest) = 1, (2, 3, 4)
x = y = defaults()[0][0]
x += 1
print(*[], sep="", end="", file=open("/dev/null", "w"))
