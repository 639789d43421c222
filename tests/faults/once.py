"""A traced program that does its work and ends."""
import os
import sys


def probe(n):
    return n + 1


os.write(1, b"\nbegun\n")
total = 0
for k in range(40):
    total += probe(k)
os.write(1, b"\nresult %d\n" % total)
sys.exit(0)
