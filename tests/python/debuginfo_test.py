"""Variables of C functions by debug information; the traced program prints its own values."""
import os
import re
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

SOURCE = os.path.join(os.path.dirname(__file__), "data", "variables.c")


@pytest.fixture(params=["-O0", "-O2", "-O0 -no-pie", "-O2 -gdwarf-4", "-O2 -fomit-frame-pointer -fcf-protection=none"])
def program(request, tmp_path):
    path = tmp_path / "variables"
    subprocess.run(["gcc", "-g", *request.param.split(), SOURCE, "-o", path], check=True)
    return path


def run(program, script, tmp_path):
    """What stap printed, and what the program did."""
    out = tmp_path / "out"
    result = harness.stap("-o", str(out), "-e", script.replace("PROGRAM", str(program)), "-c", str(program))
    assert result.code == 0, result
    return out.read_text().splitlines(), result.out.splitlines()


def test_variables(program, tmp_path):
    """Parameters of all sizes and signs, members through pointers, unions and inner structures, globals."""
    script = '''probe process("PROGRAM").function("add") {
        printf("%d %d %d %s %d %d\\n", $a, $b, $c, user_string($s), $d, $g)
        printf("%d %s %d %d %d %d\\n", $n->id, user_string($n->name), $n->in->s, $n->in->uc, $n->arr[2], $n->ux)
        printf("%d %d %d\\n", $counter, @var("total"), @var("head@variables.c")->id)
    }
    probe process("PROGRAM").function("add").return { printf("= %d\\n", $return) }'''
    traced, own = run(program, script, tmp_path)
    assert len(own) == 8 and traced == own


STRUCTS = {"two": ["a", "b"], "small": ["c", "s", "i", "flag", "low"], "pair": ["x", "y"], "mixed": ["l"], "other": ["l"],
           "floats": ["i"], "big": ["a[1]", "a[7]"], "packed": ["c", "l"], "bytes": ["b[1]", "b[5]"],
           "nested": ["p->x", "p->y", "to->b"]}


# Parameters whose place at the entry the compiler does not tell.
UNTOLD = {"gcc -O0": [], "gcc -O2": ["small", "packed", "bytes"],
          "clang -O2": ["small", "pair", "big", "packed", "bytes", "nested"]}


@pytest.mark.parametrize("build", UNTOLD)
def test_structures(tmp_path, build):
    """Structures as parameters and results: in memory, in registers, in parts of them (structs.c)."""
    program = tmp_path / "structs"
    subprocess.run([*build.split(), "-g", os.path.join(os.path.dirname(SOURCE), "structs.c"), "-o", program], check=True)
    script = ""
    for name, members in STRUCTS.items():
        for point, var, mark in (("", "$v", ""), (".return", "$return", "= ")):
            if not mark and name in UNTOLD[build]:
                continue
            form = " ".join("%d" for _ in members)
            values = ", ".join(f"{var}->{member}" for member in members)
            script += f'probe process("PROGRAM").function("{name}"){point} {{ printf("{mark}{form}\\n", {values}) }}\n'
    traced, own = run(program, script, tmp_path)
    untold = [2 * list(STRUCTS).index(name) for name in UNTOLD[build]]
    assert len(own) == 20 and traced == [line for i, line in enumerate(own) if i not in untold]


def test_structures_whole(tmp_path):
    program = tmp_path / "structs"
    subprocess.run(["gcc", "-O2", "-g", os.path.join(os.path.dirname(SOURCE), "structs.c"), "-o", program], check=True)
    traced, _ = run(program, '''probe process("PROGRAM").function("two").return { println($return$, " ", $$return$, " ", $$return) }
    probe process("PROGRAM").function("big").return { println($return$) }
    probe process("PROGRAM").function("two") { println($v$, " ", $$parms$, " ", $$parms) }
    probe process("PROGRAM").function("pair").return { println($$return$) }''', tmp_path)
    assert traced == ["{.a=5, .b=-6} v={.a=5, .b=-6} v={...}", "{.a=-6, .b=-5} return={.a=-6, .b=-5} ",
                      "return={.x=-2, .y=1}", "{.a=[...]}"]


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_clang(tmp_path, level):
    """Frames by %rbp, addresses by index; with %rsp as its base the frame is not known at the entry."""
    program = tmp_path / "variables"
    subprocess.run(["clang", "-g", level, SOURCE, "-o", program], check=True)
    traced, own = run(program, '''probe process("PROGRAM").function("add") {
        printf("%d %d %d %s %d\\n", $a, $b, $c, user_string($s), $d)
        printf("%d %d %d\\n", $counter, @var("total"), $head->id)
    }''', tmp_path)
    own = [line.rsplit(" ", 1)[0] if i % 4 == 0 else line for i, line in enumerate(own)]
    assert traced == [line for i, line in enumerate(own) if i % 4 in (0, 2)]


def test_assembler(tmp_path):
    """A function without a prologue is probed where it begins, not behind its first branch."""
    (tmp_path / "early.s").write_text(".globl early\n.type early,@function\nearly:\n\tmov $1,%eax; "
                                      "test %edi,%edi; jz 1f\n\tret\n1:\tnop\n\tret\n.size early,.-early\n"
                                      '.section .note.GNU-stack,"",@progbits\n')
    (tmp_path / "main.c").write_text("int early(int); int main(void) { early(0); early(1); early(0); return 0; }\n")
    program = tmp_path / "early"
    subprocess.run(["gcc", "-g", "early.s", "main.c", "-o", program], cwd=tmp_path, check=True)
    traced, _ = run(program, 'probe process("PROGRAM").function("early") { println(int_arg(1)) }', tmp_path)
    assert traced == ["0", "1", "0"]


def test_ways(program, tmp_path):
    """Elements by a computed index, addresses, @cast in functions, at the return what was there at the entry."""
    script = '''function second(p) { return @cast(p, "struct node", "PROGRAM")->arr[1] }
    probe process("PROGRAM").function("add") {
        i = 3
        println($n->arr[i], " ", &$n->arr[1] - &$n->arr[0], " ", second($n), " ", @cast($n, "struct node")->in->uc)
        println(@defined($a), @defined($nothing), @defined($n->id), @defined($n->nothing))
        println($n->next ? $n->next->id : 0)
    }
    probe process("PROGRAM").function("add").return { println($a, " ", $$parms) }'''
    traced, own = run(program, script, tmp_path)
    parms = [line.rsplit(" s=", 1)[0] for line in traced]
    assert parms == ["40 8 20 250", "1010", "99", "-5 a=0xfffffffffffffffb b=0xc8 c=0x200000000",
                     "4 8 2 200", "1010", "0", "6 a=0x6 b=0x1 c=0xfffffffffffffff7"]


PARTS = '{.id=1, .name="first", .next=ADDRESS, .in=%s, .arr=%s, {%s}}'
CLOSED = PARTS % ("{...}", "[...]", "...")


@pytest.mark.parametrize("what, value", [
    ("$a$", "-5"), ("$s$", '"hello"'), ("$n->in$", "{.s=-2, .uc=250}"), ("$n->arr$", "[10, 20, 30, 40]"),
    ("$n$", CLOSED), ("$n$$", PARTS % ("{.s=-2, .uc=250}", "[10, 20, 30, 40]", ".ux=77, .uy=77")),
    ("$$parms$", f'a=-5 b=200 c=8589934592 s="hello" d=-2 n={CLOSED} g=42'),
])
def test_pretty(program, tmp_path, what, value):
    """One $ opens what the variable is, two open what is in it as well."""
    traced, _ = run(program, 'probe process("PROGRAM").function("add") { println(%s) }' % what, tmp_path)
    assert re.sub("next=0x[0-9a-f]+", "next=ADDRESS", traced[0]) == value


def test_pretty_large(tmp_path):
    """A structure of structures and its copy, all of it several times in a handler: not too much for the verifier."""
    parts = "".join(f"struct in v{i}; " for i in range(5))
    values = ", ".join(f'{{{i}, {-i}, "text{i}", {{1, 2, {i}}}}}' for i in range(5))
    (tmp_path / "large.c").write_text(
        f"struct in {{ int a; long b; char s[8]; short t[3]; }}; struct big {{ {parts} }};\n"
        "__attribute__((noinline)) int work(struct big *p, struct big b) { return p->v0.a + b.v1.a; }\n"
        f"int main(void) {{ struct big b = {{ {values} }}; return work(&b, b) - 1; }}\n")
    program = tmp_path / "large"
    subprocess.run(["gcc", "-g", "-O0", tmp_path / "large.c", "-o", program], check=True)
    script = f'''probe process("{program}").function("work") {{
        println($b$$) println($p$$) println($$vars$$) println($$parms$$) }}'''
    result = harness.stap("-DMAXSTRINGLEN=2048", "-e", script, "-c", str(program))
    whole = "{" + ", ".join(f'.v{i}={{.a={i}, .b={-i}, .s="text{i}", .t=[1, 2, {i}]}}' for i in range(5)) + "}"
    assert result.code == 0, result
    lines = result.out.splitlines()
    assert lines[:2] == [whole, whole]
    assert len(lines) == 4 and all(line.startswith(f"p={whole} b={{.v0=") for line in lines[2:]), result


def line_of(text):
    with open(SOURCE) as source:
        return next(i for i, line in enumerate(source, 1) if text in line)


def test_statement(program, tmp_path):
    """A line by its number and by its distance from the function's; its variables at that place."""
    number, start = line_of("return local + d"), line_of("long add(")
    point = 'process("PROGRAM").statement("add@variables.c%s")'
    script = "".join('probe %s { println("%s ", pp(), " ", $local, " ", $g) }\n' % (point % line, line)
                     for line in (f":{number}", f"+{number - start}"))
    traced, _ = run(program, script, tmp_path)
    shown = f'process("{program}").statement("add@{SOURCE}:{number}")'
    assert sorted(traced) == sorted(f"{line} {shown} {values}" for values in ("195 42", "7 43")
                                    for line in (f":{number}", f"+{number - start}"))


@pytest.mark.parametrize("pattern, functions", [
    ("*@variables.c", ["add", "main"]), ("*@*", None), ("add@data/variables.c", ["add"]), ("*@other.c", []),
    ("*@variables.c:%d" % line_of("counter++"), ["add"]), ("main@variables.c:%d" % line_of("counter++"), []),
])
def test_source(program, pattern, functions):
    result = harness.stap("-l", f'process("{program}").function("{pattern}")')
    found = [line.split('"')[3].split('@')[0] for line in result.out.splitlines()]
    assert {"add", "main"} <= set(found) if functions is None else found == functions


@pytest.mark.parametrize("what, why", [
    ("$nothing", "$nothing: no variable of that name is in scope"),
    ("$n->nothing", "unable to find member 'nothing' for struct node (alternatives: id, name"),
    ("$n->in", "'struct inner' is being accessed instead of a member such as '->s'"),
    ("$a->x", "invalid access '->x' vs. int"),
    ("$a[1]", "invalid access '[1]' vs. int"),
    ('@var("nothing")', "nothing: no global variable of that name is described"),
    ('@cast($n, "struct nothing")->x', "type definition 'struct nothing' not found in"),
])
def test_refused(program, what, why):
    result = harness.stap("-e", 'probe process("%s").function("add") { println(%s) }' % (program, what))
    assert result.code == 1 and why in result.err


@pytest.fixture(params=["gcc -O2", "gcc -O2 -gdwarf-4", "gcc -O2 -no-pie", "clang -O2"])
def callers(request, tmp_path):
    source = os.path.join(os.path.dirname(SOURCE), "callees.c")
    (tmp_path / "other.c").write_text("int other(int n) { int twice = 2 * n; return twice; }\n")
    compiler = request.param.split()
    subprocess.run([*compiler, "-g", "-c", source, "-o", tmp_path / "callees.o"], check=True)
    subprocess.run([compiler[0], "-g", "-O0", "-c", tmp_path / "other.c", "-o", tmp_path / "other.o"], check=True)
    path = tmp_path / "callees"
    link = [option for option in compiler if option == "-no-pie"]
    subprocess.run([compiler[0], *link, tmp_path / "callees.o", tmp_path / "other.o", "-o", path], check=True)
    return path


@pytest.mark.parametrize("compiler", ["gcc -gdwarf-4", "gcc -gdwarf-5", "clang -gdwarf-4", "clang -gdwarf-5"])
@pytest.mark.parametrize("cwd", ["source", "above", "elsewhere"])
def test_files_of_declarations(compiler, cwd, tmp_path):
    """However the compiler numbers its files: DWARF 5 begins with 0, which meant none before."""
    source = tmp_path / "below/source.c"
    source.parent.mkdir()
    source.write_text("int f(int n) { return n; }\nint main(void) { return f(0); }\n")
    folder = {"source": source.parent, "above": tmp_path, "elsewhere": "/"}[cwd]
    subprocess.run([*compiler.split(), source, "-o", tmp_path / "program"], cwd=folder, check=True)
    listed = harness.stap("-l", f'process("{tmp_path}/program").function("f")').out
    assert re.search(r'function\("f@\S*source\.c:1"\)', listed), listed
    assert harness.stap("-l", f'process("{tmp_path}/program").function("f@*source.c:1")').code == 0


def test_callees(callers, tmp_path):
    """The calls from one function alone; a function of another unit, without optimization; a copy of one (callees.c)."""
    traced, _ = run(callers, '''probe process("PROGRAM").function("first").callee("work") { println("first ", $n) }
    probe process("PROGRAM").function("second").callee("work").call { println("second ", $n) }
    probe process("PROGRAM").function("work").callee("work") { println("itself ", $n) }
    probe process("PROGRAM").function("second").callee("ot*") { println(ppfunc(), " ", $n) }
    probe process("PROGRAM").function("first").callee("copy") { println(ppfunc()) }''', tmp_path)
    assert sorted(traced) == ["copy", "copy", "first 1", "first 2", "first 3", "first 4", "itself 2", "other 102",
                              "second 102"]


def test_listed_callees(callers):
    listed = harness.stap("-l", f'process("{callers}").function("second").callees').out
    assert re.findall(r'\.function\("second@\S*callees\.c:\d+"\)\.callee\("(\w+)@', listed) == ["other", "work"], listed


def test_all_callees(callers, tmp_path):
    traced, _ = run(callers, '''probe process("PROGRAM").function("first").callees { println(ppfunc()) }
    probe process("PROGRAM").function("second").callees(1) { println("second ", ppfunc()) }''', tmp_path)
    assert sorted(traced) == ["copy"] * 2 + ["other"] * 2 + ["second other", "second work"] + ["work"] * 4


def test_returns_of_callees(callers, tmp_path):
    """A return belongs to the call from one function; the parameter is that of the entry."""
    traced, _ = run(callers, '''probe process("PROGRAM").function("second").callee("work").return { println("second ", $n) }
    probe process("PROGRAM").function("first").callee("work").return { println("first ", $n, " ", $return > 0) }
    probe process("PROGRAM").function("work").callee("work").return { println("itself ", $n) }''', tmp_path)
    assert sorted(traced) == ["first 1 1", "first 2 1", "first 3 1", "first 4 1", "itself 2", "second 102"]


def test_callees_of_callees(callers, tmp_path):
    """The callers of the caller count, too: work() is called by work() only if second() called that."""
    traced, _ = run(callers, '''probe process("PROGRAM").function("second").callees(2) { println("second ", ppfunc(), " ", $n) }
    probe process("PROGRAM").function("first").callees(2) { n[ppfunc()]++ }
    global n
    probe end { foreach (name+ in n) println("first ", name, " ", n[name]) }''', tmp_path)
    assert sorted(traced) == ["first copy 2", "first other 2", "first work 4", "second other 102", "second work 102",
                              "second work 2"]


COPIES = r"""
int seen;
__attribute__((noinline)) int called(int n) { __asm__ volatile("" : : "r"(n)); return n; }
static inline __attribute__((always_inline)) int inner(int n) { seen += n; return n + called(n); }
static inline __attribute__((always_inline)) int outer(int n) { seen -= n; return inner(n + 10); }
int main(int argc, char **argv) { return outer(argc) + called(100) + inner(1) + outer(argc + 1) - seen ? 0 : 1; }
"""


def test_callees_of_copies(tmp_path):
    """
    A function that exists only in inlined copies: what it calls, and what is inlined in it, from those copies alone.  (clang
    describes the calls of a copy as those of the function that it is in.)
    """
    (tmp_path / "copies.c").write_text(COPIES)
    subprocess.run(["gcc", "-O2", "-g", tmp_path / "copies.c", "-o", tmp_path / "copies"], check=True)
    traced, _ = run(tmp_path / "copies", '''probe process("PROGRAM").function("inner").callees { println("inner ", ppfunc()) }
    probe process("PROGRAM").function("outer").callee("inner") { println("outer ", ppfunc()) }
    probe process("PROGRAM").function("outer").callees(2) { n[ppfunc()]++ }
    global n
    probe end { foreach (name+ in n) println(name, " ", n[name]) }''', tmp_path)
    assert sorted(traced) == ["called 2", "inner 2"] + ["inner called"] * 3 + ["outer inner"] * 2


ALIAS = "int real(int n) { return n + 1; }\nint also(int n) __attribute__((alias(\"real\")));\nint main(void) { return real(1) - 2; }\n"


def test_alias_of_a_function(tmp_path):
    """It is listed under the name that its declaration has."""
    (tmp_path / "alias.c").write_text(ALIAS)
    subprocess.run(["gcc", "-g", tmp_path / "alias.c", "-o", tmp_path / "alias"], check=True)
    for name in ("also", "als*", "real"):
        listed = harness.stap("-l", f'process("{tmp_path}/alias").function("{name}")').out
        assert re.findall(r'\.function\("(\w+)@\S*alias\.c:1"\)', listed) == ["real"], listed


def test_copies_are_one_line(callers):
    """-L has an inlined function once, with the variables that all its copies have."""
    listed = harness.stap("-L", f'process("{callers}").function("copy")').out.splitlines()
    assert len(listed) == 1 and "copy@" in listed[0], listed


def test_programs_of_a_pattern(callers):
    result = harness.stap("-vv", "-l", f'process("{str(callers)[:-1]}?").function("main")')
    assert f'Expanded process("{str(callers)[:-1]}?") to process("{callers}")\n' in result.err, result


THREADS = """#include <stdio.h>
#include <pthread.h>
extern __thread int shared;
int bump(int n);
static __thread long own = 3;
static void *run(void *arg)
{
	for (int i = 1; i < 4; i++) {
		own += i;
		bump((int)(long)arg + i);
		printf("%ld %d\\n", own, shared);
	}
	return 0;
}
int main(void)
{
	pthread_t t;
	setvbuf(stdout, NULL, _IOLBF, 0);
	run((void *)100);
	pthread_create(&t, 0, run, (void *)200);
	pthread_join(t, 0);
	return 0;
}
"""
LIBRARY = """__thread int shared = 7;
static __thread long hidden = 70;
int bump(int n)
{
	shared += n;
	hidden -= n;
done:
	return shared;
}
"""


@pytest.mark.parametrize("how", [[], ["-no-pie"], ["-O2"]], ids=str)
def test_thread_local_variables(tmp_path, how):
    """Of the program and of a library, in probes of either; each thread has its own."""
    (tmp_path / "threads.c").write_text(THREADS)
    (tmp_path / "library.c").write_text(LIBRARY)
    library, program = tmp_path / "libthreads.so", tmp_path / "threads"
    loader = tmp_path / "loader.c"	# a library that can be run, as the C library, has an interpreter, too
    loader.write_text('const char interp[] __attribute__((section(".interp"))) = "/lib64/ld-linux-x86-64.so.2";')
    subprocess.run(["gcc", "-g", "-fPIC", "-shared", tmp_path / "library.c", loader, "-Wl,-soname,libthreads.so", "-o", library],
                   check=True)
    subprocess.run(["gcc", "-g", *how, tmp_path / "threads.c", "-o", program, f"-L{tmp_path}", "-lthreads", "-pthread",
                    f"-Wl,-rpath,{tmp_path}"], check=True)
    traced, own = run(program, f'''probe process("{library}").function("bump").label("done") {{
        printf("%d %d\\n", @var("own@threads.c", "PROGRAM"), @var("shared"))
        if (@var("hidden") != 77 - @var("shared")) println("hidden ", @var("hidden"))
    }}
    probe process("PROGRAM").function("main").return {{ println("main ", @var("own"), " ", @var("shared", "{library}") > 0) }}''',
                      tmp_path)
    assert len(own) == 6 and traced == [*own, "main 9 1"]


COMPUTED = """#include <stdio.h>
struct item { int id, weight; };
__attribute__((noipa)) int sink(int n) { return n; }
int main(int argc, char **argv)
{
	struct item items[3] = { { 1, 10 }, { 2, 20 }, { 3, 30 } };
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < 3; i++) {
		int doubled = 2 * items[i].weight + argc;
		int masked = (items[i].weight << 2) ^ i;
		printf("%d %d\\n", doubled, masked);
		sink(items[i].weight);
here:
		__asm__ volatile ("nop" :: "m" (items[i].id));
	}
	return 0;
}
"""


@pytest.mark.parametrize("how", ["-O0", "-O1", "-O2", "-Og"])
def test_computed_variables(tmp_path, how):
    """What a compiler keeps as a computation of registers is computed, or it is said that it is not there."""
    (tmp_path / "computed.c").write_text(COMPUTED)
    subprocess.run(["gcc", "-g", how, tmp_path / "computed.c", "-o", tmp_path / "computed"], check=True)
    shown = {"doubled": 0, "masked": 1}
    for name, column in shown.items():
        result = harness.stap("-o", str(tmp_path / "out"), "-e", f'''probe process("{tmp_path}/computed").statement("main@computed.c:12") {{
            println(@defined(${name}) ? sprint(${name}) : "gone") }}''', "-c", str(tmp_path / "computed"))
        assert result.code == 0, result
        traced = (tmp_path / "out").read_text().split()
        own = [line.split()[column] for line in result.out.splitlines()]
        assert traced in (own, ["gone"] * 3), (how, name, traced, own)


@pytest.mark.parametrize("what, why", [
    ("callees(0)", ".callees(N) only acceptable for N >= 1"), ("callees(9)", "at most 8 calls deep"),
    ('callee("main")', "no call of that name is known"),
])
def test_no_callees(tmp_path, what, why):
    program = tmp_path / "callees"
    source = os.path.join(os.path.dirname(SOURCE), "callees.c")
    (tmp_path / "other.c").write_text("int other(int n) { return n; }\n")
    subprocess.run(["gcc", "-O2", "-g", source, tmp_path / "other.c", "-o", program], check=True)
    result = harness.stap("-p2", "-e", f'probe process("{program}").function("first").{what} {{ println(1) }}')
    assert result.code == 1 and why in result.err, result


KERNEL = "what is traced can be written to by handlers inside of it"


@pytest.mark.parametrize("statement, plain, guru", [
    ("$a = 1", "write to target variable not permitted; need stap -g: identifier '$a'", KERNEL),
    ('@var("counter") = 1', "write to @var variable not permitted; need stap -g", KERNEL),
    ('@cast($n, "struct node")->id = 1', "write to @cast context variable not permitted; need stap -g", KERNEL),
    ("p = $n p->id = 1", "write not permitted; need stap -g: operator '->'", KERNEL),
    ("$a++", "Only the following assign operator is implemented on target variables:  =: operator '++'", None),
    ("$n->arr = 1", "write to target variable not permitted; need stap -g", "cannot write to array address: identifier '$n'"),
    ('$n$ = "x"', "need stap -g", "cannot write to pretty-printed variable: identifier '$n$'"),
    ('$$vars = "x"', "need stap -g", "cannot write to context variable: identifier '$$vars'"),
    ("&$n->id = 1", "need stap -g", "cannot write to member address: identifier '$n'"),
])
def test_not_written(tmp_path, statement, plain, guru):
    """The words are SystemTap's but for the kernel's, which lets nobody write."""
    program = tmp_path / "variables"
    subprocess.run(["gcc", "-g", SOURCE, "-o", program], check=True)
    script = 'probe process("%s").function("add") { %s }' % (program, statement)
    for option, said in ((), plain), (("-g",), guru or plain):
        result = harness.stap(*option, "-p4", "-e", script)
        assert result.code == 1 and said in result.err, result


@pytest.mark.interps("3.9", "3.14")
def test_written(tmp_path, interp):
    """From within the process: numbers of all sizes, bit fields, elements; an address that is not there is an error."""
    library = tmp_path / "types.so"
    (tmp_path / "types.c").write_text("struct t { int i; char c[4]; unsigned low : 3; int high : 5; short s; long l[2]; };\n"
                                      "struct t t;\n")
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", tmp_path / "types.c", "-o", library], check=True)
    script = '''probe process.mark("function__entry") {
        name = user_string($arg2)
        if (substr(name, 0, 5) != "addr_") next
        p = @cast(strtol(substr(name, 5, 20), 10), "struct t", "LIBRARY")
        p->i = p->l[1] = -123456789012
        p->c[2] = 66
        p->low = 13
        p->high = -3
        p->s = 0x12345
        try { @cast(8, "struct t", "LIBRARY")->i = 1 } catch (e) { println(e) }
        println(p->i, " ", p->l[0], " ", p->low, " ", p->high)
    }'''.replace("LIBRARY", str(library))
    program = ("import ctypes, struct\nb = ctypes.create_string_buffer(b'x' * 32, 32)\na = ctypes.addressof(b)\n"
               "exec(f'def addr_{a}(): pass\\naddr_{a}()')\nprint(*struct.unpack('<i4sBxhxxxxqq', b.raw))\n")
    result = harness.stap("-g", "-w", "--place=target", "-e", script, "-c", interp.command(program))
    assert result.code == 0, result
    number, xs = -123456789012, int.from_bytes(b"x" * 8, "little")
    low = (number + 2**31) % 2**32 - 2**31
    assert sorted(result.out.splitlines()) == sorted([
        "write fault [man error::fault] at 0x8", f"{low} {xs} 5 -3",
        f"{low} b'xxBx' {5 | (-3 & 31) << 3} {0x2345} {xs} {number}"]), result


def test_globals_at_return(program, tmp_path):
    """@var at a return: where it is comes from the entry, what is there is that of the return."""
    traced, own = run(program, '''probe process("PROGRAM").function("add").return {
        println(@var("counter"), " ", @entry(@var("counter")), " ", @var("head@variables.c")->in$, " ", &@var("counter") > 0)
    }''', tmp_path)
    assert traced == ["-6 -7 {.s=-3, .uc=200} 1", "-5 -6 {.s=-3, .uc=200} 1"]


@pytest.mark.parametrize("point", ["add@variables.c", "add@variables.c:x", "add@variables.c:100000"])
def test_no_statement(program, point):
    result = harness.stap("-e", f'probe process("{program}").statement("{point}") {{ }}')
    assert result.code == 1 and "semantic error" in result.err


def test_listing(program):
    """The types as C has them (variables.c)."""
    result = harness.stap("-L", f'process("{program}").function("add")')
    assert result.out.startswith(f'process("{program}").function("add@{SOURCE}:{line_of("long add(")}") $a:int $b:unsigned char $c:long int '
                                 "$s:char const* $d:short int $n:struct node* $g:int")


def test_without(tmp_path):
    path = tmp_path / "plain"
    subprocess.run(["gcc", SOURCE, "-o", path], check=True)
    result = harness.stap("-e", 'probe process("%s").function("add") { println($a) }' % path)
    assert result.code == 1 and "has no debuginfo" in result.err
