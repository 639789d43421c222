SOURCE = """x = 1
def down(n):
    if n:
        return down(n - 1)
    return bottom()

def bottom():
    return 0

for n in range(200):
    down(n)
for _ in range(3):
    down(0)
"""
exec(compile(SOURCE, "x.py", "exec"))
