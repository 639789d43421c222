import sys

source = """
def f(x):
    return g(x) + 1

def g(x):
    return x
f(1)
"""
exec(source)
eval("f(2)")
exec(compile("h = lambda: 3\nh()\n", __file__ if "__file__" in globals() else sys.argv[-1], "exec"))
code = compile("[i for i in range(2)]\n", sys.argv[-1], "eval")
for i in range(2):
    eval(code)
namespace = {}
exec("class C:\n    def m(self): return 1\nC().m()", namespace)
