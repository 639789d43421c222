class Mine(Exception):
    def __init__(self, n):
        super().__init__(n)
        self.n = n

    def __str__(self):
        return "mine"


def a():
    try:
        b()
    except Mine as e:
        str(e)
        raise
    else:
        pass


def b():
    try:
        c()
    finally:
        cleanup()


def c():
    d(lambda: (_ for _ in ()).throw(Mine(1)))


def d(fn):
    fn()


def cleanup():
    try:
        raise KeyError
    except (KeyError, ValueError):
        return


def assertion(x):
    assert x, fail()


def fail():
    return "bad"


for fn in a, lambda: assertion(0), lambda: {}["x"], lambda: None.x, lambda: int("x"), lambda: next(iter(())):
    try:
        fn()
    except Exception as e:
        type(e)
try:
    sorted([1, 2], key=lambda x: a())
except Mine:
    pass
