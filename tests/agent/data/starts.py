import _thread
import threading
import time


def raw():
    done.append(1)


done = []
for i in range(3):
    thread = threading.Thread(target=raw)
    thread.start()
    thread.join()
_thread.start_new_thread(raw, ())
while len(done) < 4:
    time.sleep(0.01)
