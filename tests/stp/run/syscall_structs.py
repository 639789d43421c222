import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import tempfile

os.chdir(tempfile.mkdtemp())
open("stamp", "w").close()
text = b"b" * 46
null = os.open("/dev/null", os.O_WRONLY)
libc = ctypes.CDLL(None)
libc.prctl.argtypes = [ctypes.c_long] * 5


def attempt(f, *args):
    try:
        return f(*args)
    except OSError:
        pass


os.getpriority(os.PRIO_PROCESS, 0)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind(("127.0.0.1", 0))
try:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP) as s:
        attempt(s.connect, ("::1", 9))
except OSError:
    pass
with socket.socket(socket.AF_UNIX) as s:
    attempt(s.connect, "/no/such/socket")
    attempt(s.connect, "\0nobody")
resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))
signal.setitimer(signal.ITIMER_VIRTUAL, 7.25)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, signal.SIG_DFL)
os.utime("stamp", ns=(1000000005, 2000000000))
os.utime("stamp")
select.select([null], [null], [])
select.select([], [], [], 0.001)
libc.prctl(3, 0, 0, 0, 0)
libc.prctl(4, 1, 0, 0, 0)
libc.prctl(23, 5, 0, 0, 0)
os.write(null, text)
os.mkfifo("fifo", 0o600)
fcntl.flock(null, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.fcntl(null, fcntl.F_GETFL)
os.getpriority(os.PRIO_PROCESS, 0)
