def a():
    pass


def b():
    a()
    a()
    a()


b()
b()
