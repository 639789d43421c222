#include "arch/scan.h"

#include <ctype.h>
#include <string.h>

#include "arch/arch.h"

void scan_blanks(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

bool scan_int(struct scan *s, int64_t *ret)
{
	const char *start = s->p;
	uint64_t v = 0;
	bool neg = scan_char(s, '-');
	int base = 10;
	bool any = false;

	if (!neg)
		scan_char(s, '+');
	if (s->p < s->end && *s->p == '0') {
		any = true;
		s->p++;
		base = 8;
		if (s->p < s->end && (*s->p == 'x' || *s->p == 'X')) {
			any = false;
			s->p++;
			base = 16;
		}
	}
	for (; s->p < s->end && digit(*s->p) < base; s->p++) {
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit(*s->p), &v)) {
			s->p = start;
			return false;
		}
		any = true;
	}
	if (!any) {
		s->p = start;
		return false;
	}
	*ret = (int64_t)(neg ? 0 - v : v);
	return true;
}

static bool symbol_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$' || c == '@' || (c & 0x80);
}

/* A symbol's name: *len bytes at *ret; it may contain "$", "@" and ".".  False when there is none. */
static bool scan_symbol(struct scan *s, const char **ret, size_t *len)
{
	const char *start = s->p;

	if (s->p == s->end || isdigit((unsigned char)*s->p) || *s->p == '@')
		return false;
	while (s->p < s->end && symbol_char(*s->p))
		s->p++;
	*ret = start;
	*len = (size_t)(s->p - start);
	return *len > 0;
}

bool scan_sum(struct scan *s, int64_t *value, const char **sym, size_t *sym_len)
{
	uint64_t sum = 0;
	int64_t term;

	for (bool first = true; first || (s->p < s->end && (*s->p == '+' || *s->p == '-')); first = false) {
		if (scan_int(s, &term)) {
			sum += (uint64_t)term;
			continue;
		}
		scan_char(s, '+');
		if (*sym || !scan_symbol(s, sym, sym_len))
			return false;
	}
	*value = (int64_t)sum;
	return true;
}

const struct arch_reg *scan_reg(struct scan *s, const struct arch_reg *regs, size_t n)
{
	const char *end = s->p;
	size_t len;

	while (end < s->end && isalnum((unsigned char)*end))
		end++;
	len = (size_t)(end - s->p);
	for (size_t i = 0; i < n; i++) {
		if (strlen(regs[i].name) == len && !memcmp(regs[i].name, s->p, len)) {
			s->p = end;
			return &regs[i];
		}
	}
	return NULL;
}
