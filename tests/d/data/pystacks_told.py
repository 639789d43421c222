"""Call a function from all kinds of Python code, which first says what the stack of its caller is."""
import asyncio
import sys
import threading


def say(frame):
    stack = []
    while frame:
        code = frame.f_code
        stack.append(f"[ {code.co_filename}:{frame.f_lineno} ({getattr(code, 'co_qualname', code.co_name)}) ]")
        frame = frame.f_back
    sys.stdout.buffer.write("\n".join(stack[:99] + ["", ""]).encode())
    sys.stdout.buffer.flush()


def told():                             # function-entry
    say(sys._getframe(1))
    try:
        raise KeyError                  # exception-raise
    except KeyError:
        len("")                         # cfunction-entry
    return 1                            # function-return


def nested(n):
    return nested(n - 1) if n else told()


def generator():
    for n in range(2):
        yield [told()
               for _ in range(n)]
        yield nested(n)


async def coroutine():
    await asyncio.sleep(0)
    sorted([2, 1], key=lambda x: told())


class Thing:
    def __lt__(self, other):
        return told()


print("ready", flush=True)
sys.stdin.readline()
nested(150)
for _ in generator():
    told()
asyncio.run(coroutine())
sorted([Thing(), Thing()])
thread = threading.Thread(target=nested, args=(1,))
thread.start()
thread.join()
exec("def zażółć(): told()\nzażółć()")
exec(compile("def " + "n" * 200 + "(): told()\n" + "n" * 200 + "()", "d/" * 200 + "x.py", "exec"))
exec(compile("x = 1\n" * 2500 + "told()\n", "long.py", "exec"))
