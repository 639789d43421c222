"""Programs built with "dtrace -G" of DTrace for Linux: their notes' types and order of arguments; semaphores in .bss."""
import re
import shutil
import signal
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

PROGRAM = harness.BUILD / "tests" / "unit" / "elf" / "marked_usdt"


def test_arguments(dtrace):
    result = dtrace("-qn", 'turned$target:::place { printf("%s %s %d %d %s\\n", probefunc, copyinstr(arg0), arg1, args[2], '
                    'stringof(args[0])); }', "-c", PROGRAM)
    assert sorted(filter(None, result.out.split("\n"))) == ["0", "work odd 1 1 odd", "work odd 3 3 odd", "work two 2 2 two"], result


def test_listing(dtrace):
    result = dtrace("-lvP", "turned$target", "-c", PROGRAM)
    assert re.findall(r"args\[\d\]: .*|work \w+", result.out) == \
        ["work place", "args[0]: char *", "args[1]: int", "args[2]: int", "work plain"], result


def test_semaphore_in_bss(dtrace):
    """What the program prints is its semaphore's count at the end."""
    result = dtrace("-qn", 'marked$target:::bss { @ = sum(arg0); } END { printa("sum %@d\\n", @); }', "-c", PROGRAM)
    assert sorted(result.out.split()) == ["1", "6", "sum"], result


def test_not_traced(dtrace):
    result = dtrace("-qn", "BEGIN { }", "-c", PROGRAM)
    assert result.out.split() == ["0"], result


DEFINITION = """
typedef unsigned int number;
enum color { RED };
struct later;
provider own {
	probe plain(uint8_t a, int16_t b, number c, enum color d, string e, struct later *f, double g);
	probe turned__about(int a, const char *b, int c) : (int c, const char *b);
	probe none();
};
"""

OWN = r"""
#include <stdint.h>
#include "own.h"
static void __attribute__((noinline)) work(uint8_t a, int16_t b, unsigned int c, double g)
{
	OWN_PLAIN(a, b, c, 1, "text", (void *)0, g);
	OWN_TURNED_ABOUT(1, "two", 3);
	OWN_NONE();
}
int main(int argc, char **argv) { work(250, -3, 4000000000u, argc + 0.5); return 0; }
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A program built with dtap's own -h and -G, stripped of what strip takes."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.d").write_text(DEFINITION)
    (folder / "own.c").write_text(OWN)
    dtrace = str(harness.BUILD / "dtrace")
    for step in ([dtrace, "-h", "-s", "own.d"], [dtrace, "-G", "-s", "own.d", "-o", "own_d.o"],
                 ["cc", "-O2", "-I", str(harness.TOP / "include"), "-o", "own", "own.c", "own_d.o"], ["strip", "own"]):
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, (step, done)
    return folder / "own"


def test_types_of_own_objects(dtrace, own):
    """The definition's types, as far as a script can know them, and the arguments that it shows, in its order."""
    result = dtrace("-lvP", "own$target", "-c", own)
    assert re.findall(r"args\[\d\]: .*", result.out) == [
        "args[0]: uint8_t", "args[1]: int16_t", "args[2]: unsigned int", "args[3]: int", "args[4]: char *",
        "args[5]: struct later *", "args[6]: double", "args[0]: int", "args[1]: const char *"], result


def test_arguments_of_own_objects(dtrace, own):
    result = dtrace("-qn", """own$target:::plain { printf("%d %d %u %d %s %p %.1f\\n", args[0], args[1], args[2], args[3],
            stringof(args[4]), args[5], args[6]); }
        own$target:::turned-about { printf("%d %s %d %s\\n", args[0], stringof(args[1]), arg0, copyinstr(arg1)); }
        own$target:::none { printf("%s\\n", probename); }""", "-c", own)
    assert result.out.split("\n")[:3] == ["250 -3 4000000000 1 text 0 1.5", "3 two 3 two", "none"], result


# Markers without the header: one with another number of arguments than the definition says.
PLAIN = """
#include <sys/sdt.h>
unsigned short own_none_semaphore __attribute__((section(".probes"))), own_turned__about_semaphore __attribute__((section(".probes")));
int main(void) { STAP_PROBE1(own, none, 7); DTRACE_PROBE3(own, turned__about, 1, "two", 3); return 0; }
"""


def test_sites_that_the_definition_does_not_describe(dtrace, own, tmp_path):
    """They have the arguments of the site; and SystemTap's script sees those of every site."""
    (tmp_path / "plain.c").write_text(PLAIN)
    subprocess.run(["objcopy", "-O", "binary", "--only-section=.note.dtap", str(own), "note"], cwd=tmp_path, check=True)
    subprocess.run(["cc", "-I", str(harness.TOP / "include"), "-o", "plain", "plain.c"], cwd=tmp_path, check=True)
    subprocess.run(["objcopy", "--add-section", ".note.dtap=note", "plain", "typed"], cwd=tmp_path, check=True)
    result = dtrace("-qn", 'own$target:::none { printf("%d\\n", arg0); }', "-c", tmp_path / "typed")
    assert result.out.split("\n")[0] == "7", result
    result = harness.stap("-e", 'probe process.mark("none") { println($arg1) } '
                          'probe process.mark("turned__about") { println($arg1, user_string($arg2), $arg3) }', "-c", tmp_path / "typed")
    assert result.code == 0 and result.out == "7\n1two3\n", result


LATER = """
#include <unistd.h>
#include "own.h"
int main(void) { for (int i = 0; i < 300; i++) { OWN_TURNED_ABOUT(1, "two", i); usleep(10000); } return 0; }
"""


def test_programs_that_start_later(own, start, tmp_path):
    """A pattern for the provider reaches them, each call once, whether they share a file or not."""
    (tmp_path / "later.c").write_text(LATER)
    subprocess.run(["cc", "-I", str(own.parent), "-I", str(harness.TOP / "include"), "-o", "later", "later.c",
                    str(own.parent / "own_d.o")], cwd=tmp_path, check=True)
    shutil.copy(tmp_path / "later", tmp_path / "copy")
    tracer = start([harness.BUILD / "dtrace", "-Zqn", 'BEGIN { printf("begun\\n"); } own*:::turned-about /arg0 > 250/ '
                    '{ @[probemod, pid] = count(); } END { printa("%s %d %@d\\n", @); }'],
                   stdout=subprocess.PIPE, text=True)
    assert tracer.stdout.readline() == "begun\n"
    programs = [start([tmp_path / name]) for name in ("later", "copy", "later")]
    assert [program.wait(timeout=harness.TIMEOUT_S) for program in programs] == [0, 0, 0]
    tracer.send_signal(signal.SIGINT)
    out = tracer.communicate(timeout=harness.TIMEOUT_S)[0]
    expected = [f"{name} {program.pid} 49" for name, program in zip(("later", "copy", "later"), programs)]
    assert sorted(filter(None, out.split("\n"))) == sorted(expected)
