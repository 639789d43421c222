"""
Functions of Python by name in the kernel place, beside what fires there alone: the reason to have them there.  The witness is
the program, which counts what it does.  functions_test.py and functions_stap_test.py run the rest in both places.
"""
import os
import random
import re

import pytest

import harness
import values_test

VERSIONS = (*harness.VERSIONS, "3.13t")
pytestmark = [pytest.mark.needs_root, pytest.mark.interps(*VERSIONS)]

# System calls inside and outside of a function, in several threads at once, through recursion and exceptions.
CALLS = """
import collections, os, threading
made, lock = collections.Counter(), threading.Lock()
def call(inside, n):
    for _ in range(n):
        os.getppid()
        if inside:
            with lock: made[threading.get_native_id()] += 1
def handler(depth, fail):
    call(True, depth + 1)
    if depth: handler(depth - 1, fail)
    call(True, 1)
    if fail and not depth: raise LookupError
def work(number):
    for k in range(50):
        call(False, 3)
        try: handler(k % 4, k % 5 == number)
        except LookupError: pass
        call(False, 2)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
work(4)
for t in threads: t.join()
for thread, n in made.items():
    print("want", thread, n)
"""

INSIDE = """
py$target:__main__:handler:entry { self->in++; }
syscall::getppid:entry /self->in/ { @[tid, probefunc] = count(); }
py$target:__main__:handler:return, py$target:__main__:handler:raise { self->in--; }
END { printa("got %d %s %@d\\n", @); }
"""


def test_system_calls_of_a_function(dtrace, interp):
    """A thread's variables are the same in both kinds of clauses."""
    result = dtrace("-q", "-n", INSIDE, "-c", interp.command(CALLS))
    got = {tid: n for tid, n in re.findall(r"^got (\d+) getppid (\d+)$", result.out, flags=re.M)}
    assert (result.code, result.err) == (0, "") or "does not supply" not in result.err, result
    assert got == dict(re.findall(r"^want (\d+) (\d+)$", result.out, flags=re.M)) and len(got) == 5, result


ORDER = """
import os
def outer(n):
    os.getppid()
    for k in range(n): inner(k)
    os.getpgid(0)
def inner(k):
    os.getpgid(0)
    return k
for n in range(3): outer(n)
"""

IN_ORDER = """
py$target:__main__:outer:entry { printf("> outer %d\\n", pyint(pyarg("n"))); self->in = 1; }
py$target:__main__:inner:entry { printf("> inner %d\\n", pyint(pyarg(0))); }
syscall::getppid:entry, syscall::getpgid:entry /self->in/ { printf("%s\\n", probefunc); }
py$target:__main__:inner:return { printf("< inner %d\\n", pyint(pyret)); }
py$target:__main__:outer:return { printf("< outer\\n"); self->in = 0; }
"""


def test_order(dtrace, interp):
    """One stream, in the order of what happened."""
    result = dtrace("-x", "showplace", "-n", IN_ORDER, "-q", "-c", interp.command(ORDER))
    want = []
    for n in range(3):
        want += [f"> outer {n}", "getppid"]
        for k in range(n):
            want += [f"> inner {k}", "getpgid", f"< inner {k}"]
        want += ["getpgid", "< outer"]
    assert result.code == 0 and result.out.split("\n")[:-1] == want, result


# The time that a thread is off its CPU in a function: the kernel counts how often.
SLEEPS = """
import resource, time
def waits(n):
    before = resource.getrusage(resource.RUSAGE_THREAD)
    for _ in range(n): time.sleep(0.002)
    after = resource.getrusage(resource.RUSAGE_THREAD)
    print("want", after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw)
time.sleep(0.01)
waits(20)
time.sleep(0.01)
"""

OFF = """
py$target:__main__:waits:entry { self->in = 1; }
sched:::off-cpu /self->in/ { n++; }
py$target:__main__:waits:return { self->in = 0; printf("got %d\\n", n); }
"""


@pytest.mark.interps("3.9", "3.13", "3.15")
def test_scheduler(dtrace, interp):
    result = dtrace("-q", "-n", OFF, "-c", interp.command(SLEEPS))
    want, got = (int(re.search(rf"^{word} (\d+)$", result.out, flags=re.M)[1]) for word in ("want", "got"))
    assert result.code == 0 and want >= 20 and want <= got <= want + 20, result


@pytest.mark.parametrize("kind", [values_test.texts, values_test.some_bytes, values_test.numbers, values_test.containers],
                         ids=lambda f: f.__name__)
def test_values(dtrace, interp, kind):
    """As the program says, and as in the process: also what is a fault."""
    script = interp.add(values_test.PROGRAM)
    (interp.dir / "script.py.values").write_text("[" + ",\n".join(kind(random.Random(kind.__name__))) + "]")
    (interp.dir / "values.d").write_text(values_test.SCRIPT.replace(
        'python$target:::function-entry /copyinstr(arg1) == "probe"/', "py$target:__main__:probe:entry"))
    out = interp.dir / "out"
    result = dtrace("-q", "-x", "place=kernel", "-s", interp.dir / "values.d", "-o", out, "-c", " ".join([*interp.argv, script]))
    assert result.code == 0, result
    want = (interp.dir / "script.py.want").read_bytes().split(b"\n")
    assert out.read_bytes().strip(b"\n").split(b"\n") == want[:-1], result.err[-1000:]
    faults = set(re.findall(r"\): (.*?) \(0x[0-9a-f]+\) at BPF", result.err))
    assert faults <= {"an object of another kind", "a number of more than 64 bits"}, faults


PATHS = """
class Order:
    kind = "book"
    def __init__(self, n): self.n, self.rows = n, [n, {"deep": ("x", n)}]
    def total(self, words, *rest, flag=False):
        inside = self.n * 2
        if inside == 6: raise KeyError("six", inside)
        return {"n": self.n}
for n in range(5):
    try: Order(n).total({"key": n}, 7, flag=n > 2)
    except KeyError: pass
"""

PATHS_SCRIPT = """
py$target:__main__:Order.total:entry
/pyint(pyattr(pyarg("self"), "n")) != 1/
{
	printf("%d %s %d %s\\n", pyint(pyattr(pyarg(0), "n")), pystr(pyattr(pyarg("self"), "kind")), pyint(pyitem(pyarg("words"), "key")),
	    pystr(pyitem(pyitem(pyitem(pyattr(pyarg("self"), "rows"), 1), "deep"), 0)));
	@[pyint(pyattr(pyarg("self"), "n")) % 2 == 0 ? "even" : "odd"] = sum(pyint(pyitem(pyattr(pyarg("self"), "rows"), 0)));
}
py$target:__main__:Order.total:return { printf("%s %d %s\\n", pyshow(pyret), pyint(pylocal("inside")), pyargs()); }
py$target:__main__:Order.total:raise { printf("%s %s %s\\n", pytype(pyexc), pyshow(pyexc), pystr(pyitem(pyattr(pyexc, "args"), 0))); }
py$target:__main__:Order.total:return /pyint(pyitem(pyret, "n")) == 4/ { trace(pyint(pyattr(pyarg("self"), "nosuch"))); }
"""


def test_paths_to_values(dtrace, interp):
    """Attributes, items, locals, results and exceptions; in predicates, as keys; the same output as in the process."""
    results = [dtrace("-q", "-x", f"place={place}", "-n", PATHS_SCRIPT, "-c", interp.command(PATHS)) for place in ("kernel", "target")]
    one, other = (re.sub("0x[0-9a-f]+", "at", result.out) for result in results)
    assert results[0].code == results[1].code == 0 and one == other, results
    assert "no such argument, variable, attribute or item" in results[0].err, results[0]
    assert re.search(r"^0 book 0 x$", results[0].out, flags=re.M) and "KeyError" in results[0].out, results[0]


@pytest.mark.interps("3.13")
@pytest.mark.parametrize("script, says", [
    ('py$target::f:entry { self->o = pyarg("x"); }\nsyscall::read:entry, py$target::f:return /self->o/ { trace(pyint(self->o)); }',
     r"3:\d+: pyint\(\) of what is not of this event"),
    ('syscall::read:entry { trace(pyint(pyarg(0))); } py$target::f:entry {}', "values of Python are read inside"),
    ('py$target::f:entry { trace(pyint(pyitem(pyarg("x"), n++))); }\nsyscall::read:entry {}', r"2:\d+: pyitem\(\) of what is not"),
    ('py$target::f:entry { pystack(9, "async"); } syscall::read:entry {}', "who waits for a task"),
])
def test_refused(dtrace, interp, script, says):
    """By name, with the place in the script."""
    script = "\n" + script
    (interp.dir / "x.d").write_text(script)
    result = dtrace("-s", interp.dir / "x.d", "-c", interp.command("def f(x): pass\nf(1)"))
    assert result.code == 1 and re.search(says, result.err), result


# More functions than the kernel's table has entries: each is counted, those without an entry under the pattern's name.
MANY = """
for k in range(9000):
    space = {"__name__": "many"}
    exec("def f_%d(): pass" % k, space)
    space["f_%d" % k]()
"""


@pytest.mark.interps("3.9", "3.14")
def test_more_functions_than_entries(dtrace, interp):
    result = dtrace("-q", "-x", "place=kernel", "-x", "aggsize=16m", "-n", 'py$target:many:f_*:entry { @[probefunc] = count(); }'
                    ' END { printa("got %s %@d\\n", @); }', "-c", interp.command(MANY))
    got = {name: int(n) for name, n in re.findall(r"^got (\S+) (\d+)$", result.out, flags=re.M)}
    assert result.code == 0 and sum(got.values()) == 9000, result
    assert got.pop("f_*") == 9000 - 8192 and len(got) == 8192 and set(got.values()) == {1}, result


@pytest.mark.interps("3.9", "3.11", "3.14")
def test_stap_beside_system_calls(interp):
    """SystemTap's language: $parameters, $return, and what the thread did meanwhile."""
    script = """
global in_it, n, args
probe python3.module("__main__").function("outer").call { in_it[tid()] = 1; args[$n]++ }
probe syscall.getppid, syscall.getpgid { if (in_it[tid()]) n[name]++ }
probe python3.module("__main__").function("inner").return { args["inner " . $return]++ }
probe python3.module("__main__").function("outer").return { delete in_it[tid()] }
probe end { foreach (f+ in n) printf("%s %d\\n", f, n[f]); foreach (k+ in args) printf("%s %d\\n", k, args[k]) }
"""
    result = harness.stap("-e", script, "-c", interp.command(ORDER))
    assert result.code == 0 and result.out.split("\n")[:-1] == [
        "getpgid 6", "getppid 3", "0 1", "0x1 1", "0x2 1", "inner 0 2", "inner 0x1 1"], result


@pytest.mark.interps("3.13")
def test_no_right(interp):
    """Who may not use the kernel is told which probe needs it."""
    if os.getuid():
        pytest.skip("needs root to become another user")
    result = harness.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", harness.DTRACE, "-n",
                          "py$target:m:f:entry, syscall::read:entry {}", "-c", "/usr/bin/python3 -c pass"])
    assert result.code == 1 and "must run in the kernel" in result.err and "syscall:" in result.err, result


@pytest.mark.interps("3.9", "3.14")
def test_hidden_marker(dtrace, interp):
    """The marker by which the agent tells the kernel is no probe of its own."""
    result = dtrace("-l", "-n", "*$target:dtap-agent.so::", "-c", interp.command("pass"))
    assert "dtap" not in {line.split()[1].rstrip("0123456789") for line in result.out.splitlines()[1:] if line.split()[1:]}, result
