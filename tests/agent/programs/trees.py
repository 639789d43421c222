class Node:
    def __init__(self, value, *children):
        self.value = value
        self.children = children

    def walk(self):
        yield self.value
        for child in self.children:
            yield from child.walk()

    def __iter__(self):
        return self.walk()

    def depth(self):
        return 1 + max((c.depth() for c in self.children), default=0)


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


tree = Node(1, Node(2, Node(3)), Node(4))
list(tree)
tree.depth()
even(7)
it = iter(tree)
next(it)
del it
any(v > 2 for v in tree)
