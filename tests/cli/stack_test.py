"""stack(), ustack() and names of addresses: of a program whose chain of calls is known, with nm and readelf as
witnesses of its addresses."""
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

# The empty assembly keeps calls from becoming jumps.
PROGRAM = r"""
#include <unistd.h>
#define F __attribute__((noinline, noclone))
F void leaf(int n) { while (n--) write(1, "", 0); __asm__ volatile(""); }
F void middle(int n) { leaf(n); __asm__ volatile(""); }
F void outer(int n) { middle(n); __asm__ volatile(""); }
int main(void) { outer(3); middle(2); return 0; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("stack") / "chain"
    subprocess.run([compiler, "-O1", "-fno-omit-frame-pointer", "-x", "c", "-", "-o", path], input=PROGRAM, text=True,
                   check=True)
    return path


def frames(text):
    """Lists of frames without their offsets, one a stack."""
    return [re.findall(r"^ +(\S+?)(?:\+0x[0-9a-f]+)?$", stack, re.M) for stack in re.split(r"\n\n", text) if "`" in stack]


def test_action(dtrace, program):
    """Each stack is printed in full, also after the program has gone, which it has before the first is fetched."""
    result = dtrace("-q", "-n", "pid$target:a.out:leaf:entry { ustack(); }", "-c", program)
    assert result.code == 0, result
    stacks = frames("\n" + result.out)
    assert [s[:s.index("chain`main") + 1] for s in stacks] == [
        ["chain`leaf", "chain`middle", "chain`outer", "chain`main"], ["chain`leaf", "chain`middle", "chain`main"]], result
    assert all(s[-1] == "chain`_start" for s in stacks), result
    assert re.search(r"^ {14}chain`leaf$", result.out, re.M), result


def test_provider_by_pattern(dtrace, program):
    """A pattern that the provider's name fits means the process whose number it ends with."""
    result = dtrace("-q", "-n", 'p*d$target:a.out:outer:entry { printf("%s %s\\n", probeprov, probefunc); }',
                    "-c", program)
    assert re.fullmatch(r"pid\d+ outer\n", result.out), result
    assert dtrace("-l", "-n", "q*d$target:a.out:outer:entry", "-c", program).code == 1


def test_size(dtrace, program):
    for script in ("ustack(2);", "#pragma D option ustackframes=2\n"):
        if script.startswith("#"):
            script += "pid$target:a.out:leaf:entry { ustack(); }"
        else:
            script = "pid$target:a.out:leaf:entry { ustack(2); }"
        result = dtrace("-q", "-n", script, "-c", program)
        assert re.sub(r"\+0x[0-9a-f]+", "", result.out) == 2 * (
            "\n" + " " * 14 + "chain`leaf\n" + " " * 14 + "chain`middle\n"), result


def test_key(dtrace, program):
    """Equal stacks are one key; printed in columns and by %k."""
    script = "syscall::write:entry /pid == $target/ { @[ustack(4)] = count(); }"
    result = dtrace("-q", "-n", script, "-c", program)
    assert [int(n) for n in re.findall(r"^ {16} *(\d+)$", result.out, re.M)] == [2, 3], result
    assert frames(result.out) and all(s[0] == "libc.so.6`write" for s in frames(result.out)), result
    result = dtrace("-q", "-n", script + ' END { printa("<%k>%@d\\n", @); }', "-c", program)
    assert re.search(r"^<\n {14}libc.so.6`write\S*\n( {14}chain`\S+\n){3}>2$", result.out, re.M), result


def test_addresses(dtrace, program):
    """usym and its kind of where middle returns to, against nm."""
    result = dtrace("-q", "-n", """
        pid$target:a.out:middle:entry {
            @s[usym(ucaller)] = count(); @m[umod(ucaller)] = count(); @a[uaddr(ucaller)] = count();
            @f[ufunc(ucaller), pid == $target] = count();
        }
        pid$target:a.out:middle:entry { uaddr(ucaller); printf("\\n"); }
        END { printa("%A %@d\\n", @a); }""", "-c", program)
    assert result.code == 0 and re.search(r"^ +chain`outer +1$", result.out, re.M), result
    assert re.search(r"^ +chain`main +1$", result.out, re.M) and re.search(r"^ +chain +2$", result.out, re.M), result
    assert re.search(r"^ +chain`main +1 +1$", result.out, re.M), result
    assert re.search(r"^chain`main\+0x[0-9a-f]+ 1$", result.out, re.M), result
    assert re.search(r"^  chain`outer\+0x[0-9a-f]+ +$", result.out, re.M), result


def test_alike_are_one(dtrace, program):
    """All addresses in one function are one key of usym, in one module one of umod: trunc and clear take them whole."""
    code = subprocess.run(["objdump", "-d", "--disassemble=middle", program], capture_output=True, text=True)
    if code.returncode:
        pytest.skip("needs objdump")
    at = [int(m, 16) for m in re.findall(r"^ +([0-9a-f]+):\t", code.stdout, re.M)]
    script = "".join(f"pid$target:a.out:middle:{a - at[0]:x} {{ @s[usym(ucaller)] = count(); @[umod(ucaller)] = count(); }}\n"
                     for a in at[-3:-1])
    result = dtrace("-q", "-n", script + 'END { trunc(@s, 1); }', "-c", program)
    assert result.code == 0 and len(re.findall(r"^ +chain +4$", result.out, re.M)) == 1, result
    assert len(re.findall(r"^ +chain`\w+ +2$", result.out, re.M)) == 1, result


def test_kernel(dtrace, program):
    """The way of a system call, without the frames of the tracing."""
    result = dtrace("-q", "-n", "syscall::write:entry /pid == $target/ { @[stack(), stackdepth > 1] = count(); }",
                    "-c", program)
    stack = frames(result.out)[0]
    assert stack[0].startswith("vmlinux`") and not any("bpf" in f for f in stack), result
    assert any(re.search(r"do_syscall_64|el0_svc", f) for f in stack), result
    quiet = dtrace("-q", "-n", "BEGIN { stack(); ustack(); printf(\"end\"); exit(0); }")
    assert quiet.out == "\n\nend\n", quiet


def test_sampling(dtrace):
    """Where a busy interpreter is: in its own module, at addresses that readelf finds executable."""
    result = dtrace("-q", "-n", "profile-997 /pid == $target && arg1/ { @[umod(arg1)] = count(); @n = count(); }",
                    "-c", "/usr/bin/python3 -c 'sum(range(20000000))'")
    rows = dict(re.findall(r"^ +(\S+) +(\d+)$", result.out, re.M))
    assert max(rows, key=lambda name: int(rows[name])).startswith("python3"), result


def test_many_stacks_are_counted_right(dtrace):
    """Recursion makes a thousand different stacks; each count is kept, and none is lost."""
    result = dtrace("-q", "-n", """
        python$target:::gc-start { @[ustack(40), arg0] = count(); @n = count(); }""",
        "-c", "/usr/bin/python3 -c 'import gc\ndef f(n):\n gc.collect(0)\n return n and f(n - 1)\nfor i in range(20): f(i)'")
    assert result.code == 0 and "drop" not in result.err, result
    counts = [int(n) for n in re.findall(r"^ {6,}(?:\d+ )? +(\d+)$", result.out, re.M)]
    assert 2 * max(counts) == sum(counts), result


def kernel_symbol(name):
    with open("/proc/kallsyms") as f:
        return next((int(a, 16) for a, kind, n, *_ in map(str.split, f) if n == name and kind in "tT" and int(a, 16)), None)


def test_kernel_symbols(dtrace):
    """printf()'s %a names the kernel's functions, as /proc/kallsyms has them; what is in none stays a number."""
    at = kernel_symbol("do_exit")
    if not at:
        pytest.skip("needs /proc/kallsyms")
    result = dtrace("-q", "-n", f'BEGIN {{ printf("%a|%a|%30a|%a", {at:#x}, {at + 5:#x}, {at:#x}, 0x1234); exit(0); }}')
    assert result.out == "vmlinux`do_exit|vmlinux`do_exit+0x5|%30s|0x1234" % "vmlinux`do_exit", result


@pytest.mark.alone              # a second program at a tracepoint changes how the kernel calls the first
@pytest.mark.parametrize("probe", ["syscall::getpgid:entry", "syscall::getpgid:return", "proc:::lwp-create"])
def test_caller_in_the_kernel(dtrace, probe):
    """Neither caller nor stackdepth counts the tracing's own functions: they are those of the stack that stack() shows,
    whose second frame is the caller."""
    if not kernel_symbol("do_exit"):
        pytest.skip("needs /proc/kallsyms")
    result = dtrace("-q", "-n", probe + r' /pid == $target/ { printf("%d %a", stackdepth, caller); stack(50); exit(0); }',
                    "-c", "/usr/bin/python3 -Sc 'import os, threading\nos.getpgid(0); threading.Thread(target=dict).start()'")
    first, *stack = result.out.split("\n")
    stack = [line.strip() for line in stack if "`" in line]
    assert first == f"{len(stack)} {stack[1]}" and "bpf_" not in result.out and len(stack) > 1, result


def test_below_return_probes(dtrace, program):
    """A return probe's function returns to code of the kernel's: stacks have where it was called from all the same."""
    script = """
        pid$target:a.out:leaf:entry, pid$target:a.out:leaf:return, pid$target:a.out:middle:return { ustack(); }
        pid$target:a.out:outer:return { }"""
    result = dtrace("-q", "-n", script, "-c", program)
    stacks = [s[:s.index("chain`main") + 1] for s in frames("\n" + result.out)]
    chain = ["chain`leaf", "chain`middle", "chain`outer", "chain`main"]
    short = [chain[0], chain[1], chain[3]]
    assert stacks == [s[k:] for s in (chain, short) for k in range(3 if s is chain else 2)] + [short[2:]], result


HASTY = r"""
#include <unistd.h>
#define F __attribute__((noinline, noclone))
F int leaf(int n) { __asm__ volatile("" : : "r"(n)); return n; }
int main(void) {
    if (!fork()) _exit(leaf(1) - 1);
    _exit(leaf(0));
}
"""


def test_processes_that_end_at_once(dtrace, tmp_path):
    """
    They have ended before their stacks are looked at: a program that a shell started, and its child that only forked.  Both
    have the same addresses, and their pids differ in few bits.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("needs a C compiler")
    subprocess.run([compiler, "-O1", "-fno-omit-frame-pointer", "-x", "c", "-", "-o", tmp_path / "hasty"], input=HASTY, text=True, check=True)
    (tmp_path / "run.sh").write_text(f"for i in $(seq 80); do {tmp_path}/hasty; done; sleep 0.2\n")
    script = f'probe process("{tmp_path}/hasty").function("leaf") {{ printf("%s %s\\n", usymname(uaddr()), usymname(ustack(1))) }}'
    result = harness.run([harness.BUILD / "stap", "-e", script, "-c", f"sh {tmp_path}/run.sh"])
    assert result.code == 0, result
    assert result.out == "leaf main\n" * 160, result
