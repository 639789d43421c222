"""A process whose two threads wait for each other; its number is printed."""
import os
import threading

accounts = threading.RLock()
journal = threading.RLock()
both = threading.Barrier(2)


def transfers():
    with accounts:
        both.wait()
        with journal:
            pass


def audits():
    with journal:
        both.wait()
        with accounts:
            pass


child = os.fork()
if child:
    print(child)
else:
    os.close(1)
    other = threading.Thread(target=audits)
    other.start()
    transfers()
