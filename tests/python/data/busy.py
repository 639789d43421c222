# Threads that call functions and generators and check what comes out, until a file named "stop" appears in the folder of
# the first argument.  Writes there its pid, the calls it has made, and in the end what it knows of itself: whether
# all sums were right, which hooks are left, how many threads and descriptors there are.
import os
import sys
import threading

folder, count = sys.argv[1], int(sys.argv[2])
calls = [0] * count
wrong = []
stop = False


def write(name, text):
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as out:
        out.write(text)
    os.rename(path + ".new", path)


def add(total, n):
    return total + n


def numbers(n):
    for i in range(n):
        yield i


def fail(depth):
    if depth:
        fail(depth - 1)
    raise ValueError(depth)


def work(me):
    while not stop:
        total = 0
        for i in numbers(100):
            total = add(total, i)
        try:
            fail(5)
        except ValueError as error:
            total += error.args[0]
        if total != 4950:
            wrong.append(total)
        calls[me] += 208


def hooks():
    found = [str(hook) for hook in (sys.getprofile(), sys.gettrace()) if hook]
    if hasattr(sys, "monitoring"):
        found += [name for name in map(sys.monitoring.get_tool, range(6)) if name]
    return found


def open_files():
    return len(os.listdir("/proc/self/fd"))


files = open_files()
write("pid", str(os.getpid()))
threads = [threading.Thread(target=work, args=(me,)) for me in range(count)]
for thread in threads:
    thread.start()
pause = threading.Event()
while not os.path.exists(os.path.join(folder, "stop")):
    pause.wait(0.05)
    write("calls", str(sum(calls)))
stop = True
for thread in threads:
    thread.join()
write("result", "%s, hooks %s, files %+d" % ("wrong %s" % wrong[:3] if wrong else "right", hooks(), open_files() - files))
