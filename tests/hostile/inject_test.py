"""Getting in must not harm: processes that change, share, or limit themselves while the agent is brought in; and what the
children that dtap starts itself find.

attach.c and guest.c are those of tests/target.
"""
import ctypes
import json
import os
import pathlib
import platform
import re
import signal
import struct
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
from harness import wait_until  # noqa: E402
from stepper import Stepper  # noqa: E402

HERE = harness.BUILD / "tests/target"
ATTACH, GUEST, STANDIN = HERE / "attach", HERE / "guest", HERE / "standin.so"
AGENT = harness.BUILD / "src/agent/dtap-agent.so"

attaches = [pytest.mark.needs_root,
            pytest.mark.skipif(platform.machine() != "x86_64", reason="attaching is for x86-64 only")]


def with_marks(fn):
    for mark in attaches:
        fn = mark(fn)
    return fn


def attach(pid, *args, agent=STANDIN, timeout=60):
    return harness.run([ATTACH, agent, pid, *args], timeout=timeout)


@pytest.fixture
def guest(start):
    def guest(mode):
        child = start([GUEST, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "up\n"
        return child
    return guest


LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_TRACEME, PTRACE_DETACH = 0, 17


def ptrace(request, pid=0, data=0):
    assert LIBC.ptrace(ctypes.c_long(request), pid, None, ctypes.c_void_p(int(data))) == 0, os.strerror(ctypes.get_errno())


def child_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


# --- identity --------------------------------------------------------------------------------------------

@with_marks
def test_exec_before_the_stop(guest):
    """What was read of the program before the stop says nothing of the one that is stopped."""
    for _ in range(5):
        child = guest("exec")
        result = attach(child.pid)
        assert child.stdout.readline() == "up\n"
        time.sleep(0.3)                 # "regs" looks whether it is as it was
        assert child.poll() is None, (child.stdout.read(), result)
        assert "state" in result.out, result
        child.kill()


@with_marks
def test_exec_while_a_thread_is_held(guest):
    """An exec waits for the other threads' end, also for their tracer's notice of it; and new tracing waits for the exec."""
    for _ in range(12):
        child = guest("threads")
        tracer = subprocess.Popen([ATTACH, STANDIN, str(child.pid)], stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "up\n"
        assert "state" in tracer.communicate(timeout=harness.TIMEOUT_S)[0]
        child.kill()


@with_marks
def test_program_that_is_being_loaded(start):
    """An exec has just been: the C library is not mapped yet, and the dynamic loader is waited for."""
    pid = os.fork()
    if not pid:
        ptrace(PTRACE_TRACEME)
        os.execl("/usr/bin/python3", "python3", "-c", "import time; time.sleep(1000)")
    try:
        os.waitpid(pid, 0)
        ptrace(PTRACE_DETACH, pid, signal.SIGSTOP)
        wait_until(lambda: state(pid) == "T", what="the stop")
        assert "libc.so" not in pathlib.Path(f"/proc/{pid}/maps").read_text()
        tracer = start([ATTACH, STANDIN, pid], stdout=subprocess.PIPE, text=True)
        wait_until(lambda: harness.waits(tracer.pid) or tracer.poll() is not None, what="the tracer's wait")
        os.kill(pid, signal.SIGCONT)
        out = tracer.communicate(timeout=harness.TIMEOUT_S)[0]
        assert "state" in out, out
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# --- memory in common ------------------------------------------------------------------------------------

@with_marks
def test_child_by_vfork_is_waited_for(guest):
    """Until it executes its own program; the parent, whose memory it has till then, gets no agent."""
    parent = guest("vfork")
    child = child_of(parent.pid)
    try:
        result = attach(child)
        assert "state" in result.out, result
        assert STANDIN.name in pathlib.Path(f"/proc/{child}/maps").read_text()
        assert STANDIN.name not in pathlib.Path(f"/proc/{parent.pid}/maps").read_text()
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.first
@with_marks
def test_process_that_shares_its_memory(guest):
    parent = guest("shares")
    child = child_of(parent.pid)
    for pid in (child, parent.pid):
        result = attach(pid)
        assert result.code == 1 and "shares its memory with process" in result.out, result
    os.kill(child, signal.SIGKILL)
    assert "state" in attach(parent.pid).out


# --- places that are not safe ----------------------------------------------------------------------------

MAKES_A_THREAD = r"""
import ctypes, sys, threading
libc = ctypes.CDLL("libpthread.so.0")
begin = ctypes.cast(libc.pthread_self, ctypes.c_void_p)
create, join, thread = libc.pthread_create, libc.pthread_join, ctypes.c_ulong()
join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
create.argtypes = [ctypes.c_void_p] * 4
threading.Thread(target=threading.Event().wait, daemon=True).start()    # locks do nothing in glibc where there is one thread
print(ctypes.cast(create, ctypes.c_void_p).value, flush=True)
for line in sys.stdin:
    assert create(ctypes.byref(thread), None, begin, None) == 0
    assert join(thread, None) == 0
    print("made", flush=True)
"""


@with_marks
def test_inside_of_pthread_create(start, interp):
    """With the first lock taken, which the loading of the agent takes as well."""
    child = start(interp.argv_of(MAKES_A_THREAD), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    address = int(child.stdout.readline())
    child.stdin.write("go\n")
    assert child.stdout.readline() == "made\n"          # and what is looked up by name at first is known
    stepper = Stepper(child.pid)
    stepper.run_to(address, lambda: child.stdin.write("go\n"))
    while stepper.step()[1][0] != 0xf0:                 # the prefix LOCK
        pass
    stepper.leave_stopped()
    wait_until(lambda: state(child.pid) == "T", what="the stop")
    result = attach(child.pid, agent=AGENT)
    child.send_signal(signal.SIGCONT)
    assert "SIGCONT" in result.out, result
    assert child.stdout.readline() == "made\n"
    assert "state" in attach(child.pid, agent=AGENT).out


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


# --- limited system calls (seccomp) ----------------------------------------------------------------------

TOP = pathlib.Path(__file__).resolve().parents[2]
ROWS = re.findall(r'^CALL\((\w+),\s*(\w+),\s*"([^"]*)"', (TOP / "src/abi/calls.def").read_text(), re.M)
NUMBERS = {name: int(nr) for nr, name in re.findall(r"^SYSCALL\((\d+), (\w+)\)",
                                                   (TOP / "src/arch/x86_64/syscalls.def").read_text(), re.M)}
NEEDED = [name for name, need, _ in ROWS if need == "NEED"]
SPARED = [name for name, need, _ in ROWS if need not in ("NEED", "MUSL") and name not in NEEDED]

# It counts its work in a mapped file, and makes no other system calls than those of a sleep and of memory.
LIMITED = r"""
import ctypes, mmap, socket, struct, sys
shown, named, others, path = eval(sys.argv[1]), eval(sys.argv[2]), eval(sys.argv[3]), sys.argv[4]
libc = ctypes.CDLL(None)
file = open(path, "r+b")
work = mmap.mmap(file.fileno(), 4096)
pair = socket.socketpair()
def add(n): return n + 1
def step(n):
    work[:8] = struct.pack("<Q", add(n))
    file.fileno(), pair[0].fileno()
    libc.usleep(2000)
    return n + 1
n = step(step(0))
rules = [(0x20, 0, 0, 0)] + [rule for nr in shown for rule in ((0x15, 0, 1, nr), (0x06, 0, 0, named))] + [(0x06, 0, 0, others)]
code = b"".join(struct.pack("<HBBI", rule[0], rule[1], rule[2], rule[3]) for rule in rules)
text = ctypes.create_string_buffer(code, len(code))
program = struct.pack("<HxxxxxxQ", len(rules), ctypes.addressof(text))
print("up", flush=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0
while True: n = step(n)
"""
KILL, ALLOW = 0x80000000, 0x7fff0000

# All that asks the system, or reads addresses, at an event.
ASKS = """
python$target:::function-entry
{
	@[copyinstr(arg1), execname, pid, tid, ppid, uid, gid, cpu] = count();
	self->t = timestamp; seen[copyinstr(arg1)] = vtimestamp;
	printf("%s %s %d %Y\\n", cwd, root, curpsinfo->pr_pid + curpsinfo->pr_uid, walltimestamp);
}
python$target:::function-entry { @bad[copyinstr(123456)] = count(); }
python$target:::function-entry { trace(*(int *)copyin(4096, 4)); copyoutstr("x", 4096, 2); progenyof(1); }
python$target:::function-return { @s[ustack(5)] = count(); @t = quantize(timestamp - self->t); self->t = 0; }
python$target:::cfunction-entry { @opened[pyargs()] = count(); }
python$target:::function-entry /!raised/ { raised = 1; raise(0); }
tick-300ms { exit(0); }
"""


def worked(path):
    return struct.unpack("<Q", path.read_bytes()[:8])[0]


def limited(start, interp, shown, named, others):
    path = interp.dir / "work"
    path.write_bytes(bytes(4096))
    child = start(interp.argv_of(LIMITED, [NUMBERS[name] for name in shown], named, others, interp.inside(path)),
                  stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n"
    before = worked(path)
    wait_until(lambda: worked(path) > before + 2, what="work behind the filter")
    return child, path


def lives(child, path):
    before = worked(path)
    wait_until(lambda: worked(path) > before + 20 or child.poll() is not None, what="further work")
    assert child.poll() is None, f"it was killed: {child.returncode}"


@with_marks
@pytest.mark.needs_bpf
@pytest.mark.parametrize("calls", [NEEDED + SPARED, NEEDED], ids=["all of the list", "needed"])
def test_filter_that_kills_at_all_other_calls(start, interp, calls):
    child, path = limited(start, interp, calls, ALLOW, KILL)
    for _ in range(2):
        result = harness.dtrace("-qw", "-x", "place=target", "-n", ASKS, "-p", child.pid)
        lives(child, path)
        assert result.code == 0 and "add" in result.out and (interp.inside(path) in result.out) == (calls != NEEDED), result
    if calls == NEEDED:
        assert "invalid address" in result.err, result


@with_marks
@pytest.mark.needs_bpf
@pytest.mark.interps("3.9", "3.14")
@pytest.mark.parametrize("call", SPARED)
def test_filter_that_kills_at_a_call_that_can_be_spared(start, interp, call):
    child, path = limited(start, interp, [call], KILL, ALLOW)
    result = harness.dtrace("-qw", "-x", "place=target", "-n", ASKS, "-p", child.pid)
    lives(child, path)
    tells = not any(name == call and need in ("OPENED", "MEMORY") for name, need, _ in ROWS)
    assert result.code == 0 and "add" in result.out and (interp.inside(path) in result.out) == tells, result


@with_marks
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("call", ["brk", "clone3", "connect", "prlimit64", "recvmsg", "sched_getaffinity", "tgkill"])
def test_filter_that_kills_at_a_call_that_is_needed(start, interp, call):
    child, path = limited(start, interp, [call], KILL, ALLOW)
    result = attach(child.pid, agent=AGENT)
    lives(child, path)
    assert result.code == 1 and f"would not survive {call}()" in result.out, result


# What imports make no system call; those of the dynamic loader and of threads are found by the tests above.
PURE = """__errno_location dlsym environ getenv memchr memcmp memcpy memmove memset stpcpy strchr strcmp strcpy strcspn strlen strncmp strnlen strrchr
    syscall vsnprintf""".split()


def test_list_has_all_calls_of_the_agent():
    rows = subprocess.run(["nm", "-D", "--undefined-only", AGENT], stdout=subprocess.PIPE, text=True, check=True).stdout
    imports = {row.split()[-1] for row in rows.splitlines()} - {*PURE}
    by = {name for _, _, names in ROWS for name in names.split()}
    assert imports <= by | {"write"}, imports - by

    commands = json.loads((harness.BUILD / "compile_commands.json").read_text())
    sources = {(pathlib.Path(row["directory"]) / row["file"]).resolve() for row in commands if "dtap-agent.so.p" in row["output"]}
    assert len(sources) > 20
    # Who has a filter does not ask.
    sources = {source for source in sources if source.name not in ("ask.c", "guarded.c")}
    numbers = {name for source in sources for name in re.findall(r"\bSYS_(\w+)", source.read_text())}
    listed = {name for name, _, names in ROWS if "syscall" in names.split()}
    assert numbers - {"getcpu"} <= listed, numbers - listed

    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", AGENT], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert not re.search(r"\t(syscall|sysenter|int +\$0x80)\b", code)


# --- dtap's own children ---------------------------------------------------------------------------------

SHOW = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"


def odd_signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGCHLD])
    for sig in (signal.SIGPIPE, signal.SIGUSR2, signal.SIGQUIT, signal.SIGRTMIN):
        signal.signal(sig, signal.SIG_IGN)


def stands_for(tmp_path, name):
    """A program of that name which shows its signals and does nothing."""
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{SHOW} >{tmp_path}/signals\nexit 1\n")
    path.chmod(0o755)
    return path


STARTS = {
    "system": ("dtrace", "-qwn", f'BEGIN {{ system("{SHOW}"); exit(0); }}'),
    "stap system": ("stap", "-e", f'probe begin {{ system("{SHOW}") exit() }}'),
    "command": ("dtrace", "-qn", "BEGIN { }", "-c", f"sh -c \"{SHOW}\""),
    "cpp": ("dtrace", "-C", "-s", "{dir}/p.d"),
    "compiler": ("dtrace", "-G", "-s", "{dir}/p.d", "-o", "{dir}/p.o"),
    "agent": ("dtap", "agent", "status", "--python", "{dir}/cpp"),
}


@pytest.mark.needs_bpf
@pytest.mark.parametrize("how", STARTS)
def test_signals_of_children(how, tmp_path):
    """As for anybody's child: nothing is blocked or ignored."""
    stands_for(tmp_path, "cpp")
    (tmp_path / "p.d").write_text("provider p { probe q(); };\n")
    command, *words = [word.replace("{dir}", str(tmp_path)) for word in STARTS[how]]
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CC": str(tmp_path / "cpp")}
    result = harness.run([harness.BUILD / command, *words], env=env, preexec_fn=odd_signals)
    signals = tmp_path / "signals"
    text = signals.read_text() if signals.exists() else result.out
    lines = dict(line.split() for line in text.splitlines() if line.startswith("Sig"))
    of_libc = 3 << 31           # glibc's own two, which a program can neither set nor hand on wrongly
    assert not any(int(lines[name], 16) & ~of_libc for name in ("SigBlk:", "SigIgn:")), (text, result)
