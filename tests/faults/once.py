"""A traced program that does its work and ends; with an argument it takes its time."""
import os
import sys
import time


def probe(n):
    return n + 1


os.write(1, b"\nbegun\n")
total = 0
for k in range(40):
    total += probe(k)
    time.sleep(0.02 * (len(sys.argv) - 1))
os.write(1, b"\nresult %d\n" % total)
sys.exit(0)
