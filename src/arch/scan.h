/*
 * Reads an operand's text: a cursor over bytes that end at `end`, not at a NUL.
 *
 * Shared by the machines' operand parsers; not for other files.
 */
#ifndef DTAP_ARCH_SCAN_H
#define DTAP_ARCH_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_reg;

struct scan {
	const char *p, *end;
};

static inline bool scan_done(const struct scan *s)
{
	return s->p == s->end;
}

/* Skip @c if it comes next. */
static inline bool scan_char(struct scan *s, char c)
{
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

void scan_blanks(struct scan *s);

/*
 * An integer in assembler syntax: optional sign, then decimal, 0x hexadecimal or 0 octal digits.  Values
 * up to 2^64 - 1 are stored modulo 2^64.  False, with the cursor unmoved, when there is none or it is larger.
 */
bool scan_int(struct scan *s, int64_t *ret);

/*
 * A sum of integers and at most one symbol: "8", "foo", "foo+8", "-4+foo-4".  *sym is unchanged if there is no
 * symbol.  False when this is not a sum.
 */
bool scan_sum(struct scan *s, int64_t *value, const char **sym, size_t *sym_len);

/* A register from the table of @n: letters and digits.  NULL, with the cursor unmoved, when there is none. */
const struct arch_reg *scan_reg(struct scan *s, const struct arch_reg *regs, size_t n);

#endif
