"""Ask for the parent's pid from all kinds of Python code, each time after saying what the stack is."""
import asyncio
import os
import sys
import threading


def say(frame):
    stack = []
    while frame:
        code = frame.f_code
        stack.append(f"[ {code.co_filename}:{frame.f_lineno} ({getattr(code, 'co_qualname', code.co_name)}) ]")
        frame = frame.f_back
    sys.stdout.buffer.write("\n".join(stack[:100] + ["", ""]).encode())
    sys.stdout.buffer.flush()


def leaf(): say(sys._getframe()); os.getppid()


def nested(n):
    if n:
        nested(
            n - 1
        )
    else:
        leaf()


class Owner:
    def method(self):
        return [leaf() for _ in range(2)]


def generator():
    yield from inner_generator()


def inner_generator():
    leaf()
    yield 1


async def coroutine():
    await asyncio.sleep(0)
    leaf()


async def outer_coroutine():
    await coroutine()


def caught():
    try:
        1 / 0
    except ZeroDivisionError:
        sorted([2, 1], key=lambda x: leaf() or x)



print("ready", flush=True)
sys.stdin.readline()
nested(3)
nested(150)
Owner().method()
for _ in generator():
    pass
asyncio.run(outer_coroutine())
caught()
thread = threading.Thread(target=nested, args=(1,))
thread.start()
thread.join()
exec(compile("\n\ndef made_up():\n\n  leaf()\nmade_up()", "<made up, ł>", "exec"))
exec("def zażółć(): leaf()\nzażółć()")
exec("def \u16a0\U00020000(): leaf()\n\u16a0\U00020000()")
exec(compile("x = 1\n" * 1500 + "leaf()\n", "long.py", "exec"))
exec(compile("def " + "n" * 200 + "(): leaf()\n" + "n" * 200 + "()", "d/" * 240 + "x.py", "exec"))
if not os.fork():
    nested(0)
    os._exit(0)
os.wait()
