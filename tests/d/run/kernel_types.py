import os
import threading

os.setpriority(os.PRIO_PROCESS, 0, 3)
f = os.open("/dev/null", os.O_WRONLY | os.O_APPEND)
t = threading.Thread(target=lambda: os.write(f, b"there"))
t.start()
t.join()
os.write(f, b"here")
