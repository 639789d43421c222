"""Work of known shape for the scripts of share/scripts: calls, sleep, sums, system calls, memory."""
import os
import time


def leaf():
    return os.getppid()


def work(n):
    for _ in range(n):
        leaf()


def nap():
    time.sleep(0.05)


def spin():
    end = time.process_time() + 0.25
    while time.process_time() < end:
        sum(range(1000))


def big():
    for _ in range(7):
        bytearray(100_000)


def outer():
    nap()
    spin()


work(5)
outer()
big()
