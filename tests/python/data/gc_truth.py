# Collects garbage, and writes to the file named by its argument what gc.callbacks saw of it: "start 2",
# "done 1", one event a line.
import gc
import sys

seen = []


def callback(phase, info):
    if phase == "start":
        seen.append("start %d" % info["generation"])
    else:
        seen.append("done %d" % (info["collected"] + info["uncollectable"]))


class Node:
    pass


def cycle():
    node = Node()
    node.self = node


gc.collect()
gc.callbacks.append(callback)
sys.audit("dtap.begin")

for generation in (0, 1, 2):
    gc.collect(generation)
for count in (1, 2, 40):
    for _ in range(count):
        cycle()
    gc.collect()
# Collections that nobody asked for.
kept = [[] for _ in range(20000)]
for _ in range(5000):
    cycle()
gc.collect()

sys.audit("dtap.end")
gc.callbacks.remove(callback)
with open(sys.argv[1], "w") as truth:
    truth.write("\n".join(seen) + "\n")
