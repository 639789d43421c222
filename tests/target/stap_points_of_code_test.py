"""Points inside of programs that only debug information or the linker's tables know: inlined functions, labels, calls."""
import os
import platform
import re
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

EXIT_GROUP = 231 if platform.machine() == "x86_64" else 94
SOURCE = os.path.join(os.path.dirname(__file__), "data", "copies.c")


@pytest.fixture(scope="module", params=["-O2", "-O1 -gdwarf-4 -no-pie"])
def program(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("copies") / "copies"
    subprocess.run(["gcc", "-g", "-pthread", *request.param.split(), SOURCE, "-o", path], check=True)
    return path


def line_of(text):
    with open(SOURCE) as source:
        return next(i for i, line in enumerate(source, 1) if text in line)


def listed(program, point):
    result = harness.stap("-l", f'process("{program}").{point}')
    return [line.split(".", 1)[1].replace(SOURCE, "copies.c") for line in result.out.splitlines()
            if line.startswith(f'process("{program}"')]


def run(program, script, tmp_path):
    out = tmp_path / "out"
    result = harness.stap("-o", str(out), "-e", script.replace("PROGRAM", f'process("{program}")'), "-c", str(program))
    assert result.code == 0, result
    return out.read_text().splitlines(), result.out.splitlines()


def test_listed(program):
    declared, work = line_of("long twice("), line_of("long work(")
    inlined = f'function("twice@copies.c:{declared}")'
    assert set(listed(program, 'function("twice")')) == {inlined}
    assert set(listed(program, 'function("*").inline')) == {inlined + ".inline", f'function("checked@copies.c:{line_of("int checked(")}").inline'}
    assert listed(program, 'function("twice").call') == []
    assert listed(program, 'function("wor*").exported') == [f'function("work@copies.c:{work}").exported']
    assert listed(program, 'function("thread").exported') == []
    assert listed(program, f'function("work@*:{work}")') == [f'function("work@copies.c:{work}")']
    assert listed(program, 'function("work").label("*")') == [f'function("work@copies.c:{work}").label("again")']
    assert {'plt("malloc")', 'plt("free")'} <= set(listed(program, "plt"))
    # Every program refers to it, and calls it through .plt.got, of which objdump names the entries.
    named = subprocess.run(["objdump", "-d", "-j", ".plt.got", program], capture_output=True, text=True).stdout
    assert ("<__cxa_finalize@plt>:" in named) == ('plt("__cxa_finalize")' in listed(program, "plt"))
    assert listed(program, f'statement("work@copies.c:{work + 1}").nearest')
    assert len(listed(program, f'statement("work@copies.c:{line_of("*heap =")},{line_of("free(")}")')) == 2


def test_fire(program, tmp_path):
    """Each copy has its variables; labels are where they stand."""
    script = '''probe PROGRAM.function("twice") { println("twice ", $q) }
                probe PROGRAM.function("work").label("again") { println("again") }
                probe PROGRAM.plt("malloc") { if (inside) println($$name, " ", int_arg(1)) }
                probe PROGRAM.plt("malloc").return { if (inside) ok = $return == $return }
                probe PROGRAM.function("work").call { inside = 1 } probe PROGRAM.function("work").return { inside = 0 }
                global inside, ok probe end { if (!ok) println("no return") }'''
    traced, own = run(program, script, tmp_path)
    assert len(own) >= 5 and traced == own


def test_in_copies(program, tmp_path):
    """Labels of what is inlined are its own; a copy need not have an instruction; a variable may be a number."""
    declared = line_of("long twice(")
    assert set(listed(program, 'function("tw*").label("told")')) == {f'function("twice@copies.c:{declared}").label("told")'}
    assert listed(program, 'function("work").label("told")') == []
    script = """probe PROGRAM.function("checked") { println("checked ", @var("answer"), " ", @var("answer@cop*.c")) }
                probe PROGRAM.function("twice").label("told") { told++ } global told probe end { println(told) }"""
    traced, own = run(program, script, tmp_path)
    assert traced == ["checked 42 42", str(sum(line.startswith("twice") for line in own))]


def test_line_without_code(program):
    line = line_of("char *heap;") + 1
    for point in (f'statement("main@copies.c:{line}")', f'statement("*@copies.c:{line}")',
                  f'statement("main@copies.c+{line - line_of("int main(")}")'):
        result = harness.stap("-p2", "-e", f'probe process("{program}").{point} {{ }}')
        assert result.code == 1 and re.search(r"no line records for .*copies\.c:%d \(try :\d+ or :\d+\)" % line, result.err), \
            result


def test_address(program, tmp_path):
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" T work"))
    traced, _ = run(program, 'probe PROGRAM.statement(%d) { println($a) } probe PROGRAM.function(%d) { println("f") }'
                    % (address, address + 1), tmp_path)
    assert sorted(traced) == ["10", "f"]
    result = harness.stap("-e", f'probe process("{program}").statement({address + 1}) {{ }}')
    assert result.code == 1 and f"does not match the beginning of a statement (try {address:#x})" in result.err


def test_process(program, tmp_path):
    """The end of processes and their threads, by their program."""
    script = '''probe PROGRAM.end { println("end ", execname()) } probe PROGRAM.thread.begin { println("thread") }
                probe PROGRAM.thread.end { println("thread ends") }
                probe PROGRAM.syscall { if ($syscall == %d) println("leaves ", $arg1) }''' % EXIT_GROUP
    assert run(program, script, tmp_path)[0] == ["thread", "thread ends", "leaves 0", "end copies"]


@pytest.mark.parametrize("point, why", [
    ('function("twice") { println(int_arg(1))', "the argument is not known"),
    ('function("work").inline { println(1)', "no function of that name is inlined"),
    ('plt("nothing") { println(1)', "calls no such function"),
    ("statement(16).absolute { println(1)", "name the address in the file"),
    ("statement(1) { println(1)", "is in no function"),
])
def test_refused(program, point, why):
    result = harness.stap("-e", f'probe process("{program}").{point} }}')
    assert result.code == 1 and why in result.err


def test_lines(program, tmp_path):
    """Addresses by source and line; a caller by the line of its call."""
    script = '''probe PROGRAM.function("work").call {
        println(usymfileline(uaddr()), " ", usymline(uaddr()), " ", usymfile(uaddr()), " ", usymline(16))
        println(ucallers(0), " ", ucallers(1)) print_ubacktrace_fileline() print_ustack(ubacktrace()) }'''
    lines = run(program, script, tmp_path)[0]
    work, main = line_of("long work(") + 1, line_of("work(10")    # the code begins at the brace
    assert lines[0] == f"{SOURCE}:{work} {work} {SOURCE} 0x10"
    first, again, caller = lines[1].split()
    assert first == again
    assert lines[2].startswith(f" {first} : work+0x0/0x") and lines[2].endswith(f" at {SOURCE}:{work} [{program}]")
    assert lines[3].startswith(f" {caller} : main+0x") and f" at {SOURCE}:{main} [" in lines[3]
    assert any(line.startswith(f" {first} : work+0x0/0x") and " at " not in line for line in lines[4:])


@pytest.fixture(scope="module")
def with_library(tmp_path_factory):
    """A program that calls a library's ping(): to its marker, which is where a statement begins, too."""
    folder = tmp_path_factory.mktemp("linked")
    library = os.path.join(os.path.dirname(SOURCE), "shared_marker.c")
    include = os.path.join(os.path.dirname(SOURCE), "../../../include")
    (folder / "main.c").write_text("int ping(int); int main(void) { return ping(6) != 7; }\n")
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-I", include, library, "-o", "libping.so"], check=True, cwd=folder)
    subprocess.run(["gcc", "-g", "main.c", "-o", "linked", "-L.", "-lping", f"-Wl,-rpath,{folder}"], check=True, cwd=folder)
    subprocess.run(["gcc", "-g", "main.c", "-o", "unlinked", folder / "libping.so"], check=True, cwd=folder)
    return folder


def test_marker_and_statement(with_library):
    """A breakpoint has one semaphore: that of the marker serves the statement at its place."""
    with open(os.path.join(os.path.dirname(SOURCE), "shared_marker.c")) as source:
        line = next(i for i, text in enumerate(source, 1) if "STAP_PROBE1" in text)
    point = f'process("{with_library}/linked").library("{with_library}/*ping*")'
    result = harness.stap("-e", f"""probe {point}.mark("ping") {{ println("mark ", $arg1) }}
        probe {point}.statement("ping@shared_marker.c:{line}") {{ println("statement ", $n) }}""",
                          "-c", str(with_library / "linked"))
    assert sorted(result.out.split("\n")) == ["", "mark 6", "statement 6"] and result.err == "" and result.code == 0, result


def test_libraries_by_patterns(with_library):
    """Of those that the program is linked to, and from the working folder; or any file that the pattern leads to."""
    for pattern in ("*ping*", "./libp*.so", f"{with_library}/lib*.so"):
        result = harness.stap("-l", f'process("./linked").library("{pattern}").function("pi*")', cwd=with_library)
        assert "ping@" in result.out, (pattern, result)
