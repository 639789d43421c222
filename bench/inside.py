"""Calls inside one process, with each way of looking at them in turns: what the questions about the target place share."""
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

import harness
import measure
import peer

# Answers each line on stdin with one on stdout: a word is what to do, "NAMES THREADS" how to call.
PROGRAM = r'''
import ctypes, sys, threading, time

CALLS = 1000000

def make(names):
    space = {"__name__": "leaves"}
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
            api.PyCFunction_NewEx.restype = ctypes.py_object
            functions = self.lib.bare_callback, self.lib.bare_pair_entry, self.lib.bare_pair_return
            self.definitions = [self.Def(b"bare", address(fn), 0x80, None) for fn in functions]
            self.callback, *self.pair = (api.PyCFunction_NewEx(ctypes.byref(d), None, None) for d in self.definitions)
        else:
            self.api = api
            api.PyInterpreterState_Get.restype = ctypes.c_void_p
            ctypes.c_void_p.in_dll(self.lib, "bare_next").value = address(api._PyEval_EvalFrameDefault)

    def use(self, on, pair):
        if sys.version_info >= (3, 12):
            mon = sys.monitoring
            callbacks = {mon.events.PY_START: self.pair[0], mon.events.PY_RETURN: self.pair[1]} if pair else \
                        {mon.events.PY_START: self.callback}
            if on:
                mon.use_tool_id(4, "bare")
                for event, callback in callbacks.items():
                    mon.register_callback(4, event, callback)
            mon.set_events(4, sum(callbacks) if on else 0)
            if not on:
                mon.free_tool_id(4)
        else:
            own = self.lib.bare_pair_evaluator if pair else self.lib.bare_evaluator
            fn = own if on else self.api._PyEval_EvalFrameDefault
            self.api._PyInterpreterState_SetEvalFrameFunc(ctypes.c_void_p(self.api.PyInterpreterState_Get()), fn)

bare = Bare(sys.argv[1])
import cProfile
profile = None
print("ready", flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] in ("bare", "pair"):
        bare.use(words[1] == "on", words[0] == "pair")
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
    def __init__(self, interp, library, text=PROGRAM):
        self.interp = interp
        self.process = measure.start(interp.argv_of(text, interp.add(library, "bare_hook.so")),
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
        self.process = measure.start(self.argv, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True)
        while self.process.stdout.readline().strip() != "up":
            if self.process.poll() is not None:
                raise SystemExit(f"{self.argv[0]} ended early")
        threading.Thread(target=self.drain, args=[os.dup(self.process.stdout.fileno())], daemon=True).start()
        time.sleep(0.3)
        return self

    @staticmethod
    def drain(fd):
        """Read what it prints, for a tracer that waits loses records, which are cheaper or dearer than those that it takes."""
        while os.read(fd, 1 << 16):
            pass
        os.close(fd)

    def __exit__(self, *_):
        harness.interrupt(self.process)


class Switch:
    """What the program itself does about its calls, by a word: "bare", a C hook that only counts, "pair", two that measure each
    call's time, or "profile"."""

    def __init__(self, program, word):
        self.program, self.word = program, word

    def __enter__(self):
        self.program.say(f"{self.word} on")

    def __exit__(self, *_):
        self.program.say(f"{self.word} off")


def dtrace(program, clauses, place="target"):
    return Tracer([str(harness.DTRACE), "-q", "-x", f"place={place}", "-p", str(program.process.pid), "-n",
                   'BEGIN { printf("up\\n"); } ' + clauses])


def dtraces(program, scripts, place="target"):
    """A way for each of the scripts, {name: clauses}, beside the bare C hook, the floor."""
    ways = {"bare C hook": lambda: Switch(program, "bare")}
    for name, clauses in scripts.items():
        ways[name] = lambda clauses=clauses: dtrace(program, clauses, place)
    return ways


def turns(program, ways, rounds, shapes=None, serves=lambda name, shape: True, width=32):
    """Run the program in each shape, {name: words for it}, untraced and by each way it @serves; print what it added."""
    shapes = shapes or {"": "1 1"}
    base = {shape: [] for shape in shapes}
    took = {(name, shape): [] for name in ways for shape in shapes if serves(name, shape)}
    for _ in range(rounds):
        for shape, words in shapes.items():
            base[shape].append(program.say(words))
        for name, way in ways.items():
            with way():
                for shape, words in shapes.items():
                    if (name, shape) in took:
                        took[name, shape].append(program.say(words))
    print(f"  Python {program.interp.version}: a call takes {min(base['']):.1f} ns")
    for (name, shape), values in took.items():
        least = min(values) - min(base[shape])
        middle = statistics.median(values) - statistics.median(base[shape])
        print(f"    {name + shape:<{width}} {least:8.1f} ns   (median {middle:.1f})", flush=True)


def each_interpreter(ask):
    """Call @ask with each Python and the path of bare_hook.c's library."""
    with tempfile.TemporaryDirectory(prefix="dtap-bench-") as folder:
        library = pathlib.Path(folder) / "bare_hook.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-nostdlib", "-o", library, peer.HERE / "bare_hook.c"],
                       check=True)
        for version in harness.VERSIONS:
            interp = measure.interpreter(version)
            try:
                ask(interp, library)
            finally:
                interp.close()


def each_python(ask, text=PROGRAM):
    """Call @ask with the program, running in each Python."""
    def started(interp, library):
        program = Program(interp, library, text)
        try:
            ask(program)
        finally:
            program.end()

    each_interpreter(started)
