/*
 * Regular expressions: the machine that lang/regex.h describes, a step a turn.
 */
#include "rt.h"

#include "match.h"

enum op { FAIL, CHAR, ANY, SET, SPLIT, JMP, SAVE, BEGIN, END, PROGRESS, MATCH };	/* enum regex_op */

enum { NONE = -1 };

struct match {
	const u64 *code;
	u64 ncode, nwords;
	const u8 *s;
	u64 size;
	u64 *w;			/* match.h's words: the verifier knows nothing of them */
};

#define INLINE static inline __attribute__((always_inline))

/* An entry: where to go on, or the slot + 1 to be restored in the upper half; the position, or what the slot was. */
INLINE u64 push(u64 *w, u64 what, u64 value)
{
	u64 sp = w[MATCH_SP];

	if (sp >= MATCH_DEPTH)
		return 0;
	w[MATCH_STACK + 2 * sp] = what;
	w[MATCH_STACK + 2 * sp + 1] = value;
	w[MATCH_SP] = sp + 1;
	return 1;
}

/* Undo up to the last split; nothing left: begin one further. */
INLINE long back(struct match *c)
{
	u64 *w = c->w, sp = w[MATCH_SP], what, slot;

	if (!sp) {
		u64 start = w[MATCH_START];

		if (start >= c->size || !c->s[start])
			return 1;
		w[MATCH_START] = w[MATCH_POS] = start + 1;
		w[MATCH_PC] = 0;
		return 0;
	}
	sp--;
	if (sp >= MATCH_DEPTH)
		return 1;
	w[MATCH_SP] = sp;
	what = w[MATCH_STACK + 2 * sp];
	slot = what >> 32;
	if (!slot) {
		w[MATCH_PC] = what;
		w[MATCH_POS] = w[MATCH_STACK + 2 * sp + 1];
		return 0;
	}
	w[MATCH_SAVED + ((slot - 1) & (MATCH_SLOTS - 1))] = w[MATCH_STACK + 2 * sp + 1];
	w[MATCH_PC] = c->ncode - 1;	/* which fails again */
	return 0;
}

static long match_step(u32 k, struct match *c)
{
	u64 *w = c->w, pc = w[MATCH_PC], pos = w[MATCH_POS], x, y, slot, word;
	u8 byte;

	if (pc >= c->ncode || pos >= c->size)
		return 1;
	x = c->code[pc] >> 16 & 0xffff;
	y = c->code[pc] >> 32 & 0xffff;
	byte = c->s[pos];
	slot = x & (MATCH_SLOTS - 1);
	switch ((u8)c->code[pc]) {
	case CHAR:
		if (byte != x)
			return back(c);
		w[MATCH_POS] = pos + 1;
		break;
	case SET:
		word = x + (byte >> 6);
		if (!byte || word >= c->nwords || !(c->code[word] >> (byte & 63) & 1))
			return back(c);
		w[MATCH_POS] = pos + 1;
		break;
	case ANY:
		if (!byte)
			return back(c);
		w[MATCH_POS] = pos + 1;
		break;
	case SPLIT:
		if (!push(w, y, pos))
			return 1;
		w[MATCH_PC] = x;
		return 0;
	case JMP:
		w[MATCH_PC] = x;
		return 0;
	case SAVE:
		if (!push(w, (slot + 1) << 32, w[MATCH_SAVED + slot]))
			return 1;
		w[MATCH_SAVED + slot] = pos;
		break;
	case BEGIN:
		if (pos)
			return back(c);
		break;
	case END:
		if (byte)
			return back(c);
		break;
	case PROGRESS:
		if (w[MATCH_SAVED + slot] == pos)
			return back(c);
		break;
	case MATCH:
		w[MATCH_RESULT] = 1;
		return 1;
	default:
		return back(c);
	}
	w[MATCH_PC] = pc + 1;
	return 0;
}

enum { STEPS = 1 << 18 };

/* @sizes: words of code, all words << 16, bytes of a string << 32. */
RT u64 rt_match(const u64 *code, u64 sizes, const u8 *s, u64 *w)
{
	struct match c = { code, sizes & 0xffff, sizes >> 16 & 0xffff, s, sizes >> 32, w };

	w[MATCH_PC] = w[MATCH_POS] = w[MATCH_SP] = w[MATCH_START] = w[MATCH_RESULT] = 0;
	for (u32 k = 0; k < MATCH_KEPT; k++)
		w[MATCH_SAVED + k] = NONE;
	rt_loop(STEPS, match_step, &c, 0);
	return w[MATCH_RESULT];
}

/* Group @n of what @kept has, the slots, and behind them the string. */
RT long rt_matched(char *dst, const u64 *kept, u64 size, u64 n)
{
	u64 from, to;

	*dst = '\0';
	if (n >= MATCH_KEPT / 2)
		return 0;
	from = kept[2 * n];
	to = kept[2 * n + 1];
	if (from < size && to < size && to > from && to - from < size)
		rt_copy_str(dst, (u32)(to - from) + 1, (const char *)(kept + MATCH_KEPT) + from);
	return 0;
}
