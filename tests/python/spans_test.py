"""The time between two events of a thread, added by the agent without the programs: as many, and as long, as the program itself sees.

Each call's time as the program measures it inside of the call is less than what is traced, and around the call more, by the same clock.
"""
import re
import subprocess

import pytest

import harness
import settled_test

pytestmark = pytest.mark.needs_root

# What has no events of its own is between "ready" and the end: functions of C, and threads without the module threading.
PROGRAM = """
import _thread, os, sys, time
now = time.monotonic_ns
inner, outer = [], []
def leaf(n):
    a = now()
    for _ in range(n): pass
    inner.append(now() - a)
def deep(n):
    return deep(n - 1) if n else None
def twice():
    yield
def fails():
    raise ValueError
def work(times, done):
    for n in range(times):
        a = now()
        leaf(n % 50)
        outer.append(now() - a)
    done.release()
threads, times, more = map(int, sys.argv[1:])
print("ready", flush=True)
os.read(0, 1)
begun = now()
for _ in range(threads):
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(work, (times, done))
    done.acquire()
ends = threads * times
for _ in range(more):
    deep(7)
    for _ in twice(): pass              # ends twice, after its yield and at its end
    try: fails()
    except ValueError: pass
    ends += 4
print("ends", ends, len(inner), sum(inner), sum(outer), now() - begun, flush=True)
os._exit(0)
"""
START, TEST, STOP = "self->t = timestamp; ", "/self->t/", "self->t = 0; "
CLAUSES = {
    "quantize": "@ = quantize(timestamp - self->t); " + STOP,
    "sum": "@ = sum(timestamp - self->t); " + STOP,
    "average": "@ = avg(timestamp - self->t); " + STOP,
    "by another variable": "this->ns = timestamp - self->t; " + STOP + "@ = sum(this->ns); ",
    "in another way": "@ = sum(timestamp - self->t); " + STOP + "self->other = 1; ",
    "without an end": "@ = sum(timestamp - self->t); ",
}
# The probes, and whether they are of leaf() alone.
PROBES = {
    "all": ("python$target:::function-entry", "python$target:::function-return", False),
    "by name": ("py$target:__main__:leaf:entry", "py$target:__main__:leaf:return", True),
    "by pattern": ("py$target::lea?:entry", "py$target::l*f:return", True),
}


def traced(start, interp, script, args, *options):
    """What the program and the script print, of which "begun" is the first line."""
    child = start([*interp.argv_of(PROGRAM), *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    tracer = start([harness.DTRACE, "-q", "-x", "place=target", *options, "-p", child.pid, "-n",
                    script.replace("$target", str(child.pid)) + 'BEGIN { printf("begun\\n"); }'],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert tracer.stdout.readline() == "begun\n", tracer.stderr.read()
    told = child.communicate("x", timeout=harness.TIMEOUT_S)[0]
    out, err = tracer.communicate(timeout=harness.TIMEOUT_S)
    assert (child.returncode, tracer.returncode, err) == (0, 0, ""), (child.returncode, tracer.returncode, out, err)
    return [int(n) for n in re.search(r"^ends (\d+) (\d+) (\d+) (\d+) (\d+)$", told, flags=re.M).groups()], out


def buckets(text):
    """The count of a drawn distribution."""
    return sum(int(n) for n in re.findall(r"^ *-?\d+ \|[ @]*(\d+) *$", text, flags=re.M))


def by_key(text):
    """{key: the count of its drawn distribution}"""
    rows = re.findall(r"^ +(\S.*?) *\n(\n? *value .*\n(?:.*\|.*\n)+)", text, flags=re.M)
    return {tuple(key.split()): buckets(rest) for key, rest in rows}


@pytest.mark.parametrize("probes", PROBES)
@pytest.mark.parametrize("clause", CLAUSES)
def test_against_the_program(start, interp, probes, clause):
    entry, back, leaf = PROBES[probes]
    ended = clause != "without an end"
    script = entry + " { " + START + " } " + back + TEST + " { " + CLAUSES[clause] + " } "
    (ends, _, least, most, whole), out = traced(start, interp, script, (3, 400, 50 if ended and not leaf else 0))
    if clause == "quantize":
        assert buckets(out) == ends, out
        return
    found = int(re.search(r"^ +(\d+)$", out, flags=re.M)[1])
    if clause == "average":
        assert found * ends <= (most if leaf else whole) and (found + 1) * ends > least, (found, least, most, whole)
    else:
        assert least <= found and (found <= (most if leaf else whole) or not (leaf or ended)), (found, least, most, whole)


KEYS = {"name": "copyinstr(arg1)", "name and file": "copyinstr(arg1), copyinstr(arg0)", "made of them": 'strjoin(copyinstr(arg0), "-"), copyinstr(arg1)',
        "function": "probefunc", "with what is constant": "1, probefunc, copyinstr(arg1)"}


@pytest.mark.parametrize("probes", ["all", "by pattern"])
@pytest.mark.parametrize("key", KEYS)
def test_by_key(dtrace, interp, probes, key):
    """Code objects come and go, also with another name or file where one was."""
    entry, back = {"all": PROBES["all"][:2], "by pattern": ("py$target:::entry", "py$target:::return")}[probes]
    script = entry + " { " + START + " } " + back + TEST + " { @[" + KEYS[key] + "] = quantize(timestamp - self->t); " + STOP + " } "
    qualified = 'replace(**({"co_qualname": names[n % 3]} if hasattr(one.__code__, "co_qualname") else {}), '
    program = settled_test.PROGRAM.replace("replace(", qualified)
    result = dtrace("-q", "-x", "place=target", "-n", script, "-c", interp.command(program))
    ran = [(name, file, int(times)) for name, file, times in re.findall(r"^ran (\w+) (\w+) (\d+)$", result.out, flags=re.M)]
    assert result.code == 0 and not result.err and len(ran) == 6, result
    want = {}
    for name, file, times in ran:
        of = {"name": (name,), "name and file": (name, file), "made of them": (file + "-", name),
              "function": (name if probes != "all" else "marker_function__return",),
              "with what is constant": ("1", name if probes != "all" else "marker_function__return", name)}[key]
        want[of] = want.get(of, 0) + times
    found = by_key(result.out)
    if key == "function" and probes == "all":       # one for all, of which others call nothing, too
        assert list(found) == list(want) and sum(found.values()) >= sum(want.values()), (found, want)
    else:
        assert {k: found.get(k) for k in want} == want


@pytest.mark.interps("3.9", "3.13")
def test_threads_that_come_and_go(start, interp):
    """More than there is room for variables of: what is known of one thread's is not used for another's."""
    script = PROBES["by name"][0] + " { " + START + " } " + PROBES["by name"][1] + TEST + " { " + CLAUSES["quantize"] + " } "
    (ends, *_), out = traced(start, interp, script, (400, 5, 0), "-x", "dynvarsize=4k")
    assert buckets(out) == ends, out


@pytest.mark.interps("3.11", "3.14")
def test_two_tracers(start, interp):
    """Each has its own variables, in its own memory; then one of them ends."""
    script = PROBES["by name"][0] + " { " + START + " } " + PROBES["by name"][1] + TEST + " { " + CLAUSES["quantize"] + " } "
    child = start([*interp.argv_of(PROGRAM), "3", "2000", "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    more = ["", "py$target:__main__:leaf:return /++n == 3000/ { exit(0); } "]
    tracers = []
    for text in more:
        tracers.append(start([harness.DTRACE, "-q", "-x", "place=target", "-p", child.pid, "-n",
                              (script + text).replace("$target", str(child.pid)) + 'BEGIN { printf("begun\\n"); }'],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        assert tracers[-1].stdout.readline() == "begun\n"
    child.communicate("x", timeout=harness.TIMEOUT_S)
    found = [t.communicate(timeout=harness.TIMEOUT_S) for t in tracers]
    assert [t.returncode for t in tracers] == [0, 0] and not any(err for _, err in found), found
    assert buckets(found[0][0]) == 6000 and 3000 <= buckets(found[1][0]) <= 6000, found


def test_in_a_child(dtrace, interp):
    """After a fork the child's variables are others, in memory of its own; a time that the parent has begun is the parent's."""
    program = ("import os\ndef leaf(): pass\ndef begun():\n    pid = os.fork()\n    if not pid:\n        for _ in range(30): leaf()\n"
               "        os._exit(0)\n    os.waitpid(pid, 0)\nfor _ in range(50): leaf()\nbegun()\nfor _ in range(20): leaf()\n")
    script = "py*:__main__:leaf:entry { " + START + " } py*:__main__:leaf:return" + TEST + " { " + CLAUSES["quantize"] + " } "
    result = dtrace("-q", "-x", "place=target", "-x", "family", "-n", script, "-c", interp.command(program))
    assert result.code == 0 and buckets(result.out) == 100, result
