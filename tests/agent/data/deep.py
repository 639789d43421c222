import sys
import threading


def down(n):
    return down(n - 1) if n else top()


def top():
    return leaf()


def leaf():
    return 0


def half():
    for i in range(50):
        leaf()


def worker():
    half()
    started.set()
    over.wait()
    half()


started = threading.Event()
over = threading.Event()
thread = threading.Thread(target=worker)
thread.start()
started.wait()
depth = 12000 if sys.version_info < (3, 11) else 40000
sys.setrecursionlimit(depth + 100)
for i in range(3):
    down(depth)
sys.setrecursionlimit(1000)
top()
over.set()
thread.join()
print("down", 3 * (depth + 1))
print("top", 4)
print("leaf", 104)
print("half", 2)
print("worker", 1)
