import functools


def outer(arg):
    def wrap(fn):
        @functools.wraps(fn)
        def inner(*args):
            return fn(*args)
        return inner
    return wrap


@outer(1)
@outer(2)
def add(a, b):
    return a + b


class Thing:
    @property
    def value(self):
        return 1

    @staticmethod
    @outer(3)
    def static():
        pass


add(1, 2)
Thing().value
Thing.static()
