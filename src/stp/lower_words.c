/*
 * Names of numbers (lang/words.def) as strings in the program, for names that are stored, compared or concatenated.
 * A name that is printed is made by the tracer from the same table (lower_show.c).
 */
#include "stp/lower_func.h"

#include <inttypes.h>

#include "base/arena.h"
#include "lang/words.h"
#include "stp/lower.h"

struct telling {
	struct lower *l;
	struct ir_var *number, *text;
	struct ir_block *end;
};

static void say(struct telling *t, const char *format, ir_reg val)
{
	ir_vst(&t->l->b, t->text, stp_lower_sprintf(t->l, format, &val, 1));
}

/* text = the first word whose number is @number, or the number itself. */
static void choose(struct telling *t, const struct words *w)
{
	struct ir_build *b = &t->l->b;

	for (size_t i = 0; i < w->n; i++) {
		struct ir_block *yes = ir_block_new(b), *no = ir_block_new(b);

		ir_br(b, ir_op2(b, IR_EQ, ir_vld(b, t->number), stp_lower_const(t->l, (int64_t)w->v[i].number)), yes, no);
		ir_at(b, yes);
		ir_vst(b, t->text, stp_lower_str(t->l, !w->result ? w->v[i].text :
						 arena_printf(t->l->arena, "%" PRId64 " (%s)", (int64_t)w->v[i].number, w->v[i].text)));
		ir_jmp(b, t->end);
		ir_at(b, no);
	}
	if (w->decimal)
		say(t, "%d", w->width == 4 ? ir_ext(b, ir_vld(b, t->number), 4, true) : ir_vld(b, t->number));
	else
		say(t, "0x%x", ir_vld(b, t->number));
	ir_jmp(b, t->end);
}

/* Append a word, with a bar before it. */
static void add_bits(struct telling *t, const struct word *word)
{
	struct ir_build *b = &t->l->b;
	struct ir_block *yes = ir_block_new(b), *no = ir_block_new(b);
	int64_t bits = (int64_t)word->number;
	ir_reg all = stp_lower_const(t->l, bits);

	ir_br(b, ir_op2(b, IR_EQ, ir_op2(b, IR_AND, ir_vld(b, t->number), all), all), yes, no);
	ir_at(b, yes);
	say(t, arena_printf(t->l->arena, "%%s|%s", word->text), ir_vld(b, t->text));
	ir_vst(b, t->number, ir_op2(b, IR_AND, ir_vld(b, t->number), stp_lower_const(t->l, ~bits)));
	ir_jmp(b, no);
	ir_at(b, no);
}

/* text = the words of all bits, and the rest of the number that has no words. */
static void put_together(struct telling *t, const struct words *w)
{
	struct ir_build *b = &t->l->b;
	struct ir_block *some = ir_block_new(b), *none = ir_block_new(b), *rest = ir_block_new(b), *cut = ir_block_new(b);
	const char *zero = words_of_none(w);
	ir_reg vals[3];

	ir_br(b, ir_vld(b, t->number), some, none);
	ir_at(b, none);
	ir_vst(b, t->text, stp_lower_str(t->l, zero ? zero : w->decimal ? "0" : "0x0"));
	ir_jmp(b, t->end);
	ir_at(b, some);
	ir_vst(b, t->text, stp_lower_str(t->l, ""));
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].number)
			add_bits(t, &w->v[i]);
	ir_br(b, ir_vld(b, t->number), rest, cut);
	ir_at(b, rest);
	vals[0] = ir_vld(b, t->text);
	vals[1] = ir_vld(b, t->number);
	ir_vst(b, t->text, stp_lower_sprintf(t->l, w->decimal ? "%s|%d" : "%s|0x%x", vals, 2));
	ir_jmp(b, cut);
	ir_at(b, cut);
	vals[0] = ir_vld(b, t->text);
	vals[1] = stp_lower_const(t->l, 1);
	vals[2] = stp_lower_const(t->l, WORDS_MAX);
	ir_vst(b, t->text, ir_call(b, IR_FN_SLICE, vals, 3));
	ir_jmp(b, t->end);
}

ir_reg stp_func_words(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	const struct words *w = words_row(call->builtin->number);
	struct telling t = { .l = l, .number = stp_lower_temp(l, STP_LONG), .text = stp_lower_temp(l, STP_STRINGS),
			     .end = ir_block_new(&l->b) };

	ir_vst(&l->b, t.number, w->width == 4 ? ir_ext(&l->b, args[0], 4, false) : args[0]);
	if (w->bits)
		put_together(&t, w);
	else
		choose(&t, w);
	ir_at(&l->b, t.end);
	return ir_vld(&l->b, t.text);
}
