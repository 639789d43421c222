"""perf.* and process.data(): what the kernel's perf events fire.  Witnesses: linux/perf_event.h, and the program's own counts."""
import re
import shutil
import subprocess

import pytest

import harness

ENV = {"PATH": "/usr/bin:/usr/sbin:/bin", "SYSTEMTAP_TAPSET": str(harness.TOP / "share" / "tapset")}
HARDWARE = """perf.hw.cpu_cycles perf.hw.instructions perf.hw.cache_references perf.hw.cache_misses perf.hw.branch_instructions
    perf.hw.branch_misses perf.hw.bus_cycles perf.hw.stalled_cycles_frontend perf.hw.stalled_cycles_backend
    perf.hw.ref_cpu_cycles""".split()
SOFTWARE = """perf.sw.cpu_clock perf.sw.task_clock perf.sw.page_faults perf.sw.context_switches perf.sw.cpu_migrations
    perf.sw.page_faults_min perf.sw.page_faults_maj perf.sw.alignment_faults perf.sw.emulation_faults perf.sw.dummy""".split()
CACHE = """perf.hw_cache.l1d.read.access perf.hw_cache.l1d.read.miss perf.hw_cache.l1d.write.access perf.hw_cache.l1d.write.miss
    perf.hw_cache.l1d.prefetch.access perf.hw_cache.l1d.prefetch.miss perf.hw_cache.l1i.read.access perf.hw_cache.l1i.read.miss
    perf.hw_cache.l1i.prefetch.access perf.hw_cache.l1i.prefetch.miss perf.hw_cache.ll.read.access perf.hw_cache.ll.read.miss
    perf.hw_cache.ll.write.access perf.hw_cache.ll.write.miss perf.hw_cache.ll.prefetch.access perf.hw_cache.ll.prefetch.miss
    perf.hw_cache.dtlb.read.access perf.hw_cache.dtlb.read.miss perf.hw_cache.dtlb.write.access perf.hw_cache.dtlb.write.miss
    perf.hw_cache.dtlb.prefetch.access perf.hw_cache.dtlb.prefetch.miss perf.hw_cache.itlb.read.access
    perf.hw_cache.itlb.read.miss perf.hw_cache.bpu.read.access perf.hw_cache.bpu.read.miss perf.hw_cache.node.read.access
    perf.hw_cache.node.read.miss perf.hw_cache.node.write.access perf.hw_cache.node.write.miss""".split()
MISSPELT = {"perf.hw_cache.ndoe.write.miss": "perf.hw_cache.node.write.miss"}


def enumerators(name):
    """The header's expression for the point @name: "PERF_TYPE_SOFTWARE", "PERF_COUNT_SW_CPU_CLOCK"."""
    kind, *rest = MISSPELT.get(name, name).removeprefix("perf.").split(".")
    if kind == "hw_cache":
        cache, op, result = (word.upper() for word in rest)
        return "PERF_TYPE_HW_CACHE", (f"PERF_COUNT_HW_CACHE_{cache} | PERF_COUNT_HW_CACHE_OP_{op} << 8"
                                      f" | PERF_COUNT_HW_CACHE_RESULT_{result} << 16")
    return {"hw": "PERF_TYPE_HARDWARE", "sw": "PERF_TYPE_SOFTWARE"}[kind], f"PERF_COUNT_{kind.upper()}_{rest[0].upper()}"


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs a C compiler")
def test_numbers(tmp_path):
    names = HARDWARE + SOFTWARE + CACHE + list(MISSPELT)
    lines = "".join('printf("%%d %%d\\n", %s, %s);' % enumerators(name) for name in names)
    (tmp_path / "n.c").write_text("#include <stdio.h>\n#include <linux/perf_event.h>\nint main(void) { %s }" % lines)
    subprocess.run(["gcc", "-o", tmp_path / "n", tmp_path / "n.c"], check=True)
    wanted = subprocess.run([tmp_path / "n"], check=True, capture_output=True, text=True).stdout.splitlines()
    result = harness.stap("-p2", "-e", "".join("probe %s { print(1) }" % name for name in names), env=ENV)
    assert result.code == 0, result
    found = re.findall(r"perf\.type\((\d+)\)\.config\((\d+)\)", result.out)
    assert [" ".join(pair) for pair in found] == wanted


@pytest.mark.parametrize("script, why", [
    ("perf.type(1).config(0).hz(100000) { print(1) }", "a frequency above 5000 hz is refused"),
    ("perf.type(1).config(0).sample(0) { print(1) }", "as a number above 0"),
    ("perf.sw.cpu_clock.sample(10) { print(1) }", "under 200 microseconds"),
    ("perf.type(1).config(1).sample(10) { print(1) }", "under 200 microseconds"),
    ("perf.sw.dummy.counter(\"a\") { print(1) }", "counters that other probes read"),
    ("process(\"/bin/sh\").data(0x1001).length(2).rw { print(1) }", "no multiple of the length 2"),
    ("process(\"/bin/sh\").data(0x1000).length(3).rw { print(1) }", "a length is 1, 2, 4 or 8"),
    ("process(\"/bin/sh\").data(\"nosuch\").rw { print(1) }", "has no variable 'nosuch'"),
])
def test_refused(script, why):
    result = harness.stap("-p2", "-e", "probe " + script, env=ENV)
    assert result.code == 1 and why in result.err, result


SPIN = "import time\\nend = time.process_time() + .3\\nwhile time.process_time() < end: pass"


@pytest.mark.needs_bpf
def test_samples(tmp_path):
    """A program that computes for .3 s is seen by each clock; no process runs a program that is not there."""
    (tmp_path / "spin.py").write_text(SPIN.replace("\\n", "\n"))
    script = """
        global n
        probe perf.sw.task_clock.process { n["target"]++ }
        probe perf.sw.cpu_clock.process("/usr/bin/python3") { if (pid() == target()) n["program"]++ }
        probe perf.type(1).config(0).hz(997) { if (pid() == target()) n["hz"]++ }
        probe perf.type(1).config(0).sample(1000000) { if (pid() == target()) n["sample"]++ }
        probe timer.profile.freq.hz(100) { if (pid() == target()) n["freq"]++ }
        probe perf.sw.cpu_clock.process("/no/such/program") { n["none"]++ }
        probe perf.sw.page_faults.process { n["all but a million"]++ }
        probe end { foreach (k+ in n) println(k) }"""
    result = harness.stap("-e", script, "-c", f"/usr/bin/python3 {tmp_path}/spin.py", env=ENV)
    assert result.code == 0 and result.out.split() == ["freq", "hz", "program", "sample", "target"], result


MEMORY = """
#include <stdint.h>
int64_t watched = 7; struct { int16_t a, b; } pair; volatile int64_t sink;
int main(void)
{
	for (int i = 0; i < 5; i++) watched = i;		/* 5 writes */
	for (int i = 0; i < 3; i++) sink = watched;		/* 3 reads */
	pair.a = 1; pair.b = 2; pair.b = 3;
	return 0;
}
"""


@pytest.mark.alone              # a processor has four such registers
@pytest.mark.needs_bpf
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs a C compiler")
@pytest.mark.parametrize("flags", ["-no-pie", "-pie"])
def test_memory(tmp_path, flags):
    program = tmp_path / "memory"
    (tmp_path / "m.c").write_text(MEMORY)
    subprocess.run(["gcc", "-O0", "-g", flags, "-o", program, tmp_path / "m.c"], check=True)
    script = """
        global n
        probe process.data("watched").length(8).write { n["write"]++; println(usymname(uaddr())) }
        probe process.data("watched").rw { n["rw"]++ }
        probe process.data("pair").length(2).write { n["a"]++ }
        probe process.data("pair").length(4).write { n["both"]++ }
        probe end { foreach (k+ in n) printf("%s %d\\n", k, n[k]) }"""
    result = harness.stap("-e", script, "-c", str(program), env=ENV)
    assert result.code == 0 and result.out.splitlines() == ["main"] * 5 + ["a 1", "both 3", "rw 8", "write 5"], result


@pytest.mark.alone
@pytest.mark.needs_bpf
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs a C compiler")
def test_memory_of_a_file(tmp_path):
    """A program by its path is watched by number, too, and the others that use the same address are not.

    Its variable has a value in the file: what execve() clears would be writes, too."""
    for name in ("one", "other"):
        (tmp_path / "m.c").write_text(MEMORY)
        subprocess.run(["gcc", "-O0", "-no-pie", "-o", tmp_path / name, tmp_path / "m.c"], check=True)
    where = subprocess.run(["nm", tmp_path / "one"], check=True, capture_output=True, text=True).stdout
    address = re.search(r"(\w+) D watched", where)[1]
    script = f'global n probe process("{tmp_path}/one").data(0x{address}).length(8).write {{ n++ }} probe end {{ println(n) }}'
    result = harness.stap("-e", script, "-c", f"sh -c '{tmp_path}/other; {tmp_path}/one; {tmp_path}/other'", env=ENV)
    assert result.code == 0 and result.out == "5\n", result
