"""Markers in subinterpreters, whose events the program counts itself: what each of them has called, run and collected."""
import signal
import subprocess

import pytest

import harness
from agent.control_test import ask

TARGET = ("-q", "-x", "place=target", "-x", "agent=always")

# Makes @N of them, each with a thread of its own; "legacy": with the main interpreter's lock, which is the only kind before 3.12.
PROGRAM = """
import sys, threading
try:
    import _interpreters
    run = _interpreters.exec
    make = lambda: _interpreters.create(sys.argv[1])
except ImportError:
    import _xxsubinterpreters as _interpreters
    run, make = _interpreters.run_string, _interpreters.create
work = '''
import gc
def leaf(n):
    if n % 2:
        n += 1
    return n
def gen():
    yield 1
    yield 2
def raises():
    raise KeyError(1)
def own_work():
    for n in range(1000):
        leaf(n)
        for x in gen():
            abs(x)
        try:
            raises()
        except KeyError:
            pass
own_work()
gc.collect(1)
gc.collect(1)
import this_is_imported
'''
path = sys.path[0]
made = [make() for _ in range(3)]
failed = []
def one(interp):
    for k in range(2):
        error = run(interp, f"import sys; sys.path.insert(0, {path!r}); sys.modules.pop('this_is_imported', None)" + work)
        if error:
            failed.append(error)
threads = [threading.Thread(target=one, args=(each,)) for each in made]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for each in made:
    _interpreters.destroy(each)
print("failed", failed)
"""
SCRIPT = """
python$target:::function-entry /copyinstr(arg1) == "leaf" || copyinstr(arg1) == "gen" || copyinstr(arg1) == "raises"/
{ @[strjoin("entry ", copyinstr(arg1))] = count(); }
python$target:::function-return /copyinstr(arg1) == "leaf" || copyinstr(arg1) == "gen" || copyinstr(arg1) == "raises"/
{ @[strjoin("return ", copyinstr(arg1))] = count(); }
python$target:::gc-start /arg0 == 1/ { @["gc"] = count(); }
python$target:::import-find-load-start /copyinstr(arg0) == "this_is_imported"/ { @["import"] = count(); }
python$target:::import-find-load-done /copyinstr(arg0) == "this_is_imported" && arg1/ { @["imported"] = count(); }
"""
LATER = """
python$target:::line /copyinstr(arg1) == "leaf"/ { @["line"] = count(); }
python$target:::cfunction-entry /copyinstr(arg3) == "abs"/ { @["abs"] = count(); }
python$target:::cfunction-return /copyinstr(arg3) == "abs"/ { @["abs done"] = count(); }
python$target:::exception-raise /copyinstr(arg0) == "KeyError" && copyinstr(arg2) == "raises"/ { @["raise"] = count(); }
"""
N = 3 * 2 * 1000
WANTED = {"entry leaf": N, "return leaf": N, "entry gen": 3 * N, "return gen": 3 * N, "entry raises": N, "return raises": N,
          "import": 6, "imported": 6}
BY_INTERPRETER = """
python$target:::function-entry, python$target:::function-return /copyinstr(arg1) == "leaf"/ { @["call", pyinterp] = count(); }
python$target:::audit /copyinstr(arg0) == "mine"/ { @["mine", pyinterp] = count(); }
"""
WANTED_LATER = {"line": 5 * N // 2, "abs": 2 * N, "abs done": 2 * N, "raise": N}


def counts(text):
    return {" ".join(line.split()[:-1]): int(line.split()[-1]) for line in text.splitlines() if line and line[0] == " "}


@pytest.mark.parametrize("lock", ["own", "shared"])
def test_counts(dtrace, interp, lock):
    later = interp.version not in ("3.9", "3.11")
    if lock == "own" and not later:
        pytest.skip("interpreters have a lock of their own from 3.12 on")
    interp.add("", "this_is_imported.py")
    result = dtrace(*TARGET, "-n", SCRIPT + (LATER if later else ""), "-c",
                    interp.command(PROGRAM, "isolated" if lock == "own" else "legacy"))
    found = counts(result.out)
    assert result.code == 0 and "failed []" in result.out and result.err == "", result
    gc = found.pop("gc", 0)
    assert gc >= 12 or interp.version == "3.9", result     # where gc.callbacks are those of who imports gc first
    assert found == {**WANTED, **(WANTED_LATER if later else {})}, result


BY_NAME = """
py$target:__main__:leaf:entry { @["entry leaf"] = count(); @values["numbers"] = sum(pyint(pyarg("n"))); }
py$target:__main__:leaf:entry /pyinterp == 0/ { @["in the main one"] = count(); }
py$target:__main__:leaf:return { @["return leaf"] = count(); @values["results"] = sum(pyint(pyret)); }
py$target:__main__:gen:entry, py$target:__main__:gen:yield, py$target:__main__:gen:resume, py$target:__main__:gen:return
{ @[strjoin(strjoin(probename, " "), probefunc)] = count(); }
py$target:__main__:raises:raise { @[strjoin("raise ", pytype(pyexc))] = count(); }
py$target:*:own_*:return { @[strjoin("own ", probefunc)] = count(); }
"""
WANTED_BY_NAME = {"entry leaf": N, "return leaf": N, "numbers": 6 * 499500, "results": 6 * 500000, "entry gen": N, "yield gen": 2 * N,
                  "resume gen": 2 * N, "return gen": N, "raise KeyError": N, "own own_work": 6}


@pytest.mark.parametrize("lock", ["own", "shared"])
def test_functions_by_name(dtrace, interp, lock):
    """With their values, in each of them."""
    if lock == "own" and interp.version in ("3.9", "3.11"):
        pytest.skip("interpreters have a lock of their own from 3.12 on")
    interp.add("", "this_is_imported.py")
    result = dtrace(*TARGET, "-n", BY_NAME, "-c",
                    interp.command(PROGRAM, "isolated" if lock == "own" else "legacy"))
    assert result.code == 0 and "failed []" in result.out and result.err == "", result
    assert counts(result.out) == WANTED_BY_NAME, result


def test_which_interpreter(dtrace, interp):
    """pyinterp, in both languages: the numbers that the program itself has."""
    program = PROGRAM.replace("own_work()\ngc", "own_work()\nimport sys\nsys.audit('mine')\ngc") + """
sys.audit("mine")
def leaf(): pass
leaf()
print("made", *map(int, made))
"""
    interp.add("", "this_is_imported.py")
    command = interp.command(program, "legacy")
    result = dtrace(*TARGET, "-n", BY_INTERPRETER, "-c", command)
    made = next(line for line in result.out.splitlines() if line.startswith("made ")).split()[1:]
    wanted = {"call 0": 2, "mine 0": 1, **{f"call {one}": 4000 for one in made}, **{f"mine {one}": 2 for one in made}}
    assert counts(result.out) == wanted and result.err == "", result
    result = harness.stap("-e", """global n
        probe process.mark("function__entry") { if (user_string($arg2) == "leaf") n[pyinterp()]++ }
        probe end { foreach (i+ in n) println(i, " ", n[i]) }""", "--place=target", "-c", command)
    assert result.out.splitlines()[-4:] == ["0 1", *(f"{one} 2000" for one in sorted(made, key=int))], result


# Subinterpreters come, work and go all the time; the program checks what they do.
BUSY = PROGRAM[:PROGRAM.index("work = ")] + """
work = '''
def leaf(n):
    return n + 1
total = 0
for _ in range(300):
    total = leaf(total)
import gc
gc.collect()
assert total == 300
'''
stop, failed, rounds = [], [], [0]
def one():
    while not stop:
        interp = make()
        if run(interp, work):
            failed.append(1)
        _interpreters.destroy(interp)
        rounds[0] += 1
threads = [threading.Thread(target=one) for _ in range(2)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for line in sys.stdin:
    print(line.strip(), rounds[0], flush=True)
stop.append(1)
for thread in threads:
    thread.join()
print("failed", failed, flush=True)
"""


@pytest.mark.needs_root
@pytest.mark.parametrize("lock", ["own", "shared"])
def test_tracers_come_and_go(interp, start, lock):
    """One ends, one is killed, one more comes: the program's work is right all the time, and calls are whole."""
    if lock == "own" and interp.version in ("3.9", "3.11"):
        pytest.skip("interpreters have a lock of their own from 3.12 on")
    child = start(interp.argv_of(BUSY, "isolated" if lock == "own" else "legacy"), stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"

    def rounds(word="rounds"):
        child.stdin.write(f"{word}\n")
        child.stdin.flush()
        return int(child.stdout.readline().split()[1])

    script = """BEGIN { printf("armed\\n"); }
        python$target:::function-entry /copyinstr(arg1) == "leaf"/ { @n["leaf"] = count(); calls++; }
        python$target:::function-return /copyinstr(arg1) == "leaf"/ { @n["done"] = count(); }
        python$target:::gc-start { @n["gc"] = count(); }
        python$target:::line { @n["line"] = count(); }
        py$target:__main__:leaf:entry { @n["named"] = count(); }
        py$target:__main__:lea?:return /pyint(pyret) > 0/ { @n["named done"] = count(); }
        tick-50ms /calls > 3000/ { exit(0); }"""
    for how in ("exits", "is killed", "exits"):
        tracer = start([harness.DTRACE, *TARGET, "-p", child.pid, "-n", script], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True)
        if how == "is killed":
            assert tracer.stdout.readline() == "armed\n"
            before = rounds()
            harness.wait_until(lambda least=before + 4: rounds() > least)
            tracer.send_signal(signal.SIGKILL)
            tracer.wait()
        else:
            out, err = tracer.communicate(timeout=harness.TIMEOUT_S)
            found = counts(out)
            assert tracer.returncode == 0 and err == "", (out, err)
            # Two are at work at a time: a call of each may have begun before the first event or end after the last.
            assert found["leaf"] > 3000 and all(abs(found["leaf"] - found[each]) <= 4 for each in ("done", "named", "named done")), out
        before = rounds()
        harness.wait_until(lambda least=before + 4: rounds() > least)
    child.stdin.close()
    assert child.stdout.readline() == "failed []\n" and child.wait() == 0


# Another tool has the first room beside code objects in one of two interpreters, and something there that is no pointer.
TAKEN = PROGRAM[:PROGRAM.index("work = ")] + """
first, second = make(), make()
work = '''
import sys
def leaf(n): return n
def works():
    sys.audit("mine")
    for n in range(100): leaf(n)
'''
for interp in first, second:
    run(interp, work)
run(first, '''
import ctypes
api = ctypes.pythonapi
request = getattr(api, "PyUnstable_Eval_RequestCodeExtraIndex", None) or api._PyEval_RequestCodeExtraIndex
put = getattr(api, "PyUnstable_Code_SetExtra", None) or api._PyCode_SetExtra
put.argtypes = [ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p]
assert request(None) == 0
for code in leaf.__code__, works.__code__:
    put(code, 0, 0x123456)
''')
print("ready", flush=True)
for line in sys.stdin:
    for interp in first, second:
        run(interp, "works()")
    if line == "room\\n":
        run(first, "print(request(None), flush=True)")
    else:
        print("done", flush=True)
"""


@pytest.mark.needs_root
def test_room_is_taken(interp, start):
    """Functions by name are not seen there, and that is all; calls are."""
    child = start(interp.argv_of(TAKEN, "legacy"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    script = """BEGIN { printf("armed\\n"); } py$target:*:leaf:entry { @n["named"] = count(); }
        python$target:::function-entry /copyinstr(arg1) == "leaf"/ { @n["called"] = count(); }"""
    rooms = []
    for _ in range(3):
        tracer = start([harness.DTRACE, *TARGET, "-p", child.pid, "-n", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert tracer.stdout.readline() == b"armed\n"
        for _ in range(2):
            assert ask(child, "") == "done"
        tracer.send_signal(signal.SIGINT)
        result = harness.finish(tracer, ["dtrace"])
        assert (result.code, result.err, counts(result.out)) == (0, "", {"named": 200, "called": 400}), result
        rooms.append(int(ask(child, "room")))
    assert rooms[2] - rooms[0] == 2      # it takes no more of them, of which there are few
    child.stdin.close()
    assert child.wait(harness.TIMEOUT_S) == 0
