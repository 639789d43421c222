class Meta(type):
    def __new__(mcls, name, bases, ns):
        return super().__new__(mcls, name, bases, ns)


class Base(metaclass=Meta):
    x = 1

    class Inner:
        y = 2

    def __init__(self):
        self.z = __class__

    def __eq__(self, other):
        return True

    def __del__(self):
        pass


a = Base()
a == Base()
[a].index(Base())
sorted([3, 1, 2], key=lambda v: -v)
del a
