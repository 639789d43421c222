/*
 * Speculations: what a clause may do together with speculate() and commit().
 *
 * The rules hold on each way through the clause's ifs.  A speculate() in a branch ends with it, so what is recorded
 * behind would be speculative for one reader and not for another: that is refused.
 *
 * Guide: "Speculative Tracing", "Using a Speculation", "Committing a Speculation".
 */
#include "d/check.h"

#include <string.h>

/* What a clause has done so far. */
struct doing {
	bool speculates, commits, records;
	bool branch_speculates;		/* a branch of an if that is over did */
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

static void after_branch(struct check *c, const struct d_node *n)
{
	check_error(c, n->pos, "D_SPEC_DREC", "data-recording actions may not follow an if with speculate( ) in a branch");
	diag_hint(c->diag, "speculate( ) holds to the end of its branch: write this in a clause of its own");
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
		else if (d->branch_speculates)
			after_branch(c, n);
		d->records = true;
	}
}

static void block(struct check *c, const struct d_block *b, struct doing *d);

/* Behind an if, what either branch did may have been done. */
static void branches(struct check *c, const struct d_stmt *s, struct doing *d)
{
	bool speculates = d->speculates;
	struct doing no = *d;

	block(c, s->yes, d);
	block(c, s->no, &no);
	d->speculates |= no.speculates;
	d->commits |= no.commits;
	d->records |= no.records;
	d->branch_speculates |= no.branch_speculates | (d->speculates && !speculates);
}

static void block(struct check *c, const struct d_block *b, struct doing *d)
{
	for (size_t i = 0; b && i < b->n; i++) {
		const struct d_node *n = b->stmts[i]->expr;

		if (b->stmts[i]->kind == D_STMT_IF)
			branches(c, b->stmts[i], d);
		else if (n->kind == D_CALL && n->ident && n->ident->kind == ID_ACTION)
			action(c, n, d);
		else if (n->kind == D_ASSIGN && check_is_agg_ref(n->lhs) && d->commits)
			check_error(c, n->pos, "D_AGG_COMM", "aggregating actions may not follow commit( )");
		else if (n->kind == D_ASSIGN && check_is_agg_ref(n->lhs) && d->speculates)
			check_error(c, n->pos, "D_AGG_SPEC", "aggregating actions may not follow speculate( )");
	}
}

void check_spec_rules(struct check *c, const struct d_clause *cl)
{
	struct doing d = { false };

	block(c, cl->body, &d);
}
