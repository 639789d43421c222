/*
 * Calls of known functions: where the code of a file calls one, or jumps to it, by a distance of 32 bits, or through a word at
 * such a distance that has its address (a slot of the global offset table, -fno-plt).  On aarch64 by a distance of 26 bits,
 * in words.
 *
 * Any bytes may look like such an instruction.  One counts if decoding arrives at it from the start of the part of a
 * function that it is in (.eh_frame), so that a breakpoint there is safe.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/obj.h"
#include "elf/priv.h"

enum { CALL = 0xe8, JUMP = 0xe9, BY_WORD = 0xff, WORD_CALL = 0x15, WORD_JUMP = 0x25 };
enum { LENGTH = 5, WORD_LENGTH = 6, LONGEST = WORD_LENGTH, CHUNK = 1 << 20, PART_MAX = 1 << 20, CODE_MAX = 1 << 28 };

struct searching {
	struct obj *o;
	const struct arch *arch;
	uint64_t base;			/* obj_frames() */
	int32_t *parts;
	uint32_t nparts;
	const uint64_t *targets;
	size_t ntargets;
	void (*fn)(void *ctx, size_t target, uint64_t addr);
	void *ctx;
};

/* The start of the part that @addr is in, or of the last one before it; false: there is none. */
static bool start_before(const struct searching *s, uint64_t addr, uint64_t *ret)
{
	uint32_t lo = 0, hi = s->nparts;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->base + (uint64_t)(int64_t)s->parts[2 * mid] <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo)
		*ret = s->base + (uint64_t)(int64_t)s->parts[2 * (lo - 1)];
	return lo;
}

/* Does an instruction start at @addr? */
static bool is_instruction(const struct searching *s, uint64_t addr)
{
	uint64_t start, off;
	uint8_t *code = NULL;
	unsigned int len = 1;
	size_t at = 0, n;

	if (!start_before(s, addr, &start) || addr - start > PART_MAX || !obj_offset(s->o, start, true, &off))
		return false;
	n = (size_t)(addr - start) + LENGTH;	/* that of the shorter one: it may be the last */
	code = malloc(n);
	if (!code || obj_read(s->o, off, code, n))
		at = n;
	while (at < addr - start && len) {
		len = s->arch->insn_len(code + at, n - at);
		at += len;
	}
	free(code);
	return at == addr - start;
}

/* Of aarch64: BL and B (Arm ARM, C4.1, "Branches"). */
static void search_words(const struct searching *s, uint64_t addr, const uint8_t *code, size_t n)
{
	uint32_t insn;

	for (size_t i = addr % 4 ? 4 - addr % 4 : 0; i + 4 <= n; i += 4) {
		memcpy(&insn, code + i, sizeof(insn));
		for (size_t k = 0; (insn & 0x7c000000) == 0x14000000 && k < s->ntargets; k++)
			if (addr + i + (uint64_t)((int64_t)((int32_t)(insn << 6) >> 6) * 4) == s->targets[k] &&
			    is_instruction(s, addr + i))
				s->fn(s->ctx, k, addr + i);
	}
}

/* The length of the call or jump that the @n bytes at @p may be, and what it refers to, from its end; 0: none. */
static size_t read_call(const uint8_t *p, size_t n, int32_t *rel)
{
	bool by_word = n >= WORD_LENGTH && p[0] == BY_WORD && (p[1] == WORD_CALL || p[1] == WORD_JUMP);
	size_t length = by_word ? WORD_LENGTH : LENGTH;

	if (!by_word && (n < LENGTH || (p[0] != CALL && p[0] != JUMP)))
		return 0;
	memcpy(rel, p + length - sizeof(*rel), sizeof(*rel));
	return length;
}

/* The @n bytes of code at @code, which is loaded at @addr; the calls that begin in the first @begin of them. */
static void search(const struct searching *s, uint64_t addr, const uint8_t *code, size_t n, size_t begin)
{
	int32_t rel;

	for (size_t i = 0; i < begin; i++) {
		size_t length = read_call(code + i, n - i, &rel);

		for (size_t k = 0; length && k < s->ntargets; k++)
			if (addr + i + length + (uint64_t)(int64_t)rel == s->targets[k] && is_instruction(s, addr + i))
				s->fn(s->ctx, k, addr + i);
	}
}

static int search_segment(const struct searching *s, const struct obj_seg *seg, uint8_t *code)
{
	for (uint64_t at = 0; at < seg->filesz; at += CHUNK) {
		uint64_t left = seg->filesz - at;
		size_t n = left < CHUNK + LONGEST - 1 ? (size_t)left : CHUNK + LONGEST - 1;
		int err = obj_read(s->o, seg->off + at, code, n);

		if (err)
			return err;
		if (s->o->info.machine == EM_AARCH64)
			search_words(s, seg->addr + at, code, n < CHUNK ? n : CHUNK);
		else
			search(s, seg->addr + at, code, n, n < CHUNK ? n : CHUNK);
	}
	return 0;
}

int obj_each_call(struct obj *o, const uint64_t *targets, size_t n, void (*fn)(void *ctx, size_t target, uint64_t addr), void *ctx)
{
	struct searching s = { .o = o, .arch = arch_find(o->info.machine), .targets = targets, .ntargets = n, .fn = fn, .ctx = ctx };
	uint8_t *code = malloc(CHUNK + LONGEST);
	int err = code ? obj_frames(o, &s.base, &s.parts, &s.nparts) : -ENOMEM;

	if (!err && o->info.machine != EM_X86_64 && o->info.machine != EM_AARCH64)
		err = -ENOTSUP;
	for (size_t i = 0; i < o->nsegs && !err; i++)
		if (o->segs[i].exec && o->segs[i].filesz <= CODE_MAX)
			err = search_segment(&s, &o->segs[i], code);
	free(s.parts);
	free(code);
	return err;
}
