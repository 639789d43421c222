import os

try:
    os.open("/no/such/file", os.O_RDONLY)
except OSError:
    pass
