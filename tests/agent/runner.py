"""Run PROGRAM between two lines on stdin: runner.py MODE PROGRAM.

MODE is "markers" (somebody else watches) or a witness, whose events go to stdout, one a line, for code of the
program's own file: "calls" (sys.setprofile), "lines" (sys.settrace), "gc" (gc.callbacks), "audit" (an audit hook),
"ccalls" (C functions by sys.setprofile), "raises" (sys.settrace's exceptions).
"""
import gc
import sys
import threading

mode, program = sys.argv[1:]
events = []


def profile(frame, event, arg):
    if event in ("call", "return") and frame.f_code.co_filename == program:
        events.append("%s %s %d" % (event, frame.f_code.co_name, -1 if frame.f_lineno is None else frame.f_lineno))


def trace(frame, event, arg):
    if event == "line" and frame.f_code.co_filename == program:
        events.append("line %s %d" % (frame.f_code.co_name, frame.f_lineno))
    return trace


def c_profile(frame, event, arg):
    if event.startswith("c_") and frame.f_code.co_filename == program:
        what = "entry" if event == "c_call" else "return"
        events.append("%s %s %d %s" % (what, frame.f_code.co_name, frame.f_lineno, arg.__name__))


def raises(frame, event, arg):
    if event == "exception" and frame.f_code.co_filename == program:
        events.append("%s %s %d" % (arg[0].__name__, frame.f_code.co_name, frame.f_lineno))
    return raises


def collected(phase, info):
    if phase == "start":
        events.append("start %d" % info["generation"])
    else:
        events.append("done %d" % (info["collected"] + info["uncollectable"]))


def audited(event, args):
    events.append("audit " + event)


with open(program, encoding="utf-8", errors="surrogatepass") as file:
    code = compile(file.read(), program, "exec")
names = {"__name__": "__main__"}
gc.collect()
print("ready", flush=True)
sys.stdin.readline()
if mode == "calls":
    threading.setprofile(profile)
    sys.setprofile(profile)
elif mode == "lines":
    threading.settrace(trace)
    sys.settrace(trace)
elif mode == "ccalls":
    sys.setprofile(c_profile)
elif mode == "raises":
    sys.settrace(raises)
elif mode == "gc":
    gc.callbacks.append(collected)
elif mode == "audit":
    sys.addaudithook(audited)
sys.audit("dtap.begin")
try:
    exec(code, names)
except SystemExit:
    pass
sys.audit("dtap.end")
sys.setprofile(None) if mode in ("calls", "ccalls") else None
sys.settrace(None) if mode in ("lines", "raises") else None
if mode == "gc":
    gc.callbacks.remove(collected)
for event in list(events):
    print(event)
