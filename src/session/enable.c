/*
 * From clauses to probes: which probes each clause is for, and their numbers.
 */
#include "session/private.h"

#include <string.h>

#include "base/arena.h"

/* The table's entry for @probe, made if need be. */
static struct enabled *enabled_for(struct session *s, const struct probe *probe)
{
	struct enabled *en;
	uint32_t i;

	for (i = 0; i < s->nenabled; i++)
		if (s->enabled[i].probe == probe)
			return &s->enabled[i];
	s->enabled = arena_grow(s->arena, s->enabled, &s->enabled_cap, s->nenabled, sizeof(*s->enabled));
	en = &s->enabled[s->nenabled++];
	memset(en, 0, sizeof(*en));
	en->probe = probe;
	en->prog = -1;
	return en;
}

static void add_clause(struct session *s, const struct probe *probe, struct ir_clause *c)
{
	struct enabled *en = enabled_for(s, probe);

	/* Once, even when several of its descriptions match. */
	if (en->nclauses && en->clauses[en->nclauses - 1] == c)
		return;
	en->clauses = arena_grow(s->arena, en->clauses, &en->cap, en->nclauses, sizeof(struct ir_clause *));
	en->clauses[en->nclauses++] = c;
}

/* Does the script name functions of libraries that a process may load later? */
static bool looks_again(const struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;
	uint32_t i, j;

	for (i = 0; s->conf.opts->v[OPT_zdefs] && i < prog->nclauses; i++)
		for (j = 0; j < prog->clauses[i]->ndescs; j++)
			if (probe_wants_libraries(&prog->clauses[i]->descs[j]))
				return true;
	return false;
}

/* Number the clauses of the probes from @first on. */
static void number(struct session *s, uint32_t first)
{
	uint32_t epid = first ? s->enabled[first - 1].epid + s->enabled[first - 1].nclauses : 1, i;

	for (i = first; i < s->nenabled; i++) {
		s->enabled[i].epid = epid;
		epid += s->enabled[i].nclauses;
	}
}

void session_match(struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;
	struct probe_list found = { 0 };
	struct enabled *en;
	uint32_t i, j;
	size_t k;

	for (i = 0; i < prog->nclauses; i++) {
		struct ir_clause *c = prog->clauses[i];

		for (j = 0; j < c->ndescs; j++) {
			found.n = 0;
			probe_find(s->conf.probes, &c->descs[j], PROBE_ENABLE, &found);
			for (k = 0; k < found.n; k++)
				add_clause(s, found.probes[k], c);
		}
	}
	number(s, 0);
	if (looks_again(s)) {
		/* Nothing moves in memory when the session adds to the table later. */
		s->later = LATER_PROBES;
		en = arena_alloc(s->arena, (s->nenabled + LATER_PROBES) * sizeof(*en));
		if (s->nenabled)
			memcpy(en, s->enabled, s->nenabled * sizeof(*en));
		s->enabled = en;
		s->enabled_cap = s->nenabled + LATER_PROBES;
	}
	for (i = 0; i < s->nenabled; i++) {
		en = &s->enabled[i];
		if (en->probe->kind == PROBE_ERROR) {
			s->errors = en->clauses;
			s->nerrors = en->nclauses;
			s->error_probe = i;
		}
	}
}

unsigned int session_matched(const struct session *s, const struct source *src)
{
	unsigned int n = 0;
	uint32_t i, j;

	for (i = 0; i < s->nenabled; i++)
		for (j = 0; j < s->enabled[i].nclauses; j++)
			n += source_is_in(s->enabled[i].clauses[j]->pos.src, src);
	return n;
}

uint32_t session_match_again(struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;
	uint32_t first = s->nenabled, i, j;
	struct probe_list found = { 0 };
	size_t k;

	for (i = 0; s->later && i < prog->nclauses; i++) {
		struct ir_clause *c = prog->clauses[i];

		for (j = 0; j < c->ndescs; j++) {
			if (!probe_wants_libraries(&c->descs[j]))
				continue;
			found.n = 0;
			probe_find(s->conf.probes, &c->descs[j], PROBE_ENABLE, &found);
			for (k = 0; k < found.n && s->nenabled < s->enabled_cap; k++)
				if (enabled_for(s, found.probes[k]) >= &s->enabled[first])
					add_clause(s, found.probes[k], c);
		}
	}
	number(s, first);
	return first;
}
