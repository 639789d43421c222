"""Registers and addresses that a SystemTap script reads: a C program says what they must be."""
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

PROGRAM = r"""
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#define HERE __attribute__((noinline, noclone))
HERE int inner(long x)
{
	printf("%lx %lx %lx\n", (long)inner, (long)__builtin_return_address(0), (long)__builtin_return_address(1));
	return x + 1;
}
HERE int middle(long x)
{
	int r = inner(x);
	asm volatile("" : "+r"(r));
	return r + 2;
}
int main(void)
{
	int r = middle(0x123456789abcdef0);
	asm volatile("" : "+r"(r));
	fflush(stdout);
	syscall(SYS_umask, 0x1a7);
	return 0;
}
"""

SCRIPT = r"""
global name = "rdi"
probe process.function("inner") {
	printf("%x %x %x %x\n", addr(), ustack(0), ustack(1), ustack(2))
	printf("%x %x %x %x %x %d\n", register(name), @uregister(5), u_register("edi"), u_register("di"), u_register("dil"), user_mode())
	println(usymname(ustack(1)), " ", usymname(ustack(2)))
}
probe kernel.syscall("umask") {
	if (pid() == target())
		printf("%x %x %x %x %d\n", register("rdi"), @kregister(5), u_register("orig_rax"), u_register("dil"), user_mode())
}
probe kernel.syscall("umask").return {
	if (pid() == target())
		printf("%x %s\n", int_arg(1), uaddr() == u_register("rip") ? "same" : "other")
}
"""


def test_registers(tmp_path):
    (tmp_path / "p.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", tmp_path / "p", tmp_path / "p.c"], check=True)
    result = harness.stap("-e", SCRIPT, "-c", str(tmp_path / "p"))
    assert result.code == 0, result
    said = next(line for line in result.out.splitlines() if len(line.split()) == 3)
    inner, middle, main = said.split()
    value = 0x123456789abcdef0
    assert [line for line in result.out.splitlines() if line != said] == [
        f"{inner} {inner} {middle} {main}", f"{value:x} {value:x} {value & 0xffffffff:x} {value & 0xffff:x} {value & 0xff:x} 1",
        "middle main", "1a7 1a7 5f a7 0", "1a7 same"], result
