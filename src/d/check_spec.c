/*
 * The rules of speculations: which actions a clause may combine with speculate() and commit().
 *
 * The rules apply to each path through the clause's ifs.  A speculate() in a branch ends with the branch.  A reader
 * could take later actions for speculative: so actions that record are refused there.
 *
 * Guide: "Speculative Tracing", "Using a Speculation", "Committing a Speculation".
 */
#include "d/check.h"

#include <string.h>

#include "ir/facts.h"

/* What a path through the clause has done so far. */
struct doing {
	bool speculates, commits, records;
	bool branch_speculates;		/* a branch of an earlier if did */
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
	if (d->records || d->speculates)
		check_error(c, n->pos, "D_COMM_DREC", "commit( ) may not follow data-recording action(s)");
	d->commits = true;
}

/* Actions that dtap does not have, like breakpoint() and chill(), are known by name. */
static bool is_destructive(const struct d_ident *id)
{
	if (id->kind == ID_SUBR)
		return id->subr->fn >= 0 && ir_fn_effects((enum ir_fn)id->subr->fn) & IR_W_USER;
	return id->action->effects & ACTION_NOW || (id->action->instead && strcmp(id->name, "pcap") != 0);
}

static void after_branch(struct check *c, const struct d_node *n)
{
	check_error(c, n->pos, "D_SPEC_DREC", "data-recording actions may not follow an if with speculate( ) in a branch");
	diag_hint(c->diag, "speculate( ) holds to the end of its branch: write this in a clause of its own");
}

static void recording(struct check *c, const struct d_node *n, struct doing *d)
{
	const struct action *a = n->ident->action;

	if (a->effects & ACTION_SPECULATES) {
		speculate(c, n, d);
	} else if (a->effects & ACTION_COMMITS) {
		commit(c, n, d);
	} else if (a->effects & ACTION_EXITS && d->speculates) {
		check_error(c, n->pos, "D_EXIT_SPEC", "exit( ) may not follow speculate( )");
	} else if (a->effects & ACTION_RECORDS) {
		if (d->commits)
			check_error(c, n->pos, "D_DREC_COMM", "data-recording actions may not follow commit( )");
		else if (d->branch_speculates)
			after_branch(c, n);
		d->records = true;
	}
}

static void action(struct check *c, const struct d_node *n, struct doing *d)
{
	if (is_destructive(n->ident) && d->speculates)
		check_error(c, n->pos, "D_ACT_SPEC", "destructive actions may not follow speculate( )");
	else if (n->ident->kind == ID_ACTION)
		recording(c, n, d);
}

static void block(struct check *c, const struct d_block *b, struct doing *d);

/* After an if, assume what either branch did. */
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
		else if (n->kind == D_CALL && n->ident && (n->ident->kind == ID_ACTION || n->ident->kind == ID_SUBR))
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
