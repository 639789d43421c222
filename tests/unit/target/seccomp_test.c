/* Filters of system calls, run as the kernel does (seccomp(2), Documentation/networking/filter.rst). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "target/seccomp.h"

#define RUN(CALL, ...)											\
	seccomp_run((const struct sock_filter[]){ __VA_ARGS__ },					\
		    sizeof((struct sock_filter[]){ __VA_ARGS__ }) / sizeof(struct sock_filter), CALL)

enum { LOAD = BPF_LD | BPF_W | BPF_ABS, RET = BPF_RET | BPF_K, NR = offsetof(struct seccomp_data, nr) };

static const struct seccomp_data call = { .nr = 41, .arch = 0xc000003e, .args = { 1, 0x200000005, 3 } };

static void by_number(void **state)
{
	(void)state;
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, NR), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 41, 1, 0),
			     BPF_STMT(RET, SECCOMP_RET_ALLOW), BPF_STMT(RET, SECCOMP_RET_TRAP)), SECCOMP_RET_TRAP);
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, NR), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 41, 1, 0),
			     BPF_STMT(RET, SECCOMP_RET_ALLOW), BPF_STMT(RET, SECCOMP_RET_TRAP)), SECCOMP_RET_ALLOW);
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, NR), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 41, 1, 0),
			     BPF_STMT(RET, SECCOMP_RET_ALLOW), BPF_STMT(RET, SECCOMP_RET_TRAP)), SECCOMP_RET_TRAP);
}

/* Halves of an argument, the low one first; masked, shifted, and by way of X and memory. */
static void by_argument(void **state)
{
	enum { ARG1 = offsetof(struct seccomp_data, args) + 8 };

	(void)state;
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, ARG1), BPF_STMT(BPF_RET | BPF_A, 0)), 5);
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, ARG1 + 4), BPF_STMT(BPF_RET | BPF_A, 0)), 2);
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, ARG1), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 0, 1), BPF_STMT(RET, 7),
			     BPF_STMT(RET, 8)), 7);
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, ARG1), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 3),
			     BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 1), BPF_STMT(BPF_RET | BPF_A, 0)), 41);
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, ARG1), BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_MISC | BPF_TAX, 0),
			     BPF_STMT(BPF_LD | BPF_MEM, 3), BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
			     BPF_STMT(BPF_RET | BPF_A, 0)), 25);
	assert_int_equal(RUN(&call, BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_RET | BPF_A, 0)), 64);
}

static void jumps_over(void **state)
{
	(void)state;
	assert_int_equal(RUN(&call, BPF_STMT(BPF_JMP | BPF_JA, 1), BPF_STMT(RET, 1), BPF_STMT(RET, 2)), 2);
	assert_int_equal(RUN(&call, BPF_STMT(BPF_JMP | BPF_JA, 7), BPF_STMT(RET, 1)), SECCOMP_RET_KILL_THREAD);
}

static void what_makes_no_sense_kills(void **state)
{
	(void)state;
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, NR)), SECCOMP_RET_KILL_THREAD);
	assert_int_equal(RUN(&call, BPF_STMT(LOAD, 64), BPF_STMT(RET, 1)), SECCOMP_RET_KILL_THREAD);
	assert_int_equal(RUN(&call, BPF_STMT(BPF_ST, 16), BPF_STMT(RET, 1)), SECCOMP_RET_KILL_THREAD);
	assert_int_equal(RUN(&call, BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(RET, 1)), SECCOMP_RET_KILL_THREAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_number), cmocka_unit_test(by_argument), cmocka_unit_test(jumps_over),
		cmocka_unit_test(what_makes_no_sense_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
