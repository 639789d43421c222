"""counting calls, and the whole tree of calls, beside cProfile, yappi and bpftrace: a hot call, and a real program

What is added to a hot call, in nanoseconds of the process's own CPU time; and how many times the CPU time of a program that does
something, Python's own `ast` writing its own source, which calls a function each half microsecond.  In turns; what is shown is
the least that a round added, and the median.  A tracer that is not installed is left out.
"""
import subprocess
import tempfile

import harness
import measure
import peer

ROUNDS = 5

PROGRAM = """
import ast, contextlib, sys, time

def leaf():
    pass

def hot(calls):
    for _ in range(calls):
        leaf()

def real(rounds):
    with open(ast.__file__) as file:
        tree = ast.parse(file.read())
    for _ in range(rounds):
        ast.unparse(tree)

@contextlib.contextmanager
def none():
    yield

def profiler(name):
    if name == "cProfile":
        import cProfile
        return cProfile.Profile()
    if name == "yappi":
        import yappi
        yappi.set_clock_type("wall")
        return yappi.run()
    return none()

kind, number, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if name == "wait":
    print("ready", flush=True)
    sys.stdin.readline()
with profiler(name):
    begin = time.process_time()
    (hot if kind == "hot" else real)(number)
    took = time.process_time() - begin
print("took", took, flush=True)
"""

DTAP = str(harness.BUILD / "dtap")
COUNT = "{ @[copyinstr(arg1)] = count(); }"
# Name -> what runs the program, whose command line stands for COMMAND; a text alone is a profiler inside of the program.
WAYS = {
    "cProfile": "cProfile",
    "yappi": "yappi",
    "dtap calls": [DTAP, "calls", "-o", "FOLDER/out.csv", "-c", "COMMAND"],
    "dtap time": [DTAP, "time", "-o", "FOLDER/out.csv", "-c", "COMMAND"],
    "dtap record": [DTAP, "record", "-o", "FOLDER/out.jsonl", "-c", "COMMAND"],
    "dtap record --cpu": [DTAP, "record", "--cpu", "-o", "FOLDER/out.jsonl", "-c", "COMMAND"],
    "dtap record --sample 97": [DTAP, "record", "--sample", "97", "-o", "FOLDER/out.jsonl", "-c", "COMMAND"],
    "dtrace, kernel": [DTAP, "dtrace", "-q", "-x", "place=kernel", "-o", "FOLDER/out", "-n",
                       f"python$target:::function-entry {COUNT}", "-c", "COMMAND"],
}


def seconds(text):
    return float(text.split("took ")[1].split()[0])


def bpftrace(interp, kind, number):
    """Of every process, as it cannot find a file in another root with -p; it is there when the marker's semaphore says so."""
    program = measure.start(interp.argv_of(PROGRAM, kind, number, "wait"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)
    tracer = None
    try:
        program.stdout.readline()
        tracer = measure.start(peer.argv(f"{peer.marker(interp, 'function-entry')} {{ @[str(arg1)] = count(); }}"),
                               env=peer.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        harness.wait_until(lambda: harness.semaphore(program.pid, interp, "function-entry") > 0, what="bpftrace")
        return seconds(program.communicate("go\n", timeout=300)[0])
    finally:
        program.kill()
        program.wait()
        if tracer:
            harness.interrupt(tracer, 300)


def once(interp, way, kind, number, folder):
    if way == peer.VERSION:
        return bpftrace(interp, kind, number)
    argv = WAYS.get(way, "-")
    if isinstance(argv, str):
        argv = interp.argv_of(PROGRAM, kind, number, argv)
    else:
        command = interp.command(PROGRAM, kind, number, "-")
        argv = [word.replace("FOLDER", folder).replace("COMMAND", command) for word in argv]
    run = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        return None         # it is not installed, or not for this Python
    return seconds(run.stdout)


def kernel(way):
    return way in (peer.VERSION, "dtrace, kernel")


def ask(interp, ways):
    with tempfile.TemporaryDirectory(prefix="dtap-bench-") as folder:
        for kind, calls, few, unit in ("hot", 1_000_000, 200_000, "ns per call"), ("real", 10, 3, "times"):
            found = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way in ways:
                    number = few if kernel(way) else calls
                    bare, took = once(interp, None, kind, number, folder), once(interp, way, kind, number, folder)
                    if took is None:
                        continue
                    found[way].append((took - bare) / number * 1e9 if kind == "hot" else took / bare)
            print(f"   {'a hot call' if kind == 'hot' else 'a real program'}")
            for way, values in found.items():
                if values:
                    measure.row(way, [round(value, 2) for value in values], unit)


def run():
    ours = [way for way in WAYS if not kernel(way)]
    for version in harness.VERSIONS:
        interp = measure.interpreter(version)
        print(f"  Python {version}", flush=True)
        ask(interp, [*ours, *(["dtrace, kernel", peer.VERSION] if version == "3.9" else [])])
        interp.close()
