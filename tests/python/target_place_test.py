"""The target place: scripts that run inside the traced Pythons (-x place=target).

What must come out is what the program counts itself, or what the kernel place prints.
"""
import os
import random
import re
import signal
import subprocess
import time

import pytest

import harness

ALL = ("3.9", "3.11", "3.13", "3.14", "3.15")
TARGET = ("-q", "-x", "place=target")


def counts(text):
    """Rows of an aggregation with one key: {key: value}."""
    return {key: int(value) for key, value in re.findall(r"^ +(\S.*?) +(-?\d+)$", text, flags=re.M)}


CALLS = """
def leaf():
    pass

def outer(n):
    for _ in range(n):
        leaf()

outer(1234)
outer(1)
"""


@pytest.mark.needs_root
def test_counts(dtrace, interp):
    result = dtrace(*TARGET, "-n", "python$target:::function-entry { @[copyinstr(arg1)] = count(); }",
                    "-c", interp.command(CALLS))
    assert result.code == 0, result
    assert counts(result.out)["leaf"] == 1235 and counts(result.out)["outer"] == 2, result


# More threads than there is room for variables of, one after the other; each one's are reset.
VARIABLES = """
import threading

def leaf():
    pass

for _ in range(600):
    thread = threading.Thread(target=leaf)
    thread.start()
    thread.join()
"""


@pytest.mark.needs_root
@pytest.mark.parametrize("reset, drops", [("self->t = 0; self->u = 0;", False), ("self->t = 0;", True), ("", True)])
def test_thread_variables_make_room(dtrace, interp, reset, drops):
    result = dtrace(*TARGET, "-x", "dynvarsize=4k", "-n",
                    "py$target:__main__:leaf:entry { self->t = timestamp; self->u = tid; } "
                    "py$target:__main__:leaf:return /self->u == tid/ { @[\"kept\"] = count(); @q = quantize(timestamp - self->t); "
                    + reset + " }", "-c", interp.command(VARIABLES))
    assert ("dynamic variable drop" in result.err) == drops, result
    assert (counts(result.out)["kept"] == 600) == (not drops), result


# Functions that come and go take each other's addresses, and those of their names.
NAMES = """
import collections, gc
want = collections.Counter()
for k in range(6000):
    name = "made_%d" % (k % 37)
    space = {}
    exec("def %s(): pass" % name, space)
    space[name]()
    want[name] += 1
    del space
    if k % 500 == 0:
        gc.collect()
for name, n in want.items():
    print("want", name, n)
"""


@pytest.mark.needs_root
def test_names_that_move(dtrace, interp):
    result = dtrace(*TARGET, "-n", "python$target:::function-entry { @[copyinstr(arg1)] = count(); }",
                    "-c", interp.command(NAMES))
    want = {name: int(n) for name, n in re.findall(r"^want (\S+) (\d+)$", result.out, flags=re.M)}
    got = {name: n for name, n in counts(result.out).items() if name.startswith("made_")}
    assert len(want) == 37 and got == want, result


THREADS = """
import threading

def leaf():
    pass

def work():
    for _ in range(50):
        leaf()

for _ in range(10):
    group = [threading.Thread(target=work) for _ in range(50)]
    for thread in group:
        thread.start()
    for thread in group:
        thread.join()
"""


@pytest.mark.needs_root
def test_threads(dtrace, interp):
    """500 of them, each with variables of its own."""
    result = dtrace(*TARGET, "-n", """
        python$target:::function-entry /copyinstr(arg1) == "leaf"/
        { self->n++; @all["all"] = count(); @most["most"] = max(self->n); @["threads", tid] = count(); }
        """, "-c", interp.command(THREADS))
    assert counts(result.out)["all"] == 25000 and counts(result.out)["most"] == 50, result
    assert len(re.findall(r"^  threads +\d+ +50$", result.out, flags=re.M)) == 500, result


FORKS = """
import os
import random

def forked_leaf():
    pass

def work(n):
    for _ in range(n):
        forked_leaf()

work(100)
for k in range(1, 5):
    if not os.fork():
        work(1000 * k)
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


@pytest.mark.alone
@pytest.mark.needs_root
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("provider, want", [("python*", [100, 1000, 2000, 3000, 4000]), ("python$target", [100])])
def test_fork(dtrace, interp, provider, want):
    leaf = f"forked_leaf_{os.getpid()}"     # another worker may run this, too
    result = dtrace(*TARGET, "-n", f'{provider}:::function-entry /copyinstr(arg1) == "{leaf}"/ {{ @[pid] = count(); }}',
                    "-c", interp.command(FORKS.replace("forked_leaf", leaf)))
    assert sorted(counts(result.out).values()) == want, result


TIMES = """
#pragma D option quiet
python$target:::function-entry /copyinstr(arg1) == "inner" || copyinstr(arg1) == "outer"/
{
	self->depth++;
	self->begin[self->depth] = timestamp;
	self->name[self->depth] = copyinstr(arg1);
}
python$target:::function-return /self->depth && copyinstr(arg1) == self->name[self->depth]/
{
	this->took = timestamp - self->begin[self->depth];
	@n["n", basename(copyinstr(arg0)), copyinstr(arg1)] = count();
	@sum["sum", basename(copyinstr(arg0)), copyinstr(arg1)] = sum(this->took);
	self->begin[self->depth] = 0;
	self->name[self->depth] = 0;
	self->depth--;
}
"""

NESTED = """
import time

def inner():
    time.sleep(0.002)

def outer(n):
    for _ in range(n):
        inner()

begin = time.monotonic_ns()
outer(50)
outer(50)
print("took", time.monotonic_ns() - begin)
"""


@pytest.mark.needs_bpf
@pytest.mark.alone
@pytest.mark.interps("3.9", "3.13")
def test_times_as_in_the_kernel_place(dtrace, interp):
    """Elapsed times kept in self-> arrays by depth: the same calls, and a sum between what the program slept and what it took."""
    for place in ("kernel", "target"):
        result = dtrace("-x", f"place={place}", "-x", "agent=always", "-n", TIMES, "-c",
                        interp.command(NESTED))
        rows = dict(((what, name), int(value)) for what, name, value in
                    re.findall(r"^  (n|sum) +\S+ +(\w+) +(\d+)$", result.out, flags=re.M))
        assert rows["n", "inner"] == 100 and rows["n", "outer"] == 2, result
        took = int(re.search(r"^took (\d+)$", result.out, flags=re.M)[1])
        assert 200e6 <= rows["sum", "inner"] <= rows["sum", "outer"] <= took, result


LOOP = """
import sys, time

def leaf():
    pass

print("ready", flush=True)
end = time.time() + float(sys.argv[1])
n = 0
while time.time() < end:
    for _ in range(1000):
        leaf()
    n += 1000
    time.sleep(0.001)
print(n, flush=True)
"""


@pytest.fixture
def loop(interp, start):
    def begin(seconds):
        process = start(interp.argv_of(LOOP, seconds), stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        return process
    return begin


@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.14")
def test_running_process(dtrace, loop):
    process = loop(harness.TIMEOUT_S)
    result = dtrace(*TARGET, "-n", """
        python$target:::function-entry { @[copyinstr(arg1)] = count(); n++; }
        tick-20ms /n > 2000/ { exit(5); }
        """, "-p", process.pid)
    assert result.code == 5 and counts(result.out)["leaf"] > 1000, result


@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.14")
def test_target_killed(loop, start):
    process = loop(harness.TIMEOUT_S)
    tracer = start([harness.DTRACE, *TARGET, "-n",
                    "python$target:::function-entry { @[copyinstr(arg1)] = count(); n++; } "
                    "tick-20ms /n > 2000 && !up++/ { printf(\"up\\n\"); }",
                    "-p", process.pid], stdout=subprocess.PIPE, text=True)
    assert tracer.stdout.readline() == "up\n"
    process.kill()
    out, _ = tracer.communicate(timeout=harness.TIMEOUT_S)
    assert tracer.returncode == 0 and counts(out)["leaf"] > 1000, out


@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.14")
def test_tracer_killed(loop, start):
    """The program goes on, without the segment."""
    process = loop(15)
    tracer = start([harness.DTRACE, *TARGET, "-n",
                    "BEGIN { printf(\"up\\n\"); } python$target:::function-entry { @[copyinstr(arg1)] = count(); }",
                    "-p", process.pid], stdout=subprocess.PIPE, text=True)
    assert tracer.stdout.readline() == "up\n"
    harness.wait_until(lambda: "dtap-data" in open(f"/proc/{process.pid}/maps").read(), what="the segment")
    tracer.kill()
    harness.wait_until(lambda: "dtap-data" not in open(f"/proc/{process.pid}/maps").read(), what="its going")
    assert int(process.stdout.readline()) > 0 and process.wait(timeout=harness.TIMEOUT_S) == 0


@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.14")
def test_more_keys_than_fit(dtrace, interp):
    """Losses are told, what is counted is right."""
    program = """
for k in range(30000):
    space = {}
    exec("def f%d(): pass" % k, space)
    space["f%d" % k]()
"""
    result = dtrace(*TARGET, "-x", "aggsize=64k", "-n",
                    "python$target:::function-entry /copyinstr(arg1) != \"<module>\"/ { @[copyinstr(arg1)] = count(); }",
                    "-c", interp.command(program))
    lost = sum(int(n) for n in re.findall(r"(\d+) aggregation drop", result.err))
    got = counts(result.out)
    assert lost > 1000 and result.code == 0, result
    assert all(n == 1 for name, n in got.items() if re.fullmatch(r"f\d+", name))


@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.14")
def test_every_record_arrives_or_is_counted(dtrace, interp):
    program = """
def leaf():
    pass
for _ in range(200000):
    leaf()
"""
    result = dtrace(*TARGET, "-n", "python$target:::function-entry /copyinstr(arg1) == \"leaf\"/ "
                    "{ printf(\"%s %d\\n\", copyinstr(arg1), arg2); }", "-c", interp.command(program))
    lost = sum(int(n) for n in re.findall(r"(\d+) drops? on", result.err)) + \
        sum(int(n) for n in re.findall(r"dtrace: (\d+) drops?\b(?! on)", result.err))
    assert result.out.count("leaf 2\n") + lost == 200000, result.err


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]


@pytest.mark.needs_root
@pytest.mark.interps("3.11")
def test_without_privilege(interp, start):
    """A command, a process of one's own, and another user's."""
    script = interp.add(LOOP)
    os.chmod(script, 0o644)
    clause = ('int n; python$target:::function-entry { @[copyinstr(arg1)] = count(); n += copyinstr(arg1) == "leaf"; } '
              'tick-20ms /n > 200/ { exit(0); }')
    argv = [*NOBODY, harness.DTRACE, *TARGET, "-n", clause]
    done = subprocess.run([*argv, "-c", f"{interp.argv[0]} {script} 5"], stdout=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_S,
                          stdin=subprocess.DEVNULL)
    assert counts(done.stdout)["leaf"] >= 100, done
    own = start([*NOBODY, *interp.argv, script, harness.TIMEOUT_S], stdout=subprocess.PIPE, text=True)
    assert own.stdout.readline() == "ready\n"
    done = subprocess.run([*argv, "-p", str(own.pid)], stdout=subprocess.PIPE, text=True, timeout=60)
    assert counts(done.stdout)["leaf"] > 1000, done
    other = start([*interp.argv, script, harness.TIMEOUT_S], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "ready\n"
    done = subprocess.run([*argv, "-p", str(other.pid)], stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "no permission" in done.stderr, done


@pytest.mark.needs_root
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("probe", ["profile-97", "pid$target:::entry"])
def test_what_it_cannot(dtrace, interp, probe):
    result = dtrace(*TARGET, "-n", f"{probe} {{ exit(0); }}", "-c", interp.command("pass"))
    assert result.code == 1 and "place=kernel" in result.err, result


@pytest.mark.needs_root
@pytest.mark.interps("3.11")
def test_place_of_itself(interp):
    """Where the kernel refuses, a script of Python's markers runs in the target; others are told what is missing."""
    script = interp.add(CALLS)
    os.chmod(script, 0o644)

    def run(clause):
        return subprocess.run([*NOBODY, harness.DTRACE, "-q", "-n", clause, "-c", f"{interp.argv[0]} {script}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)

    done = run("python$target:::function-entry { @[copyinstr(arg1)] = count(); }")
    assert done.returncode == 0 and counts(done.stdout)["leaf"] == 1235, done
    done = run("profile-97 { exit(0); }")
    assert done.returncode == 1 and "CAP_BPF" in done.stderr, done


@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.14")
def test_the_target_waits(dtrace, interp):
    program = """
def leaf():
    pass
for _ in range(300000):
    leaf()
"""
    result = dtrace(*TARGET, "-x", "bufpolicy=wait", "-x", "bufsize=4k", "-n",
                    "python$target:::function-entry /copyinstr(arg1) == \"leaf\"/ { printf(\"%s\\n\", copyinstr(arg1)); }",
                    "-c", interp.command(program))
    assert result.out.count("leaf\n") == 300000 and result.err == "", result.err


# All numbers of descriptors become a file's; what is written to or closed by number is noticed.
TAKES_ALL = """
import os, sys, time

def leaf():
    pass

own = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for fd in range(3, 1000):
    if fd != own:
        os.dup2(own, fd)
for _ in range(200000):
    leaf()
time.sleep(0.2)
for fd in range(3, 1000):
    os.fstat(fd)
print("size", os.fstat(own).st_size)
"""


@pytest.mark.needs_root
@pytest.mark.interps("3.9", "3.14")
def test_descriptors_that_became_others(dtrace, interp):
    """A program closes what it does not know, as daemons do: nothing is written to or closed that is its own."""
    result = dtrace(*TARGET, "-x", "bufsize=64k", "-n",
                    'python$target:::function-entry /copyinstr(arg1) == "leaf"/ { printf("%d\\n", timestamp); }',
                    "-c", interp.command(TAKES_ALL, interp.inside(interp.dir / "own")))
    assert "size 0\n" in result.out, result.out[-1000:]


# Each interpreter has a lock of its own.
INTERPRETERS = """
import sys, threading
try:
    import _interpreters
    run = _interpreters.exec
except ImportError:
    import _xxsubinterpreters as _interpreters
    run = _interpreters.run_string
work = "import sys\\nfor _ in range(20000): sys.audit('mine')"
made = [_interpreters.create() for _ in range(3)]
threads = [threading.Thread(target=run, args=(one, work)) for one in made]
for thread in threads:
    thread.start()
exec(work)
for thread in threads:
    thread.join()
for one in made:
    _interpreters.destroy(one)
"""


@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.13", "3.14", "3.15")
def test_other_interpreters(dtrace, interp):
    """Audit events come from all of them, at the same time."""
    result = dtrace(*TARGET, "-x", "agent=always", "-n", """
        python$target:::audit /copyinstr(arg0) == "mine"/ { self->n++; @most["most"] = max(self->n); @["all"] = count(); }
        python$target:::function-entry { @names[copyinstr(arg1)] = count(); }""", "-c", interp.command(INTERPRETERS))
    assert counts(result.out)["all"] == 80000 and counts(result.out)["most"] == 20000 and result.err == "", result


BUSY = """
import select

def leaf(n):
    return n + 1

def other(text):
    return text

print("ready", flush=True)
n = 0
while not select.select([0], [], [], 0)[0]:
    for _ in range(2000):
        n = leaf(n)
        other("x")
    assert n % 2000 == 0
print("right", flush=True)
"""

EVERYTHING = """
python$target:::function-entry
{
	@[copyinstr(arg1)] = count();
	self->depth++;
	self->begin[self->depth % 7] = timestamp;
	a[copyinstr(arg1), arg2] = arg2;
	@q = quantize(timestamp - self->begin[self->depth % 5]);
	printf("%s %d %d\\n", copyinstr(arg1), arg2, a["leaf", 3]);
}
python$target:::function-return
{
	@s[copyinstr(arg0), copyinstr(arg1)] = sum(arg2);
	@stacks[ustack(), pystack()] = count();
	self->depth--;
	a[copyinstr(arg1), arg2] = 0;
}
"""


@pytest.mark.slow
@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.14")
@pytest.mark.parametrize("seed", [1, 2])
def test_scribbled_segment(interp, start, tmp_path, seed):
    """Somebody writes what they like into the shared memory: wrong results, but the program does its work, and the
    tracer comes to an end."""
    rnd = random.Random(seed)
    program = start([*interp.argv_of(BUSY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    with open(tmp_path / "out", "wb") as out:
        tracer = start([harness.DTRACE, *TARGET, "-n", EVERYTHING, "-p", program.pid], stdout=out, stderr=out)
    names = []

    def file_of(name):
        try:
            return os.readlink(f"/proc/{tracer.pid}/fd/{name}")
        except FileNotFoundError:       # closed meanwhile
            return ""

    def mapped():
        names[:] = [name for name in os.listdir(f"/proc/{tracer.pid}/fd") if "dtap-data" in file_of(name)]
        assert tracer.poll() is None, (tmp_path / "out").read_text(errors="replace")[-2000:]
        return names

    harness.wait_until(mapped, what="the segment")
    memory = os.open(f"/proc/{tracer.pid}/fd/{names[0]}", os.O_RDWR)
    end = time.time() + 2
    while time.time() < end:
        extents, at = [], 0
        while True:
            try:
                at = os.lseek(memory, at, os.SEEK_DATA)
            except OSError:
                break
            extents.append((at, os.lseek(memory, at, os.SEEK_HOLE)))
            at = extents[-1][1]
        for _ in range(200 if extents else 0):      # none: it was only just made
            at = rnd.randrange(*rnd.choice(extents))
            if at >= 8:         # not the gate, which would only end the session
                os.pwrite(memory, bytes(rnd.choice((0, 0xff, rnd.randrange(256)))
                                        for _ in range(rnd.choice((1, 4, 8, 64)))), at)
    os.close(memory)
    assert program.communicate(timeout=harness.TIMEOUT_S)[0] == "right\n" and program.returncode == 0
    assert tracer.wait(timeout=harness.TIMEOUT_S) in (0, 1)
    assert not harness.SANITIZER_REPORT.search((tmp_path / "out").read_text(errors="replace"))


WRITTEN = """
import ctypes
buf = ctypes.create_string_buffer(b"0123456789abcdef", 17)
addr = ctypes.addressof(buf)
for name in ("text", "cut", "bytes", "nowhere"):
    exec(f"def {name}_{addr if name != 'nowhere' else 4096}(): pass\\n{name}_{addr if name != 'nowhere' else 4096}()")
    print(name, buf.raw)
"""


@pytest.mark.needs_root
@pytest.mark.interps("3.9", "3.14")
def test_copyout(dtrace, interp):
    """Where a function's name says: the string with its NUL, as many bytes as may be, and bytes of ours."""
    result = dtrace(*TARGET, "-w", "-n", """
        python$target:::function-entry { this->name = copyinstr(arg1); this->at = index(this->name, "_");
            this->what = substr(this->name, 0, this->at); this->addr = strtoll(substr(this->name, this->at + 1)); }
        python$target:::function-entry /this->what == "text"/ { copyoutstr("AB", this->addr, 16); }
        python$target:::function-entry /this->what == "cut"/ { copyoutstr("CDEF", this->addr + 4, 2); }
        python$target:::function-entry /this->what == "bytes"/
            { this->p = (int *)alloca(8); *this->p = 0x44434241; copyout(this->p, this->addr + 8, 4); }
        python$target:::function-entry /this->what == "nowhere"/ { copyoutstr("x", this->addr, 2); n++; }
        END { printf("%d", n); }""", "-c", interp.command(WRITTEN))
    told = [r"text b'AB\x003456789abcdef\x00'", r"cut b'AB\x003CD6789abcdef\x00'", r"bytes b'AB\x003CD67ABCDcdef\x00'",
            r"nowhere b'AB\x003CD67ABCDcdef\x00'", "0"]
    assert result.code == 0 and result.out.splitlines() == told, result
    assert re.search(r"invalid address \(0x1000\)", result.err), result


@pytest.mark.needs_root
@pytest.mark.interps("3.14")
def test_copyout_after_reading(dtrace, interp):
    """What is read before a write is what was there."""
    result = dtrace(*TARGET, "-w", "-n", """
        python$target:::function-entry { this->name = copyinstr(arg1); this->at = index(this->name, "_");
            this->what = substr(this->name, 0, this->at); this->addr = strtoll(substr(this->name, this->at + 1)); }
        python$target:::function-entry /this->what == "text"/
            { printf("%s", copyinstr(this->addr)); copyoutstr("AB", this->addr, 16); }
        python$target:::function-entry /this->what == "cut"/
            { @[copyinstr(this->addr)] = count(); copyoutstr("CD", this->addr, 16); }""", "-c", interp.command(WRITTEN))
    assert result.code == 0 and "0123456789abcdef" in result.out and re.search(r"AB +1$", result.out, re.M), result


def test_copyout_in_the_kernel(dtrace):
    result = dtrace("-w", "-x", "place=kernel", "-n", 'syscall::getpgid:entry { copyoutstr("x", arg0, 2); }')
    assert result.code == 1 and "use -x place=target" in result.err, result


@pytest.mark.parametrize("place", [TARGET, ["-q"]], ids=["target", "auto"])
def test_copyout_of_the_tracer(dtrace, place):
    """BEGIN runs in no process that could be written to; and nothing is written without a complaint."""
    result = dtrace(*place, "-w", "-n", """
        BEGIN { this->p = alloca(8); copyout(this->p, 4096, 8); printf("never"); }
        BEGIN { copyoutstr("text", 8192, 5); printf("never"); }
        BEGIN { copyout((void *)0, 1, 0); copyoutstr("", 1, 0); printf("nothing to write"); exit(0); }""")
    assert result.out == "nothing to write" and len(re.findall(r"invalid address \(0x[12]000\)", result.err)) == 2, result


# The allocators are others at the end than they were when the agent was loaded, before the interpreter was initialised.
@pytest.mark.parametrize("how", [{"PYTHONMALLOC": "debug"}, {"PYTHONMALLOC": "malloc_debug"}, {"PYTHONDEVMODE": "1"}, {"PYTHONMALLOC": "malloc"}],
                         ids=lambda how: "=".join(*how.items()))
def test_allocators_of_the_program(interp, how):
    result = harness.dtrace(*TARGET, "-n", 'python$target:::function-entry /copyinstr(arg1) == "leaf"/ { @ = count(); }', "-c",
                            interp.command("import sys\ndef leaf(): pass\nleaf()\nsys.addaudithook(lambda *a: None)\nprint('end')\n"),
                            env={**os.environ, **how})
    assert (result.code, result.err, result.out.split()) == (0, "", ["end", "1"]), result


@pytest.mark.needs_root
@pytest.mark.parametrize("place", ["target", pytest.param("kernel", marks=pytest.mark.needs_bpf)])
def test_process_that_the_script_names(interp, start, place):
    """A provider's name ends in the process's number: no -p is needed, and nobody else is traced."""
    pids = [harness.running(start, interp).pid for _ in range(3)]
    result = harness.dtrace("-q", "-x", f"place={place}", "-n", f"""
        python{pids[0]}:::function-entry, py{pids[1]}::leaf:entry {{ @[probeprov] = count(); }}
        python{pids[0]}:::function-entry {{ a++; }} py{pids[1]}::leaf:entry {{ b++; }} python$target:::function-entry {{ c++; }}
        tick-10ms /a > 5 && b > 5 && c > 5/ {{ exit(0); }}""", "-p", pids[2])
    names = {line.split()[0] for line in result.out.splitlines() if line}
    assert (result.code, result.err, names) == (0, "", {f"python{pids[0]}", f"py{pids[1]}"}), result
