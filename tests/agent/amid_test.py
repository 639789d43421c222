"""A tracer comes amid what the main thread does, whose work the agent may do: the program notices nothing of it."""
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_bpf]

STEP = 2

# A process for each second line; their pids are printed.  Nothing that is imported here is there before.
PROGRAM = """
import os, sys, time
NAMES = "gc", "atexit", "colorsys"
def load():
    for name in NAMES:
        sys.modules.pop(name, None)
    import gc, atexit, colorsys
    return gc, atexit, colorsys
def here(): pass
def amid(act):
    seen = {}
    def trace(frame, event, arg):
        if frame.f_code.co_filename != "<frozen importlib._bootstrap>":
            return None
        place = frame.f_code.co_name, frame.f_lineno
        if event == "line" and place not in seen:
            seen[place] = len(seen)
            act(seen[place])
        return trace
    sys.settrace(trace)
    try:
        return load(), len(seen)
    finally:
        sys.settrace(None)
def rest():
    if os.getppid() == 1:
        os._exit(1)
    time.sleep(0.02)
def has_agent():
    return b"dtap-agent" in open("/proc/self/maps", "rb").read()     # a text would import its decoder
def child(n):
    def wait(at):
        if at != n:
            return
        sys.settrace(None)
        os.write(ready, b".")
        while not has_agent():
            rest()
        for i in range(10):
            rest()
    (gc, atexit, colorsys), _ = amid(wait)
    while not os.path.exists(__file__ + ".stop"):
        here()
        rest()
    gc.collect()
    for module in gc, atexit, colorsys:
        assert sys.modules[module.__name__] is module and module.__spec__.name == module.__name__, module
        assert module.__loader__ is module.__spec__.loader is not None and module.__package__ == "", module
    atexit.register(os.write, 1, b"well %d\\n" % n)
ready, other = os.pipe()[::-1]
_, lines = amid(lambda at: None)
pids = []
numbers = range(lines)[::int(sys.argv[1])]
for n in numbers:
    pids.append(os.fork())
    if not pids[-1]:
        child(n)
        sys.exit()
have = 0
while have < len(pids):
    have += len(os.read(other, lines))
print(lines)
print(*pids, flush=True)
for pid in pids:
    status = os.waitpid(pid, 0)[1]
    if status:
        print("process", numbers[pids.index(pid)], "ended by", status, flush=True)
"""


@pytest.mark.parametrize("options", [(), ("-X", "tracemalloc")], ids=["plain", "tracemalloc"])
def test_amid_import(interp, start, options):
    """
    At any line of importlib: the agent needs modules, too, that may not be loaded.  With tracemalloc the main thread itself does the
    set-up, up to 3.12.  The processes are more than sixty, too.
    """
    program = start([*interp.argv, *options, interp.add(PROGRAM, "script.py"), STEP], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    text=True)
    lines, pids = int(program.stdout.readline()), program.stdout.readline().split()
    assert lines > 120 and len(pids) > 60, (lines, pids)
    probes = ", ".join(f"python{pid}:::function-entry" for pid in pids)
    result = harness.dtrace("-qn", f"""{probes} /copyinstr(arg1) == "here" && !seen[pid]/ {{
        seen[pid] = 1; if (++n == {len(pids)}) exit(0); }}""")
    (interp.dir / "script.py.stop").touch()
    out, err = program.communicate(timeout=harness.TIMEOUT_S)
    assert (result.code, result.err, err) == (0, "", ""), (result, out)
    assert sorted(out.splitlines()) == sorted(f"well {n}" for n in range(lines)[::STEP]), out


# A handler of the program's runs in the program's own code, as long as that calls nobody else's Python.
SIGNALLED = """
import os, signal
foreign = set()
def handler(number, frame):
    while frame:
        if frame.f_code.co_filename != __file__:
            foreign.add((frame.f_code.co_filename, frame.f_code.co_name))
        frame = frame.f_back
def leaf(): pass
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
os.write(1, b"ready\\n")
while not os.access(__file__ + ".stop", os.F_OK):
    for i in range(1000):
        leaf()
signal.setitimer(signal.ITIMER_REAL, 0)
print(*foreign)
"""


@pytest.mark.parametrize("options", [(), ("-X", "tracemalloc")], ids=["plain", "tracemalloc"])
def test_amid_signals(interp, start, options):
    """No signal handler of the program's runs amid the agent's work on the main thread, where what it raises would be lost."""
    program = start([*interp.argv, *options, interp.add(SIGNALLED, "script.py")], stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    result = harness.dtrace("-qn", 'python$target:::function-entry /copyinstr(arg1) == "leaf" && n++ == 1000/ { exit(0); }', "-p", program.pid)
    (interp.dir / "script.py.stop").touch()
    out, _ = program.communicate(timeout=harness.TIMEOUT_S)
    assert (result.code, result.err, out, program.returncode) == (0, "", "\n", 0), result
