import _thread
import threading
import time


def work(n):
    for i in range(n):
        leaf(i)


def leaf(i):
    return i


class Own(threading.Thread):
    def run(self):
        leaf(-1)


def raw():
    leaf(7)
    finished.append(1)


for n in range(3):
    t = threading.Thread(target=work, args=(n,))
    t.start()
    t.join()
t = Own()
t.start()
t.join()
