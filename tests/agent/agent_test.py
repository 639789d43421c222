"""The agent's markers, event for event against the interpreter's own hooks.

Each program is run once with a witness (see runner.py) and once with the agent preloaded and dtrace reading the
agent's markers; both must tell the same.
"""
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import time
import zlib

import pytest

import harness
from agent.channel import Listener

HERE = pathlib.Path(__file__).parent
AGENT = harness.BUILD / "src/agent/dtap-agent.so"
PROGRAMS = sorted((HERE / "programs").glob("*.py"))

# The markers in the order of their bits.
NAMES = ["function__entry", "function__return", "line", "gc__start", "gc__done", "import__find__load__start",
         "import__find__load__done", "audit", "cfunction__entry", "cfunction__return", "exception__raise",
         "thread__start", "exception__caught", "thread__finish", "task__step__begin", "task__step__end",
         "memory__alloc", "memory__free", "task__create"]


def bits(*names):
    return sum(1 << NAMES.index(name) for name in names)


needs_bpf = pytest.mark.needs_bpf


def notes():
    """Marker -> (semaphore's address, arguments)."""
    text = subprocess.run(["readelf", "-n", AGENT], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.findall(r"Provider: python\n\s*Name: (\w+)\n.*?Semaphore: (0x[0-9a-f]+)\n\s*Arguments: (.*)", text)
    return {name: (int(semaphore, 16), arguments) for name, semaphore, arguments in found}


def semaphore(pid, name):
    with open(f"/proc/{pid}/maps") as maps:
        base = next((int(line.split("-")[0], 16) for line in maps if AGENT.name in line), None)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(base + notes()[name][0])
        return struct.unpack("<H", memory.read(2))[0]


def agent(interp):
    """The agent as the interpreter knows it; copied once, since what is mapped must not be written."""
    if not (interp.dir / AGENT.name).exists():
        interp.add(AGENT)
    return interp.inside(interp.dir / AGENT.name)


def environment(interp, **env):
    """Words that start the interpreter with these variables added."""
    words = ["/usr/bin/env", *(f"{name}={value}" for name, value in env.items())]
    return [*interp.argv[:2], *words, interp.argv[2]] if interp.root else [*words, *interp.argv]


def start(interp, *args, **env):
    return subprocess.Popen([*environment(interp, **env), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"})


def polling(interp, *args):
    """With the agent preloaded, which looks for listeners by itself."""
    return start(interp, *args, LD_PRELOAD=agent(interp), DTAP_AGENT_POLL=1)


def preloaded(interp, listener, *args):
    """With the agent preloaded, which has a channel to the listener."""
    return start(interp, *args, LD_PRELOAD=agent(interp), DTAP_AGENT=listener.address)


def end(child):
    out, err = child.communicate("go\n", timeout=harness.TIMEOUT_S)
    assert child.returncode == 0 and err == "", (child.returncode, out, err)
    return out.splitlines()


def ready(child):
    line = child.stdout.readline()
    assert line == "ready\n", (line, child.stderr.read())


def witness(interp, mode, program):
    child = start(interp, interp.add(HERE / "runner.py"), mode, interp.add(program))
    ready(child)
    return end(child)


def traced(interp, script, program, *listened):
    return traced_both(interp, script, program, *listened)[0]


def traced_both(interp, script, program, *listened):
    """What a D script prints about a program, and what that prints; @listened are the markers that must have been
    armed first.  One half of the cases runs in the kernel, the other in the program: the same comes out."""
    own = script.count("python$target:") > script.count("python$target:dtap-agent.so:")
    case = f"{interp.version} {getattr(program, 'name', program)} {listened}"
    place = "target" if zlib.crc32(case.encode()) & 1 and not own else "kernel"
    listener = Listener()
    child = preloaded(interp, listener, interp.add(HERE / "runner.py"), "markers", interp.add(program))
    tracer = None
    try:
        channel, _ = listener.hello()
        ready(child)
        tracer = harness.dtrace_start("-q", "-x", "strsize=1024", "-x", f"place={place}",
                                      "-n", 'tick-20ms /!up/ { up = 1; printf("up\\n"); }',
                                      "-n", script,
                                      "-p", child.pid)
        assert tracer.stdout.readline() == b"up\n", tracer.communicate()
        assert all(semaphore(child.pid, m) == (place == "kernel") for m in listened)
        assert channel.look().supplied == bits(*listened)
        own = end(child)
        result = harness.finish(tracer, [script])
        tracer = None
    finally:
        listener.close()
        child.kill()
        if tracer:
            tracer.kill()
    assert result.code == 0 and result.err == "", result
    return result.out.splitlines(), own


def probe(name, file, text, *args):
    where = f'/copyinstr(arg0) == "{file}"/ ' if file else ""
    return f'python$target:dtap-agent.so::{name} {where}{{ printf("{text}\\n", {", ".join(args)}); }}\n'


def between(lines):
    return lines[lines.index("audit dtap.begin") + 1:lines.index("audit dtap.end")]


@needs_bpf
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_calls(interp, program):
    file = interp.inside(interp.dir / program.name)
    got = traced(interp, probe("function-entry", file, "call %s %d", "copyinstr(arg1)", "arg2") +
                 probe("function-return", file, "return %s %d", "copyinstr(arg1)", "arg2"), program,
                 "function__entry", "function__return")
    want = witness(interp, "calls", program)
    assert len(want) > 3 and got == want


@needs_bpf
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_lines(interp, program):
    file = interp.inside(interp.dir / program.name)
    got = traced(interp, probe("line", file, "line %s %d", "copyinstr(arg1)", "arg2"), program, "line")
    want = witness(interp, "lines", program)
    assert len(want) > 3 and got == want


@needs_bpf
def test_gc(interp):
    program = HERE / "programs/garbage.py"
    got = traced(interp, probe("gc-start", None, "start %d", "arg0") + probe("gc-done", None, "done %d", "arg0"),
                 program, "gc__start", "gc__done")
    want = witness(interp, "gc", program)
    assert len(want) == 8 and got[:8] == want


@needs_bpf
@pytest.mark.parametrize("name", ["decorators", "threads", "signals"])
def test_audit(interp, name):
    program = HERE / f"programs/{name}.py"
    got = traced(interp, probe("audit", None, "audit %s", "copyinstr(arg0)"), program, "audit")
    assert between(got) == between(witness(interp, "audit", program))


# Not those with threads, of which the witness sees one, nor signals, which come when they like.
CALLING_C = [p for p in PROGRAMS if p.stem not in ("threads", "pools", "signals")]


@needs_bpf
@pytest.mark.parametrize("program", [HERE / "data/ccalls.py", *CALLING_C], ids=lambda p: p.stem)
def test_ccalls(interp, program):
    file = interp.inside(interp.dir / program.name)
    args = "copyinstr(arg1)", "arg2", "copyinstr(arg3)"
    got = traced(interp, probe("cfunction-entry", file, "entry %s %d %s", *args) +
                 probe("cfunction-return", file, "return %s %d %s", *args), program,
                 "cfunction__entry", "cfunction__return")
    want = witness(interp, "ccalls", program)
    assert got == want


@needs_bpf
@pytest.mark.parametrize("name", ["exceptions", "throwing", "generators", "coroutines", "recursion"])
def test_raises(interp, name):
    """As sys.settrace's exceptions.  What only ends an iteration or a generator may or may not be there."""
    program = HERE / f"programs/{name}.py"
    file = interp.inside(interp.dir / program.name)
    script = (f'python$target:dtap-agent.so::exception-raise /copyinstr(arg1) == "{file}"/ '
              '{ printf("%s %s %d\\n", copyinstr(arg0), copyinstr(arg2), arg3); }')
    got = traced(interp, script, program, "exception__raise")
    want = witness(interp, "raises", program)
    got, want = ([line for line in lines if not re.match("StopIteration|GeneratorExit", line)]
                 for lines in (got, want))
    assert got == want


def test_raises_ask_nobody(interp, tmp_path):
    """The name of an exception's type is what type.__name__ is, and none of the program's code runs for it."""
    program = tmp_path / "odd.py"
    program.write_text("""
import zlib
asked = []
class Meta(type):
    def __getattribute__(cls, name):
        asked.append(name)
        return type.__getattribute__(cls, name)
    @property
    def __name__(cls):
        asked.append("property")
        return "Wrong"
class Odd(Exception, metaclass=Meta): pass
class Renamed(Exception): pass
Renamed.__name__ = "Other"
def fails(error):
    try: raise error
    except Exception: pass
for error in Odd(), Renamed(), type("a.b", (Exception,), {})(), ValueError(), zlib.error(), type("\\xe9t\\xe9", (OSError,), {})():
    fails(error)
print(asked)
""")
    script = ('python$target:dtap-agent.so::exception-raise /basename(copyinstr(arg1)) == "odd.py"/ '
              '{ printf("%s %s\\n", copyinstr(arg0), copyinstr(arg2)); }')
    got, own = traced_both(interp, script, program, "exception__raise")
    assert own == ["[]"]
    assert got == [f"{name} fails" for name in ("Odd", "Other", "a.b", "ValueError", "error", "\u00e9t\u00e9")]


@needs_bpf
def test_thread_starts(interp):
    got = traced(interp, probe("thread-start", None, "%s %s", "basename(copyinstr(arg0))", "copyinstr(arg1)"),
                 HERE / "data/starts.py", "thread__start")
    assert got == ["threading.py _bootstrap"] * 3 + ["starts.py raw"]


def test_note_arguments():
    """Sizes and signs of the markers' arguments."""
    sizes = {name: re.findall(r"(-?\d+)@", arguments) for name, (_, arguments) in notes().items()}
    function = ["8", "8", "-4"]
    assert sizes == {
        "function__entry": function, "function__return": function, "line": function,
        "gc__start": ["-4"], "gc__done": ["-8"],
        "import__find__load__start": ["8"], "import__find__load__done": ["8", "-4"], "audit": ["8", "8"],
        "cfunction__entry": [*function, "8"], "cfunction__return": [*function, "8"],
        "exception__raise": ["8", *function], "thread__start": function,
        "exception__caught": ["8", *function], "thread__finish": ["8", *function],
        "task__step__begin": ["8"] * 3, "task__step__end": ["8", "8", "8", "-4"],
        "task__create": ["8"] * 3, "memory__alloc": ["8", "-8", "8"], "memory__free": ["8", "8"]}


def dynamic_symbols(path):
    """What it imports and exports: some linkers leave names of their own in the table (_etext), local ones."""
    table = subprocess.run(["readelf", "-W", "--dyn-syms", path], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    rows = [row.split() for row in table.splitlines() if re.match(r"\s*[1-9]\d*: ", row)]
    return [row for row in rows if row[4] != "LOCAL"]


def defined(*paths):
    return {row[7].split("@")[0] for path in paths for row in dynamic_symbols(path) if row[6] != "UND"}


# What the agent imports: in glibc since 2.27, in musl since 1.1.20.
IMPORTS = set("""
    __errno_location calloc clock_gettime close connect dlsym environ fallocate fcntl free ftruncate getegid getenv geteuid getgid
    getpgrp getpid getppid getsid getsockopt getuid kill lseek madvise malloc memchr memcmp memcpy memfd_create memmove memset
    mmap munmap nanosleep open poll read realloc recv recvmsg send sigprocmask socket socketpair stpcpy strchr strcmp
    strcpy strcspn strlen strncmp strnlen strrchr syscall vsnprintf write""".split())


# The object for musl has its thread-local variables elsewhere than in the static block.
MUSL_AGENT = AGENT.with_name("dtap-agent-musl.so")
OBJECTS = pytest.mark.parametrize("agent, more", [(AGENT, set()), (MUSL_AGENT, {"__tls_get_addr"})], ids=["glibc", "musl"])


@OBJECTS
def test_symbols(agent, more):
    """No library, no symbol version, nothing exported, and only what every libc has had for long."""
    dynamic = subprocess.run(["readelf", "-Wd", agent], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "(NEEDED)" not in dynamic and "VERNEED" not in dynamic and "TEXTREL" not in dynamic
    assert ("STATIC_TLS" in dynamic) == (agent == AGENT) and "[dtap-agent.so]" in dynamic
    rows = dynamic_symbols(agent)
    assert {row[7] for row in rows} - IMPORTS == more
    assert all(row[6] == "UND" for row in rows)
    assert [row[4] for row in rows if row[7] == "dlsym"] == ["WEAK"]


def test_symbols_of_this_libc(interp):
    """dlsym is weak: before glibc 2.34 it is in a library of its own."""
    libraries = [path for name in ("libc.so.6", "libdl.so.2")
                 for path in pathlib.Path(f"{interp.root}/lib/x86_64-linux-gnu").glob(name)]
    if not libraries:
        pytest.skip("another machine's libc")
    assert {row[7] for row in dynamic_symbols(AGENT)} <= defined(*libraries)


@OBJECTS
def test_symbols_of_musl(agent, more):
    musl = next(pathlib.Path("/lib").glob("ld-musl-*.so.1"), None)
    if not musl:
        pytest.skip("musl is not installed")
    assert more <= {row[7] for row in dynamic_symbols(agent)} <= defined(musl)


def test_entry_point():
    """Where tracers enter: no symbol of it is exported."""
    header = subprocess.run(["readelf", "-Wh", AGENT], stdout=subprocess.PIPE, text=True, check=True).stdout
    symbols = subprocess.run(["nm", AGENT], stdout=subprocess.PIPE, text=True, check=True).stdout
    entry = int(re.search(r"Entry point address: +(0x[0-9a-f]+)", header)[1], 16)
    assert re.search(r"^([0-9a-f]+) t agent_entry$", symbols, re.M)[1] == f"{entry:016x}"


@pytest.mark.slow
@pytest.mark.parametrize("source", sorted((harness.TOP / "src/agent").glob("*.c")), ids=lambda p: p.stem)
def test_compiles_for_aarch64(source, tmp_path):
    """With whatever compiles for it: a cross compiler, or clang with that machine's headers."""
    headers = pathlib.Path("/usr/aarch64-linux-gnu/include")
    if shutil.which("aarch64-linux-gnu-gcc"):
        argv = ["aarch64-linux-gnu-gcc"]
    elif shutil.which("clang") and headers.exists():
        argv = ["clang", "--target=aarch64-linux-gnu", "-isystem", headers]
    else:
        pytest.skip("nothing here compiles for aarch64")
    result = harness.run([*argv, "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-Wall", "-Werror", "-I",
                          harness.TOP / "include", "-I", harness.TOP / "src", "-c", source, "-o", tmp_path / "x.o"])
    assert result.code == 0, result


@pytest.mark.parametrize("program", ["/bin/sh", "/bin/true", "/usr/bin/env"])
def test_not_python(interp, program):
    """In a process that is no CPython nothing happens, in each root's libc."""
    argv = ["/usr/bin/env", f"LD_PRELOAD={agent(interp)}", "DTAP_AGENT_POLL=1", program]
    if program == "/bin/sh":
        argv += ["-c", "echo fine"]
    result = harness.run([*interp.argv[:2], *argv] if interp.root else argv)
    assert result.code == 0 and result.err == "", result


def beside_native(interp, program, *probes, where=""):
    """The agent's markers and the interpreter's own in one run: two lists of lines.  @probes: name, format, args."""
    script = "".join(f'python$target:{module}::{name} {where}{{ printf("%s|{text}\\n", probemod, {args}); }}\n'
                     for name, text, args in probes for module in (AGENT.name, pathlib.Path(interp.executable).name))
    lines = [line.split("|", 1) for line in
             traced(interp, script, program, *(name.replace("-", "__") for name, _, _ in probes))]
    return ([text for module, text in lines if module == AGENT.name],
            [text for module, text in lines if module != AGENT.name])


@needs_bpf
def test_imports(interp):
    """As the interpreter's own markers, which are sound everywhere; and among the audit events where they are."""
    got, want = beside_native(interp, HERE / "data/imports.py",
                              ("import-find-load-start", "start %s", "copyinstr(arg0)"),
                              ("import-find-load-done", "done %s %d", "copyinstr(arg0), arg1"),
                              ("audit", "audit %s", "copyinstr(arg0)"))
    assert "done nothing.there 0" in want and "start xml" in want
    assert between(got) == between(want)


@needs_bpf
@pytest.mark.interps("3.9")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_native_calls(interp, program):
    """3.9's own function markers are what all others must equal."""
    file = interp.inside(interp.dir / program.name)
    got, want = beside_native(interp, program,
                              *((name, text + " %s %d", "copyinstr(arg1), arg2")
                                for name, text in (("function-entry", "call"), ("function-return", "return"))),
                              where=f'/copyinstr(arg0) == "{file}"/ ')
    assert len(want) > 3 and got == want


@needs_bpf
def test_lines_beside_trace_function(interp):
    """Lines come whatever trace function the program sets, from Python or from C, or removes, or loses."""
    program = HERE / "data/own_trace.py"
    file = interp.inside(interp.dir / program.name)
    got = traced(interp, probe("line", file, "%s %d", "copyinstr(arg1)", "arg2"), program, "line")
    work = [line for line in got if line.startswith("work")]
    once = work[:9]
    assert len(set(once)) == 4 and work == once * 6, work


BUSY = """
import gc, sys, threading, time
def spin():
    leaf()
def leaf():
    pass
def report():
    monitoring = getattr(sys, "monitoring", None)
    tools = [monitoring.get_tool(i) for i in range(6)] if monitoring else []
    return [sys.getprofile(), sys.gettrace(), len(gc.callbacks), [t for t in tools if t]]
def worker():
    while not over:
        spin()
def wait():
    sys.stdin.readline()
    over.append(1)
over = []
calls = 0
for target in worker, wait:
    threading.Thread(target=target).start()
print("ready", flush=True)
while not over:
    spin()
end = time.monotonic() + 50         # the agent looks every tenth of a second
while report() != [None, None, 0, []] and time.monotonic() < end:
    time.sleep(0.01)
print(report(), flush=True)
"""


@needs_bpf
def test_attach_to_busy_threads(interp):
    """Two threads that raise no audit event: both are seen at once, nothing is left behind; and again."""
    child = polling(interp, interp.add(BUSY, "busy.py"))
    try:
        ready(child)
        for _ in range(5):
            result = harness.dtrace("-q", "-n", """
                python$target:dtap-agent.so::function-entry /copyinstr(arg1) == "spin" && !self->n++/ { @["threads"] = count(); threads++; }
                python$target:dtap-agent.so::line { lines++; }
                python$target:dtap-agent.so::gc-start { }
                python$target:dtap-agent.so::import-find-load-start { }
                tick-20ms /threads >= 2/ { exit(0); }""", "-p", child.pid)
            assert result.code == 0 and result.out.split() == ["threads", "2"], result
        harness.wait_until(lambda: not semaphore(child.pid, "line"), what="semaphore")
        assert end(child) == ["[None, None, 0, []]"]
    finally:
        child.kill()


@needs_bpf
def test_no_utf8(interp, tmp_path):
    """A name without a UTF-8 form is "<unknown>" and leaves no exception.  3.9's own markers break this program, so
    it runs in a copy of the interpreter, which nobody else traces."""
    private = harness.Interp(interp.version, list(interp.argv))
    shutil.copy(interp.executable, private.dir / "python3")
    private.argv[-1] = private.inside(private.dir / "python3")
    program = tmp_path / "surrogate.py"
    program.write_text("""
code = compile("def f():\\n    return 1\\nf()", "file", "exec")
inner = next(c for c in code.co_consts if hasattr(c, "co_name"))
inner = inner.replace(co_name="\\udc80")
exec(code.replace(co_consts=tuple(inner if hasattr(c, "co_name") else c for c in code.co_consts)))
print("fine")
""")
    got = traced(private, probe("function-entry", "file", "call %s %d", "copyinstr(arg1)", "arg2"), program,
                 "function__entry")
    private.close()
    assert got[1:] == ["call <unknown> 1"]


@needs_bpf
def test_fork(interp, tmp_path):
    """Children of a process whose markers have been hit live, and meet the markers."""
    program = tmp_path / "fork.py"
    program.write_text("""
import os
def family(depth):
    for i in range(3):
        leaf()
        pid = os.fork()
        if not pid:
            leaf()
            if depth:
                family(depth - 1)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
def leaf():
    pass
family(1)
""")
    file = interp.inside(interp.dir / program.name)
    got = traced(interp, probe("function-entry", file, "%s", "copyinstr(arg1)") + probe("line", file, "line %d", "arg2"),
                 program, "function__entry", "line")
    assert [line for line in got if not line.startswith("line")] == ["<module>", "family", "leaf", "leaf", "leaf"]


@needs_bpf
@pytest.mark.parametrize("name", ["limits", "deep"])
def test_counts(interp, name):
    """At the recursion limit and near the end of the C stack the program itself counts: no witness can go there
    and leave the limit where it is."""
    program = HERE / f"data/{name}.py"
    file = interp.inside(interp.dir / program.name)
    script = "".join(f'python$target:dtap-agent.so::function-{name} /copyinstr(arg0) == "{file}"/ '
                     f'{{ @{name}[copyinstr(arg1)] = count(); }}\n' for name in ("entry", "return"))
    script += 'END { printa("entry %s %@d\\n", @entry); printa("return %s %@d\\n", @return); }'
    got, own = traced_both(interp, script, program, "function__entry", "function__return")
    want = dict(line.split() for line in own)
    assert len(want) > 2
    for kind in "entry", "return":
        found = [row for row in map(str.split, got) if row and row[0] == kind]
        assert {name: n for _, name, n in found if name in want} == want


@needs_bpf
def test_deep_recursion(interp):
    """As deep as without the agent."""
    program = """
import sys, threading
print("ready", flush=True)
sys.stdin.readline()
sys.setrecursionlimit(60000)
def down(n):
    return down(n - 1) if n else 0
depth = 50000 if sys.version_info >= (3, 11) else 5000
print(down(depth))
t = threading.Thread(target=down, args=(1000,))
t.start()
t.join()
try:
    down(70000 if sys.version_info >= (3, 11) else 1)
except RecursionError:
    pass
"""
    child = polling(interp, interp.add(program, "deep.py"))
    tracer = None
    try:
        ready(child)
        tracer = harness.dtrace_start("-q", "-x", "place=kernel", "-n", 'python$target:dtap-agent.so::function-entry '
                                      '/copyinstr(arg1) == "down"/ { n++; } '
                                      'python$target:dtap-agent.so::line { lines++; } END { printf("%d\\n", n); } '
                                      'tick-20ms /!up/ { up = 1; printf("up\\n"); }', "-p", child.pid)
        assert tracer.stdout.readline() == b"up\n", tracer.communicate()
        assert semaphore(child.pid, "line")
        assert end(child) == ["0"]
        result = harness.finish(tracer, [])
        assert result.code == 0 and int(result.out) >= (51000 if interp.version != "3.9" else 6000), result
    finally:
        child.kill()
        tracer and tracer.kill()


RESTLESS = """
import os, random, sys, threading
def leaf(n):
    return n
def some():
    for i in range(200):
        yield leaf(i)
def work():
    for i in range(10):
        sum(some())
    import colorsys
end = []
for i in range(20):
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    work()
    for t in threads:
        t.join()
    if i % 5 == 0:
        pid = os.fork()
        if not pid:
            work()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
daemon = threading.Thread(target=lambda: [work() for _ in iter(int, 1)], daemon=True)
daemon.start()
print("done", flush=True)
"""


@pytest.mark.needs_root
@pytest.mark.slow
def test_listeners_at_random_moments(interp):
    """Semaphores that come and go, through thread starts, forks and the interpreter's end, disturb nothing."""
    random.seed(4)
    addresses = {name: address for name, (address, _) in notes().items()}
    for _ in range(8):
        child = polling(interp, interp.add(RESTLESS, "restless.py"))
        memory = None
        try:
            while child.poll() is None:
                try:
                    if not memory:
                        if "python" not in os.readlink(f"/proc/{child.pid}/exe"):
                            continue        # still env
                        with open(f"/proc/{child.pid}/maps") as maps:
                            base = next(int(line.split("-")[0], 16) for line in maps if AGENT.name in line)
                        memory = open(f"/proc/{child.pid}/mem", "r+b", buffering=0)
                    memory.seek(base + random.choice(list(addresses.values())))
                    memory.write(struct.pack("<H", random.randint(0, 1)))
                except (OSError, StopIteration):
                    pass
                time.sleep(random.random() / 30)
            out, err = child.communicate()
            assert (child.returncode, out, err) == (0, "done\n", "")
        finally:
            child.kill()
            memory and memory.close()
