import mmap
import os
import signal
import socket
import tempfile

os.chdir(tempfile.mkdtemp())
os.kill(os.getpid(), signal.SIGCONT)
os.close(os.open("/etc/hostname", os.O_RDONLY))
os.close(os.open("none", os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o640))
mmap.mmap(-1, 81920, mmap.MAP_PRIVATE, mmap.PROT_READ).close()
os.access("none", os.R_OK | os.X_OK)
with open("none", "wb", 0) as file:
    file.write(b"a\tb\n")
    os.lseek(file.fileno(), -2, os.SEEK_END)
for one in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
    one.close()
os.rename("none", "nothing")
os.mkdir("folder", 0o700)
os.unlink("nothing")
try:
    os.rmdir("nowhere")
except OSError:
    pass
os.kill(os.getpid(), signal.SIGCONT)
os.rmdir(os.path.abspath("folder"))
os.rmdir(os.getcwd())
