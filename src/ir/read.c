/*
 * Reads the IR from text.
 *
 *	program  = ["strsize" N] ["nesting" N] ["exclusive" N] { var | map | iter | agg | rec | clause }
 *	slot     = "s" | ("i" | "u") ("1" | "2" | "4" | "8")
 *	var      = "var" STRING ("global" | "thread" | "clause" | "local" | "frame") slot
 *	map      = "map" STRING ("global" | "thread") "keys" {slot} ("value" slot | stat) ["frees"]
 *		   ["ordered" | "wraps"] ["max" N]
 *	stat     = "stat" ["extremes"] ["squares"] ["shift" N] ["log" | "linear" N N N]
 *	iter     = "iter" MAP ["sort" ("key" N | "value" | "count" | ...)] ["down"] ["given" BITS]
 *	agg      = "agg" STRING function "keys" {slot} ["param" N N N N] ["signed"]
 *	rec      = "rec" CLAUSE "fields" {slot} ["stat" MAP] {act}
 *	act      = "act" action FIELD COUNT ["aggs" {N}] ["fmt" STRING]
 *	clause   = "clause" {NUMBER | STRING ":" STRING ":" STRING ":" STRING} ["alone" | "tracer"] ["regs" TYPES]
 *		   {block}
 *	block    = "b" N ":" {insn}
 *	insn     = ["r" N "="] operation [attribute] {"r" N} ["@" ACTION]
 *
 * Declarations and blocks are numbered from 0, each kind in order of appearance.  TYPES has a letter (i, s) for each
 * register; without it all registers are integers.  Line breaks only end comments, which start with "#".  A program
 * that was read may still be malformed: ir_check.
 */
#include "ir/ir.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "ir/facts.h"
#include "lang/format.h"

enum { MAX_REGS = 1 << 16, MAX_BLOCKS = 1 << 15 };

enum tok { T_END, T_WORD, T_NUMBER, T_STRING, T_CHAR };

struct reader {
	struct arena *arena;
	struct ir_prog *prog;
	const struct source *src;
	const char *p;
	unsigned int line, tok_line;
	enum tok tok;
	char *text;			/* WORD, STRING; CHAR: one character */
	int64_t number;
	const char *err;		/* the first mistake; then all tokens are T_END */
	struct ir_build build;
	char *types;			/* TYPES of the clause, or NULL */
	size_t ntypes;
};

static void fail(struct reader *r, const char *what)
{
	if (!r->err)
		r->err = arena_printf(r->arena, "line %u: %s", r->tok_line, what);
	r->tok = T_END;
	r->text = (char *)"";
}

/* --- tokens ------------------------------------------------------------------------------------------ */

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static void lex_string(struct reader *r)
{
	size_t n = 0;

	r->tok = T_STRING;
	r->text = arena_alloc(r->arena, strcspn(r->p, "\n") + 1);
	for (r->p++; *r->p != '"'; r->p++) {
		char c = *r->p;

		if (c == '\0' || c == '\n') {
			fail(r, "a string without its end");
			return;
		}
		if (c == '\\') {
			c = *++r->p;
			if (c == 'n') {
				c = '\n';
			} else if (c == 't') {
				c = '\t';
			} else if (c == 'x' && hex(r->p[1]) >= 0 && hex(r->p[2]) >= 0) {
				c = (char)(hex(r->p[1]) * 16 + hex(r->p[2]));
				r->p += 2;
			} else if (c != '"' && c != '\\') {
				fail(r, "an unknown escape");
				return;
			}
			if (!c) {
				fail(r, "a NUL in a string");
				return;
			}
		}
		r->text[n++] = c;
	}
	r->p++;
}

static void lex_number(struct reader *r)
{
	char *end;

	r->tok = T_NUMBER;
	errno = 0;
	r->number = strtoll(r->p, &end, 0);
	if (errno) {
		errno = 0;
		r->number = (int64_t)strtoull(r->p, &end, 0);
	}
	if (errno || end == r->p)
		fail(r, "a number out of range");
	r->p = end;
}

static void next(struct reader *r)
{
	if (r->err)
		return;
	for (;;) {
		if (*r->p == '#')
			r->p += strcspn(r->p, "\n");
		if (*r->p == '\n')
			r->line++;
		else if (!isspace((unsigned char)*r->p))
			break;
		r->p++;
	}
	r->tok_line = r->line;
	if (!*r->p) {
		r->tok = T_END;
		r->text = (char *)"";
	} else if (*r->p == '"') {
		lex_string(r);
	} else if (isdigit((unsigned char)*r->p) || (*r->p == '-' && isdigit((unsigned char)r->p[1]))) {
		lex_number(r);
	} else if (isalpha((unsigned char)*r->p)) {
		size_t n = 1;

		while (isalnum((unsigned char)r->p[n]) || r->p[n] == '_')
			n++;
		r->tok = T_WORD;
		r->text = arena_strndup(r->arena, r->p, n);
		r->p += n;
	} else {
		r->tok = T_CHAR;
		r->text = arena_strndup(r->arena, r->p++, 1);
	}
}

static bool is(const struct reader *r, const char *word)
{
	return (r->tok == T_WORD || r->tok == T_CHAR) && !strcmp(r->text, word);
}

static bool accept(struct reader *r, const char *word)
{
	if (!is(r, word))
		return false;
	next(r);
	return true;
}

static void expect(struct reader *r, const char *word)
{
	if (!accept(r, word))
		fail(r, arena_printf(r->arena, "expected %s", word));
}

static int64_t number(struct reader *r)
{
	int64_t v = r->number;

	if (r->tok != T_NUMBER) {
		fail(r, "expected a number");
		return 0;
	}
	next(r);
	return v;
}

/* A number below @limit. */
static uint32_t index_of(struct reader *r, uint32_t limit)
{
	int64_t v = number(r);

	if (!r->err && (v < 0 || v >= limit))
		fail(r, "a number that refers to nothing");
	return r->err ? 0 : (uint32_t)v;
}

static char *string(struct reader *r)
{
	char *s = r->text;

	if (r->tok != T_STRING) {
		fail(r, "expected a string");
		return (char *)"";
	}
	next(r);
	return s;
}

/* Is the token @letter and a number below @limit: r12, b3? */
static bool numbered(const struct reader *r, char letter, uint32_t limit, uint32_t *v)
{
	unsigned long n;
	char *end;

	if (r->tok != T_WORD || r->text[0] != letter || !isdigit((unsigned char)r->text[1]))
		return false;
	n = strtoul(r->text + 1, &end, 10);
	*v = (uint32_t)n;
	return !*end && n < limit;
}

/* --- declarations ------------------------------------------------------------------------------------- */

static bool is_slot(const struct reader *r)
{
	return is(r, "s") || (r->tok == T_WORD && (r->text[0] == 'i' || r->text[0] == 'u') && r->text[1] &&
			      strchr("1248", r->text[1]) && !r->text[2]);
}

static struct ir_slot slot(struct reader *r)
{
	struct ir_slot s = { .type = IR_INT, .width = 8 };

	if (!is_slot(r)) {
		fail(r, "expected a type: s, i1 ... i8, u1 ... u8");
		return s;
	}
	if (r->text[1]) {
		s.sign = r->text[0] == 'i';
		s.width = (uint8_t)(r->text[1] - '0');
	} else {
		s.type = IR_STR;
		s.width = 0;
	}
	next(r);
	return s;
}

static uint32_t keys(struct reader *r, struct ir_slot *out)
{
	uint32_t n = 0;

	expect(r, "keys");
	while (is_slot(r)) {
		if (n == IR_MAX_KEYS) {
			fail(r, "too many keys");
			break;
		}
		out[n++] = slot(r);
	}
	return n;
}

static void read_var(struct reader *r)
{
	const char *name = string(r);
	enum ir_class cls = IR_GLOBAL;
	struct ir_slot s;

	if (accept(r, "thread"))
		cls = IR_THREAD;
	else if (accept(r, "clause"))
		cls = IR_CLAUSE;
	else if (accept(r, "local"))
		cls = IR_LOCAL;
	else if (accept(r, "frame"))
		cls = IR_FRAME;
	else
		expect(r, "global");
	s = slot(r);
	ir_var_new(r->prog, name, cls, s);
}

static void read_stat(struct reader *r, struct ir_map *m)
{
	m->stat = IR_STAT_PLAIN;
	m->extremes = accept(r, "extremes");
	m->squares = accept(r, "squares");
	if (accept(r, "shift"))
		m->shift = (uint8_t)number(r);
	if (accept(r, "log")) {
		m->stat = IR_STAT_LOG;
	} else if (accept(r, "linear")) {
		m->stat = IR_STAT_LINEAR;
		for (int k = 0; k < 3; k++)
			m->linear[k] = number(r);
	}
}

static void read_iter(struct reader *r)
{
	uint32_t map = index_of(r, r->prog->nmaps);
	struct ir_iter *it;

	if (r->err)
		return;
	it = ir_iter_new(r->prog, r->prog->maps[map]);
	if (accept(r, "sort")) {
		unsigned int sort = 0;

		while (sort < IR_SORT_NR && !is(r, ir_sort_text((enum ir_sort)sort)))
			sort++;
		if (sort == IR_SORT_NR) {
			fail(r, "expected what to sort by");
			return;
		}
		next(r);
		it->sort = (enum ir_sort)sort;
		if (it->sort == IR_SORT_KEY)
			it->column = index_of(r, IR_MAX_KEYS);
	}
	it->down = accept(r, "down");
	if (accept(r, "given"))
		it->given = index_of(r, UINT32_MAX);
}

static void read_map(struct reader *r)
{
	const char *name = string(r);
	enum ir_class cls = IR_GLOBAL;
	struct ir_map *m;

	if (accept(r, "thread"))
		cls = IR_THREAD;
	else
		expect(r, "global");
	m = ir_map_new(r->prog, name, cls);
	m->nkeys = keys(r, m->keys);
	if (accept(r, "stat")) {
		read_stat(r, m);
	} else {
		expect(r, "value");
		m->value = slot(r);
	}
	m->zero_frees = accept(r, "frees");
	m->wraps = accept(r, "wraps");
	m->ordered = m->wraps || accept(r, "ordered");
	if (accept(r, "max"))
		m->max_entries = index_of(r, 1u << 30);
}

static void read_agg(struct reader *r)
{
	const char *name = string(r);
	struct ir_agg *g;
	unsigned int fn = 0;

	while (fn < IR_A_NR && !is(r, ir_agg_text((enum ir_agg_fn)fn)))
		fn++;
	if (fn == IR_A_NR) {
		fail(r, "expected an aggregating function");
		return;
	}
	next(r);
	g = ir_agg_new(r->prog, name, (enum ir_agg_fn)fn);
	g->nkeys = keys(r, g->keys);
	if (accept(r, "param")) {
		for (int k = 0; k < 4; k++)
			g->param[k] = number(r);
	}
	g->sign = accept(r, "signed");
	g->pos = (struct src_pos){ r->src, r->tok_line, 1 };
}

static const struct fmt *read_format(struct reader *r, enum fmt_lang first)
{
	const char *text = string(r), *err;
	struct fmt *f;
	size_t off;

	f = fmt_parse(r->arena, first, text, strlen(text), &err, &off);
	if (!f)
		f = fmt_parse(r->arena, FMT_STP, text, strlen(text), &err, &off);
	if (!f)
		fail(r, err);
	return f;
}

static void read_act(struct reader *r, struct ir_rec *rec)
{
	struct ir_act *act;
	unsigned int kind = 0;

	while (kind < IR_ACT_MAX && !is(r, ir_act_text((enum ir_act_kind)kind)))
		kind++;
	if (kind == IR_ACT_MAX) {
		fail(r, "expected an action");
		return;
	}
	next(r);
	act = ir_rec_act(r->prog, rec, (enum ir_act_kind)kind, (struct src_pos){ r->src, r->tok_line, 1 });
	act->field = index_of(r, rec->nfields + 1);
	act->nfields = index_of(r, rec->nfields - act->field + 1);
	if (accept(r, "aggs")) {
		size_t cap = 0;

		while (r->tok == T_NUMBER) {
			uint32_t g = index_of(r, r->prog->naggs);

			if (r->err)
				return;
			act->aggs = arena_grow(r->arena, act->aggs, &cap, act->naggs, sizeof(*act->aggs));
			act->aggs[act->naggs++] = r->prog->aggs[g];
		}
	}
	if (accept(r, "fmt"))
		act->fmt = read_format(r, FMT_D);
}

static void read_rec(struct reader *r)
{
	struct ir_clause none = { .id = index_of(r, MAX_REGS) };
	struct ir_rec *rec = ir_rec_new(r->prog, &none);

	expect(r, "fields");
	while (is_slot(r)) {
		if (rec->nfields == IR_MAX_FIELDS) {
			fail(r, "too many fields");
			return;
		}
		ir_rec_field(r->prog, rec, slot(r));
	}
	if (accept(r, "stat")) {
		uint32_t map = index_of(r, r->prog->nmaps);

		rec->stat = r->err ? NULL : r->prog->maps[map];
	}
	while (accept(r, "act"))
		read_act(r, rec);
}

/* --- code -------------------------------------------------------------------------------------------- */

static ir_reg reg(struct reader *r)
{
	uint32_t n = 0;

	if (!numbered(r, 'r', MAX_REGS, &n)) {
		fail(r, "expected a register");
		return 0;
	}
	while (r->build.clause->nregs <= n) {
		uint32_t k = r->build.clause->nregs;

		ir_reg_new(&r->build, k < r->ntypes && r->types[k] == 's' ? IR_STR : IR_INT);
	}
	next(r);
	return n;
}

static struct ir_block *block(struct reader *r)
{
	uint32_t n = 0;

	if (!numbered(r, 'b', MAX_BLOCKS, &n)) {
		fail(r, "expected a block");
		return r->build.clause->blocks[0];
	}
	while (r->build.clause->nblocks <= n)
		ir_block_new(&r->build);
	next(r);
	return r->build.clause->blocks[n];
}

/* The index of the token among @n texts; otherwise fails with the message @what. */
static unsigned int one_of(struct reader *r, const char *(*text)(unsigned int k), unsigned int n, const char *what)
{
	unsigned int k = 0;

	while (k < n && !is(r, text(k)))
		k++;
	if (k == n) {
		fail(r, what);
		return 0;
	}
	next(r);
	return k;
}

static const char *op_text(unsigned int k)
{
	return ir_op_text((enum ir_op)k);
}

static const char *fn_text(unsigned int k)
{
	return ir_fn_text((enum ir_fn)k);
}

static const char *builtin_text(unsigned int k)
{
	return ir_builtin_text((enum ir_builtin)k);
}

static void read_attr(struct reader *r, struct ir_insn *i)
{
	struct ir_prog *p = r->prog;
	struct ir_slot s;
	uint32_t k;

	switch (ir_op_fact(i->op)->attr) {
	case IR_ATTR_IMM:
		i->imm = number(r);
		break;
	case IR_ATTR_STR:
		i->str = string(r);
		break;
	case IR_ATTR_WIDTH:
		s = slot(r);
		i->width = s.width;
		i->sign = s.sign;
		if (s.type == IR_STR)
			fail(r, "expected an integer type");
		break;
	case IR_ATTR_FN:
		i->fn = (enum ir_fn)one_of(r, fn_text, IR_FN_MAX, "expected a function");
		break;
	case IR_ATTR_BI:
		i->bi = (enum ir_builtin)one_of(r, builtin_text, IR_B_MAX, "expected a builtin");
		break;
	case IR_ATTR_VAR:
		k = index_of(r, p->nvars);
		i->var = r->err ? NULL : p->vars[k];
		break;
	case IR_ATTR_MAP:
		k = index_of(r, p->nmaps);
		i->map = r->err ? NULL : p->maps[k];
		break;
	case IR_ATTR_AGG:
		k = index_of(r, p->naggs);
		i->agg = r->err ? NULL : p->aggs[k];
		break;
	case IR_ATTR_REC:
		k = index_of(r, p->nrecs);
		i->rec = r->err ? NULL : p->recs[k];
		break;
	case IR_ATTR_ITER:
	case IR_ATTR_PART:
		k = index_of(r, p->niters);
		i->iter = r->err ? NULL : p->iters[k];
		if (ir_op_fact(i->op)->attr == IR_ATTR_PART)
			i->part = index_of(r, IR_MAX_KEYS);
		break;
	case IR_ATTR_FMT:
		i->fmt = read_format(r, FMT_STP);
		break;
	case IR_ATTR_BRANCH:
		i->target[0] = block(r);
		i->target[1] = block(r);
		break;
	case IR_ATTR_JUMP:
		i->target[0] = block(r);
		break;
	case IR_ATTR_NONE:
		break;
	}
}

static void read_insn(struct reader *r)
{
	struct ir_insn i = { .dst = IR_NO_REG, .pos = { r->src, r->tok_line, 1 } };
	struct ir_block *b = r->build.block;
	size_t cap = 0;
	uint32_t n;

	if (numbered(r, 'r', MAX_REGS, &n)) {
		i.dst = reg(r);
		expect(r, "=");
	}
	i.op = (enum ir_op)one_of(r, op_text, IR_OP_MAX, "expected an operation");
	if (r->err)
		return;
	read_attr(r, &i);
	while (numbered(r, 'r', MAX_REGS, &n)) {
		const char *ahead = r->p + strspn(r->p, " \t");

		/* "r1 =" begins the next instruction. */
		if (*ahead == '=')
			break;
		if (i.nargs == IR_MAX_OPERANDS) {
			fail(r, "too many operands");
			return;
		}
		i.args = arena_grow(r->arena, i.args, &cap, i.nargs, sizeof(*i.args));
		i.args[i.nargs++] = reg(r);
	}
	if (accept(r, "@"))
		i.act = index_of(r, 1u << 20);
	if (r->err)
		return;
	b->insns = arena_grow(r->arena, b->insns, &b->cap, b->n, sizeof(*b->insns));
	b->insns[b->n++] = i;
}

static void read_desc(struct reader *r, struct ir_clause *c, size_t *cap)
{
	struct probe_desc d = { .prov = "", .mod = "", .func = "", .name = "" };

	if (r->tok == T_NUMBER) {
		d.id = index_of(r, UINT32_MAX);
	} else {
		d.prov = string(r);
		expect(r, ":");
		d.mod = string(r);
		expect(r, ":");
		d.func = string(r);
		expect(r, ":");
		d.name = string(r);
	}
	c->descs = arena_grow(r->arena, c->descs, cap, c->ndescs, sizeof(*c->descs));
	c->descs[c->ndescs++] = d;
}

static bool at_declaration(const struct reader *r)
{
	return is(r, "clause") || is(r, "var") || is(r, "map") || is(r, "rec") || is(r, "strsize") ||
	       is(r, "nesting") || is(r, "exclusive");
}

static void read_clause(struct reader *r)
{
	struct ir_clause *c = ir_clause_new(r->prog, (struct src_pos){ r->src, r->tok_line, 1 });
	size_t cap = 0;
	uint32_t n;

	ir_build(&r->build, r->prog, c);
	r->types = NULL;
	r->ntypes = 0;
	while (!r->err && (r->tok == T_NUMBER || r->tok == T_STRING))
		read_desc(r, c, &cap);
	if (accept(r, "alone"))
		c->runs = IR_ALONE;
	else if (accept(r, "tracer"))
		c->runs = IR_TRACER;
	if (accept(r, "regs")) {
		r->types = r->text;
		r->ntypes = strlen(r->text);
		if (r->tok != T_WORD || strspn(r->text, "is") != r->ntypes || r->ntypes > MAX_REGS)
			fail(r, "expected the registers' types");
		next(r);
		for (size_t k = 0; k < r->ntypes && !r->err; k++)
			ir_reg_new(&r->build, r->types[k] == 's' ? IR_STR : IR_INT);
	}
	while (!r->err && r->tok != T_END && !at_declaration(r)) {
		const char *ahead = r->p + strspn(r->p, " \t");

		/* With a name, "agg" is a declaration, with a number an instruction.  An instruction "iter" has a
		 * result before it, so a first word "iter" is a declaration. */
		if ((is(r, "agg") && *ahead == '"') || is(r, "iter"))
			break;
		if (numbered(r, 'b', MAX_BLOCKS, &n) && *ahead == ':') {
			ir_at(&r->build, block(r));
			expect(r, ":");
		} else {
			read_insn(r);
		}
	}
}

static void read_strsize(struct reader *r)
{
	int64_t v = number(r);

	if (!r->err && (v < IR_STRSIZE_MIN || v > IR_STRSIZE_MAX))
		fail(r, "strsize is a number from 2 to 65536");
	if (!r->err)
		r->prog->strsize = (uint32_t)v;
}

static void read_nesting(struct reader *r)
{
	r->prog->nesting = index_of(r, IR_MAX_NESTING + 1);
}

static void read_exclusive(struct reader *r)
{
	r->prog->exclusive = true;
	r->prog->lock_wait_ns = (uint64_t)number(r);
}

struct ir_prog *ir_read(struct arena *a, const char *text, const char **err)
{
	static const struct {
		const char *word;
		void (*read)(struct reader *r);
	} things[] = {
		{ "strsize", read_strsize }, { "var", read_var }, { "map", read_map },
		{ "agg", read_agg },	     { "rec", read_rec }, { "clause", read_clause },
		{ "iter", read_iter },	     { "nesting", read_nesting }, { "exclusive", read_exclusive },
	};
	struct reader r = { .arena = a, .p = text, .line = 1 };

	r.prog = ir_prog_new(a, 256);
	r.src = source_text(a, "<ir>", text, strlen(text));
	next(&r);
	while (!r.err && r.tok != T_END) {
		size_t k = 0, n = sizeof(things) / sizeof(things[0]);

		while (k < n && !is(&r, things[k].word))
			k++;
		if (k == n) {
			fail(&r, "expected strsize, nesting, exclusive, var, map, iter, agg, rec or clause");
			break;
		}
		next(&r);
		things[k].read(&r);
	}
	*err = r.err;
	return r.err ? NULL : r.prog;
}
