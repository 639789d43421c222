#include "cmd/serve/profile.h"

#include <errno.h>
#include <signal.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytemap.h"
#include "base/grow.h"
#include "base/strbuf.h"
#include "cmd/ready/opts.h"
#include "cmd/ready/tree.h"
#include "cmd/serve/config.h"
#include "cmd/serve/item.h"
#include "cmd/serve/labels.h"
#include "cmd/serve/output.h"
#include "cmd/serve/tally.h"
#include "dtap.h"

#define NS_PER_S UINT64_C(1000000000)

/* What a period has of processes with the same labels. */
struct group {
	struct strbuf variables;	/* of the labels, and the type */
	char *type, *unit;		/* of a script's values; NULL: the tree says it */
	struct ready_tree tree;
	uint64_t from_ns;
	bool is_numbered;		/* it was offered to the output of that run, which had no room */
	uint64_t run, number;
};

struct profiles {
	const struct serve_config *config;
	const struct serve_script *script;
	families_process_fn *process;
	void *ctx;
	uint64_t from_ns;		/* the reading before */
	struct tallies tallies;
	struct group **groups;
	size_t n, cap;
};

struct profiles *profiles_new(const struct serve_config *config, const struct serve_script *script, families_process_fn *process,
			      void *ctx, uint64_t now_ns)
{
	struct profiles *p = malloc(sizeof(*p));

	if (p)
		*p = (struct profiles){ .config = config, .script = script, .process = process, .ctx = ctx, .from_ns = now_ns };
	return p;
}

static void free_group(struct group *g)
{
	strbuf_fini(&g->variables);
	free(g->type);
	free(g->unit);
	ready_tree_fini(&g->tree);
	free(g);
}

void profiles_free(struct profiles *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		free_group(p->groups[i]);
	free(p->groups);
	tallies_fini(&p->tallies);
	free(p);
}

void profiles_show(struct profiles *p, const struct serve_config *config, const struct serve_script *script)
{
	p->config = config;
	p->script = script;
}

/* --- rows ---------------------------------------------------------------------------------------------- */

/* Is the key at @at a process's number?  Of a command its column says so, of a script the label "process". */
static bool is_process(const struct serve_script *s, const char *aggregation, size_t at)
{
	const struct ready_head *h = s->command ? &s->command->head : NULL;
	const struct serve_metric *set = serve_metric(s, aggregation);

	if (!h)
		return set && at < set->labels.n && !strcmp(set->labels.v[at], "process");
	for (size_t i = 0; i < h->ncolumns; i++)
		if (h->columns[i].is_key && !at--)
			return !strcmp(h->columns[i].name, "pid");
	return false;
}

static const struct dtap_value *stack_of(const struct dtap_row *row)
{
	for (size_t i = 0; i < row->nkeys; i++)
		if (row->keys[i].type == DTAP_STACK)
			return &row->keys[i];
	return NULL;
}

/* What the row's values are.  False: it is nothing for a profile. */
static bool kind_of(const struct serve_script *s, const struct dtap_row *row, enum ready_kind *kind)
{
	const struct ready_head *h = s->command ? &s->command->head : NULL;

	*kind = READY_SAMPLES;
	if (!h)
		return !strcmp(row->function, "count") || !strcmp(row->function, "sum");
	for (size_t i = 0; i < h->ncolumns; i++) {
		if (h->columns[i].of && !strcmp(h->columns[i].of, row->aggregation)) {
			*kind = h->columns[i].kind;
			return true;
		}
	}
	return false;
}

/* The variables of what is known of the row's process; none if the row has none. */
static void put_labels(const struct profiles *p, const struct dtap_row *row, struct strbuf *out)
{
	const struct labels *l = NULL;

	for (size_t i = 0; i < row->nkeys && !l; i++)
		if (row->keys[i].type != DTAP_STACK && row->keys[i].type != DTAP_STRING && is_process(p->script, row->aggregation, i))
			l = p->process(p->ctx, (pid_t)row->keys[i].i);
	if (!l)
		return;
	item_variable(out, "unit", l->unit ? l->unit : "");
	item_variable(out, "container", l->container ? l->container : "");
	item_variable(out, "interpreter", l->interpreter ? l->interpreter : "");
	for (size_t i = 0; i < p->config->labels.n && i < l->nvalues; i++)
		item_variable(out, p->config->labels.v[i].name, l->values[i] ? l->values[i] : "");
}

static struct group *new_group(struct profiles *p, const struct dtap_row *row, const char *variables)
{
	const struct ready_head *h = p->script->command ? &p->script->command->head : NULL;
	const struct serve_metric *set = serve_metric(p->script, row->aggregation);
	struct group *g = calloc(1, sizeof(*g));

	if (!g || !grow_array(&p->groups, &p->cap, p->n, sizeof(struct group *)) || ready_tree_begin(&g->tree)) {
		free(g);
		return NULL;
	}
	g->from_ns = p->from_ns;
	strbuf_puts(&g->variables, variables);
	for (size_t i = 0; h && i < h->ncolumns; i++)
		ready_tree_note(&g->tree, h->columns[i].kind);
	if (!h) {
		g->type = strdup(*row->aggregation ? row->aggregation : "count");
		g->unit = strdup(set && set->unit ? set->unit : "count");
	}
	return p->groups[p->n++] = g;
}

/* The group that the row belongs to; NULL: out of memory. */
static struct group *group_of(struct profiles *p, const struct dtap_row *row)
{
	struct strbuf variables = { 0 };
	struct group *g = NULL;

	if (!p->script->command)
		item_variable(&variables, "type", row->aggregation);
	put_labels(p, row, &variables);
	for (size_t i = 0; i < p->n && !g; i++)
		if (!strcmp(strbuf_str(&p->groups[i]->variables), strbuf_str(&variables)))
			g = p->groups[i];
	if (!g)
		g = new_group(p, row, strbuf_str(&variables));
	strbuf_fini(&variables);
	return g;
}

void profiles_begin(struct profiles *p)
{
	tallies_begin(&p->tallies);
}

/* The row has not grown, and is forgotten if its process has ended. */
static int end_row(struct profiles *p, const struct dtap_row *row)
{
	for (size_t i = 0; i < row->nkeys; i++) {
		if (row->keys[i].type == DTAP_STACK || row->keys[i].type == DTAP_STRING || !is_process(p->script, row->aggregation, i))
			continue;
		if (!kill((pid_t)row->keys[i].i, 0) || errno != ESRCH || !tallies_is_over(&p->tallies, row))
			return 0;
		tallies_forget(&p->tallies, row);
		return DTAP_FORGET;
	}
	return 0;
}

int profiles_add(struct profiles *p, const struct dtap_row *row)
{
	const struct dtap_value *stack = stack_of(row);
	struct dtap_row growth;
	enum ready_kind kind;
	struct group *g;
	int e;

	if (!stack || row->nbuckets || !kind_of(p->script, row, &kind))
		return 0;
	e = tallies_grow(&p->tallies, row, &growth);
	if (!e) {
		free((void *)growth.buckets);
		return end_row(p, row);
	}
	if (e < 0)
		return e;
	free((void *)growth.buckets);
	g = group_of(p, row);
	return g ? ready_tree_add(&g->tree, kind, stack, 0, &growth) : -ENOMEM;
}

/* --- profiles ------------------------------------------------------------------------------------------ */

/* The name of its profile.  It is kept while there is no room for it, since a number that is missing is a loss. */
static void name_group(struct group *g, struct output *output)
{
	if (g->is_numbered && g->run == output_run(output))
		return;
	g->is_numbered = true;
	g->run = output_run(output);
	g->number = output_next(output);
}

/* All variables of a profile of @g. */
static void put_variables(const struct profiles *p, const struct group *g, uint64_t until_ns, struct strbuf *out)
{
	char run[17];

	snprintf(run, sizeof(run), "%016" PRIx64, g->run);
	item_variable(out, "script", p->script->name);
	item_variable(out, "hash", p->script->hash);
	item_variable(out, "host", p->config->machine);
	item_number(out, "from", g->from_ns / NS_PER_S);
	item_number(out, "until", until_ns / NS_PER_S);
	item_variable(out, "run", run);
	item_number(out, "number", g->number);
	strbuf_printf(out, "%s%s", g->variables.len ? "&" : "", strbuf_str(&g->variables));
}

/* Each variable is a comment, "script=calls". */
static int put_pprof(struct group *g, const char *variables, uint64_t until_ns, struct strbuf *out)
{
	struct ready_pprof about = { .type = g->type, .unit = g->unit, .time_ns = g->from_ns, .duration_ns = until_ns - g->from_ns };
	struct arena *a = arena_new();
	const char **comments = NULL;
	size_t cap = 0;
	char *rest, *one = strtok_r(arena_strdup(a, variables), "&", &rest);
	int e;

	for (; one; one = strtok_r(NULL, "&", &rest)) {
		comments = arena_grow(a, comments, &cap, about.ncomments, sizeof(*comments));
		comments[about.ncomments++] = one;
	}
	about.comments = comments;
	e = ready_pprof_write(&g->tree, &about, out);
	arena_free(a);
	return e;
}

/* False: there was no room for it, or no memory, and it is to be tried again. */
static bool put_group(struct profiles *p, struct group *g, struct output *output, uint64_t until_ns)
{
	struct strbuf variables = { 0 }, bytes = { 0 }, item = { 0 };
	int e;

	name_group(g, output);
	put_variables(p, g, until_ns, &variables);
	e = put_pprof(g, strbuf_str(&variables), until_ns, &bytes);
	if (!e) {
		item_write(strbuf_str(&variables), &bytes, &item);
		e = output_offer(output, &item);
	}
	if (e == -EFBIG)
		output_put(output, &item);	/* counts it as lost */
	strbuf_fini(&variables);
	strbuf_fini(&bytes);
	strbuf_fini(&item);
	return !e || e == -EFBIG;
}

uint64_t profiles_put(struct profiles *p, struct output *output, uint64_t now_ns)
{
	uint64_t taken = 0;
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (!put_group(p, p->groups[i], output, now_ns)) {
			p->groups[kept++] = p->groups[i];
			continue;
		}
		free_group(p->groups[i]);
		taken++;
	}
	p->n = kept;
	p->from_ns = now_ns;
	return taken;
}
