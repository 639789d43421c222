# Calls step() until a file named "stop" appears in the folder of its argument; writes there its pid, the
# rounds it has done, and in the end the verdict on its own counting.
import os
import sys

folder = sys.argv[1]
STEPS = 500


def write(name, text):
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as out:
        out.write(text)
    os.rename(path + ".new", path)


def step(total):
    return total + 1


write("pid", str(os.getpid()))
total = rounds = 0
while not os.path.exists(os.path.join(folder, "stop")):
    for _ in range(STEPS):
        total = step(total)
    sys.audit("dtap.round", rounds)
    rounds += 1
    write("rounds", str(rounds))
write("result", "correct" if total == rounds * STEPS else "wrong: %d in %d rounds" % (total, rounds))
