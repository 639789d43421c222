import contextlib


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return exc[0] is ValueError


@contextlib.contextmanager
def managed(n):
    try:
        yield n
    except KeyError:
        pass
    finally:
        n += 1


def use():
    with Manager() as a, managed(1) as b:
        c = a, b
    with Manager():
        raise ValueError
    with managed(2):
        raise KeyError
    with contextlib.suppress(OSError):
        open("/nowhere")
    with Manager():
        return c


use()
for i in range(2):
    with managed(i):
        continue
