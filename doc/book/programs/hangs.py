"""A process that waits for a lock that nobody releases; the number of it is printed when it does."""
import os
import _thread


def waits(lock, ready):
    os.close(ready), lock.acquire()


def main():
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        os.read(reader, 1)
        print(child)
        return
    os.close(1)
    lock = _thread.allocate_lock()
    lock.acquire()
    waits(lock, writer)


main()
