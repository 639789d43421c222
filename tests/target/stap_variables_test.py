"""SystemTap's @var and $name: which of several variables of one name, of other files, and in functions."""
import re
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

# Prints what it has before it changes it, as a probe of the function's entry sees it.
UNIT = """
#include <stdio.h>
struct pair { int a, b; };
static int counter = START;
static struct pair pair = { START + 1, START + 2 };
extern int FIRST_COUNTER(void);
int NAME_counter(void) { return counter; }
__attribute__((noinline)) int NAME(int step)
{
	__asm__ volatile ("" : "+m" (counter), "+m" (pair));
	printf("NAME %d %d %d %d\\n", step, counter, pair.b, FIRST_COUNTER());
	counter += step;
	return counter;
}
"""
MAIN = """
#include <stdio.h>
int one(int), two(int);
int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	return one(1) + two(2) + one(3) + two(4) < 0;
}
"""


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def program(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("variables")
    for name, start in (("one", 10), ("two", 200)):
        text = UNIT.replace("FIRST_COUNTER", "one_counter").replace("NAME", name).replace("START", str(start))
        (folder / f"{name}.c").write_text(text)
    (folder / "main.c").write_text(MAIN)
    subprocess.run(["gcc", "-g", request.param, "-o", "variables", "main.c", "one.c", "two.c"], cwd=folder, check=True)
    return folder / "variables"


def run(program, script):
    """(what the script printed, what the program did)"""
    out = program.parent / "out"
    result = harness.stap("-o", str(out), "-e", script, "-c", str(program), str(program))
    assert result.code == 0, result
    return out.read_text().splitlines(), result.out.splitlines()


def test_in_functions(program):
    """A function has the context variables of the probe that called it, through another function, too."""
    script = """function own() { return @var("counter") }
        function show(what) { printf("%s %d %d %d %d\\n", what, $step, own(), @var("pair")->b, @var("counter@one.c")) }
        probe process(@1).function("one") { show("one") } probe process(@1).function("two") { show("two") }"""
    traced, own = run(program, script)
    assert len(own) == 4 and traced == own


def test_of_the_program(program):
    """With the program's name a variable is there in every probe that its processes reach."""
    script = """function first() { return @var("counter@one.c", @1) }
        probe syscall.write { if (pid() == target()) printf("one %d two %d %s\\n", first(), @var("counter@tw*.c", @1),
            @var("pair@two.c", "/bin/true:PROGRAM")$) }""".replace("PROGRAM", str(program))
    traced, own = run(program, script)
    one, two, want = 10, 200, []
    for line in own:
        want.append(f"one {one} two {two} {{.a=201, .b=202}}")
        name, step = line.split()[:2]
        one, two = (one + int(step), two) if name == "one" else (one, two + int(step))
    assert len(want) == 4 and traced == want


def test_at_the_return(program):
    script = """function now() { return @var("counter@one.c", @1) }
        probe process(@1).function("one").return { println($return, " ", now(), " ", @var("counter@one.c")) }"""
    assert run(program, script)[0] == ["11 11 11", "14 14 14"]


def test_of_another_program(program):
    """In a process of another program there is no such variable."""
    script = f'probe syscall.exit_group {{ if (pid() == target()) {{ println(@var("counter@one.c", "{program}")) exit() }} }}'
    result = harness.stap("-e", script, "-c", "/bin/true")
    assert result.code == 1 and "read fault" in result.err, result


@pytest.mark.parametrize("script, why", [
    ('function f() { return $step } probe begin { println(f()) }', "unresolved target-symbol expression: identifier '$step'"),
    ('function f() { return $step } probe process(@1).function("one").return { println(f()) }', "pass it as an argument"),
    ('probe begin { println(@var("nothing", @1)) }', "nothing: no global variable of that name is described"),
    ('probe begin { println(@var("counter", "/no/such")) }', "there is no program /no/such"),
])
def test_refused(program, script, why):
    result = harness.stap("-p2", "-e", script, str(program))
    assert result.code == 1 and why in result.err and re.search(r":1:\d+", result.err), result


@pytest.mark.parametrize("script", [
    'function f() { return $step } probe begin { println(1) }',      # never called
    'probe begin { println(@defined(@var("counter", "/no/such"))) }',
    'function f(n) { if (n > 3) return $step; return f(n + 1) } probe process(@1).function("one") { println(f(0)) }',
])
def test_accepted(program, script):
    assert harness.stap("-p2", "-e", script, str(program)).code == 0
