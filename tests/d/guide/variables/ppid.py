import os

os.getppid()
