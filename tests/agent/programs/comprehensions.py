def f(n):
    a = [i for i in range(n)]
    b = {i: j for i in range(2) for j in range(2)}
    c = {i for i in a if i % 2}
    d = (i for i in a)
    return list(d), b, c


f(3)
pairs = [(x,
          y)
         for x in range(2)
         for y in range(2)]
nested = [[j for j in range(i)] for i in range(3)]
