# Call leaf() as often as the first argument says, from as many threads as the second.
import sys, threading

def leaf():
    pass

def work(calls):
    for _ in range(calls):
        leaf()

calls, threads = map(int, sys.argv[1:])
started = [threading.Thread(target=work, args=(calls // threads,)) for _ in range(threads)]
for thread in started:
    thread.start()
for thread in started:
    thread.join()
