import os


def inside():
    pass


def away():
    pass


os.chdir("/usr/share")
inside()
inside()
os.chdir("/")
inside()
away()
