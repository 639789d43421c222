/*
 * Texts that are made only where they are used.
 *
 * If a local of a handler is assigned only once, at the top of a block, from words (lang/words.def), a string of the
 * process in quotes or sprintf(), the parts of its text are kept.  When it is printed, the parts become values of the record and the tracer makes the
 * text; for any other use the program makes it there.  syscall.*'s argstr and retstr are such locals.
 */
#include "stp/lower.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/format.h"
#include "stp/lower_func.h"

enum { MAX_PARTS = 16 };

struct stp_late {
	const struct fmt *fmt;			/* sprintf()'s; NULL: the first part is the whole text */
	unsigned int n;
	struct stp_lower_part {
		struct ir_var *var;
		const struct stp_node *words;	/* the call that converts it to words, or NULL */
		struct ir_var *instead;		/* of a string in quotes: the address if it cannot be read, or IR_READABLE */
	} parts[MAX_PARTS];
};

void stp_lower_find_late(const struct stp_handler *h)
{
	for (size_t b = 0; b < h->nblocks; b++)
		for (size_t i = 0; h->blocks[b]->kind == STP_S_BLOCK && i < h->blocks[b]->n; i++) {
			const struct stp_stmt *s = h->blocks[b]->stmts[i];
			const struct stp_node *n = s->kind == STP_S_EXPR ? s->expr : NULL;

			if (!n || n->kind != STP_ASSIGN || n->op != STP_OP_NONE || n->l->kind != STP_NAME || !n->l->var)
				continue;
			if (!n->l->var->is_global && n->l->var->type == STP_STRINGS && n->l->var->writes == 1)
				n->l->var->assigned = n;
		}
}

static bool is_words(const struct stp_node *n)
{
	return n->kind == STP_CALL && n->builtin && n->builtin->lower == stp_func_words;
}

/* user_string_quoted() and its like. */
static bool is_quoted(const struct stp_node *n)
{
	return n->kind == STP_CALL && n->builtin && n->builtin->lower == stp_func_string_quoted_at;
}

static struct ir_var *keep(struct lower *l, struct stp_node *n)
{
	struct ir_var *v = stp_lower_temp(l, n->type);

	ir_vst(&l->b, v, stp_lower_expr(l, n));
	return v;
}

static void take_quoted(struct lower *l, struct stp_lower_part *part, struct stp_node *n)
{
	ir_reg args[STP_MAX_PARAMS];

	part->var = stp_lower_temp(l, STP_STRINGS);
	part->instead = stp_lower_temp(l, STP_LONG);
	stp_lower_values(l, n->args, n->nargs, args);
	stp_lower_near(l, n->what, n->pos);
	stp_lower_read_string(l, n, args, part->var, part->instead);
}

static void take_part(struct lower *l, struct stp_late *late, struct stp_node *n)
{
	struct stp_lower_part *part = &late->parts[late->n++];
	const struct stp_var *v = n->kind == STP_NAME ? n->var : NULL;

	if (is_words(n))
		*part = (struct stp_lower_part){ .var = keep(l, n->args[0]), .words = n };
	else if (is_quoted(n))
		take_quoted(l, part, n);
	else if (v && v->late && !v->late->fmt)
		*part = v->late->parts[0];
	else if (v && v->settled && v->ir)
		part->var = v->ir;		/* no later assignment */
	else
		part->var = keep(l, n);
}

/* Is each string in quotes for a conversion without width and precision? */
static bool fits_quoted(const struct stp_node *r)
{
	const struct fmt *f = r->fmt;
	size_t arg = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];
		const struct stp_node *n = c->kind == FMT_NONE ? NULL : r->args[arg++];
		const struct stp_late *late = n && n->kind == STP_NAME && n->var ? n->var->late : NULL;

		if (n && (is_quoted(n) || (late && !late->fmt && late->parts[0].instead)) &&
		    (c->letter != 's' || c->has_width || c->has_prec))
			return false;
	}
	return true;
}

/* Can @f be inserted in another format? */
static bool is_plain(const struct fmt *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->convs[i].kind != FMT_NONE &&
		    (!strchr("dioxXups", f->convs[i].letter) || f->convs[i].dyn_width || f->convs[i].dyn_prec))
			return false;
	return true;
}

bool stp_lower_keep_late(struct lower *l, struct stp_node *n)
{
	struct stp_var *v = n->l->kind == STP_NAME ? n->l->var : NULL;
	struct stp_node *r = n->r;
	struct stp_late *late;

	if (!v || v->assigned != n || l->call || l->loop)
		return false;
	if (r->kind == STP_NAME && r->var && r->var->late) {
		v->late = r->var->late;
		return true;
	}
	if (!is_words(r) && !is_quoted(r) && (r->kind != STP_PRINT || !r->print->to_string || !r->print->formatted || r->nargs > MAX_PARTS ||
			     !is_plain(r->fmt) || !fits_quoted(r) || stp_is_older(l->stp, "1.3")))
		return false;
	late = arena_new_of(l->arena, struct stp_late);
	if (is_words(r) || is_quoted(r)) {
		take_part(l, late, r);
	} else {
		late->fmt = r->fmt;
		for (size_t i = 0; i < r->nargs; i++)
			take_part(l, late, r->args[i]);
	}
	v->late = late;
	return true;
}

/* The string in quotes, or its address. */
static ir_reg quoted_text(struct lower *l, const struct stp_lower_part *part)
{
	struct ir_block *ok = ir_block_new(&l->b), *bad = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	struct ir_var *text = stp_lower_temp(l, STP_STRINGS);
	ir_reg both[2];

	ir_br(&l->b, ir_op2(&l->b, IR_EQ, ir_vld(&l->b, part->instead), stp_lower_const(l, IR_READABLE)), ok, bad);
	ir_at(&l->b, ok);
	both[0] = ir_vld(&l->b, part->var);
	both[1] = stp_lower_const(l, 1);
	ir_vst(&l->b, text, ir_call(&l->b, IR_FN_ESCAPE, both, 2));
	ir_jmp(&l->b, end);
	ir_at(&l->b, bad);
	both[0] = ir_vld(&l->b, part->instead);
	ir_vst(&l->b, text, stp_lower_sprintf(l, "0x%x", both, 1));
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	return ir_vld(&l->b, text);
}

static ir_reg part_text(struct lower *l, const struct stp_lower_part *part)
{
	struct stp_node call;
	ir_reg val = part->instead ? quoted_text(l, part) : ir_vld(&l->b, part->var);

	if (!part->words)
		return val;
	call = *part->words;
	return stp_func_words(l, &call, &val);
}

ir_reg stp_lower_late_text(struct lower *l, const struct stp_late *late)
{
	struct ir_var *kept[MAX_PARTS];
	ir_reg vals[MAX_PARTS];

	if (!late->fmt)
		return part_text(l, &late->parts[0]);
	for (unsigned int i = 0; i < late->n; i++) {
		kept[i] = late->parts[i].var;
		if (!late->parts[i].words && !late->parts[i].instead)
			continue;
		kept[i] = stp_lower_temp(l, STP_STRINGS);
		ir_vst(&l->b, kept[i], part_text(l, &late->parts[i]));
	}
	for (unsigned int i = 0; i < late->n; i++)
		vals[i] = ir_vld(&l->b, kept[i]);
	return late->n ? ir_sprintf(&l->b, late->fmt, vals) : stp_lower_str(l, late->fmt->text);
}

/* A string in quotes takes two conversions: the address, and the string, as long as it may be. */
static void add_quoted_format(struct lower *l, struct strbuf *out)
{
	strbuf_printf(out, "%%s%%.%us", l->prog->strsize - 1);
}

const char *stp_lower_late_format(struct lower *l, const struct stp_late *late)
{
	struct strbuf text = { 0 };
	const char *ret, *s;
	unsigned int part = 0;

	if (!late->fmt && !late->parts[0].instead)
		return "%s";
	if (!late->fmt)
		add_quoted_format(l, &text);
	for (size_t i = 0; late->fmt && i < late->fmt->n; i++) {
		const struct fmt_conv *c = &late->fmt->convs[i];

		s = late->fmt->text + c->off;
		for (size_t k = 0; k < c->lit_len; k++) {
			if (c->lit[k] == '%')
				strbuf_putc(&text, '%');
			strbuf_putc(&text, c->lit[k]);
		}
		if (c->kind == FMT_NONE)
			continue;
		if (late->parts[part++].instead)
			add_quoted_format(l, &text);
		else
			strbuf_add(&text, s, stp_lower_conv_len(s));
	}
	ret = arena_strndup(l->arena, strbuf_str(&text), text.len);
	strbuf_fini(&text);
	return ret;
}

unsigned int stp_lower_late_parts(struct lower *l, const struct stp_late *late, ir_reg *vals, enum ir_show *shows)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < late->n; i++) {
		const struct stp_lower_part *part = &late->parts[i];

		if (part->instead && vals) {
			vals[n] = ir_vld(&l->b, part->instead);
			shows[n] = IR_SHOW_INSTEAD;
		}
		n += part->instead != NULL;
		if (vals) {
			vals[n] = ir_vld(&l->b, part->var);
			shows[n] = part->words ? (enum ir_show)(IR_SHOW_WORDS + part->words->builtin->number) :
				   part->instead ? IR_SHOW_QUOTED : IR_SHOW_NUMBER;
		}
		n++;
	}
	return n;
}
