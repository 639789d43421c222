/*
 * Speculations: what a clause may do together with speculate() and commit().
 *
 * Guide: "Speculative Tracing", "Using a Speculation", "Committing a Speculation".
 */
#include "d/check.h"

#include <string.h>

/* What a clause has done so far. */
struct doing {
	bool speculates, commits, records;
};

bool check_spec(struct check *c, struct d_node *call)
{
	(void)c;
	(void)call;
	return true;
}

static void speculate(struct check *c, const struct d_node *n, struct doing *d)
{
	if (d->speculates)
		check_error(c, n->pos, "D_SPEC_SPEC", "speculate( ) may not follow speculate( )");
	else if (d->commits)
		check_error(c, n->pos, "D_SPEC_COMM", "speculate( ) may not follow commit( )");
	else if (d->records)
		check_error(c, n->pos, "D_SPEC_DREC", "speculate( ) may not follow data-recording action(s)");
	d->speculates = true;
}

static void commit(struct check *c, const struct d_node *n, struct doing *d)
{
	if (d->commits)
		check_error(c, n->pos, "D_COMM_COMM", "commit( ) may not follow commit( )");
	else if (d->records || d->speculates)
		check_error(c, n->pos, "D_COMM_DREC", "commit( ) may not follow data-recording action(s)");
	d->commits = true;
}

static bool is_destructive(const char *name)
{
	static const char *const names[] = { "freopen", "raise", "stop", "system" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static void action(struct check *c, const struct d_node *n, struct doing *d)
{
	const char *name = n->ident->name;

	if (!strcmp(name, "speculate")) {
		speculate(c, n, d);
	} else if (!strcmp(name, "commit")) {
		commit(c, n, d);
	} else if (!strcmp(name, "exit") && d->speculates) {
		check_error(c, n->pos, "D_EXIT_SPEC", "exit( ) may not follow speculate( )");
	} else if (is_destructive(name) && d->speculates) {
		check_error(c, n->pos, "D_ACT_SPEC", "destructive actions may not follow speculate( )");
	} else if (strcmp(name, "discard") && strcmp(name, "exit") && strcmp(name, "raise") && strcmp(name, "stop")) {
		if (d->commits)
			check_error(c, n->pos, "D_DREC_COMM", "data-recording actions may not follow commit( )");
		d->records = true;
	}
}

void check_spec_rules(struct check *c, const struct d_clause *cl)
{
	struct doing d = { false };

	for (size_t i = 0; cl->body && i < cl->body->n; i++) {
		const struct d_node *n = cl->body->stmts[i]->expr;

		if (cl->body->stmts[i]->kind == D_STMT_IF || !n)
			continue;
		if (n->kind == D_CALL && n->ident && n->ident->kind == ID_ACTION)
			action(c, n, &d);
		else if (n->kind == D_ASSIGN && check_is_agg_ref(n->lhs) && d.commits)
			check_error(c, n->pos, "D_AGG_COMM", "aggregating actions may not follow commit( )");
		else if (n->kind == D_ASSIGN && check_is_agg_ref(n->lhs) && d.speculates)
			check_error(c, n->pos, "D_AGG_SPEC", "aggregating actions may not follow speculate( )");
	}
}
