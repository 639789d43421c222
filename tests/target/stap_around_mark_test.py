"""Variables of the function around a marker: $name there, in a program with debug information; types from another file."""
import shutil
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.needs_bpf, pytest.mark.skipif(not shutil.which("gcc"), reason="needs a C compiler")]
INCLUDE = harness.TOP / "include"

# The structure is only declared in the first file, under a name that is a type as well.
MAIN = """
#include <sys/sdt.h>
typedef struct pair pair;
extern pair *first(void);
int counted;
__attribute__((noinline)) void at(pair *p, int n)
{
	char text[] = "words";
	counted += n + text[0];
	DTRACE_PROBE2(test, one, p, n);
	counted++;
}
static inline __attribute__((always_inline)) void copied(int m) { counted += m; DTRACE_PROBE1(test, two, m); }
int main(void) { at(first(), 7); copied(1); copied(2); return 0; }
"""
OTHER = "struct pair { int a; struct pair *next; }; static struct pair v[2] = {{17, v + 1}, {23, 0}}; struct pair *first(void) { return v; }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("around")
    (path / "main.c").write_text(MAIN)
    (path / "other.c").write_text(OTHER)
    for name, flags in (("program", ["-g"]), ("bare", [])):
        subprocess.run(["gcc", "-O0", *flags, f"-I{INCLUDE}", "-o", path / name, path / "main.c", path / "other.c"], check=True)
    return path


def test_variables(folder):
    script = """probe process.mark("one") {
        printf("%d %d %d %d\\n", $p->a, $p->next->a, $n, $p == $arg1 && $n == $arg2)
        printf("%s %s %s\\n", $p$, user_string($text), @defined($nosuch) ? "yes" : "no")
        printf("%d\\n", @var("counted") > 7) }"""
    result = harness.stap("-e", script, "-c", str(folder / "program"))
    out = result.out.splitlines()
    assert result.code == 0 and out[0] == "17 23 7 1" and out[2] == "1", result
    assert out[1].startswith("{.a=17, .next=0x") and out[1].endswith("} words no"), result


@pytest.mark.parametrize("program, mark, var, why", [
    ("program", "one", "$nosuch", "alternatives: $p, $n, $text"), ("program", "two", "$m", "the marker stands at several places"),
    ("program", "one", "$arg1->a", "write @cast($arg1"), ("bare", "one", "$p->a", "has no debuginfo"),
    ("program", "one", "$$locals", "$$name, $$provider, $$vars and $$parms")])
def test_refused(folder, program, mark, var, why):
    result = harness.stap("-p2", "-e", f'probe process("{folder}/{program}").mark("{mark}") {{ println({var}) }}')
    assert result.code == 1 and why in result.err, result
