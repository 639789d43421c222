import ctypes

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
assert libc.mmap(0x210000000000, 4096, 3, 0x32, -1, 0) == 0x210000000000
ctypes.memmove(0x210000000000, b"same\0some more", 15)
ctypes.memmove(0x210000000100, b"same\0" + b"other" * 20, 105)


def key_of_memory():
    pass


key_of_memory()
