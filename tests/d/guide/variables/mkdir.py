import os

try:
    os.mkdir("/no/such/folder")
except OSError:
    pass
