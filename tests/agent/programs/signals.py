import signal
import time
import weakref


def handler(number, frame):
    return number


class Thing:
    pass


def gone(ref):
    return None


signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
time.sleep(0.2)
thing = Thing()
ref = weakref.ref(thing, gone)
del thing


def leave(n):
    if n == 0:
        raise SystemExit(0)
    leave(n - 1)


leave(3)
