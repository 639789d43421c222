# Calls leaf() here and in processes of several kinds; the arguments name the kinds.  Each adds another power of ten, so the
# digits of the sum tell which were seen: 1 call here, 10 by fork ...
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings

warnings.simplefilter("ignore")         # of forking with threads, which is the point


def leaf():
    pass


def many(count):
    for _ in range(count):
        leaf()


def forked(count):
    pid = os.fork()
    if not pid:
        many(count)
        os._exit(0)
    os.waitpid(pid, 0)


def pooled(count):
    process = multiprocessing.get_context("fork").Process(target=many, args=(count,))
    process.start()
    process.join()


def forked_from_thread(count):
    thread = threading.Thread(target=forked, args=(count,))
    thread.start()
    thread.join()


PROGRAM = "def leaf(): pass\nfor _ in range(%d): leaf()"


def executed(count):
    subprocess.run([sys.executable, "-c", PROGRAM % count], check=True)


def by_shell(count):
    subprocess.run(["sh", "-c", '"$0" -c "$1"; true', sys.executable, PROGRAM % count], check=True)


if __name__ == "__main__":
    many(1)
    for digit, kind in enumerate(sys.argv[1:], 1):
        globals()[kind](10 ** digit)
