"""@[copyinstr(arg1)] = count() on every function entry, in the target place (-x place=target), on each Python

Beside it a bare C hook, the floor; cProfile; and bpftrace where the interpreter has the marker.  All in turns in one
process, whose rounds take 1,000,000 calls; what is shown is the least that a round added to a call, and the median.

The goals: at most 15 ns from Python 3.11 on, 8 on 3.9; at least 40 times less than bpftrace on 3.9 and 3.15.
"""
import pathlib
import statistics
import subprocess
import tempfile
import time

import harness
import measure
import peer

ROUNDS = 8

# Answers each line on stdin with one on stdout: a word is what to do, "NAMES THREADS" how to call.
PROGRAM = r'''
import ctypes, sys, threading, time

CALLS = 1000000

def make(names):
    space = {}
    exec("".join(f"def leaf_{k}(): pass\n" for k in range(names)), space)
    return [space[f"leaf_{k}"] for k in range(names)]

def one(leaf, calls):
    begin = time.thread_time()
    for _ in range(calls):
        leaf()
    return time.thread_time() - begin

def many(leaves, calls):
    begin = time.thread_time()
    for _ in range(calls // len(leaves)):
        for leaf in leaves:
            leaf()
    return time.thread_time() - begin

leaf_1 = make(1)
leaf_5000 = make(5000)

def work(names, threads):
    if threads == 1:
        return one(leaf_1[0], CALLS) if names == 1 else many(leaf_5000, CALLS)
    took = []
    def run():
        took.append(many(leaf_5000, CALLS // threads))
    group = [threading.Thread(target=run) for _ in range(threads)]
    for thread in group:
        thread.start()
    for thread in group:
        thread.join()
    return sum(took)

class Bare:
    class Def(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("fn", ctypes.c_void_p), ("flags", ctypes.c_int),
                    ("doc", ctypes.c_char_p)]

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        api = ctypes.pythonapi
        address = lambda fn: ctypes.cast(fn, ctypes.c_void_p).value
        if sys.version_info >= (3, 12):
            ctypes.c_void_p.in_dll(self.lib, "bare_none").value = id(None)
            self.definition = self.Def(b"bare", address(self.lib.bare_callback), 0x80, None)
            api.PyCFunction_NewEx.restype = ctypes.py_object
            self.callback = api.PyCFunction_NewEx(ctypes.byref(self.definition), None, None)
        else:
            self.api = api
            api.PyInterpreterState_Get.restype = ctypes.c_void_p
            ctypes.c_void_p.in_dll(self.lib, "bare_next").value = address(api._PyEval_EvalFrameDefault)

    def use(self, on):
        if sys.version_info >= (3, 12):
            mon = sys.monitoring
            if on:
                mon.use_tool_id(4, "bare")
                mon.register_callback(4, mon.events.PY_START, self.callback)
            mon.set_events(4, mon.events.PY_START if on else 0)
            if not on:
                mon.free_tool_id(4)
        else:
            fn = self.lib.bare_evaluator if on else self.api._PyEval_EvalFrameDefault
            self.api._PyInterpreterState_SetEvalFrameFunc(ctypes.c_void_p(self.api.PyInterpreterState_Get()), fn)

bare = Bare(sys.argv[1])
import cProfile
profile = None
print("ready", flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "bare":
        bare.use(words[1] == "on")
        print("ok", flush=True)
    elif words[0] == "profile":
        if words[1] == "on":
            profile = cProfile.Profile()
            profile.enable()
        else:
            profile.disable()
        print("ok", flush=True)
    else:
        work(1, 1)
        print(work(int(words[0]), int(words[1])) / CALLS * 1e9, flush=True)
'''


class Program:
    def __init__(self, interp, library):
        self.process = subprocess.Popen(interp.argv_of(PROGRAM, interp.add(library, "bare_hook.so")),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def say(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return float(answer) if words[0].isdigit() else answer

    def end(self):
        self.process.kill()
        self.process.communicate()


class Tracer:
    """A tracer of the program, from when it says that it is up until the with statement's end."""

    def __init__(self, argv, env=None):
        self.argv, self.env = argv, env

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        while self.process.stdout.readline().strip() != "up":
            if self.process.poll() is not None:
                raise SystemExit(f"{self.argv[0]} ended early")
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        harness.interrupt(self.process)


def dtrace(pid):
    return Tracer([str(harness.DTRACE), "-q", "-x", "place=target", "-p", str(pid), "-n",
                   'BEGIN { printf("up\\n"); } python$target:::function-entry { @[copyinstr(arg1)] = count(); }'])


def bpftrace(interp, pid):
    return Tracer(peer.argv('BEGIN { printf("up\\n"); } ' + peer.marker(interp, "function-entry") +
                            f" /pid == {pid}/ {{ @[str(arg1)] = count(); }}"), peer.environment())


class Bare:
    def __init__(self, program, word):
        self.program, self.word = program, word

    def __enter__(self):
        self.program.say(f"{self.word} on")

    def __exit__(self, *_):
        self.program.say(f"{self.word} off")


def one_interpreter(version, library):
    interp = measure.interpreter(version)
    program = Program(interp, library)
    pid = program.process.pid
    tracers = {"bare C hook": lambda: Bare(program, "bare"), "dtap": lambda: dtrace(pid),
               "cProfile": lambda: Bare(program, "profile")}
    if interp.has_marker("function-entry") and version in ("3.9", "3.15"):
        tracers[peer.VERSION] = lambda: bpftrace(interp, pid)
    shapes = {"": "1 1", ", 5,000 functions": "5000 1", ", and 4 threads": "5000 4"}
    base = {shape: [] for shape in shapes}
    took = {(name, shape): [] for name in tracers for shape in shapes}
    for _ in range(ROUNDS):
        for shape, words in shapes.items():
            base[shape].append(program.say(words))
        for name, tracer in tracers.items():
            with tracer():
                for shape, words in shapes.items():
                    if name in ("bare C hook", "dtap") or not shape:
                        took[name, shape].append(program.say(words))
    program.end()
    interp.close()
    print(f"  Python {version}: a call takes {min(base['']):.1f} ns")
    for (name, shape), values in took.items():
        if values:
            least = min(values) - min(base[shape])
            middle = statistics.median(values) - statistics.median(base[shape])
            print(f"    {name + shape:<32} {least:8.1f} ns   (median {middle:.1f})", flush=True)


def run():
    with tempfile.TemporaryDirectory(prefix="dtap-bench-") as folder:
        library = f"{folder}/bare_hook.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-nostdlib", "-o", library, peer.HERE / "bare_hook.c"],
                       check=True)
        for version in harness.VERSIONS:
            one_interpreter(version, pathlib.Path(library))
