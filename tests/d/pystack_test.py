"""pystack() and jstack(): the frames of Python, with the program's own view of its stack as the witness."""
import pathlib
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

HERE = harness.TOP / "tests/d/data"


def stacks(text):
    """Lists of lines, one a stack."""
    return [[line.strip() for line in part.splitlines()] for part in text.strip().split("\n\n")]


def traced(start, interp, script, program=HERE / "pystacks.py", place="kernel"):
    """What a script prints of a program that runs when it has been armed, and what the program prints."""
    child = start(interp.argv_of(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    tracer = harness.dtrace_start("-q", "-n", 'tick-20ms /!up/ { up = 1; printf("up\\n"); }', "-n", script,
                                  "-x", f"place={place}", "-p", child.pid)
    try:
        assert tracer.stdout.readline() == b"up\n", tracer.communicate()
        own = child.communicate(b"\n", timeout=harness.TIMEOUT_S)[0].decode()
        result = harness.finish(tracer, [script])
    finally:
        tracer.kill()
    assert result.code == 0 and result.err == "", result
    return result.out, own


def test_frames(start, interp):
    """Calls, methods, generators, coroutines, threads, children: file, line and function of each frame, also when the
    process that made them has gone."""
    out, own = traced(start, interp, "syscall::getppid:entry /progenyof($target)/ { pystack(); }")
    assert stacks(out) == stacks(own)


@pytest.mark.parametrize("place", ["kernel", "target"])
def test_markers(start, interp, place):
    """At a marker about code that code is the innermost frame, whichever hook of the agent fires it."""
    program = HERE / "pystacks_told.py"
    out, own = traced(start, interp, """
        python$target:::function-entry, python$target:::function-return /copyinstr(arg1) == "told"/ { pystack(); }
        python$target:::cfunction-entry /copyinstr(arg1) == "told" && copyinstr(arg3) == "len"/ { pystack(); }
        python$target:::exception-raise /copyinstr(arg2) == "told"/ { pystack(); }""", program, place)
    lines = {text.split("# ")[1]: n for n, text in enumerate(program.read_text().splitlines(), 1) if "# " in text}
    told = [f"[ {interp.inside(interp.dir / program.name)}:{lines[marker]} (told) ]"
            for marker in ("function-entry", "exception-raise", "cfunction-entry", "function-return")]
    assert stacks(out) == [[innermost] + stack for stack in stacks(own) for innermost in told]


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("stack, lines", [("pystack(2)", ((2, 1, 6),)), ('pystack(2, "function")', ((2, 1, 6),)),
                                          ('pystack(2, "line")', ((3, 5, 1), (3, 4, 5)))])
def test_key(dtrace, interp, stack, lines):
    """Stacks of the same functions are one key, in the program's own process and from its start, unless lines are asked for;
    %k prints them."""
    command = interp.command("import os\ndef f(n):\n os.getppid()\nfor i in range(5): f(i)\nf(0)\n")
    name = command.split()[-1]
    result = dtrace("-q", "-n", f'syscall::getppid:entry /pid == $target/ {{ @[{stack}, execname] = count(); }}'
                    ' END { printa("%k%s %@d\\n", @); }', "-c", command)
    frames = [f"\n{14 * ' '}[ {name}:{inner} (f) ]\n{14 * ' '}[ {name}:{outer} (<module>) ]\npython3 {n}\n"
              for inner, outer, n in lines]
    assert result.out == "".join(frames), result


TWICE = """
import dis
def leaf(): pass
def twice():
    leaf(); leaf()
for k in range(3): twice()
calls = [i.offset for i in dis.get_instructions(twice) if i.opname in ("CALL", "CALL_FUNCTION")]
print("calls", *calls, flush=True)
"""


@pytest.mark.parametrize("place", ["kernel", "target"])
def test_instructions(dtrace, interp, place):
    """Two calls on one line are two keys, each with the offset of its call, as dis has it; by line they are one, in the same script."""
    clause = 'python$target:::function-entry /copyinstr(arg1) == "leaf"/ { %s }'
    script = clause % '@i[pystack(2, "instruction")] = count(); @l[pystack(2, "line")] = count();' + 'END { printa("%k%@d\\n", @i); printa("%k%@d\\n", @l); }'
    result = dtrace("-q", "-x", f"place={place}", "-x", "agent=always", "-n", script, "-c", interp.command(TWICE))
    offsets = re.search("^calls (.*)$", result.out, re.M)[1].split()
    rows = re.findall(r"\[ \S+:3 \(leaf(?:\+0x0)?\) \]\n +\[ \S+:5 \(twice(?:\+0x([0-9a-f]+))?\) \]\n(\d+)$", result.out, re.M)
    by_instruction = sorted((int(offset, 16), n) for offset, n in rows if offset)
    assert len(offsets) == 2 and by_instruction == [(int(offset), "3") for offset in offsets], result
    assert [n for offset, n in rows if not offset] == ["6"], result


ALIKE = """
def leaf(): pass
def one():
    leaf(); leaf(); leaf()
    leaf()
def made():
    space = {"leaf": leaf}
    exec(compile("def again(): leaf(); leaf()", "again.py", "exec"), space)
    space["again"]()
for k in range(4):
    one(); one()
    made()
"""


def keyed(text):
    """Rows of printa("%k%@d"): the frames as lines and functions, and the number."""
    return {" ".join(f"{name}:{line}" for line, name in re.findall(r":(\d+) \((\S+)\)", frames)): int(n)
            for frames, n in re.findall(r"((?:\[ .*\n)+)(\d+)\n", text)}


@pytest.mark.parametrize("place", ["kernel", "target"])
def test_no_two_keys_look_alike(dtrace, interp, place):
    """Calls of one line, and of functions that are made anew, are one key: for all aggregations, and trunc()."""
    clause = 'python$target:::function-entry /copyinstr(arg1) == "leaf"/ { %s }\n'
    script = (clause % 'n++; @[pystack(3, "line")] = count();' + clause % '@max[pystack(3, "line")] = max(n);' +
              clause % '@avg[pystack(2)] = avg(n);' + clause % '@top[pystack(2, "line")] = count();' +
              'END { printa("%k%@d\\n", @); printf("=\\n"); printa("%k%@d\\n", @max); printf("=\\n"); printa("%k%@d\\n", @avg); '
              'printf("=\\n"); trunc(@top, 1); printa("%k%@d\\n", @top); }')
    result = dtrace("-q", *(["-x", "agent=always"] if place == "kernel" else []), "-x", f"place={place}", "-x", "stackindent=0",
                    "-n", script, "-c", interp.command(ALIKE))
    counts, most, means, top = map(keyed, result.out.split("=\n"))
    assert result.code == 0 and result.out.count("(leaf)") == 3 + 3 + 2 + 1, result
    assert counts == {"leaf:2 one:4 <module>:11": 24, "leaf:2 one:5 <module>:11": 8, "leaf:2 again:1 made:9": 8}, result
    assert most == {"leaf:2 one:4 <module>:11": 37, "leaf:2 one:5 <module>:11": 38, "leaf:2 again:1 made:9": 40}, result
    assert means == {"leaf:2 one:3": 19, "leaf:2 again:1": 24}, result
    assert top == {"leaf:2 one:4": 24}, result


@pytest.mark.interps("3.11", "3.14")
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_no_room_for_names(dtrace, interp, place):
    """What stacks are is not known then, which is told; how many there were is."""
    program = "def leaf(): pass\ndef one(): leaf()\ndef two(): leaf()\nfor i in range(20): one(); two()\n"
    script = 'python$target:::function-entry /copyinstr(arg1) == "leaf"/ { @[pystack()] = count(); }'
    words = ("-q", "-x", "agent=always", "-x", f"place={place}", "-n", script, "-c", interp.command(program))
    result = dtrace(*words)
    assert (result.code, result.err) == (0, "") and result.out.count("(leaf)") == 2, result
    result = dtrace("-x", "namesize=0", *words)
    assert result.code == 0 and sorted(result.out.split()) == ["20", "20"], result
    assert re.search(r"^dtrace: \d+ name drops \(no room for what a stack is: see the namesize option\)$", result.err, re.M), result


CONTEXTS = """
#pragma D option quiet
#pragma D option bufsize=16m
#pragma D option stackindent=0
python$target:::function-entry, python$target:::function-return
{
	printf("event %s %s\\n", probename, copyinstr(arg1));
	pystack(100, "function");
	printf("=\\n");
	pystack(100, "line");
}
"""


def check_contexts(out, least):
    """At each event the stack that is kept is that which a walk finds."""
    events = out.split("event ")[1:]
    assert len(events) > least
    for event in events:
        kept, walked = ([re.sub(r":\d+ \(", " (", line) for line in part.splitlines() if line.startswith("[")]
                        for part in event.split("=\n"))
        assert kept and kept == walked, event


@pytest.mark.parametrize("attach", [False, True], ids=["start", "late"])
def test_contexts(dtrace, start, interp, attach):
    """The stack that is kept as calls come and go is that which a walk finds, at each of thousands of events: generators that
    wait for each other and are thrown into and closed, exceptions, coroutines, threads, classes, profile functions."""
    program = HERE / "contexts.py"
    if attach:
        out = traced(start, interp, CONTEXTS, program, "target")[0]
    else:
        result = dtrace("-x", "place=target", "-n", CONTEXTS, "-c", interp.command(program, "now"))
        assert (result.code, result.err) == (0, ""), result
        out = result.out
    check_contexts(out, 2000)
    assert not re.search(r"\[ __init__:", out)         # what the interpreter puts in front of a class's own __init__()


@pytest.mark.interps("3.11")
def test_contexts_of_greenlets(dtrace, interp):
    """The same where a function's frame is put aside in the middle of other calls, and goes on in the middle of others."""
    if subprocess.run([*interp.argv, "-c", "import greenlet"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("greenlet is not installed")
    result = dtrace("-x", "place=target", "-n", CONTEXTS, "-c", interp.command(HERE / "greenlets.py"))
    assert (result.code, result.err) == (0, ""), result
    check_contexts(result.out, 1000)


@pytest.mark.interps("3.11")
def test_size(dtrace, interp):
    result = dtrace("-q", "-n", "syscall::getppid:entry /pid == $target/ { pystack(1); }",
                    "-c", interp.command("import os\ndef f(): os.getppid()\nf()\n"))
    assert re.fullmatch(r"\s*\[ \S+:2 \(f\) \]\s*", result.out), result


@pytest.fixture
def blocked(start, interp):
    child = start(interp.argv_of(HERE / "blocked.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    harness.wait_until(lambda: re.match(r"\d+ 0x0 ", pathlib.Path(f"/proc/{child.pid}/syscall").read_text()), what="read()")
    yield child
    child.communicate(b"q", timeout=harness.TIMEOUT_S)


def test_mixed(blocked, interp):
    """The C functions and those of Python that they run, in order, from the system call to where the process starts."""
    tracer = harness.dtrace_start("-q", "-n", 'tick-20ms /!up/ { up = 1; printf("up\\n"); }', "-n",
                                  "syscall::read:entry /pid == $target && arg0 == 0/ { ustack(); exit(0); }", "-p", blocked.pid)
    try:
        assert tracer.stdout.readline() == b"up\n", tracer.communicate()
        blocked.stdin.write(b"x")
        blocked.stdin.flush()
        result = harness.finish(tracer, [])
    finally:
        tracer.kill()
    lines = [line.strip() for line in result.out.splitlines() if line.strip()]
    python = [n for n, line in enumerate(lines) if line.startswith("[")]
    assert [re.sub(r".*/", "", lines[n]) for n in python] == [
        "blocked.py:7 (third) ]", "blocked.py:12 (second) ]", "blocked.py:17 (first) ]", "blocked.py:20 (<module>) ]"], result
    # read() and what Python calls it by; sorted() calls second from C, as the program itself is called; a Python of old
    # calls itself for each function.
    assert re.match(r"lib(c|pthread)\S*`", lines[0]) and python[0] >= 3, result
    assert python[2] - python[1] >= 3 and python[1] - python[0] == (1 if interp.version != "3.9" else 3), result
    assert len(lines) - python[3] >= 6 and re.search("`_start", lines[-1]), result


@pytest.mark.interps("3.11")             # gdb of the host is at home there alone
def test_native(blocked, interp):
    """The addresses of the C frames, by call frame information, are those that gdb finds."""
    if not shutil.which("gdb"):
        pytest.skip("needs gdb")
    tracer = subprocess.Popen([harness.STAP, "-x", str(blocked.pid), "-DMAXBACKTRACE=50", "-e", """
            global up
            probe timer.ms(20) { if (!up++) println("up") }
        probe syscall.read { if (pid() == target() && fd == 0) { println(ubacktrace()); exit() } }"""],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert tracer.stdout.readline() == b"up\n", tracer.communicate()
        blocked.stdin.write(b"x")
        blocked.stdin.flush()
        result = harness.finish(tracer, [])
    finally:
        tracer.kill()
    found = [int(word, 16) for word in result.out.split()]
    told = subprocess.run(["gdb", "-batch", "-nx", "-iex", "set debug-file-directory /nonexistent", "-iex", "set auto-load off", "-iex", "set sysroot /",
                           "-ex", "bt -frame-info location-and-address", "-p", str(blocked.pid)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=harness.TIMEOUT_S).stdout
    want = [int(word, 16) for word in re.findall(r"^#\d+ +0x([0-9a-f]+) in", told, re.M)]
    if len(want) < 5:
        pytest.skip("gdb may not look")
    assert found and found == want[:len(found)], (result, told)
    assert len(found) == len(want)


@pytest.mark.parametrize("script", ["ustack(127)", "ustack(127, 0)"])
def test_native_in_both_places(start, interp, script):
    """What the process finds of its own C functions is what the kernel's programs find, to the start of each thread; but
    the first stack, which is too deep for that: the agent's frames, which are left out, count in the kernel."""
    function = 'copyinstr(arg1) == "told" && copyinstr(arg3) == "len"'
    got = {}
    for place in ("kernel", "target"):
        out, _ = traced(start, interp, f"""#pragma D option agent=always
            python$target:::cfunction-entry /{function}/ {{ {script}; }}""", HERE / "pystacks_told.py", place)
        got[place] = re.sub(r"/tmp/dtap-\w+", "DIR", re.sub(r"0x[0-9a-f]{9,}", "ADDRESS", out))
    found = stacks(got["target"])[1:]
    assert found == stacks(got["kernel"])[1:]
    ends = [[frame for frame in stack if frame[0] != "["][-1] for stack in found]
    assert len(ends) > 10 and all(re.search(r"`_start\b|^lib(c|pthread)\b", frame) for frame in ends), ends
