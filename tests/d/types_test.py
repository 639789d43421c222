"""Types that a script does not declare: the traced program's from its debug information, those of libraries; and the
arguments of proc probes, as the traced program tells of itself."""
import os
import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"
PROGRAM = r"""
#include <string.h>
enum color { RED, GREEN = 5 };
struct node {
	int value; struct node *next; char name[8]; enum color c; unsigned a:3, b:9;
	union { long l; double d; } u; int grid[2][3];
};
typedef struct node node_t;
__attribute__((noinline)) int walk(node_t *n, const char *what) { return n->value + (int)strlen(what); }
int main(void)
{
	struct node b = { 2, 0, "second", GREEN, 7, 300, { 9 }, { { 1, 2, 3 }, { 4, 5, 6 } } };
	struct node a = { 1, &b, "first", RED, 1, 2, { 8 }, { { 0 } } };
	asm volatile("" : : "r"(&a) : "memory");
	return walk(&a, "x") == 0;
}
"""
SCRIPT = r"""
pid$target:a.out:walk:entry
{
	this->n = (userland struct a.out`node *)arg0;
	printf("%d %d %s %s %d\n", this->n->value, this->n->next->value, stringof(this->n->name), this->n->next->name,
	    this->n->next->grid[1][2]);
	printf("%d %d %d %d\n", this->n->next->a, this->n->next->b, this->n->next->u.l, sizeof (struct a.out`node));
	print(*this->n->next);
	self->copy = *this->n->next;
	self->again = *this->n;
	printf("\n%s %d %s\n", self->copy.name, self->copy.b, stringof((userland char *)arg1));
	printf("%d %d\n", ((userland a.out`node_t *)arg0)->value, self->again.next->value);
}
"""
OUTPUT = """\
1 2 first second 6
7 300 9 64
struct node {
    int value = 0x2
    struct node * next = 0x0
    char [8] name = [ "second" ]
    enum color c = GREEN
    unsigned int a :3 = 0x7
    unsigned int b :9 = 0x12c
    union (anon) u = {
        long l = 0x9
        double d = +4.446590812571219e-323
    }
    int [2][3] grid = [ [ 0x1, 0x2, 0x3 ], [ 0x4, 0x5, 0x6 ] ]
}
second 300 x
1 2
"""


def test_of_the_program(dtrace, tmp_path):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("needs a C compiler")
    program = tmp_path / "program"
    subprocess.run([compiler, "-g", "-O1", "-x", "c", "-", "-o", program], input=PROGRAM, text=True, check=True)
    result = dtrace("-q", "-n", SCRIPT, "-c", str(program))
    assert result.code == 0 and result.out.strip() == OUTPUT.strip(), result
    result = dtrace("-n", "BEGIN { trace(sizeof (struct a.out`nosuch)); }", "-c", str(program))
    assert result.code == 1 and "no such type" in result.err, result


def test_libraries(dtrace, tmp_path):
    """-L: declarations are there for the script; what they depend on comes first; own ones win over dtap's."""
    (tmp_path / "base.d").write_text("struct pair { int a, b; };\ninline int BASE = 40;\n")
    (tmp_path / "shown.d").write_text(
        "#pragma D depends_on library base.d\n"
        "typedef struct shown { int sum; } shown_t;\n"
        "translator shown_t < struct pair p > { sum = p.a + p.b + BASE; };\n"
        "enum limits { LOW = -3, HIGH };\n")
    (tmp_path / "solaris.d").write_text("#pragma D depends_on module ufs\ninline int OF_UFS = 1;\n")
    (tmp_path / "signal.d").write_text("inline int SIGHUP = 77;\n")
    lib = ("-L", str(tmp_path))
    result = dtrace("-q", *lib, "-n", """struct pair p; BEGIN { p.a = 1; p.b = LOW; shown = xlate <shown_t> (p).sum;
        printf("%d %d %d %d", shown, sizeof (shown_t), HIGH, SIGHUP); exit(0); }""")
    assert result.code == 0 and result.out.strip() == "38 4 -2 77", result
    result = dtrace(*lib, "-n", "BEGIN { trace(OF_UFS); }")
    assert result.code == 1 and "OF_UFS: Unknown variable name" in result.err, result
    result = dtrace("-x", "nolibs", "-n", "BEGIN { trace(SIGINT); }")
    assert result.code == 1 and "SIGINT: Unknown variable name" in result.err, result
    result = dtrace("-q", "-x", f"syslibdir={tmp_path}", "-n", "BEGIN { trace(SIGHUP); exit(0); }")
    assert result.code == 0 and result.out.strip() == "77", result


def test_libraries_told(dtrace, tmp_path):
    """-x debug, DTRACE_DEBUG: the libraries that are loaded, each before those that it depends on."""
    for name, other in (("a", "d"), ("b", None), ("c", "e"), ("d", "b"), ("e", "a")):
        (tmp_path / f"{name}.d").write_text(f"#pragma D depends_on library {other}.d\n" if other else "")
    order = [f"dtrace: loaded the library {tmp_path}/{name}.d ({5 - i}/5)" for i, name in enumerate("ceadb")]
    result = dtrace("-e", "-x", "debug", "-L", str(tmp_path), "-n", "BEGIN { exit(0); }")
    assert result.code == 0 and result.err.splitlines() == order, result
    result = dtrace("-e", "-L", str(tmp_path), "-n", "BEGIN { exit(0); }", env=dict(os.environ, DTRACE_DEBUG="1"))
    assert result.code == 0 and result.err.splitlines() == order, result


@pytest.mark.parametrize("text, message", [
    ("inline int BROKEN = ;\n", "syntax error"),
    ("BEGIN { trace(1); }\n", "a library has declarations and no clauses"),
    ("#pragma D depends_on library none.d\n", "depends on none.d, which is not there"),
    ("#pragma D depends_on library bad.d\n", "depends on itself by way of bad.d"),
])
def test_bad_libraries(dtrace, tmp_path, text, message):
    """A library of the user's is read whole, whether a script uses it or not."""
    (tmp_path / "bad.d").write_text(text)
    for option in (["-L", tmp_path], ["-x", f"libdir={tmp_path}"]):
        result = dtrace(*option, "-n", "BEGIN { exit(0); }")
        assert result.code == 1 and "bad.d" in result.err and message in result.err, result


def test_missing_dependency(dtrace):
    result = dtrace("-x", "errtags", "-n", "#pragma D depends_on library none.d\nBEGIN { exit(0); }")
    assert result.code == 1 and "[D_PRAGMA_DEPEND]" in result.err, result


def test_errno_and_signals(dtrace, tmp_path):
    """The constants are Python's."""
    import errno
    import signal
    names = [name for name in dir(errno) if name.startswith("E")] + [s.name for s in signal.Signals if "RT" not in s.name]
    names = [name for name in names if name not in ("SIGCLD", "SIGIOT")]
    values = [getattr(errno, name, None) or int(getattr(signal, name, 0)) for name in names]
    script = tmp_path / "names.d"
    script.write_text("".join(f'BEGIN {{ printf("%d ", {name}); }}\n' for name in names) + "BEGIN { exit(0); }\n")
    result = dtrace("-q", "-s", script)
    assert [int(n) for n in result.out.split()] == values, result


def test_proc_arguments(dtrace, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import os, signal, threading
signal.signal(signal.SIGUSR1, lambda *a: None)
t = threading.Thread(target=lambda: None)
t.start()
t.join()
pid = os.fork()
if not pid:
    os.execv("/bin/true", ["true", "x y"])
os.waitpid(pid, 0)
print("child", pid, flush=True)
os.kill(os.getpid(), signal.SIGUSR1)
""")
    result = dtrace("-q", "-n", r"""
        proc:::create /pid == $target/ { child = args[0]->pr_pid; printf("create %d %d %d\n", child, child == arg0,
            args[0]->pr_ppid == pid && args[0]->pr_addr == arg1); }
        proc:::lwp-create /pid == $target/ { printf("lwp-create %d %d\n", args[0]->pr_lwpid == arg0, args[1]->pr_pid == pid); }
        proc:::lwp-start /pid == $target && tid != pid/ { printf("lwp-start %d\n", curlwpsinfo->pr_lwpid == tid); }
        proc:::start /ppid == $target && pid == child/ { printf("start %d\n", curpsinfo->pr_ppid == ppid); }
        proc:::exec /pid == child/ { self->path = stringof(args[0]); }
        proc:::exec-success /pid == child/ { printf("%s %s\n", self->path, curpsinfo->pr_psargs); }
        proc:::exit /pid == child/ { printf("exit %d\n", args[0] == CLD_EXITED); }
        proc:::signal-send /args[1]->pr_pid == $target && args[2] == SIGUSR1/ { printf("send %s\n", args[1]->pr_fname); }
        proc:::signal-handle /pid == $target && args[0] == SIGUSR1/ {
            printf("handle %d %d\n", args[1]->si_signo, args[1]->si_pid == pid); }
        """, "-c", f"{PYTHON} {program}")
    child = int(re.search(r"^child (\d+)$", result.out, re.M).group(1))
    lines = [line for line in result.out.splitlines() if line and not line.startswith("child")]
    threads = [line for line in lines if line.startswith("lwp")]
    assert sorted(threads) == ["lwp-create 1 1", "lwp-start 1"], result
    assert sorted(line for line in lines if line not in threads) == sorted(
        [f"create {child} 1 1", "start 1", "/bin/true true x y", "exit 1", "send python3", "handle 10 1"]), result
