/*
 * Values of the traced language for programs in the kernel: the agent reads them at the event, before the program runs.  So
 * what is asked must follow from the event and from constants: pyint(pyattr(pyarg("self"), "id")) does, an object that was
 * kept in a variable does not.
 */
#include <stddef.h>

#include "base/arena.h"
#include "bpf/unit.h"
#include "ir/facts.h"

struct search {
	const struct ebpf_unit *u;
	const struct ir_clause *clause;
	const struct ir_insn **def;	/* by register; NULL: none, or several */
	uint32_t first;			/* the first of the clause's values */
	struct ebpf_wanted *v;
	uint32_t n;
	size_t cap;
	uint32_t off;			/* where the next value goes */
};

static void find_defs(struct search *s)
{
	struct ir_walk w = ir_walk_clause(s->clause);
	uint32_t *ndefs = arena_alloc(s->u->prog->arena, s->clause->nregs * sizeof(*ndefs) + 1);

	s->def = arena_alloc(s->u->prog->arena, s->clause->nregs * sizeof(*s->def) + 1);
	for (const struct ir_insn *i; (i = ir_next(&w));) {
		if (i->dst != IR_NO_REG)
			s->def[i->dst] = ndefs[i->dst]++ ? NULL : i;
	}
}

/* What makes register @r, through copies; NULL: it has several values. */
static const struct ir_insn *origin(const struct search *s, ir_reg r)
{
	const struct ir_insn *i = s->def[r];

	while (i && i->op == IR_MOV)
		i = s->def[i->args[0]];
	return i;
}

/* 1 + the number of the value that @i is; 0: it is none, or one that is asked for later. */
static uint32_t number_of(const struct search *s, const struct ir_insn *i)
{
	for (uint32_t k = s->first; k < s->n; k++)
		if (s->v[k].insn == i)
			return 1 + k;
	return 0;
}

/* Register @r as a number: *from or *value.  False: it is neither a constant nor such a value. */
static bool find_number(const struct search *s, ir_reg r, uint32_t *from, uint64_t *value)
{
	const struct ir_insn *i = origin(s, r);

	if (i && i->op == IR_CONST) {
		*value = (uint64_t)i->imm;
		return true;
	}
	*from = i ? number_of(s, i) : 0;
	return *from;
}

static bool find_text(const struct search *s, ir_reg r, struct ebpf_wanted *w)
{
	const struct ir_insn *i = origin(s, r);

	if (!i || i->op != IR_STRC)
		return false;
	w->text = i->str;
	w->abi.name_from = ABI_WANTED_TEXT;
	return true;
}

/* As the parameters of ABI_HELPER_VALUE are (gen_value.c). */
static bool ask(struct search *s, const struct ir_insn *i)
{
	bool number = i->nargs && s->clause->regs[i->args[0]] == IR_INT, is_str = ir_fn_result(i->fn) == IR_STR;
	struct ebpf_wanted w = {
		.insn = i,
		.abi = { .what = gen_value_asked(i->fn), .size = is_str ? s->u->prog->strsize : 8, .off = s->off },
	};

	if (number && !find_number(s, i->args[0], &w.abi.object_from, &w.abi.object))
		return false;
	if (i->nargs > 1 && s->clause->regs[i->args[1]] == IR_INT) {
		if (!find_number(s, i->args[1], &w.abi.name_from, &w.abi.name))
			return false;
	} else if (i->nargs > number && !find_text(s, i->args[number], &w)) {
		return false;
	}
	if (w.abi.size < 8)
		w.abi.size = 8;
	s->off += (uint32_t)offsetof(struct abi_given, value) + ((w.abi.size + 7) & ~7u);
	if (s->off > ABI_GIVEN_MAX)
		return false;
	s->v = arena_grow(s->u->prog->arena, s->v, &s->cap, s->n, sizeof(*s->v));
	s->v[s->n++] = w;
	return true;
}

static const char *refusal(const struct search *s, const struct ir_insn *i)
{
	struct src_pos pos = i->pos;

	if (s->off > ABI_GIVEN_MAX)
		return "the values of Python that one probe's clauses ask for take too much memory: lower strsize";
	return arena_printf(s->u->prog->arena, "%s:%u:%u: %s() of what is not of this event: in the kernel place the agent reads values "
			    "before the clause runs, of the function's variables, their attributes and items by constants; keep what "
			    "the value is instead of the object, or use -x place=target", pos.src ? pos.src->name : "", pos.line, pos.col,
			    ir_fn_text(i->fn));
}

struct ebpf_wanted *ebpf_wanted(const struct ebpf_unit *u, struct ir_clause *const *clauses, uint32_t nclauses, uint32_t *n,
				const char **err)
{
	struct search s = { .u = u };

	s.v = arena_grow(u->prog->arena, NULL, &s.cap, 0, sizeof(*s.v));
	for (uint32_t k = 0; k < nclauses; k++) {
		struct ir_walk w = ir_walk_clause(clauses[k]);

		s.clause = clauses[k];
		s.first = s.n;
		find_defs(&s);
		for (const struct ir_insn *i; (i = ir_next(&w));) {
			if (i->op != IR_CALL || !gen_asks_value(i->fn) || ask(&s, i))
				continue;
			*err = refusal(&s, i);
			return NULL;
		}
	}
	*n = s.n;
	return s.v;
}
