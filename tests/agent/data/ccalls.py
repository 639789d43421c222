import math


class Thing(list):
    def append(self, x):
        super().append(x)


def work(n):
    text = "a,b".split(",")
    text.append(str(n))
    len(text)
    try:
        int("x")
    except ValueError:
        pass
    return sorted(text, key=lambda t: t.upper())


for i in range(2):
    work(i)
math.sqrt(4)
list(map(len, ["a", "b"]))
Thing().append(1)
bound = [].append
bound(1)
getattr(math, "floor")(1.5)
{}.get(1)
try:
    math.sqrt(-1)
except ValueError:
    pass
print("x", end="", file=open("/dev/null", "w"))
