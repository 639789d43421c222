/*
 * A marker's argument string: splits it into operands and parses the size before the @.  The operand itself is
 * parsed by the machine's file.
 */
#include "arch/arch.h"

#include <elf.h>
#include <string.h>

#include "arch/scan.h"

const struct arch *arch_find(uint16_t e_machine)
{
	switch (e_machine) {
	case EM_X86_64:
		return &arch_x86_64;
	case EM_AARCH64:
		return &arch_aarch64;
	default:
		return NULL;
	}
}

const struct arch *arch_host(void)
{
#if defined(__x86_64__)
	return &arch_x86_64;
#elif defined(__aarch64__)
	return &arch_aarch64;
#else
	return NULL;
#endif
}

/*
 * size := ["-"] digits ["f"] "@"
 *
 * Without a size, op->size is 0 and the cursor does not move.
 */
static const char *parse_size(struct scan *s, struct arch_operand *op)
{
	struct scan at = *s;
	int64_t n;

	op->size = 0;
	if (!scan_int(&at, &n))
		return NULL;
	op->is_float = scan_char(&at, 'f');
	if (!scan_char(&at, '@')) {
		op->is_float = false;
		return NULL;
	}
	*s = at;
	op->sign = n < 0 || op->is_float;
	if (n < 0 && n > -32)
		n = -n;
	if (n == 1 || n == 2 || n == 4 || n == 8 || n == 16) {
		op->size = (uint8_t)n;
		return NULL;
	}
	op->size = 8;
	return "a size that is not 1, 2, 4 or 8 bytes";
}

/* Why a parsed operand cannot be read from struct pt_regs and the process's memory; NULL: it can. */
static const char *unreadable(const struct arch_operand *op)
{
	const struct arch_reg *r = op->reg;

	if (op->size == 16)
		return "a value of 16 bytes";
	if (!r)
		return NULL;
	if (r->kind == ARCH_REG_VEC)
		return "in a vector register";
	if (r->kind == ARCH_REG_SEG)
		return "in a segment register";
	return NULL;
}

static void parse_operand(const struct arch *arch, struct scan s, struct arch_operand *op)
{
	const char *bad;

	memset(op, 0, sizeof(*op));
	bad = parse_size(&s, op);
	if (!bad)
		bad = arch ? arch->parse(s.p, (size_t)(s.end - s.p), op) : "no operand syntax known for this machine";
	if (bad) {
		op->loc = ARCH_LOC_NONE;
		op->reg = op->index = NULL;
		op->sym = NULL;
		if (!op->size)
			op->size = 8;
		op->why = bad;
		return;
	}
	/* A register narrower than the argument has the whole value: 8@%eax is 4 bytes. */
	if (op->loc == ARCH_LOC_REG && op->reg->width < 16 && (!op->size || op->size > op->reg->width) &&
	    !op->is_float)
		op->size = op->reg->width;
	if (!op->size)
		op->size = 8;
	if (!op->why)
		op->why = unreadable(op);
}

/* An operand ends at a blank outside brackets: "[sp, 12]" is one operand. */
static struct scan next_operand(struct scan *s)
{
	struct scan one;
	int depth = 0;

	scan_blanks(s);
	one.p = s->p;
	for (; s->p < s->end; s->p++) {
		if (*s->p == '(' || *s->p == '[')
			depth++;
		else if (*s->p == ')' || *s->p == ']')
			depth--;
		else if (depth <= 0 && (*s->p == ' ' || *s->p == '\t'))
			break;
	}
	one.end = s->p;
	return one;
}

unsigned int arch_operands(const struct arch *arch, const char *args, struct arch_operand *ops,
			   unsigned int max)
{
	struct scan s = { args, args + strlen(args) };
	unsigned int n = 0;

	for (struct scan one = next_operand(&s); one.p < one.end; one = next_operand(&s), n++) {
		if (n < max)
			parse_operand(arch, one, &ops[n]);
	}
	return n;
}
