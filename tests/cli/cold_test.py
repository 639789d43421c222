"""The function that a marker is in, where compilers put it far from the function: by objdump, and by the file before it was
stripped."""
import bisect
import re
import subprocess

import pytest

import harness

PROGRAM = """
#include <stdlib.h>
#include <sys/sdt.h>
extern volatile int never;
void helper(int n);
__attribute__((cold)) void seldom(int n);
#define FUNC(name, mark)						\\
int name(int a, int b)							\\
{									\\
	int sum = 0;							\\
	for (int i = 0; i < a; i++) {					\\
		helper(i);						\\
		if (never == 77 + b) {				\\
			seldom(a + b);					\\
			DTRACE_PROBE2(cold, mark, a, sum);		\\
			helper(b);					\\
			sum ^= b * 3;					\\
		}							\\
		sum += never * i;					\\
	}								\\
	return sum;							\\
}
FUNC(first, in_first)
FUNC(second, in_second)
FUNC(third, in_third)
__attribute__((cold, noinline)) void ends(int a) { DTRACE_PROBE1(cold, in_ends, a); abort(); }
"""

MAIN = """
#include <stdio.h>
#include <unistd.h>
volatile int never;
void helper(int n) { never += n; }
void seldom(int n) { never ^= n; }
int first(int, int), second(int, int), third(int, int);
void ends(int);
int main(int argc, char **argv)
{
	if (never > 1000)
		ends(argc);
	puts("ready");
	fflush(stdout);
	if (argc > 1)
		pause();
	return first(argc, 1) + second(argc, 2) + third(argc, 3);
}
"""

WANT = {"in_first": "first", "in_second": "second", "in_third": "third", "in_ends": "ends"}


def listed(target):
    """Marker -> functions of a process, as dtrace -l has them."""
    result = harness.dtrace("-l", "-n", target)
    assert result.code == 0, result
    found = {}
    for line in result.out.splitlines()[1:]:
        words = line.split()
        found.setdefault(words[-1], set()).add(words[3] if len(words) == 5 else "")
    return found


@pytest.mark.needs_root
@pytest.mark.parametrize("flags", ("-O2", "-O2 -fPIE -pie", "-O3 -fcf-protection=full", "-O2 -fno-reorder-blocks-and-partition"))
@pytest.mark.parametrize("stripped", (False, True), ids=("with symbols", "stripped"))
def test_program(tmp_path, start, flags, stripped):
    (tmp_path / "cold.c").write_text(PROGRAM)
    (tmp_path / "main.c").write_text(MAIN)
    subprocess.run(["gcc", "-w", *flags.split(), "-rdynamic", "-I", harness.TOP / "include", "cold.c", "main.c", "-o", "cold"],
                   cwd=tmp_path, check=True)
    has_cold = b"first.cold" in subprocess.run(["nm", tmp_path / "cold"], stdout=subprocess.PIPE, check=True).stdout
    assert has_cold == ("-fno-reorder" not in flags)
    if stripped:
        subprocess.run(["strip", tmp_path / "cold"], check=True)
    child = start([tmp_path / "cold", "wait"], stdout=subprocess.PIPE)
    child.stdout.readline()
    assert listed(f"cold{child.pid}:::") == {mark: {func} for mark, func in WANT.items()}


# --- interpreters ------------------------------------------------------------------------------------------

class Code:
    """The parts of a file's code as its call frame information has them, and its exported functions."""

    def __init__(self, path):
        self.path = path
        frames = subprocess.run(["readelf", "-wF", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        self.parts = sorted((int(a, 16), int(b, 16)) for a, b in re.findall(r"FDE cie=\S+ pc=(\w+)\.\.(\w+)", frames))
        self.starts = [a for a, _ in self.parts]
        symbols = subprocess.run(["readelf", "-W", "--symbols", "--dyn-syms", path], stdout=subprocess.PIPE, text=True).stdout
        self.funcs = {int(a, 16): name.split("@")[0]
                      for a, name in re.findall(r"\d+: (\w+) +\w+ FUNC +\w+ +\w+ +\d+ (\S+)", symbols)}

    def part(self, address):
        i = bisect.bisect(self.starts, address) - 1
        return self.parts[i] if i >= 0 and address < self.parts[i][1] else None

    def owner(self, address):
        """The function whose middle the part around @address jumps to, if that is one; its own name, if it has one."""
        first, last = self.part(address)
        if first in self.funcs:
            return self.funcs[first]
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={first}", f"--stop-address={last}",
                               self.path], stdout=subprocess.PIPE, text=True).stdout
        targets = {int(a, 16) for a in re.findall(r"\bj\w+\s+(?:bnd )?([0-9a-f]+)", text)}
        into = {self.part(to)[0] for to in targets if not first <= to < last and self.part(to) and self.part(to)[0] != to}
        return self.funcs.get(into.pop(), "") if len(into) == 1 else ""


@pytest.mark.needs_root
def test_interpreter(interp, start):
    child = start([*interp.argv, "-c", "print('ready', flush=True); import time; time.sleep(60)"], stdout=subprocess.PIPE)
    child.stdout.readline()
    code = Code(interp.executable)
    notes = subprocess.run(["readelf", "-nW", interp.executable], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    want = {}
    for name, at in re.findall(r"Provider: python\n\s*Name: (\w+)\n\s*Location: 0x([0-9a-f]+)", notes):
        want.setdefault(name.replace("__", "-"), set()).add(code.owner(int(at, 16)))
    want = {name: funcs for name, funcs in want.items() if interp.version == "3.9" or not re.match("function|line", name)}
    found = listed(f"python{child.pid}:python*::")
    # The lock's are no notes: they stand for calls of the C library (gil_test.py).
    assert all([found.pop(f"gil-{name}") for name in ("wait", "take", "drop")])
    assert found == want
    if interp.version == "3.9":         # as CPython's HOWTO shows them
        assert want["function-entry"] == want["function-return"] == {"_PyEval_EvalFrameDefault"}
