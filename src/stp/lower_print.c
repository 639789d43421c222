/*
 * Output: print and its like become records, sprint and its like strings.
 */
#include "stp/lower.h"

#include <string.h>

#include "abi/record.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"
#include "lang/format.h"

enum { MAX_ARGS = 32 };		/* of one print, as in SystemTap */

static const struct fmt *parse_format(struct low *l, const char *text, size_t len)
{
	const char *err;
	size_t off;

	return fmt_parse(l->arena, FMT_STP, text, len, &err, &off);
}

/* @shows: of each value, or NULL: none has one. */
static void emit(struct low *l, enum ir_act_kind kind, const struct fmt *fmt, const ir_reg *vals,
		 const enum ir_show *shows, unsigned int n, struct src_pos pos)
{
	struct ir_rec *rec = ir_rec_new(l->prog, l->b.clause);

	ir_rec_act(l->prog, rec, kind, pos)->fmt = fmt;
	for (unsigned int i = 0; i < n; i++) {
		enum ir_type t = l->b.clause->regs[vals[i]];

		struct ir_slot slot = low_slot(t == IR_STR ? STP_STRINGS : STP_LONG);

		slot.show = shows ? shows[i] : IR_SHOW_NUMBER;
		ir_rec_field(l->prog, rec, slot);
	}
	ir_emit(&l->b, rec, vals);
}

void low_record(struct low *l, enum ir_act_kind kind, const char *format, const ir_reg *vals, unsigned int n,
		struct src_pos pos)
{
	emit(l, kind, format ? parse_format(l, format, strlen(format)) : NULL, vals, NULL, n, pos);
}

void low_record_shown(struct low *l, ir_reg val, enum ir_show show, struct src_pos pos)
{
	emit(l, IR_ACT_PRINTF, parse_format(l, "%s", 2), &val, &show, 1, pos);
}

ir_reg low_sprintf(struct low *l, const char *format, const ir_reg *vals, unsigned int n)
{
	return n ? ir_sprintf(&l->b, parse_format(l, format, strlen(format)), vals) : low_str(l, format);
}

/* --- formats ----------------------------------------------------------------------------------------- */

static void add_text(struct strbuf *b, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '%')
			strbuf_putc(b, '%');
		strbuf_putc(b, s[i]);
	}
}

/* The format that a print without one stands for. */
static const struct fmt *own_format(struct low *l, const struct stp_node *n)
{
	const struct fmt *ret;
	struct strbuf b = {0};

	for (size_t i = 0; i < n->nargs; i++) {
		if (i && n->print->delimited)
			add_text(&b, n->str, n->str_len);
		strbuf_puts(&b, n->args[i]->type == STP_STRINGS ? "%s" : n->print->one_char ? "%c" : "%d");
	}
	if (n->print->newline)
		strbuf_putc(&b, '\n');
	ret = parse_format(l, arena_strndup(l->arena, strbuf_str(&b), b.len), b.len);
	strbuf_fini(&b);
	return ret;
}

/* --- histograms -------------------------------------------------------------------------------------- */

/* print(@hist_log(x)): the record has the whole statistic. */
static ir_reg print_hist(struct low *l, struct stp_node *n)
{
	struct stp_node *hist = n->args[0], *stat = hist->l;
	struct ir_rec *rec;
	ir_reg vals[STP_MAX_INDEXES + 1], fields[STP_MAX_INDEXES + 1];
	struct stp_var *v = stat->kind == STP_INDEX ? stat->l->var : stat->var;
	struct ir_block *some = ir_block_new(&l->b), *none = ir_block_new(&l->b);
	size_t nkeys = stat->kind == STP_INDEX ? stat->nargs : 0;
	struct ir_map *m = low_map(l, v);

	if (n->print->to_string) {
		low_refuse(l, n, "print it with print(@hist_log(x))", "a histogram is no string");
		return low_dummy(l, STP_STRINGS);
	}
	low_values(l, stat->args, nkeys, vals);
	low_near(l, hist->what, hist->pos);
	ir_br(&l->b, ir_extract(&l->b, IR_SCOUNT, m, vals), some, none);
	ir_at(&l->b, none);
	ir_fault(&l->b, ABI_FAULT_EMPTY, low_const(l, 0));
	ir_at(&l->b, some);
	rec = ir_rec_new(l->prog, l->b.clause);
	ir_rec_act(l->prog, rec, IR_ACT_HIST, n->pos);
	fields[ir_rec_field(l->prog, rec, low_slot(STP_LONG))] = low_const(l, n->print->newline);
	rec->stat = m;
	memcpy(fields + 1, vals, nkeys * sizeof(*vals));
	ir_emit(&l->b, rec, fields);
	return low_const(l, 0);
}

/* --- the whole --------------------------------------------------------------------------------------- */

/* Conversions of memory take what is no value of a record. */
static bool check_format(struct low *l, struct stp_node *n, const struct fmt *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];

		if (c->kind == FMT_BYTES || c->kind == FMT_UNSUP || c->kind == FMT_FLOAT) {
			low_refuse(l, n, "read it with user_string_n() or user_uint8() and its like",
				   "%%%c is not available", c->letter);
			return false;
		}
	}
	return true;
}

ir_reg low_print(struct low *l, struct stp_node *n)
{
	struct stp_node *args[MAX_ARGS];
	enum ir_show shows[MAX_ARGS];
	const struct fmt *f;
	ir_reg vals[MAX_ARGS];

	if (n->nargs == 1 && n->args[0]->kind == STP_HIST)
		return print_hist(l, n);
	if (n->nargs > MAX_ARGS) {
		low_refuse(l, n, "print in several steps", "too many arguments (%zu)", n->nargs);
		return low_dummy(l, n->type);
	}
	for (size_t i = 0; i < n->nargs; i++) {
		if (n->args[i]->type == STP_LONG || n->args[i]->type == STP_STRINGS)
			continue;
		low_refuse(l, n->args[i], NULL, n->args[i]->kind == STP_HIST ?
			   "a histogram is printed alone, by print or println" : "cannot print a raw stats object");
		return low_dummy(l, n->type);
	}
	f = n->print->formatted ? n->fmt : own_format(l, n);
	if (!check_format(l, n, f))
		return low_dummy(l, n->type);
	for (size_t i = 0; i < n->nargs; i++) {
		shows[i] = IR_SHOW_NUMBER;
		args[i] = n->args[i];
	}
	/* Numbers of stacks are not kept over what parts: prints have either in practice. */
	for (size_t i = 0; i < n->nargs && !n->print->to_string; i++)
		if (low_shown(l, n->args[i], &vals[i], &shows[i]))
			args[i] = NULL;
	low_values(l, args, n->nargs, vals);
	if (n->print->to_string)
		return ir_sprintf(&l->b, f, vals);
	emit(l, IR_ACT_PRINTF, f, vals, shows, (unsigned int)n->nargs, n->pos);
	return low_const(l, 0);
}
