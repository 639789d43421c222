import ctypes
import sys
import time


def work():
    total = 0
    for i in range(3):
        total += i
    return total


def trace(frame, event, arg):
    return trace


def fail(frame, event, arg):
    if frame.f_code is work.__code__:
        raise ValueError
    return fail


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
def from_c(obj, frame, what, value):
    return 0


def failing():
    try:
        work()
    except ValueError:
        pass


set_trace = ctypes.pythonapi.PyEval_SetTrace
set_trace.argtypes = [ctypes.c_void_p, ctypes.py_object]
time.sleep(0.05)
work()
sys.settrace(trace)
work()
sys.settrace(None)
work()
set_trace(ctypes.cast(from_c, ctypes.c_void_p), from_c)
time.sleep(0.1)
work()
set_trace(None, None)
time.sleep(0.1)
work()
sys.settrace(fail)
failing()
work()
