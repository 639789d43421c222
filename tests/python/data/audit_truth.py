# Raises audit events, and writes to the file named by its argument the names that an audit hook saw.
import os
import sys

seen = []
on = False


def hook(event, args):
    if on and not event.startswith("dtap.off"):
        seen.append(event)


def work():
    open(os.devnull).close()
    compile("1 + 1", "<here>", "eval")
    exec("x = 1")
    id(seen)
    sys._getframe()
    os.listdir("/")
    for number in range(50):
        sys.audit("dtap.event.%d" % number, number)
    sys.audit("dtap.caf\u00e9")


sys.addaudithook(hook)
# Once untraced: a probe in the kernel cannot read a name on a page that the process has not touched yet.
work()
sys.audit("dtap.begin")
on = True
work()
on = False
sys.audit("dtap.end")
with open(sys.argv[1], "w", encoding="utf-8") as truth:
    truth.write("\n".join(seen) + "\n")
