/*
 * Prints the IR as text.  read.c has the grammar.
 */
#include "ir/ir.h"

#include <inttypes.h>

#include "base/strbuf.h"
#include "ir/facts.h"
#include "lang/format.h"

static void print_string(struct strbuf *out, const char *s)
{
	strbuf_putc(out, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			strbuf_printf(out, "\\%c", c);
		else if (c == '\n')
			strbuf_puts(out, "\\n");
		else if (c == '\t')
			strbuf_puts(out, "\\t");
		else if (c < 32 || c == 127)
			strbuf_printf(out, "\\x%02x", c);
		else
			strbuf_putc(out, (char)c);
	}
	strbuf_putc(out, '"');
}

static void print_slot(struct strbuf *out, const struct ir_slot *s)
{
	if (s->type == IR_STR)
		strbuf_puts(out, " s");
	else
		strbuf_printf(out, " %c%u", s->sign ? 'i' : 'u', s->width);
}

static void print_slots(struct strbuf *out, const char *word, const struct ir_slot *s, uint32_t n)
{
	strbuf_printf(out, " %s", word);
	for (uint32_t k = 0; k < n; k++)
		print_slot(out, &s[k]);
}

static void print_var(struct strbuf *out, const struct ir_var *v)
{
	static const char *const classes[] = { "global", "thread", "clause", "local", "frame" };

	strbuf_puts(out, "var ");
	print_string(out, v->name);
	strbuf_printf(out, " %s", classes[v->cls]);
	print_slot(out, &v->slot);
	strbuf_putc(out, '\n');
}

static void print_map_value(struct strbuf *out, const struct ir_map *m)
{
	if (m->stat == IR_STAT_NONE) {
		print_slots(out, "value", &m->value, 1);
		return;
	}
	strbuf_puts(out, " stat");
	if (m->extremes)
		strbuf_puts(out, " extremes");
	if (m->squares)
		strbuf_puts(out, " squares");
	if (m->shift)
		strbuf_printf(out, " shift %u", m->shift);
	if (m->stat == IR_STAT_LOG)
		strbuf_puts(out, " log");
	else if (m->stat == IR_STAT_LINEAR)
		strbuf_printf(out, " linear %" PRId64 " %" PRId64 " %" PRId64, m->linear[0], m->linear[1],
			      m->linear[2]);
}

static void print_iter(struct strbuf *out, const struct ir_iter *it)
{
	strbuf_printf(out, "iter %u", it->map->id);
	if (it->sort != IR_SORT_NONE)
		strbuf_printf(out, " sort %s", ir_sort_text(it->sort));
	if (it->sort == IR_SORT_KEY)
		strbuf_printf(out, " %u", it->column);
	if (it->down)
		strbuf_puts(out, " down");
	if (it->given)
		strbuf_printf(out, " given %u", it->given);
	strbuf_putc(out, '\n');
}

static void print_map(struct strbuf *out, const struct ir_map *m)
{
	strbuf_puts(out, "map ");
	print_string(out, m->name);
	strbuf_puts(out, m->cls == IR_THREAD ? " thread" : " global");
	print_slots(out, "keys", m->keys, m->nkeys);
	print_map_value(out, m);
	if (m->zero_frees)
		strbuf_puts(out, " frees");
	if (m->ordered)
		strbuf_puts(out, m->wraps ? " wraps" : " ordered");
	if (m->max_entries)
		strbuf_printf(out, " max %u", m->max_entries);
	strbuf_putc(out, '\n');
}

static void print_agg(struct strbuf *out, const struct ir_agg *g)
{
	strbuf_puts(out, "agg ");
	print_string(out, g->name);
	strbuf_printf(out, " %s", ir_agg_text(g->fn));
	print_slots(out, "keys", g->keys, g->nkeys);
	if (g->param[0] || g->param[1] || g->param[2] || g->param[3])
		strbuf_printf(out, " param %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, g->param[0], g->param[1],
			      g->param[2], g->param[3]);
	if (g->sign)
		strbuf_puts(out, " signed");
	strbuf_putc(out, '\n');
}

static void print_rec(struct strbuf *out, const struct ir_rec *r)
{
	strbuf_printf(out, "rec %u", r->clause);
	print_slots(out, "fields", r->fields, r->nfields);
	if (r->stat)
		strbuf_printf(out, " stat %u", r->stat->id);
	strbuf_putc(out, '\n');
	for (uint32_t k = 0; k < r->nacts; k++) {
		const struct ir_act *act = &r->acts[k];

		strbuf_printf(out, "\tact %s %u %u", ir_act_text(act->kind), act->field, act->nfields);
		if (act->naggs)
			strbuf_puts(out, " aggs");
		for (uint32_t g = 0; g < act->naggs; g++)
			strbuf_printf(out, " %u", act->aggs[g]->id);
		if (act->fmt) {
			strbuf_puts(out, " fmt ");
			print_string(out, act->fmt->text);
		}
		strbuf_putc(out, '\n');
	}
}

static void print_attr(struct strbuf *out, const struct ir_insn *i)
{
	switch (ir_op_fact(i->op)->attr) {
	case IR_ATTR_IMM:
		strbuf_printf(out, " %" PRId64, i->imm);
		break;
	case IR_ATTR_STR:
		strbuf_putc(out, ' ');
		print_string(out, i->str);
		break;
	case IR_ATTR_WIDTH:
		strbuf_printf(out, " %c%u", i->sign ? 'i' : 'u', i->width);
		break;
	case IR_ATTR_FN:
		strbuf_printf(out, " %s", ir_fn_text(i->fn));
		break;
	case IR_ATTR_BI:
		strbuf_printf(out, " %s", ir_builtin_text(i->bi));
		break;
	case IR_ATTR_VAR:
		strbuf_printf(out, " %u", i->var->id);
		break;
	case IR_ATTR_MAP:
		strbuf_printf(out, " %u", i->map->id);
		break;
	case IR_ATTR_AGG:
		strbuf_printf(out, " %u", i->agg->id);
		break;
	case IR_ATTR_REC:
		strbuf_printf(out, " %u", i->rec->id);
		break;
	case IR_ATTR_ITER:
		strbuf_printf(out, " %u", i->iter->id);
		break;
	case IR_ATTR_PART:
		strbuf_printf(out, " %u %u", i->iter->id, i->part);
		break;
	case IR_ATTR_FMT:
		strbuf_putc(out, ' ');
		print_string(out, i->fmt->text);
		break;
	case IR_ATTR_JUMP:
		strbuf_printf(out, " b%u", i->target[0]->id);
		break;
	case IR_ATTR_BRANCH:
		strbuf_printf(out, " b%u b%u", i->target[0]->id, i->target[1]->id);
		break;
	case IR_ATTR_NONE:
		break;
	}
}

static void print_insn(struct strbuf *out, const struct ir_insn *i)
{
	strbuf_putc(out, '\t');
	if (i->dst != IR_NO_REG)
		strbuf_printf(out, "r%u = ", i->dst);
	strbuf_puts(out, ir_op_text(i->op));
	print_attr(out, i);
	for (uint32_t k = 0; k < i->nargs; k++)
		strbuf_printf(out, " r%u", i->args[k]);
	if (i->act)
		strbuf_printf(out, " @%u", i->act);
	strbuf_putc(out, '\n');
}

static void print_desc(struct strbuf *out, const struct probe_desc *d)
{
	strbuf_putc(out, ' ');
	if (d->id) {
		strbuf_printf(out, "%u", d->id);
		return;
	}
	print_string(out, d->prov);
	strbuf_putc(out, ':');
	print_string(out, d->mod);
	strbuf_putc(out, ':');
	print_string(out, d->func);
	strbuf_putc(out, ':');
	print_string(out, d->name);
}

static void print_clause(struct strbuf *out, const struct ir_clause *c)
{
	strbuf_puts(out, "clause");
	for (uint32_t k = 0; k < c->ndescs; k++)
		print_desc(out, &c->descs[k]);
	if (c->runs != IR_EVENT)
		strbuf_puts(out, c->runs == IR_ALONE ? " alone" : " tracer");
	strbuf_putc(out, '\n');
	if (c->nregs) {
		strbuf_puts(out, "regs ");
		for (uint32_t r = 0; r < c->nregs; r++)
			strbuf_putc(out, (char)c->regs[r]);
		strbuf_putc(out, '\n');
	}
	for (uint32_t b = 0; b < c->nblocks; b++) {
		strbuf_printf(out, "b%u:\n", b);
		for (uint32_t k = 0; k < c->blocks[b]->n; k++)
			print_insn(out, &c->blocks[b]->insns[k]);
	}
}

void ir_print(const struct ir_prog *p, struct strbuf *out)
{
	strbuf_printf(out, "strsize %u\n", p->strsize);
	if (p->nesting != IR_NESTING)
		strbuf_printf(out, "nesting %u\n", p->nesting);
	if (p->exclusive)
		strbuf_printf(out, "exclusive %" PRIu64 "\n", p->lock_wait_ns);
	for (uint32_t k = 0; k < p->nvars; k++)
		print_var(out, p->vars[k]);
	for (uint32_t k = 0; k < p->nmaps; k++)
		print_map(out, p->maps[k]);
	for (uint32_t k = 0; k < p->niters; k++)
		print_iter(out, p->iters[k]);
	for (uint32_t k = 0; k < p->naggs; k++)
		print_agg(out, p->aggs[k]);
	for (uint32_t k = 0; k < p->nrecs; k++)
		print_rec(out, p->recs[k]);
	for (uint32_t k = 0; k < p->nclauses; k++)
		print_clause(out, p->clauses[k]);
}
