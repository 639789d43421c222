/*
 * Texts that are made only where they are used.
 *
 * If a local of a handler is assigned only once, at the top of a block, from words (lang/words.def), a string of the
 * process in quotes, sprintf(), a ?: of them or a function that returns them, the parts of its text are kept.  Which of
 * several texts it is, the program knows: it prints each by a record of its own.  When it is printed, the parts become values of the record and the tracer makes the
 * text; for any other use the program makes it there.  syscall.*'s argstr and retstr are such locals.  So is a parameter
 * that is only printed, in a call with such a local.
 */
#include "stp/lower.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/format.h"
#include "stp/lower_func.h"

/* More ways than MAX_PRODUCT of several choices together cost more than to make the texts in the program. */
enum { MAX_PARTS = 16, MAX_ALTS = 100, MAX_PRODUCT = 12, TOO_MANY = 1 << 20 };

struct stp_lower_part {
	struct ir_var *var;
	const struct stp_node *words;		/* the call that converts it to words, or NULL */
	struct ir_var *instead;			/* of a string in quotes: the address if it cannot be read, or IR_READABLE */
	struct stp_lower_choice *choice;	/* one of several texts, nothing of the above; or NULL */
};

struct stp_late {
	const struct fmt *fmt;			/* sprintf()'s; NULL: the first part is the whole text */
	unsigned int n;
	struct stp_lower_part parts[MAX_PARTS];
};

/* Texts of which the program takes one: those of a function's returns, or both sides of a ?:. */
struct stp_lower_choice {
	struct ir_var *tag;			/* its number; NULL: there is one alone */
	struct stp_late *alts[MAX_ALTS];	/* of a function: number 0 is a text that it made itself */
	unsigned int first, n;			/* @first 1: it makes none itself */
	bool makes;				/* a return has a text that the function made */
	const struct stp_late *chosen;		/* the one that is printed where code is generated now, or NULL */
};

static void find_other_uses(void *ctx, struct stp_node **child);
static void find_other_uses_stmt(void *ctx, struct stp_stmt **child);

/* Is @p, a parameter of @f, only printed? */
static bool is_printed(const struct stp_func *f, struct stp_var *p)
{
	static const struct stp_node some = { 0 };
	struct stp_stmt *body = f->body;

	if (p->use == STP_USE_UNKNOWN) {
		p->assigned = &some;
		find_other_uses_stmt(NULL, &body);
		p->use = p->assigned && !p->writes && p->type == STP_STRINGS ? STP_USE_PRINTED : STP_USE_ANY;
		p->assigned = NULL;
	}
	return p->use == STP_USE_PRINTED;
}

/* The arguments of the call @n that are not printed alone are other uses. */
static void find_uses_of_call(const struct stp_node *n)
{
	struct stp_var *p = n->func->params.first;

	for (size_t i = 0; i < n->nargs; i++, p = p ? p->next : NULL)
		if (!p || n->args[i]->kind != STP_NAME || !is_printed(n->func, p))
			find_other_uses(NULL, &n->args[i]);
}

/* A variable whose text is used otherwise than in a print or another text is made at once: each use would make it anew. */
static void find_other_uses(void *ctx, struct stp_node **child)
{
	struct stp_node *n = *child;

	if (n->kind == STP_NAME && n->var)
		n->var->assigned = NULL;
	for (size_t i = 0; n->kind == STP_PRINT && i < n->nargs; i++)
		if (n->args[i]->kind != STP_NAME)
			find_other_uses(ctx, &n->args[i]);
	if (n->kind == STP_ASSIGN && n->l->kind == STP_NAME && n->op == STP_OP_NONE) {
		if (n->r->kind != STP_NAME || n->l->var->is_global)
			find_other_uses(ctx, &n->r);
	} else if (n->kind == STP_CALL && n->func && !n->func->recursive && !n->func->overload) {
		find_uses_of_call(n);
	} else if (n->kind != STP_PRINT) {
		stp_each_node(n, find_other_uses, ctx);
	}
}

static void find_other_uses_stmt(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, find_other_uses, ctx);
	stp_each_stmt(*child, find_other_uses_stmt, ctx);
}

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
	for (size_t b = 0; b < h->nblocks; b++)
		find_other_uses_stmt(NULL, &h->blocks[b]);
}

bool stp_lower_passes_late(const struct stp_func *f, struct stp_var *p, const struct stp_node *n)
{
	return n->kind == STP_NAME && n->var && n->var->late && is_printed(f, p);
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

/* Is each string for a conversion without width and precision? */
static bool fits_strings(const struct stp_node *r)
{
	const struct fmt *f = r->fmt;
	size_t arg = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];
		const struct stp_node *n = c->kind == FMT_NONE ? NULL : r->args[arg++];

		/* A text that consists of parts cannot be padded or cut as a whole. */
		if (n && n->type == STP_STRINGS && !is_words(n) && (c->letter != 's' || c->has_width || c->has_prec))
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

static bool is_sprintf(const struct lower *l, const struct stp_node *n)
{
	return n->kind == STP_PRINT && n->print->to_string && n->print->formatted && n->nargs <= MAX_PARTS && is_plain(n->fmt) &&
	       fits_strings(n) && !stp_is_older(l->stp, "1.3");
}

/* A call that is expanded, of a function whose result is a string. */
static bool is_expanded(const struct lower *l, const struct stp_node *n)
{
	return n->kind == STP_CALL && n->func && !n->func->recursive && !n->func->overload && n->func->type == STP_STRINGS &&
	       l->calls < LOW_MAX_CALLS;
}

static bool is_late(const struct lower *l, const struct stp_node *n)
{
	if (n->kind == STP_COND)
		return n->type == STP_STRINGS && (is_late(l, n->l) || is_late(l, n->r));
	return is_words(n) || is_quoted(n) || is_sprintf(l, n) || is_expanded(l, n) || n->kind == STP_STR;
}

static struct stp_late *make_late(struct lower *l, struct stp_node *n);

static struct stp_lower_choice *only(struct lower *l, const struct stp_late *late)
{
	struct stp_lower_choice *c = arena_new_of(l->arena, struct stp_lower_choice);

	c->chosen = c->alts[0] = (struct stp_late *)late;
	c->n = 1;
	return c;
}

static struct stp_lower_choice *new_choice(struct lower *l)
{
	struct stp_lower_choice *c = arena_new_of(l->arena, struct stp_lower_choice);

	c->tag = stp_lower_temp(l, STP_LONG);
	ir_vst(&l->b, c->tag, stp_lower_const(l, 0));
	return c;
}

static void add_side(struct lower *l, struct stp_lower_choice *c, struct ir_block *at, struct stp_node *n, struct ir_block *end)
{
	ir_at(&l->b, at);
	c->alts[c->n] = make_late(l, n);
	ir_vst(&l->b, c->tag, stp_lower_const(l, c->n++));
	ir_jmp(&l->b, end);
}

static void take_cond(struct lower *l, struct stp_lower_part *part, struct stp_node *n)
{
	struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b), *end = ir_block_new(&l->b);

	part->choice = new_choice(l);
	stp_lower_cond(l, n->cond, yes, no);
	add_side(l, part->choice, yes, n->l, end);
	add_side(l, part->choice, no, n->r, end);
	ir_at(&l->b, end);
}

/* Does @s end in a return on each path? */
static bool returns(const struct stp_stmt *s)
{
	switch (s ? s->kind : STP_S_NULL) {
	case STP_S_RETURN:
		return true;
	case STP_S_BLOCK:
		return s->n && returns(s->stmts[s->n - 1]);
	case STP_S_IF:
	case STP_S_TRY:
		return returns(s->yes) && returns(s->no);
	default:
		return false;
	}
}

static void take_call(struct lower *l, struct stp_lower_part *part, struct stp_node *n)
{
	struct stp_lower_choice *c = new_choice(l);

	c->alts[c->n++] = arena_new_of(l->arena, struct stp_late);
	c->alts[0]->n = 1;
	c->alts[0]->parts[0].var = stp_lower_call_late(l, n, c);
	if (c->n == 1) {
		part->var = c->alts[0]->parts[0].var;	/* no return has a text that can be made later */
		return;
	}
	part->choice = c;
	c->first = !c->makes && returns(n->func->body);
	if (c->first && c->n == 2)
		c->chosen = c->alts[1];
}

bool stp_lower_return_late(struct lower *l, struct stp_lower_choice *c, struct stp_node *n)
{
	struct stp_late *late;

	if (c->n == MAX_ALTS || !is_late(l, n)) {
		c->makes = true;
		return false;
	}
	late = make_late(l, n);
	c->alts[c->n] = late;
	ir_vst(&l->b, c->tag, stp_lower_const(l, c->n++));
	return true;
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
	else if (v && v->late)
		part->choice = only(l, v->late);
	else if (v && v->settled && v->ir)
		part->var = v->ir;		/* no later assignment */
	else if (is_sprintf(l, n) || n->kind == STP_STR)
		part->choice = only(l, make_late(l, n));
	else if (n->kind == STP_COND && is_late(l, n))
		take_cond(l, part, n);
	else if (is_expanded(l, n))
		take_call(l, part, n);
	else
		part->var = keep(l, n);
}

static const struct fmt *literal(struct lower *l, const struct stp_node *n)
{
	struct strbuf text = { 0 };
	const struct fmt *ret;

	for (size_t i = 0; i < n->str_len; i++) {
		if (n->str[i] == '%')
			strbuf_putc(&text, '%');
		strbuf_putc(&text, n->str[i]);
	}
	ret = stp_lower_parse_format(l, arena_strndup(l->arena, strbuf_str(&text), text.len), text.len);
	strbuf_fini(&text);
	return ret;
}

static struct stp_late *make_late(struct lower *l, struct stp_node *n)
{
	struct stp_late *late = arena_new_of(l->arena, struct stp_late);

	if (n->kind == STP_STR) {
		late->fmt = literal(l, n);
	} else if (is_sprintf(l, n)) {
		late->fmt = n->fmt;
		for (size_t i = 0; i < n->nargs; i++)
			take_part(l, late, n->args[i]);
	} else {
		take_part(l, late, n);
	}
	return late;
}

bool stp_lower_keep_late(struct lower *l, struct stp_node *n)
{
	struct stp_var *v = n->l->kind == STP_NAME ? n->l->var : NULL;
	struct stp_node *r = n->r;

	if (!v || v->assigned != n || l->call || l->loop)
		return false;
	if (r->kind == STP_NAME && r->var && r->var->late) {
		v->late = r->var->late;
		return true;
	}
	if (r->kind == STP_STR || !is_late(l, r))
		return false;
	v->late = make_late(l, r);
	return true;
}

/* --- the text in the program -------------------------------------------------------------------------- */

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

static ir_reg choice_text(struct lower *l, const struct stp_lower_choice *c)
{
	struct ir_block *end = ir_block_new(&l->b);
	struct ir_var *text = stp_lower_temp(l, STP_STRINGS);

	for (unsigned int i = c->first; i < c->n; i++) {
		struct ir_block *yes, *no;
		bool last = i + 1 == c->n;

		if (!last) {
			yes = ir_block_new(&l->b);
			no = ir_block_new(&l->b);
			ir_br(&l->b, ir_op2(&l->b, IR_EQ, ir_vld(&l->b, c->tag), stp_lower_const(l, i)), yes, no);
			ir_at(&l->b, yes);
		}
		ir_vst(&l->b, text, stp_lower_late_text(l, c->alts[i]));
		ir_jmp(&l->b, end);
		if (!last)
			ir_at(&l->b, no);
	}
	ir_at(&l->b, end);
	return ir_vld(&l->b, text);
}

static ir_reg part_text(struct lower *l, const struct stp_lower_part *part)
{
	struct stp_node call;
	ir_reg val;

	if (part->choice)
		return choice_text(l, part->choice);
	val = part->instead ? quoted_text(l, part) : ir_vld(&l->b, part->var);
	if (!part->words)
		return val;
	call = *part->words;
	return stp_func_words(l, &call, &val);
}

static ir_reg literal_text(struct lower *l, const struct fmt *f)
{
	struct strbuf text = { 0 };
	ir_reg r;

	for (size_t i = 0; i < f->n; i++)
		strbuf_add(&text, f->convs[i].lit, f->convs[i].lit_len);
	r = stp_lower_str(l, arena_strndup(l->arena, strbuf_str(&text), text.len));
	strbuf_fini(&text);
	return r;
}

ir_reg stp_lower_late_text(struct lower *l, const struct stp_late *late)
{
	struct ir_var *kept[MAX_PARTS];
	ir_reg vals[MAX_PARTS];

	if (!late->fmt)
		return part_text(l, &late->parts[0]);
	for (unsigned int i = 0; i < late->n; i++) {
		kept[i] = late->parts[i].var;
		if (kept[i] && !late->parts[i].words && !late->parts[i].instead)
			continue;
		kept[i] = stp_lower_temp(l, STP_STRINGS);
		ir_vst(&l->b, kept[i], part_text(l, &late->parts[i]));
	}
	for (unsigned int i = 0; i < late->n; i++)
		vals[i] = ir_vld(&l->b, kept[i]);
	return late->n ? ir_sprintf(&l->b, late->fmt, vals) : literal_text(l, late->fmt);
}

/* --- the parts in a record ---------------------------------------------------------------------------- */

unsigned int stp_lower_late_ways(const struct stp_late *late)
{
	unsigned int ways = 1, sum, several = 0;

	for (unsigned int i = 0; i < late->n; i++) {
		const struct stp_lower_choice *c = late->parts[i].choice;

		sum = c ? 0 : 1;
		for (unsigned int k = c ? c->first : 0; c && k < c->n; k++)
			sum += stp_lower_late_ways(c->alts[k]);
		several += sum > 1;
		if (sum > MAX_ALTS || __builtin_mul_overflow(ways, sum, &ways) || (several > 1 && ways > MAX_PRODUCT))
			return TOO_MANY;
	}
	return ways;
}

unsigned int stp_lower_late_room(const struct stp_late *late)
{
	unsigned int room = 0, most, n;

	for (unsigned int i = 0; i < late->n; i++) {
		const struct stp_lower_part *part = &late->parts[i];

		most = part->choice ? 0 : 1 + (part->instead != NULL);
		for (unsigned int k = part->choice ? part->choice->first : 0; part->choice && k < part->choice->n; k++) {
			n = stp_lower_late_room(part->choice->alts[k]);
			most = n > most ? n : most;
		}
		room += most;
	}
	return room;
}

struct stp_lower_choice *stp_lower_late_open(const struct stp_late *late)
{
	struct stp_lower_choice *open = NULL;

	for (unsigned int i = 0; i < late->n && !open; i++) {
		struct stp_lower_choice *c = late->parts[i].choice;

		open = !c ? NULL : c->chosen ? stp_lower_late_open(c->chosen) : c;
	}
	return open;
}

void stp_lower_late_each(struct lower *l, struct stp_lower_choice *c, void (*fn)(void *ctx), void *ctx)
{
	struct ir_block *end = ir_block_new(&l->b);

	for (unsigned int i = c->first; i < c->n; i++) {
		struct ir_block *yes, *no;
		bool last = i + 1 == c->n;

		if (!last) {
			yes = ir_block_new(&l->b);
			no = ir_block_new(&l->b);
			ir_br(&l->b, ir_op2(&l->b, IR_EQ, ir_vld(&l->b, c->tag), stp_lower_const(l, i)), yes, no);
			ir_at(&l->b, yes);
		}
		c->chosen = c->alts[i];
		fn(ctx);
		ir_jmp(&l->b, end);
		if (!last)
			ir_at(&l->b, no);
	}
	c->chosen = NULL;
	ir_at(&l->b, end);
}

/* A string in quotes takes two conversions: the address, and the string, as long as it may be. */
static void add_quoted_format(struct lower *l, struct strbuf *out)
{
	strbuf_printf(out, "%%s%%.%us", l->prog->strsize - 1);
}

static void add_part_format(struct lower *l, const struct stp_lower_part *part, const char *conv, size_t len, struct strbuf *out)
{
	if (part->choice)
		stp_lower_late_format(l, part->choice->chosen, out);
	else if (part->instead)
		add_quoted_format(l, out);
	else
		strbuf_add(out, conv, len);
}

void stp_lower_late_format(struct lower *l, const struct stp_late *late, struct strbuf *out)
{
	unsigned int part = 0;

	if (!late->fmt)
		add_part_format(l, &late->parts[0], "%s", 2, out);
	for (size_t i = 0; late->fmt && i < late->fmt->n; i++) {
		const struct fmt_conv *c = &late->fmt->convs[i];
		const char *s = late->fmt->text + c->off;

		for (size_t k = 0; k < c->lit_len; k++) {
			if (c->lit[k] == '%')
				strbuf_putc(out, '%');
			strbuf_putc(out, c->lit[k]);
		}
		if (c->kind != FMT_NONE)
			add_part_format(l, &late->parts[part++], s, stp_lower_conv_len(s), out);
	}
}

unsigned int stp_lower_late_parts(struct lower *l, const struct stp_late *late, ir_reg *vals, enum ir_show *shows)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < late->n; i++) {
		const struct stp_lower_part *part = &late->parts[i];

		if (part->choice) {
			n += stp_lower_late_parts(l, part->choice->chosen, vals + n, shows + n);
			continue;
		}
		if (part->instead) {
			vals[n] = ir_vld(&l->b, part->instead);
			shows[n++] = IR_SHOW_INSTEAD;
		}
		vals[n] = ir_vld(&l->b, part->var);
		shows[n++] = part->words ? (enum ir_show)(IR_SHOW_WORDS + part->words->builtin->number) :
			     part->instead ? IR_SHOW_QUOTED : IR_SHOW_NUMBER;
	}
	return n;
}
