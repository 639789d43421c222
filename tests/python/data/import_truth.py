# Imports modules, and writes to the file named by its argument what an audit hook saw of it: "start NAME" for
# each module looked for, in order, then "failed NAME" for those that were not found.
import sys

seen = []
on = False


def hook(event, args):
    # The same event with a file name announces the loading of an extension module: another thing.
    if on and event == "import" and args[1] is None:
        seen.append("start " + args[0])


sys.addaudithook(hook)
sys.audit("dtap.begin")
on = True

import colorsys
import xml.dom.minidom
import wave
import colorsys                         # loaded already: no event
for name in ("dtap_no_such_module", "xml.dtap_no_such_module", "html"):
    try:
        __import__(name)
    except ImportError:
        pass

on = False
sys.audit("dtap.end")
names = [line.split()[1] for line in seen]
failed = ["failed " + name for name in names if name not in sys.modules]
with open(sys.argv[1], "w") as truth:
    truth.write("\n".join(seen + failed) + "\n")
