"""What the kernel of a notebook does: each cell is compiled under a file name of its own."""
cells = ["def load(n):\n    return list(range(n))\n", "rows = load(1000)\n", "def mean(v):\n    return sum(v) / len(v)\n",
         "for i in range(5):\n    mean(rows)\n"]
space = {"__name__": "__main__"}
for number, cell in enumerate(cells):
    exec(compile(cell, f"/tmp/ipykernel_1/{number}.py", "exec"), space)
