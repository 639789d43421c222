"""Read lines, three functions of Python and some of C deep."""
import os


def third():
    print("ready", flush=True)
    while os.read(0, 1) != b"q":
        pass


def second(x):
    third()
    return x


def first():
    sorted([1], key=second)


first()
