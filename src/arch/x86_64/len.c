/*
 * The length of 64-bit x86 instructions.
 *
 *	prefixes | REX | opcode | ModRM | SIB | displacement | immediate
 *	VEX or EVEX, which name the opcode map | opcode | ...
 *
 * Decodes only what determines the length.  Instructions that 64-bit mode does not have, AMD's XOP and Intel's APX are
 * unknown.  Source: Intel SDM volume 2, chapter 2 and appendix A.
 */
#include "arch/x86_64/len.h"

#include <string.h>

#include <stdbool.h>

enum {
	BAD = 0x80,	/* not an instruction */
	MODRM = 0x40,
	/* The immediate: */
	I8 = 1, I16, IZ, IV, REL32, MOFFS, I16_8,
	IMM = 0x0f,
};

/* One-byte opcodes, without prefixes, 0F, VEX and EVEX. */
static uint8_t one_byte(uint8_t op)
{
	static const uint8_t from_40[0xc0] = {
		[0x60 - 0x40] = BAD, BAD, BAD, MODRM,
		[0x68 - 0x40] = IZ, MODRM | IZ, I8, MODRM | I8,
		[0x70 - 0x40] = I8, I8, I8, I8, I8, I8, I8, I8, I8, I8, I8, I8, I8, I8, I8, I8,
		[0x80 - 0x40] = MODRM | I8, MODRM | IZ, BAD, MODRM | I8, MODRM, MODRM, MODRM, MODRM,
		[0x88 - 0x40] = MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
		[0x9a - 0x40] = BAD,
		[0xa0 - 0x40] = MOFFS, MOFFS, MOFFS, MOFFS,
		[0xa8 - 0x40] = I8, IZ,
		[0xb0 - 0x40] = I8, I8, I8, I8, I8, I8, I8, I8, IV, IV, IV, IV, IV, IV, IV, IV,
		[0xc0 - 0x40] = MODRM | I8, MODRM | I8, I16, 0, BAD, BAD, MODRM | I8, MODRM | IZ,
		[0xc8 - 0x40] = I16_8, 0, I16, 0, 0, I8, BAD, 0,
		[0xd0 - 0x40] = MODRM, MODRM, MODRM, MODRM, BAD, BAD, BAD, 0,
		[0xd8 - 0x40] = MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
		[0xe0 - 0x40] = I8, I8, I8, I8, I8, I8, I8, I8, REL32, REL32, BAD, I8,
		[0xf6 - 0x40] = MODRM, MODRM,
		[0xfe - 0x40] = MODRM, MODRM,
	};

	if (op < 0x40)
		return (op & 7) < 4 ? MODRM : (op & 7) == 4 ? I8 : (op & 7) == 5 ? IZ : BAD;
	return from_40[op - 0x40];
}

/* Does the opcode, of map 0F or of VEX or EVEX map 1, have an immediate byte? */
static bool has_byte(uint8_t op)
{
	return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
	       (op >= 0xc4 && op <= 0xc6) || op == 0x0f;
}

/* Opcodes after 0F. */
static uint8_t two_byte(uint8_t op)
{
	if ((op >= 0x05 && op <= 0x09) || op == 0x0b || op == 0x0e || (op >= 0x30 && op <= 0x37) || op == 0x77 ||
	    (op >= 0xa0 && op <= 0xa2) || (op >= 0xa8 && op <= 0xaa) || (op >= 0xc8 && op <= 0xcf))
		return 0;
	if (op >= 0x80 && op <= 0x8f)
		return REL32;
	if (op == 0x78 || op == 0x04 || op == 0x0a || op == 0x0c)	/* 78: AMD's SSE4a, depends on the prefix */
		return BAD;
	return has_byte(op) ? MODRM | I8 : MODRM;
}

/* Bytes of ModRM, SIB and displacement at @p; 0 if they extend beyond @end. */
static unsigned int modrm_len(const uint8_t *p, const uint8_t *end)
{
	unsigned int mod, len = 1;
	bool disp32;

	if (p >= end)
		return 0;
	mod = *p >> 6;
	if (mod == 3)
		return 1;
	disp32 = mod == 2 || (mod == 0 && (*p & 7) == 5);
	if ((*p & 7) == 4) {
		if (end - p < 2)
			return 0;
		len++;
		disp32 |= mod == 0 && (p[1] & 7) == 5;
	}
	len += disp32 ? 4 : mod == 1 ? 1 : 0;
	return end - p < len ? 0 : len;
}

struct prefixes {
	bool size16, addr32, wide;
};

static unsigned int imm_len(uint8_t how, const struct prefixes *pre)
{
	switch (how & IMM) {
	case I8:
		return 1;
	case I16:
		return 2;
	case IZ:
		return pre->size16 && !pre->wide ? 2 : 4;
	case IV:
		return pre->wide ? 8 : pre->size16 ? 2 : 4;
	case REL32:
		return 4;
	case MOFFS:
		return pre->addr32 ? 4 : 8;
	case I16_8:
		return 3;
	default:
		return 0;
	}
}

/* Skip prefixes and REX. */
static const uint8_t *skip_prefixes(const uint8_t *p, const uint8_t *end, struct prefixes *pre)
{
	for (; p < end; p++) {
		switch (*p) {
		case 0x66:
			pre->size16 = true;
			break;
		case 0x67:
			pre->addr32 = true;
			break;
		case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0xf0: case 0xf2: case 0xf3:
			break;
		default:
			if ((*p & 0xf0) == 0x40) {	/* REX is valid only directly before the opcode */
				pre->wide = *p & 8;
				p++;
			}
			return p;
		}
	}
	return p;
}

/* Move *p past the opcode; returns what follows it. */
static uint8_t opcode(const uint8_t **p, const uint8_t *end)
{
	const uint8_t *s = *p;
	unsigned int map, skip;
	uint8_t op;

	if (*s == 0xc4 || *s == 0xc5 || *s == 0x62) {
		skip = *s == 0xc5 ? 2 : *s == 0xc4 ? 3 : 4;
		if (end - s <= skip)
			return BAD;
		map = *s == 0xc5 ? 1 : *s == 0xc4 ? s[1] & 0x1f : s[1] & 7;
		op = s[skip];
		*p = s + skip + 1;
		if (map == 1 && *s != 0x62 && op == 0x77)
			return 0;
		if (map == 1)
			return has_byte(op) ? MODRM | I8 : MODRM;
		if (map == 3)
			return MODRM | I8;
		return map == 2 || (*s == 0x62 && (map == 5 || map == 6)) ? MODRM : BAD;
	}
	if (*s != 0x0f) {
		*p = s + 1;
		return one_byte(*s);
	}
	if (end - s < 2)
		return BAD;
	if (s[1] == 0x38 || s[1] == 0x3a) {
		*p = s + 3;
		return end - s < 3 ? BAD : s[1] == 0x38 ? MODRM : MODRM | I8;
	}
	*p = s + 2;
	return two_byte(s[1]);
}

unsigned int x86_64_insn_len(const uint8_t *p, size_t n)
{
	const uint8_t *start = p, *end = p + (n > 15 ? 15 : n), *op;
	struct prefixes pre = { false };
	unsigned int len;
	uint8_t how;

	p = skip_prefixes(p, end, &pre);
	if (p >= end)
		return 0;
	op = p;
	how = opcode(&p, end);
	if (how & BAD)
		return 0;
	if (how & MODRM) {
		len = modrm_len(p, end);
		if (!len || (*op == 0x8f && (*p & 0x38)))
			return 0;
		if ((*op == 0xf6 || *op == 0xf7) && !(*p & 0x30))	/* TEST has an immediate */
			how |= *op == 0xf6 ? I8 : IZ;
		p += len;
	}
	p += imm_len(how, &pre);
	return p > end ? 0 : (unsigned int)(p - start);
}

/* JMP rel8 and rel32, Jcc rel8 and rel32 (Intel SDM, volume 2); their prefixes are branch hints and BND. */
bool x86_64_jump(const uint8_t *p, unsigned int len, uint64_t addr, uint64_t *to)
{
	const uint8_t *op = p, *end = p + len;
	int32_t rel;

	while (op < end && (*op == 0x2e || *op == 0x3e || *op == 0xf2))
		op++;
	if (end - op == 2 && (*op == 0xeb || (*op & 0xf0) == 0x70)) {
		rel = (int8_t)op[1];
	} else if ((end - op == 5 && *op == 0xe9) || (end - op == 6 && *op == 0x0f && (op[1] & 0xf0) == 0x80)) {
		memcpy(&rel, end - 4, sizeof(rel));
	} else {
		return false;
	}
	*to = addr + len + (uint64_t)(int64_t)rel;
	return true;
}
