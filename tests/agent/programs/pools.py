import concurrent.futures
import threading


def square(n):
    return n * n


def run():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return list(pool.map(square, range(3))), pool.submit(square, 4).result()


local = threading.local()
lock = threading.Lock()


def guarded():
    with lock:
        local.x = 1


guarded()
timer = threading.Timer(0.01, guarded)
timer.start(), timer.join()     # on one line: which of the threads goes on first is nobody's
