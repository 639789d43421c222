class Field:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner):
        return 1

    def __set__(self, obj, value):
        pass


class Base:
    def __init_subclass__(cls, **kw):
        cls.kw = kw

    def __class_getitem__(cls, item):
        return item


class Thing(Base, tag=1):
    field = Field()

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, v):
        self._value = v

    @classmethod
    def make(cls):
        return cls()

    def __getattr__(self, name):
        if name == "_value":
            return 7
        raise AttributeError(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


t = Thing.make()
t.field = t.field
t.value
t.value = 3
Thing[int]
hasattr(t, "nothing")
type("Made", (Thing,), {"f": lambda self: 1})().f()
