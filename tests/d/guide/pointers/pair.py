import os
import struct

fd = os.open("/dev/null", os.O_WRONLY)
os.write(fd, struct.pack("<ih2s", 7, -2, b"xy"))
