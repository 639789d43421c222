/*
 * Regular expressions: the virtual machine that lang/regex.h describes.  It goes through the string once and follows
 * all paths through the code in parallel (Pike's VM, after Thompson).  There is no backtracking: there are at most as
 * many steps as the string has bytes times the code has instructions, and the memory depends on the number of
 * instructions only.
 *
 * At each position there is a list of the instructions that read a byte, in order of preference, and for each of them a
 * row: the slots that its path saved.  An instruction that several paths reach is on the list once.
 */
#ifndef DTAP_BPF_RT_RT_H
#include "rt.h"
#endif

#include "match.h"

enum op { FAIL, CHAR, ANY, SET, SPLIT, JMP, SAVE, BEGIN, END, MATCH };	/* enum regex_op */


struct match {
	const u64 *code;
	u64 ncode, nwords, nslots, anchored;
	const u8 *s;
	u64 size;
	u64 *w;			/* match.h's words, which the verifier does not track */
};

#define INLINE static inline __attribute__((always_inline))

INLINE long over(u64 *w)
{
	w[MATCH_OVER] = 1;
	return 1;
}

/* A step to do: instruction @to, with the row that begins at number @from; not 0. */
INLINE u32 way(u64 to, u64 from)
{
	return (u32)(1u << 31 | to << 16 | from);
}

/* Entry @k of list number @turn. */
INLINE unsigned short *entry(u64 *w, u64 turn, u64 k)
{
	return (unsigned short *)(w + MATCH_LISTS) + MATCH_MAX_CODE * turn + (k & (MATCH_MAX_CODE - 1));
}

INLINE u32 *number(u64 *w, u64 k)
{
	return (u32 *)(w + MATCH_ROWS) + (k & (2 * MATCH_MAX_ROWS - 1));
}

/* Copy the row at @from to @to. */
INLINE void copy(const struct match *c, u64 from, u32 *to)
{
	u64 size = 4 * (c->nslots & 31);

	if (size)
		rt_copy(to, (u32)size, number(c->w, from));
}

/* After the rows of even positions comes that of the best match: begins first, then is longest, then preferred. */
INLINE long found(const struct match *c, u64 from, u32 pos)
{
	u64 *w = c->w, best = c->ncode * c->nslots;

	if (!c->nslots) {
		w[MATCH_RESULT] = 1;
		return over(w);
	}
	if (w[MATCH_RESULT] && (*number(w, from) > *number(w, best) ||
				(*number(w, from) == *number(w, best) && pos <= *number(w, best + 1))))
		return 0;
	copy(c, from, number(w, best));
	w[MATCH_RESULT] = 1;
	return 0;
}

INLINE u64 row_of(const struct match *c, u64 pc)
{
	return MATCH_MAX_ROWS * (c->w[MATCH_TURN] & 1) + pc * c->nslots;
}

/* Is there anything to do at @pc, with the row at @from?  An instruction that reads a byte is only put on the list. */
INLINE u64 reach(const struct match *c, u64 pc, u64 from)
{
	u64 *w = c->w, n = w[MATCH_N];

	pc &= MATCH_MAX_CODE - 1;
	if (pc >= c->ncode || w[MATCH_SEEN + pc / 64] >> (pc & 63) & 1)
		return 0;
	w[MATCH_SEEN + pc / 64] |= 1ull << (pc & 63);
	copy(c, from, number(w, row_of(c, pc)));
	if ((u8)c->code[pc] > SET)
		return 1;
	*entry(w, w[MATCH_TURN] & 1, n) = (unsigned short)pc;
	w[MATCH_N] = n + 1;
	return 0;
}

INLINE long push(u64 *w, u64 pc, u64 from)
{
	u64 n = w[MATCH_DEPTH];

	if (n >= MATCH_MAX_CODE)
		return over(w);
	((u32 *)(w + MATCH_STACK))[n] = way(pc, from);
	w[MATCH_DEPTH] = n + 1;
	return 0;
}

/* Continue at @to with the row at @from. */
INLINE long follow(const struct match *c, u64 to, u64 from)
{
	u64 *w = c->w, pos = w[MATCH_POS], row = row_of(c, to), insn, x, y;

	if (!reach(c, to, from) || to >= c->ncode || pos >= c->size)
		return 0;
	insn = c->code[to];
	x = insn >> 16 & 0xffff;
	y = insn >> 32 & 0xffff;
	switch ((u8)insn) {
	case SPLIT:
		if (x >= c->ncode)
			return 0;
		/* An instruction that reads a byte needs no step of its own. */
		if ((u8)c->code[x] <= SET)
			reach(c, x, row);
		else if (push(w, y, row))
			return 1;
		else
			y = x;
		w[MATCH_WAY] = way(y, row);
		return 0;
	case JMP:
		w[MATCH_WAY] = way(x, row);
		return 0;
	case SAVE:
		x &= 31;
		*number(w, row + x) = (u32)pos;
		if (!(x & 1))
			*number(w, row + x + 1) = MATCH_UNSET;	/* a group that begins has no end */
		break;
	case BEGIN:
		if (pos)
			return 0;
		break;
	case END:
		/* Linux 6.1 loses the bounds of a number that is spilled to the stack. */
		__asm__ volatile("" : "+r"(pos));
		if (pos >= c->size || c->s[pos])
			return 0;
		break;
	case MATCH:
		return found(c, row, (u32)pos);
	default:
		return 0;
	}
	w[MATCH_WAY] = way(to + 1, row);
	return 0;
}

/* Is @byte in the set of four words from @word on? */
INLINE u64 in_set(const struct match *c, u64 word, u8 byte)
{
	word += byte >> 6;
	return word < c->nwords && c->code[word] >> (byte & 63) & 1;
}

/* The step after the next instruction on the last position's list, if that matches the byte there, or 0. */
INLINE u32 take(const struct match *c)
{
	u64 *w = c->w, turn = (w[MATCH_TURN] & 1) ^ 1, pos = w[MATCH_POS] - 1, at = w[MATCH_AT];
	u64 pc = *entry(w, turn, at), insn, x;
	u8 byte;

	w[MATCH_AT] = at + 1;
	if (pc >= c->ncode || pos >= c->size)
		return 0;
	insn = c->code[pc];
	x = insn >> 16 & 0xffff;
	byte = c->s[pos];
	if (((u8)insn == CHAR && byte != x) || ((u8)insn == SET && !in_set(c, x, byte)))
		return 0;
	return way(insn >> 32 & (MATCH_MAX_CODE - 1), MATCH_MAX_ROWS * turn + pc * c->nslots);
}

/* May a match begin with @byte, at this position?  It is less preferred than all paths that began before. */
INLINE u64 may_begin(const struct match *c, u8 byte)
{
	u64 *w = c->w;

	if (w[MATCH_BEGUN] || w[MATCH_RESULT] || (c->anchored && w[MATCH_POS]))
		return 0;
	return in_set(c, c->nwords - 4, byte);
}

/* Unrolled: the target place refuses loops other than rt_loop's. */
INLINE void see_nothing(const struct match *c)
{
	c->w[MATCH_SEEN] = 0;
	if (c->ncode <= 64)
		return;
#pragma clang loop unroll(full)
	for (u64 k = 1; k < MATCH_MAX_CODE / 64; k++)
		c->w[MATCH_SEEN + k] = 0;
}

/* Go to the next position, if there is one and something to do. */
INLINE long advance(const struct match *c, u8 byte)
{
	u64 *w = c->w;

	if (!byte || (!w[MATCH_N] && (c->anchored || w[MATCH_RESULT])))
		return over(w);
	see_nothing(c);
	w[MATCH_TURN] ^= 1;
	w[MATCH_LAST_N] = w[MATCH_N];
	w[MATCH_POS]++;
	w[MATCH_N] = w[MATCH_AT] = w[MATCH_BEGUN] = 0;
	return 0;
}

static long match_step(u32 n, struct match *c)
{
	u64 *w = c->w, to = w[MATCH_WAY], depth = w[MATCH_DEPTH], pos = w[MATCH_POS];

	if (to) {
		w[MATCH_WAY] = 0;
	} else if (depth && depth <= MATCH_MAX_CODE) {
		to = ((u32 *)(w + MATCH_STACK))[depth - 1];
		w[MATCH_DEPTH] = depth - 1;
	} else if (w[MATCH_AT] < w[MATCH_LAST_N]) {
		to = take(c);
		if (!to)
			return 0;
	} else if (pos >= c->size) {
		return over(w);
	} else if (may_begin(c, c->s[pos])) {
		w[MATCH_BEGUN] = 1;
		to = way(0, MATCH_MAX_ROWS + c->ncode * c->nslots);
	} else {
		return advance(c, c->s[pos]);
	}
	return follow(c, to >> 16 & (MATCH_MAX_CODE - 1), to & 0xffff);
}

enum { STEPS = 1 << 18 };

/* 1 if it matches, 0 if not, -1 if that takes too many steps.  @sizes: match.h. */
RT s64 rt_match(const u64 *code, u64 sizes, const u8 *s, u64 *w)
{
	struct match c = { code, sizes & 0xffff, sizes >> 16 & 0xffff, sizes >> MATCH_SLOTS_SHIFT & 31,
			   sizes >> MATCH_ANCHORED_SHIFT, s, sizes >> 32 & 0xffffff, w };

#pragma clang loop unroll(full)
	for (u64 k = 0; k < MATCH_SEEN; k++)
		w[k] = k < MATCH_SAVED ? 0 : ~0ull;
	see_nothing(&c);
	/* After the rows of odd positions comes an empty one, with which paths begin. */
	if (c.nslots & 31)
		rt_copy(number(w, MATCH_MAX_ROWS + c.ncode * c.nslots), (u32)(4 * (c.nslots & 31)), w + MATCH_SAVED);
	rt_loop(STEPS, match_step, &c, 0);
	if (!w[MATCH_OVER])
		return -1;
	if (w[MATCH_RESULT])
		copy(&c, c.ncode * c.nslots, (u32 *)(w + MATCH_SAVED));
	return (s64)w[MATCH_RESULT];
}

/* Group @n of the last match: @kept has the slots, then the string. */
RT long rt_matched(char *dst, const u32 *kept, u64 size, u64 n)
{
	u64 from, to;

	*dst = '\0';
	if (n >= MATCH_MAX_SLOTS / 2)
		return 0;
	from = kept[2 * n];
	to = kept[2 * n + 1];
	if (from < size && to < size && to > from && to - from < size)
		rt_copy_str(dst, (u32)(to - from) + 1, (const char *)(kept + MATCH_MAX_SLOTS) + from);
	return 0;
}
