"""dtap dump: what each thread of a Python does now.  The witness is the traced program itself: sys._current_frames()."""
import json
import os
import platform
import re
import shutil
import subprocess

import pytest

import harness

PROGRAM = '''
import json, os, sys, threading, time

def waits_in_sleep():
    with open(os.devnull):
        time.sleep(
            1000)

lock = threading.Lock()
lock.acquire()

class Größe:
    def 待つ(self):
        return [self.inner(x) for x in (1,)][0]

    def inner(self, x):
        lock.acquire()

def generates():
    yield 1
    threading.Event().wait()

def consumes():
    for _ in generates():
        pass

def recurses(n):
    if n:
        return recurses(n - 1)
    os.read(os.pipe()[0], 1)

def through_c():
    sorted([2, 1], key=lambda x: threading.Event().wait())

def long_table():
    x = 0
''' + "".join(f"    x += {i}; x = x * 2 if x < 10 else x - 1\n" for i in range(3000)) + '''
    threading.Event().wait()

class Called:
    def __call__(self):
        exec("def made():\\n\\n  threading.Event().wait()\\n\\nmade()", globals())

for f in (waits_in_sleep, Größe().待つ, consumes, lambda: recurses(300), through_c, long_table, Called()):
    threading.Thread(target=f, daemon=True).start()

def name(code):
    return getattr(code, "co_qualname", code.co_name)

def stack(frame):
    found = []
    while frame:
        found.append([name(frame.f_code), frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return found

def tell():
    return {ident: stack(frame) for ident, frame in sys._current_frames().items() if ident != threading.get_ident()}

before = None
while True:         # until all wait
    time.sleep(0.05)
    now = tell()
    if now == before:
        break
    before = now
print(json.dumps(now), flush=True)
sys.stdin.readline()
'''


def dump(*args):
    return harness.run([harness.BUILD / "dtap", "dump", *args])


def stacks(pid, *args):
    result = dump("--json", "-p", pid, *args)
    assert (result.code, result.err) == (0, ""), result
    return [json.loads(line) for line in result.out.splitlines()]


def frames(thread):
    return [[f["function"], f["file"], f["line"]] for f in thread["frames"]]


@pytest.fixture
def running(interp, start):
    def run(source, *args, prefix=()):
        return start([*prefix, *interp.argv_of(source, *args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                     encoding="utf-8")
    return run


@pytest.mark.needs_root
def test_threads_that_wait(running):
    child = running(PROGRAM)
    want = {int(ident): stack for ident, stack in json.loads(child.stdout.readline()).items()}
    harness.wait_until_asleep(child.pid)
    found = stacks(child.pid)
    assert len(found) == len(want) + 1
    assert all(thread["exact"] and thread["complete"] for thread in found)
    assert {t["ident"]: frames(t) for t in found if t["tid"] != child.pid} == want
    # The threads that the system has, each once; the first is the one that reads its input.
    assert sorted(t["tid"] for t in found) == sorted(map(int, os.listdir(f"/proc/{child.pid}/task")))
    assert found[0]["tid"] == child.pid and found[0]["state"] == "in read"
    assert not any(t["gil"] for t in found)
    states = {t["frames"][-1]["function"]: t["state"] for t in found}
    assert all(re.match("in |$", state) for state in states.values())


@pytest.mark.needs_root
def test_text(running):
    child = running(PROGRAM)
    want = json.loads(child.stdout.readline())
    harness.wait_until_asleep(child.pid)
    result = dump("-p", child.pid)
    assert result.code == 0 and not result.err, result
    blocks = result.out.split("\n\n")
    assert blocks[0].startswith(f"Process {child.pid}: ") and "\nPython 3." in blocks[0]
    texts = ["".join(f"\n    {function} ({file}:{line})" for function, file, line in stack) for stack in want.values()]
    for text in texts:
        assert sum(block.rstrip("\n").endswith(text) for block in blocks) == 1, text


@pytest.mark.needs_root
def test_who_has_the_gil(running):
    """It is held in C, for as long as one likes: nobody can ask the interpreter anything."""
    child = running("""
import ctypes, threading
def holds():
    ctypes.PyDLL(None).sleep(1000)
def waits():
    threading.Event().wait()
threading.Thread(target=waits, daemon=True).start()
thread = threading.Thread(target=holds, daemon=True)
print("ready", flush=True)
thread.start()
threading.Event().wait()
""")
    assert child.stdout.readline() == "ready\n"
    harness.wait_until(lambda: any(t["state"] in ("in clock_nanosleep", "in nanosleep") for t in stacks(child.pid)))
    held = [t for t in stacks(child.pid) if t["gil"]]       # from here on nothing changes
    assert [t["frames"][0]["function"] for t in held] == ["holds"]


@pytest.mark.needs_root
def test_threads_that_run(running):
    """Each dump is a stack that there can be, and the program computes what it has to."""
    child = running("""
import sys, threading
stop = False
def leaf(n):
    return n + 1
def left(n):
    return leaf(n)
def right(n):
    return leaf(leaf(n)) - 1
def loops():
    n = 0
    begun.pop().release()
    while not stop:
        n = left(n) if n & 1 else right(n)
    return n
results = []
def runs():
    results.append(loops() > 0)
threads = [threading.Thread(target=runs) for _ in range(2)]
locks = [threading.Lock() for _ in threads]
for l in locks: l.acquire()
begun = locks[:]
for t in threads: t.start()
for l in locks: l.acquire()
print("ready", flush=True)
sys.stdin.readline()
stop = True
for t in threads: t.join()
print(results, flush=True)
""")
    assert child.stdout.readline() == "ready\n"
    may = [["leaf", "left", "loops"], ["leaf", "right", "loops"], ["left", "loops"], ["right", "loops"], ["loops"]]
    seen = 0
    for _ in range(60):
        for thread in stacks(child.pid):
            if thread["tid"] == child.pid or not thread["exact"]:
                continue
            names = [f["function"] for f in thread["frames"]]
            assert names[names.index("loops") - len(names):][1:2] == ["runs"], names
            assert names[:names.index("runs")] in may, names
            seen += 1
    assert seen > 60
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "[True, True]\n"
    assert child.wait() == 0


@pytest.mark.needs_root
def test_system_calls_are_not_ended(running):
    """Some calls of the system end when their thread is stopped (signal(7)): who waits is not."""
    child = running("""
import ctypes, select, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
epoll = select.epoll()
events = ctypes.create_string_buffer(64)
def waits():
    got = libc.epoll_wait(epoll.fileno(), events, 1, -1)
    print("ended", got, ctypes.get_errno(), flush=True)
    os._exit(1)
threading.Thread(target=waits, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
""")
    assert child.stdout.readline() == "ready\n"
    for _ in range(40):
        assert len(stacks(child.pid)) == 2
    child.stdin.close()
    assert child.wait() == 0


@pytest.mark.needs_root
@pytest.mark.interps("3.9", "3.11", "3.15")
def test_in_a_pid_namespace(interp, start):
    """The threads are those that we see, whatever their own numbers are."""
    script = interp.add(PROGRAM)
    child = start(["unshare", "-p", "-f", *interp.argv, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    want = json.loads(child.stdout.readline())
    inner = int(subprocess.run(["pgrep", "-P", str(child.pid)], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[0])
    harness.wait_until_asleep(inner)
    found = stacks(inner)
    assert sorted(t["tid"] for t in found) == sorted(map(int, os.listdir(f"/proc/{inner}/task")))
    assert {str(t["ident"]): frames(t) for t in found if t["tid"] != inner} == want
    child.stdin.close()
    child.wait()


@pytest.mark.needs_root
def test_refusals(start):
    other = start(["sleep", "1000"])
    result = dump("-p", other.pid)
    assert result.code == 1 and "no CPython" in result.err, result
    for wrong in ("0", "-1", "x", "12x", ""):
        result = dump("-p", wrong)
        assert result.code == 2 and "no process id" in result.err, result
    assert dump().code == 2
    ended = subprocess.Popen(["true"])
    ended.wait()
    result = dump("-p", ended.pid)
    assert result.code == 1 and "No such process" in result.err, result
    result = harness.run(["setpriv", "--reuid=65534", "--clear-groups", harness.BUILD / "dtap", "dump", "-p", other.pid])
    assert result.code == 1 and "ermission denied" in result.err, result


@pytest.mark.needs_root
def test_damaged_memory(running):
    """A process may show what it likes: lists without an end, lengths without a sense."""
    child = running("""
import ctypes, sys, threading
for _ in range(3):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
code = threading.Event.wait.__code__
name = ctypes.cast(id(code.co_name), ctypes.POINTER(ctypes.c_uint64))
file = ctypes.cast(id(code.co_filename), ctypes.POINTER(ctypes.c_uint64))
keep = name[2], file[2]
name[2] = 1 << 40
file[2] = (1 << 64) - 1
print("ready", flush=True)
sys.stdin.buffer.raw.readline()
name[2], file[2] = keep
""")
    assert child.stdout.readline() == "ready\n"
    assert len(stacks(child.pid)) == 4
    child.stdin.close()
    child.wait()


def gdb_frames(pid):
    """Thread -> the addresses of its frames, as gdb finds them; of the innermost it does not always say it."""
    out = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set backtrace past-main on",
                          "-ex", "thread apply all backtrace", "-p", str(pid)],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace", timeout=50).stdout
    found = {}
    for block in re.split(r"\nThread \d+ ", out)[1:]:
        lwp = int(re.search(r"LWP (\d+)|\(process (\d+)\)", block).group(1) or 0)
        found[lwp] = [int(a, 16) for a in re.findall(r"^#\d+ +0x([0-9a-f]+) in ", block, re.M)]
    return found


@pytest.mark.needs_root
@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="native frames are found on x86-64 alone")
@pytest.mark.interps("3.11")        # gdb does not find the files of the others, which live in roots of their own
def test_native_frames(running):
    child = running(PROGRAM)
    child.stdout.readline()
    harness.wait_until_asleep(child.pid)
    ours = {t["tid"]: t for t in stacks(child.pid, "-n")}
    theirs = gdb_frames(child.pid)
    assert set(ours) == set(theirs)
    for tid, thread in ours.items():
        found = [f["address"] for f in thread["native"]]
        if theirs[tid][0] != found[0]:
            theirs[tid].insert(0, found[0])
        # gdb has frames besides for functions that ended in a jump to the next one, of which no stack knows.
        both = [a for a in theirs[tid] if a in found]
        assert len(both) > 2 and found[:len(both)] == both, (thread, [hex(a) for a in theirs[tid]])
        assert not thread["native_complete"] or theirs[tid][-1] == both[-1]
    assert sum(t["native_complete"] for t in ours.values()) > len(ours) / 2


@pytest.mark.needs_root
@pytest.mark.skipif(platform.machine() != "x86_64", reason="native frames are found on x86-64 alone")
def test_python_among_native_frames(running):
    """sorted() calls back: its frame is between two of Python's."""
    child = running(PROGRAM)
    child.stdout.readline()
    harness.wait_until_asleep(child.pid)
    result = dump("-n", "-p", child.pid)
    assert result.code == 0 and not result.err, result
    thread = next(block for block in result.out.split("\n\n") if "through_c" in block)
    lines = [line.strip() for line in thread.splitlines()]
    key, caller = (next(i for i, line in enumerate(lines) if name in line) for name in ("<lambda> (", "through_c ("))
    assert caller - key > 1 and all("[" in line for line in lines[key + 1:caller]), thread
    assert "_PyEval_EvalFrameDefault" not in thread


FAMILY = """
import json, os, subprocess, sys
def waits():
    os.write(1, b"ready\\n")
    sys.stdin.readline()
if len(sys.argv) > 1:
    waits()
    sys.exit()
children = []
for user in (0, 65534):
    children.append(subprocess.Popen([sys.executable, __file__, "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user))
    children[-1].stdout.readline()
pids = [child.pid for child in children]
said = [subprocess.run([*DUMP, *words.replace("PIDS", " ".join(f"-p {pid}" for pid in pids)).split()], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True) for words in WORDS]
print(json.dumps([pids, [[done.returncode, done.stdout, done.stderr] for done in said]]))
for child in children:
    child.stdin.close()
    child.wait()
"""


@pytest.mark.alone
@pytest.mark.needs_root
@pytest.mark.interps("3.11")
def test_all_and_of_a_user(interp, tmp_path):
    """In a pid namespace: every Python, those of a user, several by number; what is no Python is left out."""
    words = ["--json -a", "--json -u 65534", "--json -u root", "PIDS", "-u 65533", f"-o {tmp_path}/all.jsonl -a"]
    program = FAMILY.replace("WORDS", repr(words)).replace("DUMP", repr([str(harness.BUILD / "dtap"), "dump"]))
    result = harness.run(["unshare", "--pid", "--mount-proc", "--fork", *interp.argv_of(program)])
    pids, said = json.loads(result.out)
    waits = [{row["pid"] for row in map(json.loads, out.splitlines()) if row["frames"][0]["function"] == "waits"}
             for _, out, _ in said[:3]]
    assert waits == [set(pids), {pids[1]}, {pids[0]}], result
    assert [code for code, _, _ in said] == [0, 0, 0, 0, 1, 0], result
    assert re.findall(r"^Process (\d+)", said[3][1], re.M) == [str(pid) for pid in pids] and "\n\nProcess" in said[3][1], result
    assert said[4][2] == "dtap dump: there is no Python of that user that may be read\n"
    assert said[5][1] == "" and set(pids) <= {json.loads(line)["pid"] for line in (tmp_path / "all.jsonl").read_text().splitlines()}


@pytest.mark.parametrize("words, message", [
    (["1234"], "dtap dump: a process is named by -p: dtap dump -p 1234\n"), (["-a", "-p", "1"], "dtap dump: it is -p, or -u, or -a\n"),
    (["-u", "nobody-at-all"], "dtap dump: there is no user 'nobody-at-all'\n"),
    (["-p", "1", "-o", "/nosuch/x"], "dtap dump: cannot write /nosuch/x: No such file or directory\n"),
])
def test_wrong_command_lines(words, message):
    result = dump(*words)
    assert result.code in (1, 2) and (result.out, result.err) == ("", message), result
