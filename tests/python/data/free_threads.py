"""Threads that make calls at the same time, and what they made, as rows "own NAME COUNT"."""
import gc
import os
import sys
import threading
import warnings


class Odd(Exception):
    pass


def leaf(i):
    if i % 10 == 0:
        try:
            raise Odd
        except Odd:
            pass
    return abs(i)


def work(n):
    for i in range(n):
        leaf(i)


def run(threads, n):
    """Calls of leaf by so many threads, which begin together."""
    all_there = threading.Barrier(threads)

    def begin():
        all_there.wait()
        work(n)

    started = [threading.Thread(target=begin) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def show(**counts):
    print("".join(f"own {name} {count}\n" for name, count in counts.items()), end="", flush=True)


def main(how, threads, n):
    calls = threads * n
    if how == "waits":
        print("ready", flush=True)
        sys.stdin.readline()
    if how == "forks":
        warnings.simplefilter("ignore")     # of a fork with threads
        busy = threading.Event()
        stays = threading.Thread(target=lambda: [work(n), busy.wait()])
        stays.start()
        child = os.fork()
        if not child:
            run(threads, n)
            os._exit(0)
        os.waitpid(child, 0)
        busy.set()
        stays.join()
        calls += n
    run(threads, n)
    if how == "forks":
        calls += threads * n
    gc.collect()
    show(leaf=calls, Odd=calls // 10, abs=calls)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
