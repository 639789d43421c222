import os

fd = os.open("/dev/null", os.O_WRONLY)
os.write(fd, b"hello, world!\0")
