def one_line(): return 1


def loops(n):
    for i in range(n): pass
    while n: n -= 1
    total = (1 +
             one_line() +
             3)
    return total


one_line()
loops(3)
(lambda: 1)()
print(one_line(),
      loops(1), file=open("/dev/null", "w"))
