import gc


class Node:
    pass


for i in range(3):
    a, b = Node(), Node()
    a.b, b.a = b, a
    del a, b
    gc.collect(i)
gc.collect()
