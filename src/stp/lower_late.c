/*
 * Texts that are made only where they are used.
 *
 * If a local of a handler is assigned only once, at the top of a block, from words (lang/words.def) or sprintf(), the
 * parts of its text are kept.  When it is printed, the parts become values of the record and the tracer makes the
 * text; for any other use the program makes it there.  syscall.*'s argstr and retstr are such locals.
 */
#include "stp/lower.h"

#include <string.h>

#include "base/arena.h"
#include "lang/format.h"
#include "stp/lower_func.h"

enum { MAX_PARTS = 16 };

struct stp_late {
	const struct fmt *fmt;			/* sprintf()'s; NULL: the first part is the whole text */
	unsigned int n;
	struct stp_lower_part {
		struct ir_var *var;
		const struct stp_node *words;	/* the call that converts it to words, or NULL */
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

static struct ir_var *keep(struct lower *l, struct stp_node *n)
{
	struct ir_var *v = stp_lower_temp(l, n->type);

	ir_vst(&l->b, v, stp_lower_expr(l, n));
	return v;
}

static void take_part(struct lower *l, struct stp_late *late, struct stp_node *n)
{
	struct stp_lower_part *part = &late->parts[late->n++];
	const struct stp_var *v = n->kind == STP_NAME ? n->var : NULL;

	if (is_words(n))
		*part = (struct stp_lower_part){ keep(l, n->args[0]), n };
	else if (v && v->late && !v->late->fmt)
		*part = v->late->parts[0];
	else if (v && v->settled && v->ir)
		part->var = v->ir;		/* no later assignment */
	else
		part->var = keep(l, n);
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
	if (!is_words(r) && (r->kind != STP_PRINT || !r->print->to_string || !r->print->formatted || r->nargs > MAX_PARTS ||
			     !is_plain(r->fmt) || stp_is_older(l->stp, "1.3")))
		return false;
	late = arena_new_of(l->arena, struct stp_late);
	if (is_words(r)) {
		take_part(l, late, r);
	} else {
		late->fmt = r->fmt;
		for (size_t i = 0; i < r->nargs; i++)
			take_part(l, late, r->args[i]);
	}
	v->late = late;
	return true;
}

static ir_reg part_text(struct lower *l, const struct stp_lower_part *part)
{
	struct stp_node call;
	ir_reg val = ir_vld(&l->b, part->var);

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
		if (!late->parts[i].words)
			continue;
		kept[i] = stp_lower_temp(l, STP_STRINGS);
		ir_vst(&l->b, kept[i], part_text(l, &late->parts[i]));
	}
	for (unsigned int i = 0; i < late->n; i++)
		vals[i] = ir_vld(&l->b, kept[i]);
	return late->n ? ir_sprintf(&l->b, late->fmt, vals) : stp_lower_str(l, late->fmt->text);
}

const char *stp_lower_late_format(const struct stp_late *late)
{
	return late->fmt ? late->fmt->text : "%s";
}

unsigned int stp_lower_late_parts(struct lower *l, const struct stp_late *late, ir_reg *vals, enum ir_show *shows)
{
	for (unsigned int i = 0; vals && i < late->n; i++) {
		const struct stp_node *words = late->parts[i].words;

		vals[i] = ir_vld(&l->b, late->parts[i].var);
		shows[i] = words ? (enum ir_show)(IR_SHOW_WORDS + words->builtin->number) : IR_SHOW_NUMBER;
	}
	return late->n;
}
