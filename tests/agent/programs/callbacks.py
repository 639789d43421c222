import functools


@functools.total_ordering
class Key:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return self.n < other.n

    def __eq__(self, other):
        return self.n == other.n

    def __hash__(self):
        return hash(self.n)

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter(range(self.n))

    def __getitem__(self, i):
        return i

    def __contains__(self, x):
        return x == self.n

    def __bool__(self):
        return True

    def __call__(self, x=0):
        return self.n + x

    def __str__(self):
        return "k%d" % self.n

    __repr__ = __str__


@functools.lru_cache(maxsize=None)
def cached(n):
    return n if n < 2 else cached(n - 1) + cached(n - 2)


keys = [Key(n) for n in (3, 1, 2)]
sorted(keys)
max(keys, key=Key.__len__)
{k: 1 for k in keys}
3 in keys[0], list(keys[1]), str(keys), "%s" % keys[2]
functools.reduce(lambda a, b: a + b, map(Key.__call__, keys))
functools.partial(keys[0], 2)()
cached(5)
a, *b = keys[0]
if keys[0]:
    pass
