"""The agent's markers, event for event against the interpreter's own hooks.

Each program is run once with a witness (see runner.py) and once with the agent preloaded and dtrace reading the
agent's markers; both must tell the same.
"""
import os
import pathlib
import re
import struct
import subprocess

import pytest

import harness

HERE = pathlib.Path(__file__).parent
AGENT = harness.BUILD / "src/agent/dtap-agent.so"
PROGRAMS = sorted((HERE / "programs").glob("*.py"))

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


def start(interp, *args, preload=True):
    """A Popen of the interpreter, with the agent or without."""
    words = ["/usr/bin/env"]
    if preload:
        words += [f"LD_PRELOAD={interp.add(AGENT)}", "DTAP_AGENT_POLL=1"]
    if interp.root:
        words = [*interp.argv[:2], *words, interp.argv[2]]
    else:
        words += interp.argv
    return subprocess.Popen([*words, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"})


def end(child):
    out, err = child.communicate("go\n", timeout=harness.TIMEOUT_S)
    assert child.returncode == 0 and err == "", (child.returncode, out, err)
    return out.splitlines()


def ready(child):
    line = child.stdout.readline()
    assert line == "ready\n", (line, child.stderr.read())


def witness(interp, mode, program):
    child = start(interp, interp.add(HERE / "runner.py"), mode, interp.add(program), preload=False)
    ready(child)
    return end(child)


def traced(interp, script, program, *listened):
    """What a D script prints about a program; @listened are the markers that it must have armed first."""
    child = start(interp, interp.add(HERE / "runner.py"), "markers", interp.add(program))
    tracer = None
    try:
        ready(child)
        tracer = harness.dtrace_start("-q", "-x", "strsize=1024", "-n", script, "-p", child.pid)
        harness.wait_until(lambda: tracer.poll() is not None or all(semaphore(child.pid, m) for m in listened),
                           what="semaphores")
        end(child)
        result = harness.finish(tracer, [script])
        tracer = None
    finally:
        child.kill()
        if tracer:
            tracer.kill()
    assert result.code == 0 and result.err == "", result
    return result.out.splitlines()


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


def test_note_arguments():
    """Sizes and signs of the eight markers' arguments."""
    sizes = {name: re.findall(r"(-?\d+)@", arguments) for name, (_, arguments) in notes().items()}
    function = ["8", "8", "-4"]
    assert sizes == {
        "function__entry": function, "function__return": function, "line": function,
        "gc__start": ["-4"], "gc__done": ["-8"],
        "import__find__load__start": ["8"], "import__find__load__done": ["8", "-4"], "audit": ["8", "8"]}


def test_symbols():
    """No library, no symbol version, nothing exported, and only what every libc has had for long."""
    dynamic = subprocess.run(["readelf", "-Wd", AGENT], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "(NEEDED)" not in dynamic and "VERNEED" not in dynamic and "TEXTREL" not in dynamic
    table = subprocess.run(["readelf", "-W", "--dyn-syms", AGENT], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    rows = [row.split() for row in table.splitlines() if re.match(r"\s*[1-9]\d*: ", row)]
    assert {row[7] for row in rows} <= {
        "__errno_location", "dlsym", "getenv", "memcpy", "memset", "nanosleep", "sigprocmask", "strchr", "strcmp",
        "strncmp"}
    assert all(row[6] == "UND" for row in rows)
    assert [row[4] for row in rows if row[7] == "dlsym"] == ["WEAK"]


@pytest.mark.parametrize("program", ["/bin/sh", "/bin/true", "/usr/bin/env"])
def test_not_python(interp, program):
    """In a process that is no CPython nothing happens, in each root's libc."""
    argv = ["/usr/bin/env", f"LD_PRELOAD={interp.add(AGENT)}", "DTAP_AGENT_POLL=1", program]
    if program == "/bin/sh":
        argv += ["-c", "echo fine"]
    result = harness.run([*interp.argv[:2], *argv] if interp.root else argv)
    assert result.code == 0 and result.err == "", result


def beside_native(interp, program, *probes):
    """The agent's markers and the interpreter's own in one run: two lists of lines.  @probes: name, format, args."""
    script = "".join(f'python$target:::{name} {{ printf("%s|{text}\\n", probemod, {args}); }}\n'
                     for name, text, args in probes)
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
    got, want = beside_native(interp, program,
                              *((name, text + " %s %s %d", "copyinstr(arg0), copyinstr(arg1), arg2")
                                for name, text in (("function-entry", "call"), ("function-return", "return"))))
    file = interp.inside(interp.dir / program.name)
    got, want = ([line for line in lines if file in line] for lines in (got, want))
    assert len(want) > 3 and got == want
