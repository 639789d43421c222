add = lambda a, b: a + b
table = {"x": lambda: 1, "y": lambda: (
    2 +
    3)}
compose = lambda *fns: (lambda x: [x := fn(x) for fn in fns][-1])
add(1, 2)
[fn() for fn in table.values()]
compose(lambda x: x + 1, lambda x: x * 2)(3)
sorted("bca", key=lambda c: ord(c))
list(map(lambda a, b=1: a - b, [1, 2]))
list(filter(lambda n: n % 2, range(3)))
(lambda: (yield))()
next((lambda: (yield 1))())
