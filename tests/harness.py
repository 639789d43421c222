"""What the end-to-end tests share: the interpreters, running dtrace, and reading a traced process.

conftest.py makes fixtures of these.  The build under test is $DTAP_BUILD (default build/).
"""
import contextlib
import ctypes
import functools
import os
import pathlib
import platform
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("DTAP_BUILD", TOP / "build")).resolve()
DTRACE = BUILD / "dtrace"
AGENT = BUILD / "src/agent/dtap-agent.so"
STAP = BUILD / "stap"
# What a tracer of all Pythons may say of those that it met after their first line.
LATE = r"(# \w+: \d+ programs? may have begun before the agent was in (it|them): .*\n)?"
VERSIONS = ("3.9", "3.11", "3.13", "3.14", "3.15")
TIMEOUT_S = 60
HANGS_S = 5 * TIMEOUT_S       # for a program that works while a test does something to it
NIGHTLY = bool(os.environ.get("DTAP_NIGHTLY"))      # what takes long is done as well

# What the sanitizers print and no command does.
SANITIZER_REPORT = re.compile(r"ERROR: \w+Sanitizer|runtime error:|AddressSanitizer:DEADLYSIGNAL")


# --- interpreters ----------------------------------------------------------------------------------

class Interp:
    """One CPython: its version ("3.9"), the command that starts it, the root it lives in ("" for the host)."""

    def __init__(self, version, argv):
        self.version = version
        self.argv = argv
        self.root = argv[1] if argv[0] == "chroot" else ""
        self._dir = None

    @property
    def dir(self):
        """A scratch folder inside the root, as seen from the host."""
        if self._dir is None:
            self._dir = pathlib.Path(tempfile.mkdtemp(prefix="dtap-", dir=f"{self.root}/tmp"))
            self._dir.chmod(0o755)
        return self._dir

    def inside(self, path):
        """The name that the interpreter knows a host path by."""
        return str(path)[len(self.root):]

    def add(self, source, name=None):
        """Put a script, a path or its text, where the interpreter sees it; its name there."""
        if isinstance(source, pathlib.Path):
            to = self.dir / (name or source.name)
            shutil.copy(source, to)
        else:
            to = self.dir / (name or "script.py")
            to.write_text(source)
        return self.inside(to)

    def argv_of(self, script, *args):
        return [*self.argv, self.add(script), *map(str, args)]

    def command(self, script, *args):
        """The words for dtrace -c that run a script (a path, or its text) in this interpreter."""
        return " ".join(self.argv_of(script, *args))

    @functools.cached_property
    def executable(self):
        """The interpreter's file, as the host sees it."""
        found = subprocess.run([*self.argv, "-c", "import os, sys; print(os.path.realpath(sys.executable))"],
                               stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        return self.root + found

    @functools.cached_property
    def markers(self):
        """Marker names (function__entry) and the address of each one's semaphore."""
        notes = subprocess.run(["readelf", "-n", self.executable], stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL, check=True).stdout
        found = re.findall(r"Provider: python\n\s*Name: (\w+)\n.*?Semaphore: 0x([0-9a-f]+)", notes)
        return {name: int(semaphore, 16) for name, semaphore in found}

    def has_marker(self, name):
        return name.replace("-", "__") in self.markers

    def close(self):
        if self._dir:
            shutil.rmtree(self._dir, ignore_errors=True)
            self._dir = None


@functools.lru_cache(maxsize=None)
def interpreters():
    """Version -> argv of those that run here, or the reason (a string) why one does not."""
    listed = subprocess.run([TOP / "tools/pythons", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        version, *argv = line.split()
        found[version] = argv if argv[0] != "#" else " ".join(argv[1:])
    return found


def text_of(text):
    """@text with what UTF-8 cannot have as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


# --- what the machine allows -----------------------------------------------------------------------

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD, BPF_PROG_TYPE_KPROBE = 5, 2


@functools.lru_cache(maxsize=None)
def bpf_refusal():
    """Why this machine lets nobody trace ("" when it does).  Asked of the kernel, so that a broken dtrace
    fails its tests instead of skipping them."""
    if not os.path.exists("/sys/bus/event_source/devices/uprobe/type"):
        return "this kernel has no uprobes (or /sys is not mounted)"
    number = BPF_SYSCALL.get(platform.machine())
    if number is None:
        return f"dtap does not trace on {platform.machine()}"
    # r0 = 0; exit
    insns = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("<IIQQIIQII", BPF_PROG_TYPE_KPROBE, 2, ctypes.addressof(insns), ctypes.addressof(licence),
                       0, 0, 0, 0, 0).ljust(128, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(number, BPF_PROG_LOAD, ctypes.create_string_buffer(attr, len(attr)), len(attr))
    if fd < 0:
        return f"the kernel refuses BPF: {os.strerror(ctypes.get_errno())}"
    os.close(fd)
    return ""


# --- dtrace ----------------------------------------------------------------------------------------

class Result:
    """How a dtrace ended: exit code (negative: the signal), standard output and standard error."""

    def __init__(self, argv, code, out, err):
        self.argv, self.code, self.out, self.err = argv, code, out, err

    def __iter__(self):
        return iter((self.code, self.out, self.err))

    def __repr__(self):
        return f"{' '.join(map(str, self.argv))}\nexit {self.code}\n-- stdout\n{self.out}\n-- stderr\n{self.err}"


def without_end(argv, out):
    """The output of a script: the empty line that ends each run of dtrace is left out, where nothing is behind it."""
    elsewhere = re.compile("-[a-zA-Z]*[lVeGho]$|--|-xoformat|oformat")
    own = argv[argv.index(str(DTRACE)) + 1:] if str(DTRACE) in argv else None
    runs = own is not None and not any(elsewhere.match(word) for word in own)
    return out.removesuffix("\n") if runs and (out.endswith("\n\n") or "\n\n" not in out) else out


def check_health(result):
    """Fail when the command died of a signal or a sanitizer complained."""
    assert not SANITIZER_REPORT.search(result.err), f"a sanitizer reports:\n{result!r}"
    assert result.code not in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE,
                               99), f"crashed:\n{result!r}"


def run(argv, timeout=TIMEOUT_S, **kwargs):
    """Run to the end.  A hang is ended by SIGTERM (so that dtrace disarms its probes), then SIGKILL."""
    argv = [str(word) for word in argv]
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
    return finish(child, argv, timeout)


def family(pid):
    """A process and what it has started, and so on; each may end at any time."""
    children = []
    with contextlib.suppress(FileNotFoundError):
        for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                children += map(int, thread.read_text().split())
    return [pid, *(one for child in children for one in family(child))]


def where_they_stand(pid, most=4):
    """What a process that does not end, and those that it has started, wait for: their states, used time and C stacks."""
    told = []
    for one in family(pid)[:most]:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            fields = pathlib.Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            words = pathlib.Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            told.append(f"process {one}, state {fields[0]}, CPU time {(int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')} s: {words}")
            if shutil.which("gdb"):
                stacks = subprocess.run(["gdb", "-nx", "-batch", "-p", str(one), "-ex", "thread apply all bt 25"], stdin=subprocess.DEVNULL,
                                        capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S)
                told += [line for line in stacks.stdout.splitlines() if re.match(r"#|Thread ", line)]
    return "\n".join(told)


def is_at_work(child, since):
    """Has it said nothing yet, since the time.monotonic() @since?  A test with a program that hangs fails, and says where that stands."""
    silent = not select.select([child.stdout], [], [], 0)[0]
    assert not silent or time.monotonic() < since + HANGS_S, where_they_stand(child.pid)
    return silent


def finish(child, argv, timeout=TIMEOUT_S):
    hung, stands = False, ""
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        hung, stands = True, where_they_stand(child.pid)
        child.terminate()
        try:
            out, err = child.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            # Its output may be held by a program that it has traced.
            for pid in family(child.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                out, err = child.communicate(timeout=5)
            except subprocess.TimeoutExpired as held:
                out, err = held.output or b"", held.stderr or b""
                child.wait()
    result = Result(argv, child.returncode, without_end([str(word) for word in child.args], out.decode(errors="surrogateescape")),
                    err.decode(errors="surrogateescape"))
    check_health(result)
    assert not hung, f"no end after {timeout} s:\n{result!r}\n-- at that time\n{stands}"
    return result


def interrupt(child, timeout=TIMEOUT_S):
    """
    End a tracer by SIGINT; its output.  Once a second, for bpftrace 0.17 takes no notice of one that comes while it does
    not wait for events.
    """
    deadline = time.monotonic() + timeout
    while True:
        child.send_signal(signal.SIGINT)
        try:
            return child.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            assert time.monotonic() < deadline, f"no end after {timeout} s: {child.args}"


def dtrace(*args, **kwargs):
    return run([DTRACE, *args], **kwargs)


def stap(*args, **kwargs):
    return run([STAP, *args], **kwargs)


def dtrace_start(*args, **kwargs):
    """Start a dtrace that goes on; the caller ends it with finish()."""
    return subprocess.Popen([str(word) for word in (DTRACE, *args)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


def in_time_order(text):
    """What CPython's test_dtrace does to a tracer's output: rows "time stamp, tab, text" sorted by time, the
    stamps taken off, empty lines and the traced program's own lines (#) left out."""
    rows = [line.split("\t", 1) for line in text.splitlines() if line and not line.startswith("#")]
    assert all(len(row) == 2 for row in rows), text
    return [row[1] for row in sorted(rows, key=lambda row: int(row[0]))]


# --- a traced process ------------------------------------------------------------------------------

# read, poll, select, pause, nanosleep, wait4, futex, clock_nanosleep, epoll_wait, pselect6, ppoll, epoll_pwait
WAITING_CALLS = {0, 7, 23, 34, 35, 61, 202, 230, 232, 270, 271, 281}


def waits(pid):
    """Is the first thread of a process inside of a system call that waits?"""
    with open(f"/proc/{pid}/syscall") as call:
        number = call.read().split()[0]
    return number.isdigit() and int(number) in WAITING_CALLS


def wait_until(condition, timeout=TIMEOUT_S, what="condition"):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{what}: not within {timeout} s")


def wait_until_asleep(pid):
    """All of its threads sleep at one time: then none of them goes on by itself."""
    def sleeps():
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        return {task.name: re.search(rb"^State:\s+(\S).*^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_bytes(), re.M | re.S)
                .groups() for task in tasks}

    def all_sleep():
        before = sleeps()
        return all(state == b"S" for state, _ in before.values()) and sleeps() == before
    wait_until(all_sleep, what="a process that sleeps")


# Says "ready", then calls leaf() without end.
LOOP = """
import time
def leaf(): pass
print("ready", flush=True)
while True:
    leaf()
    time.sleep(0.001)
"""


def running(start, interp, program=LOOP):
    """A process of a program that says "ready" first, and has said it; start is the fixture."""
    child = start(interp.argv_of(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


def semaphore(pid, interp, marker):
    """The value of a marker's semaphore in a process: how many tracers listen."""
    address = interp.markers[marker.replace("-", "__")]
    with open(interp.executable, "rb") as elf:
        kind = struct.unpack_from("<H", elf.read(18), 16)[0]
    if kind == 3:               # ET_DYN: relative to where the file is mapped
        with open(f"/proc/{pid}/maps") as maps:
            address += next(int(line.split("-")[0], 16) for line in maps if interp.inside(interp.executable) in line)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return struct.unpack("<H", memory.read(2))[0]


def agent_semaphores(pid, agent=AGENT):
    """Marker -> value in the process, of the agent that is mapped there, the file @agent; None: none is."""
    notes = subprocess.run(["readelf", "-n", agent], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.findall(r"Provider: python\n\s*Name: (\w+)\n.*?Semaphore: (0x[0-9a-f]+)", notes)
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    bases = [int(line.split("-")[0], 16) for line in maps if "dtap-agent" in line and line.split()[2] == "00000000"]
    if not bases:
        return None
    values = {}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for name, address in found:
            memory.seek(bases[0] + int(address, 16))
            values[name] = struct.unpack("<H", memory.read(2))[0]
    return values
