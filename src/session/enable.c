/*
 * From clauses to probes: the probes of each clause, and their numbers.
 */
#include "session/private.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"

/* The table's entry for @probe, created if needed. */
static struct enabled *enabled_for(struct enabled_probes *on, struct arena *a, const struct probe *probe)
{
	struct enabled *en;
	uint32_t i;

	for (i = 0; i < on->n; i++)
		if (on->v[i].probe == probe)
			return &on->v[i];
	on->v = arena_grow(a, on->v, &on->cap, on->n, sizeof(*on->v));
	en = &on->v[on->n++];
	memset(en, 0, sizeof(*en));
	en->probe = probe;
	en->prog = -1;
	return en;
}

/* Called for each description of @c that matches @probe: the clause runs as often, as in DTrace and SystemTap. */
static void add_clause(struct enabled_probes *on, struct arena *a, const struct probe *probe, struct ir_clause *c)
{
	struct enabled *en = enabled_for(on, a, probe);

	en->clauses = arena_grow(a, en->clauses, &en->cap, en->nclauses, sizeof(struct ir_clause *));
	en->clauses[en->nclauses++] = c;
}

/* Does the script name functions of libraries that a process may load later, or markers of programs that start later? */
static bool looks_again(struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;

	for (uint32_t i = 0; i < prog->nclauses; i++)
		for (uint32_t j = 0; j < prog->clauses[i]->ndescs; j++) {
			const struct probe_desc *d = &prog->clauses[i]->descs[j];

			s->on.libraries = s->on.libraries || (s->conf.opts->v[OPT_zdefs] && probe_wants_libraries(d));
			s->on.programs = s->on.programs || probe_wants_programs(d);
		}
	return s->on.libraries || s->on.programs;
}

/* Number the clauses of the probes from @first on. */
static void number(struct enabled_probes *on, uint32_t first)
{
	uint32_t epid = first ? on->v[first - 1].epid + on->v[first - 1].nclauses : 1, i;

	for (i = first; i < on->n; i++) {
		on->v[i].epid = epid;
		epid += on->v[i].nclauses;
	}
}

int session_match(struct session *s, struct strbuf *err)
{
	const struct ir_prog *prog = s->conf.prog;
	struct enabled_probes *on = &s->on;
	struct probe_list found = { 0 };
	struct enabled *en;
	uint32_t i, j;
	size_t k;

	for (i = 0; i < prog->nclauses; i++) {
		struct ir_clause *c = prog->clauses[i];

		for (j = 0; j < c->ndescs; j++) {
			found.n = 0;
			probe_find(s->conf.probes, &c->descs[j], PROBE_ENABLE, &found);
			if (s->conf.opts->v[OPT_zdefs] && probe_trouble(s->conf.probes)) {
				session_warn(s, "cannot look for the probes of %s: %s", c->descs[j].prov,
					     strerror(-probe_trouble(s->conf.probes)));
			} else if (probe_trouble(s->conf.probes)) {
				strbuf_printf(err, "cannot look for probes: %s", strerror(-probe_trouble(s->conf.probes)));
				return probe_trouble(s->conf.probes);
			}
			for (k = 0; k < found.n; k++)
				add_clause(on, s->arena, found.probes[k], c);
		}
	}
	number(on, 0);
	if (looks_again(s)) {
		/* Reserved, so that nothing moves in memory when entries are added later. */
		on->later = LATER_PROBES;
		en = arena_alloc(s->arena, (on->n + LATER_PROBES) * sizeof(*en));
		if (on->n)
			memcpy(en, on->v, on->n * sizeof(*en));
		on->v = en;
		on->cap = on->n + LATER_PROBES;
	}
	for (i = 0; i < on->n; i++) {
		en = &on->v[i];
		if (en->probe->kind == PROBE_ERROR) {
			on->errors = en->clauses;
			on->nerrors = en->nclauses;
			on->error_probe = i;
		}
	}
	return 0;
}

unsigned int session_matched(const struct session *s, const struct source *src)
{
	unsigned int n = 0;
	uint32_t i, j;

	for (i = 0; i < s->on.n; i++)
		for (j = 0; j < s->on.v[i].nclauses; j++)
			n += source_is_in(s->on.v[i].clauses[j]->pos.src, src);
	return n;
}

uint32_t session_match_again(struct session *s, uint32_t pid)
{
	const struct ir_prog *prog = s->conf.prog;
	struct enabled_probes *on = &s->on;
	uint32_t first = on->n, i, j;
	struct probe_list found = { 0 };
	size_t k;

	probe_set_only(s->conf.probes, pid);
	for (i = 0; (pid ? on->programs : on->libraries) && i < prog->nclauses; i++) {
		struct ir_clause *c = prog->clauses[i];

		for (j = 0; j < c->ndescs; j++) {
			if (pid ? !probe_wants_programs(&c->descs[j]) : !probe_wants_libraries(&c->descs[j]))
				continue;
			found.n = 0;
			probe_find(s->conf.probes, &c->descs[j], PROBE_ENABLE, &found);
			for (k = 0; k < found.n && on->n < on->cap; k++)
				if (enabled_for(on, s->arena, found.probes[k]) >= &on->v[first])
					add_clause(on, s->arena, found.probes[k], c);
		}
	}
	probe_set_only(s->conf.probes, 0);
	number(on, first);
	return first;
}
