import os
import threading


def f(n):
    try:
        os.getsid(n)
    except OSError:     # there need not be such a process
        pass
    barrier.wait()
    try:
        os.getpgid(0)
    except OSError:
        pass


barrier = threading.Barrier(3)
threads = [threading.Thread(target=f, args=(n,)) for n in (0, 7, 9)]
for t in threads:
    t.start()
for t in threads:
    t.join()
