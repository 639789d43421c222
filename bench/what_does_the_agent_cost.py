"""The agent in each Python: loaded and idle beside none, and a function-entry beside the bare hook

Idle must be within noise.  An event is measured with the marker's semaphore up and no tracer, so it is what the agent
itself takes: hook, names, line.  The bare hook is the cheapest that the interpreter has, with nothing behind it: a
builtin as sys.monitoring's callback, before 3.12 a frame evaluator that jumps on to the interpreter's own.
"""
import subprocess
import sys

import harness
import measure

sys.path.insert(0, str(harness.TOP / "tests"))
from agent import channel, control_test  # noqa: E402

CALLS = 200_000
ROUNDS = 7

# Answers each line with the nanoseconds of a call.  With an argument it installs the bare hook for "hook".
PROGRAM = """
import ctypes, mmap, operator, struct, sys, time

def leaf():
    pass

def work(calls):
    begin = time.thread_time()
    for _ in range(calls):
        leaf()
    return (time.thread_time() - begin) / calls * 1e9

def hook():
    monitoring = getattr(sys, "monitoring", None)
    if monitoring:
        monitoring.use_tool_id(3, "bare")
        monitoring.register_callback(3, monitoring.events.PY_START, operator.is_)
        monitoring.set_events(3, monitoring.events.PY_START)
        return
    api = ctypes.pythonapi
    target = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\\x48\\xb8" + struct.pack("<Q", target) + b"\\xff\\xe0")        # mov target, %rax; jmp *%rax
    code = ctypes.addressof(ctypes.c_char.from_buffer(page))
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api._PyInterpreterState_SetEvalFrameFunc.argtypes = [ctypes.c_void_p] * 2
    api._PyInterpreterState_SetEvalFrameFunc(api.PyInterpreterState_Get(), code)
    globals()["page"] = page

print("ready", flush=True)
for line in sys.stdin:
    if line == "hook\\n":
        hook()
    print(work(CALLS), flush=True)
""".replace("CALLS", str(CALLS))


def start(argv):
    child = measure.start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return child


def ns(child, line="go"):
    child.stdin.write(line + "\n")
    child.stdin.flush()
    return float(child.stdout.readline())


def ready(child):
    assert child.stdout.readline() == "ready\n"
    ns(child)       # warm


def rounds(children):
    """Interleaved, so that what else the machine does falls on all alike."""
    found = {name: [] for name in children}
    for _ in range(ROUNDS):
        for name, child in children.items():
            found[name].append(ns(child))
    return found


def measure_one(version):
    interp = measure.interpreter(version)
    listener = channel.Listener()
    children = {}
    try:
        for name in "none", "bare":
            children[name] = start(interp.argv_of(PROGRAM))
            ready(children[name])
        for name in "idle", "entry":
            children[name] = control_test.preloaded(interp, listener, interp.add(PROGRAM))
            tracer, _ = listener.hello()
            ready(children[name])
            if name == "entry":
                control_test.listen(children[name].pid, "function__entry")
                assert tracer.look().supplied == 1
            else:
                keep = tracer       # noqa: F841
        ns(children["bare"], "hook")
        found = rounds(children)
        base = min(found["none"])
        measure.row(f"{version} none", found["none"], "ns per call")
        measure.row(f"{version} idle", found["idle"], "ns per call",
                    f"ratio of the best {min(found['idle']) / min(found['none']):.2f}")
        for name in "bare", "entry":
            measure.row(f"{version} {'bare hook' if name == 'bare' else 'agent'}", [ns - base for ns in found[name]],
                        "ns per event")
    finally:
        for child in children.values():
            child.kill()
            child.wait()
        listener.close()
        interp.close()


def run():
    for version in harness.VERSIONS:
        measure_one(version)
