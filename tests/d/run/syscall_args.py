import os

f = os.open("/dev/zero", os.O_RDONLY)
os.read(f, 77)
os.readv(f, [bytearray(10), bytearray(20)])
os.pipe()
