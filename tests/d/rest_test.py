"""What of D few scripts use: registers, probes and options that are in no other test."""
import os
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf


def built(tmp_path, text, *options):
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    path = tmp_path / "program"
    subprocess.run(["gcc", "-g", *options, "-x", "c", "-", "-o", path], input=text, text=True, check=True)
    return path


# --- registers --------------------------------------------------------------------------------------------------------

VALUES = {"R_RAX": 0x101, "R_RBX": 0x102, "R_RCX": 0x103, "R_RDX": 0x104, "R_RSI": 0x105, "R_RDI": 0x106, "R_RBP": 0x107, "R_R8": 0x108,
          "R_R9": 0x109, "R_R10": 0x10a, "R_R11": 0x10b, "R_R12": 0x10c, "R_R13": 0x10d, "R_R14": 0x10e, "R_R15": 0x10f}
SAME = {"R_R0": "R_RAX", "R_R1": "R_RDX"}
REGISTERS = """
#include <stdio.h>
void at(void);
void call_it(unsigned long *seen);
__asm__(".text\\n.globl at\\n.type at, @function\\nat: nop\\nret\\n.size at, . - at\\n"
	".globl call_it\\n.type call_it, @function\\ncall_it:\\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdi\\n"
	"lea -8(%rsp), %rax; mov %rax, (%rdi)\\n"
	"mov %cs, %eax; mov %rax, 8(%rdi); mov %ss, %eax; mov %rax, 16(%rdi)\\n"
MOVES
	"call at\\n"
	"pop %rdi; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\\n.size call_it, . - call_it\\n");
int main(void)
{
	unsigned long seen[3];

	call_it(seen);
	printf("%lx %lx %lx %lx\\n", (unsigned long)at, seen[0], seen[1], seen[2]);
	return 0;
}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86-64's registers")
def test_registers(dtrace, tmp_path):
    """As the program has set them; its address, stack and segments as it says itself."""
    moves = "".join(f'\t"mov ${value}, %{name[2:].lower()}\\n"\n' for name, value in VALUES.items())
    program = built(tmp_path, REGISTERS.replace("MOVES\n", moves))
    shown = [*VALUES, *SAME, "R_RIP", "R_PC", "R_RSP", "R_SP", "R_CS", "R_SS"]
    result = dtrace("-q", "-n", "pid$target:a.out:at:entry { " + " ".join(f'printf("{name} %x\\n", uregs[{name}]);' for name in shown) +
                    'printf("flags %d\\n", uregs[R_RFL] == uregs[R_PS] && (uregs[R_RFL] & 0x202) == 0x202); }', "-c", program)
    told = dict(re.findall(r"^(R_\w+) (\w+)$", result.out, re.M))
    address, stack, code, data = re.search(r"^(\w+) (\w+) (\w+) (\w+)$", result.out, re.M).groups()
    want = {name: f"{value:x}" for name, value in VALUES.items()}
    want.update({name: want[other] for name, other in SAME.items()}, R_RIP=address, R_PC=address, R_RSP=stack, R_SP=stack, R_CS=code, R_SS=data)
    assert told == want and "flags 1" in result.out, result


# --- probes -----------------------------------------------------------------------------------------------------------

BURNERS = """
import os, resource
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
child = os.fork()
old = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
os.umask(0o17)
while resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw < old + 12 and os.getppid() != 1:
    sum(range(20000))
os.umask(0o27)
if child:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - old, flush=True)
    os.waitpid(child, 0)
os._exit(0)
"""


def test_preemption(dtrace, tmp_path):
    """Two that share a processor take it from each other, as often as the kernel counts, between two calls of umask()."""
    (tmp_path / "burners.py").write_text(BURNERS)
    result = dtrace("-q", "-n", """
        syscall::umask:entry /pid == $target/ { on = arg0 == 017; }
        sched:::preempt /pid == $target && on/ { n++; } END { printf("told %d\\n", n); }""",
                    "-c", f"/usr/bin/python3 {tmp_path / 'burners.py'}")
    told, counted = int(re.search(r"^told (\d+)", result.out, re.M)[1]), int(re.search(r"^(\d+)$", result.out, re.M)[1])
    assert abs(told - counted) <= 4, result


@pytest.mark.parametrize("probe", ["sched:::on-cpu", "sched:::off-cpu", "sched:::wakeup", "proc:::signal-send"])
def test_new_keys_at_one_event(dtrace, probe):
    """Several, of one aggregation, where the kernel has its interrupts off: none is lost."""
    keys = [str(k) for k in range(6)]
    result = dtrace("-q", "-n", f"""
        {probe} /progenyof($target)/ {{ @n = count(); {" ".join(f'@["{key}", tid] = count();' for key in keys)} }}
        {probe} /progenyof($target)/ {{ @q["6", tid] = quantize(1); @q["7", pid] = quantize(1); }}
        END {{ printa("all %@d\\n", @n); printa("%s %d %@d\\n", @); }}""", "-c", "/bin/sh -c 'kill -URG $$; sleep 0.01; /bin/true'")
    counts = re.findall(r"^(\d) \d+ (\d+)$", result.out, re.M)
    told = int(re.search(r"^all (\d+)", result.out, re.M)[1])
    assert result.code == 0 and not result.err and told > 0, result
    assert {key: sum(int(n) for k, n in counts if k == key) for key in keys} == dict.fromkeys(keys, told), result


def test_who_remains(dtrace):
    listed = dtrace("-l", "-P", "sched").out
    if "remain-cpu" not in listed:
        pytest.skip("this kernel has no event for it")
    result = dtrace("-q", "-n", "sched:::remain-cpu { n++; } sched:::on-cpu { m++; } tick-200ms { exit(0); } END { printf(\"%d %d\\n\", n >= 0, m > 0); }")
    assert result.out == "1 1\n", result


# --- options ----------------------------------------------------------------------------------------------------------

@pytest.mark.alone              # a second program at a tracepoint changes how the kernel calls the first
def test_frames(dtrace):
    """As many as the option says; without it there are more."""
    script = "syscall::umask:entry /pid == $target/ { stack(); printf(\"--\\n\"); ustack(); exit(0); }"
    command = "/usr/bin/python3 -S -c 'import os; os.umask(18)'"

    def frames(*options):
        out = dtrace("-q", *options, "-n", script, "-c", command).out
        return [len(re.findall(r"^ +\S+", part, re.M)) for part in out.split("--\n")]

    kernel, native = frames()
    assert kernel >= 2 and native > 3
    assert frames("-x", "stackframes=1", "-x", "ustackframes=3") == [1, 3]
    assert frames("-x", "ustackunwind=fp")[0] == kernel


@pytest.mark.interps("3.9")
def test_frames_of_python(dtrace, interp):
    """jstack() has no more than the option says, as what is given to it."""
    script = interp.add("def a():\n    open('/dev/null')\ndef b():\n    a()\ndef c():\n    b()\nc()\n")
    for options, call, count in (((), "jstack()", 4), (("-x", "jstackframes=2"), "jstack()", 2), ((), "jstack(3)", 3)):
        result = dtrace("-q", *options, "-n", f'python$target:::function-entry /copyinstr(arg1) == "a"/ {{ {call}; }}', "-c",
                        " ".join([*interp.argv, script]))
        assert result.code == 0 and len(re.findall(r"script\.py", result.out)) <= count, result


def test_depth_of_a_stack(dtrace, tmp_path):
    program = built(tmp_path, """
__attribute__((noinline)) void f(int n) { if (n) f(n - 1); __asm__ volatile(""); }
int main(void) { f(3); return 0; }
""", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
    result = dtrace("-q", "-n", "pid$target:a.out:f:entry { printf(\"%d\\n\", ustackdepth); }", "-c", program)
    depths = list(map(int, result.out.split()))
    assert [b - a for a, b in zip(depths, depths[1:])] == [1, 1, 1] and depths[0] >= 2, result


def test_what_becomes_of_a_script(dtrace):
    script = ("-q", "-n", "BEGIN { x = 1234567; exit(0); }")
    for options, sign in ((("-x", "ir"), "exiting"), (("-S",), "exiting"), (("-x", "bytecode"), "exit\n")):
        result = dtrace(*options, *script)
        assert result.code == 0 and not result.out and sign in result.err and "1234567" in result.err.replace("0x12d687", "1234567"), result
    assert dtrace("-x", "ir", *script).err == dtrace("-S", *script).err
    for option in ("verifierlog", "bpflog"):        # of what the kernel does not refuse there is none
        result = dtrace("-x", option, *script)
        assert result.code == 0 and not result.err, result


def test_probes_that_are_not_there(dtrace):
    script = ("-q", "-n", "nosuch*:::x { trace(1); }", "-n", "BEGIN { trace(2); exit(0); }")
    assert dtrace(*script).code == 1
    for option in (("-x", "zdefs"), ("-Z",)):
        result = dtrace(*option, *script)
        assert result.code == 0 and result.out.strip() == "2", result


def test_indented(dtrace):
    script = ("-n", "syscall::umask: /pid == $target/ { }")
    command = ("-c", "/usr/bin/python3 -S -c 'import os; os.umask(18)'")
    plain, short, long = (re.sub(r"\d+", "N", dtrace(*options, *script, *command).out) for options in ((), ("-F",), ("-x", "flowindent")))
    assert short == long != plain and "=> umask" in long and "<= umask" in long, long


def test_for_the_command_line_alone(dtrace):
    options = [word for option in ("ldpath=/usr/bin/ld", "modpath=/lib/modules", "procfspath=/proc") for word in ("-x", option)]
    result = dtrace("-q", *options, "-n", "BEGIN { trace(1); exit(0); }")
    assert result.code == 0 and result.out.strip() == "1" and not result.err, result


def test_much_that_the_preprocessor_says(dtrace, tmp_path):
    """A page of warnings is shown, of a page of mistakes the first."""
    for word, code in (("warning", 0), ("error", 1)):
        (tmp_path / "script.d").write_text("".join(f"#{word} number {i} of many\n" for i in range(400)) + "BEGIN { exit(0); }\n")
        result = dtrace("-q", "-C", "-s", tmp_path / "script.d")
        assert result.code == code and "number 0 of many" in result.err and ("number 399 of many" in result.err) == (not code), result.err[:500]


def test_names_of_included_files(dtrace, tmp_path):
    (tmp_path / "one.h").write_text("#define ONE 1\n")
    (tmp_path / "script.d").write_text('#include "one.h"\nBEGIN { trace(ONE); exit(0); }\n')
    result = dtrace("-q", "-C", "-H", "-s", tmp_path / "script.d")
    assert result.code == 0 and result.out.strip() == "1" and re.search(r"^\. .*one\.h$", result.err, re.M), result


# --- the ready-made commands' long options ----------------------------------------------------------------------------

@pytest.mark.interps("3.13")
def test_long_options(interp):
    script = "def a(): pass\ndef b(): pass\ndef c(): pass\nfor i in range(3): a()\nfor i in range(2): b()\nc()\n"
    dtap = harness.BUILD / "dtap"
    out = interp.dir / "rows.csv"
    result = harness.run([dtap, "calls", "--command", interp.command(script), "--duration", "50", "--rows", "2", "--output", out])
    assert result.code == 0, result
    assert len(out.read_text().splitlines()) == 3, out.read_text()
    result = harness.run([dtap, "calls", "-j", "-c", interp.command(script)])
    assert result.code == 0 and all(line.startswith("{") for line in result.out.splitlines()) and '"a"' in result.out, result
    result = harness.run([dtap, "calls", "--all", "--interval", "1", "--script"])
    assert result.code == 0 and "python*:::function-entry" in result.out, result


@pytest.mark.interps("3.9", "3.15")
def test_what_is_computed(dtrace, interp):
    """A property is the program's code, which is not run: the clause has a fault that says so."""
    script = "class A:\n    @property\n    def x(self): return 1\ndef f(a): pass\nf(A())\n"
    result = dtrace("-q", "-x", "place=target", "-n", 'python$target:::function-entry /copyinstr(arg1) == "f"/ '
                    '{ trace(pyint(pyattr(pyarg(0), "x"))); }', "-c", interp.command(script))
    assert "computed by the program's code, which is not run" in result.err and not result.out.strip(), result


def test_on_one_cpu(dtrace):
    """With -x cpu=N the tracer's own probes are on that CPU, too."""
    for cpu in os.sched_getaffinity(0):
        result = dtrace("-q", "-x", f"cpu={cpu}", "-n", "BEGIN { trace(cpu); exit(0); } END { trace(cpu); }")
        assert result.out.split() == [str(cpu) * 2], result


# --- ticks ------------------------------------------------------------------------------------------------------------

def test_tick_interrupts_who_runs():
    """A tick that asks for pid sees what runs on its CPU: here a loop that has to share it at most."""
    cpu = min(os.sched_getaffinity(0))
    loop = subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    try:
        result = harness.dtrace("-q", "-x", f"cpu={cpu}", "-n", 'tick-10ms /pid == $1/ { printf("%s %d", execname, cpu); exit(0); }',
                                str(loop.pid))
        assert result.out.strip() == f"sh {cpu}", result
    finally:
        loop.kill()
        loop.wait()


# --- the least attributes ---------------------------------------------------------------------------------------------

def test_attributes_are_told_beside_a_mistake_of_types():
    result = harness.dtrace("-e", "-x", "errtags", "-x", "amin=Evolving/Evolving/Common", "-n",
                            "BEGIN { trace(curthread->no_such_member); }")
    assert result.code == 1 and "[D_ATTR_MIN]" in result.err and "[D_TYPE_MEMBER]" in result.err, result
