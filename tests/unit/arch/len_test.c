/*
 * Lengths of instructions, and where jumps go: as objdump has it of the C library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"

/* "  1a2b:\t48 89 e5 \tmov ..." into bytes; 0 when it is no instruction. */
static unsigned int parse_line(const char *line, uint8_t *bytes, const char **text)
{
	const char *p = strchr(line, '\t');
	unsigned int n = 0;
	char *end;

	if (!p || line[0] != ' ')
		return 0;
	for (p++; n < 16; p = end, n++) {
		unsigned long v;

		p += strspn(p, " ");
		if (*p == '\t')
			break;
		v = strtoul(p, &end, 16);
		if (end == p)
			break;
		bytes[n] = (uint8_t)v;
	}
	*text = p;
	return n;
}

/* "jmp 1a2b <name>", and not one by a register or memory.  Others are no jumps. */
static bool check_jump(const char *line, const char *text, const uint8_t *bytes, unsigned int n)
{
	const char *word = text + strspn(text, "\t "), *bnd = strncmp(word, "bnd ", 4) ? word : word + 4, *where;
	uint64_t to = 0, addr = strtoull(line, NULL, 16);
	bool is_jump;
	char *end;

	where = bnd + strcspn(bnd, " ");
	where += strspn(where, " ");
	/* jrcxz and jecxz have no long form: no compiler uses them. */
	is_jump = *bnd == 'j' && *where != '*' && strncmp(bnd, "jrcxz", 5) && strncmp(bnd, "jecxz", 5);
	if (arch_x86_64.jump(bytes, n, addr, &to) != is_jump || (is_jump && strtoull(where, &end, 16) != to)) {
		print_message("to 0x%llx: %s", (unsigned long long)to, line);
		fail();
	}
	return is_jump;
}

static void objdump(void **state)
{
	FILE *f = popen("objdump -d --insn-width=16 \"$(ldd /bin/sh | sed -n 's/.* \\(\\/[^ ]*libc\\.so[^ ]*\\) .*/\\1/p')\""
			" 2>/dev/null", "r");
	unsigned int n, len, total = 0, unknown = 0, jumps = 0;
	const char *text = NULL;
	char line[512];
	uint8_t bytes[16];

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		n = parse_line(line, bytes, &text);
		if (!n || strstr(text, "(bad)") || strstr(text, "data16 cs") || strstr(text, "rex."))
			continue;
		len = arch_x86_64.insn_len(bytes, n);
		total++;
		jumps += len == n && check_jump(line, text, bytes, n);
		if (!len) {
			unknown++;
			print_message("not known: %s", line);
		} else if (len != n) {
			print_message("%u: %s", len, line);
			fail();
		}
	}
	pclose(f);
	if (!total)
		skip();
	assert_true(unknown * 1000 <= total);
	assert_true(jumps * 100 >= total);
}

static void cut(void **state)
{
	static const uint8_t movabs[] = { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 };

	(void)state;
	assert_int_equal(arch_x86_64.insn_len(movabs, sizeof(movabs)), 10);
	for (size_t n = 0; n < sizeof(movabs); n++)
		assert_int_equal(arch_x86_64.insn_len(movabs, n), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(objdump), cmocka_unit_test(cut) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
