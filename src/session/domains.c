/*
 * Trust domains (target/peer.h) and what a script shares.
 *
 * Each domain has its own segment, and the tracer merges records and aggregations.  Global variables and arrays that
 * clauses of events use cannot be merged: they are in one segment, and so in one domain.  A script that uses them in
 * processes of several domains runs in the kernel.  Actions that the tracer carries out with its own rights are
 * accepted from records of its own domain only (ir/actions.def), because other domains can write any record.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "ir/facts.h"
#include "place/target.h"
#include "session/private.h"
#include "target/peer.h"

/* The name of the session-wide variable that an instruction uses, or NULL. */
static const char *shared_by(const struct ir_insn *i)
{
	uint32_t effects = ir_effects(i);

	if (effects & (IR_R_VAR | IR_W_VAR) && i->var && i->var->cls == IR_GLOBAL)
		return i->var->name;
	if (effects & (IR_R_MAP | IR_W_MAP) && i->map && i->map->cls == IR_GLOBAL)
		return i->map->name;
	return NULL;
}

static const char *shared_of(struct ir_clause *const *clauses, uint32_t n)
{
	struct ir_walk w = ir_walk_clauses(clauses, n);
	const char *name = NULL;

	for (const struct ir_insn *i; !name && (i = ir_next(&w));)
		name = shared_by(i);
	return name;
}

const char *session_shared(const struct session *s)
{
	const char *name = shared_of(s->on.errors, s->on.nerrors);

	for (uint32_t i = 0; !name && i < s->on.n; i++)
		if (!session_is_tracers(s->on.v[i].probe))
			name = shared_of(s->on.v[i].clauses, s->on.v[i].nclauses);
	return name;
}

/* Do events run clause @id? */
static bool is_events(const struct enabled_probes *on, uint32_t id)
{
	for (uint32_t i = 0; i < on->n; i++)
		for (uint32_t k = 0; k < on->v[i].nclauses; k++)
			if (on->v[i].clauses[k]->id == id && !session_is_tracers(on->v[i].probe))
				return true;
	return false;
}

/* An action that is not done for other domains, in a clause of an event or, if @any, in any clause; or NULL. */
static const char *own_action(const struct session *s, bool any)
{
	const struct ir_prog *prog = s->conf.prog;

	for (uint32_t r = 0; r < prog->nrecs; r++)
		for (uint32_t a = 0; a < prog->recs[r]->nacts; a++)
			if (ir_act_is_own(prog->recs[r]->acts[a].kind) && (any || is_events(&s->on, prog->recs[r]->clause)))
				return ir_act_text(prog->recs[r]->acts[a].kind);
	return NULL;
}

bool session_spans(const struct session *s, struct strbuf *why)
{
	const char *shared = session_shared(s);
	const struct probe *first = NULL;
	struct domain one, other;
	char how[64];

	for (uint32_t i = 0; shared && i < s->on.n; i++) {
		const struct probe *p = s->on.v[i].probe;

		if (session_is_tracers(p) || !p->pid || domain_of((pid_t)p->pid, first ? &other : &one))
			continue;
		if (!first) {
			first = p;
		} else if (p->pid != first->pid && !domain_same(&one, &other)) {
			strbuf_printf(why, "processes %u and %u are in different trust domains (%s) and would share the "
				      "variable %s", first->pid, p->pid, domain_differs(&other, &one, how, sizeof(how)), shared);
			return true;
		}
	}
	return false;
}

bool session_acts_for_others(const struct session *s, struct strbuf *why)
{
	const char *act = own_action(s, session_shared(s) != NULL);
	struct domain own, d;
	char how[64];

	if (!act || domain_of(getpid(), &own))
		return false;
	for (uint32_t i = 0; i < s->on.n; i++) {
		const struct probe *p = s->on.v[i].probe;

		if (session_is_tracers(p) || !p->pid || domain_of((pid_t)p->pid, &d) || domain_same(&d, &own))
			continue;
		strbuf_printf(why, "%s() is not carried out by what process %u, of another trust domain (%s), says", act, p->pid,
			      domain_differs(&d, &own, how, sizeof(how)));
		return true;
	}
	return false;
}

int session_segment(struct session *s, const struct domain *domain, int fds[3], struct strbuf *why)
{
	const char *shared;
	struct target_place_fds f;
	int e;

	if (!s->place->in_target && !s->away)
		return 0;
	shared = s->away ? NULL : session_shared(s);
	e = target_place_segment(s->away ? s->away : s->place, domain, shared != NULL, &f, why);
	if (e == -EXDEV)
		strbuf_printf(why, "it is in another trust domain than those that share the variable %s; use -x place=kernel, or "
			      "trace it on its own", shared);
	if (e)
		return e;
	fds[0] = f.image;
	fds[1] = f.data;
	fds[2] = f.wake;
	return 1;
}

void session_set_peers(struct session *s, session_peers_fn *each, void *ctx)
{
	s->others.each = each;
	s->others.ctx = ctx;
}

/* Has a process that maps the memory of the tracer's own domain left that domain? */
struct straying {
	const struct session *s;
	struct domain own;
	bool is_lent;
};

static void look_for_stray(void *ctx, pid_t pid)
{
	struct straying *st = ctx;
	struct domain d;

	if (!st->is_lent && !domain_of(pid, &d) && !domain_same(&d, &st->own))
		st->is_lent = target_place_is_home(st->s->place, (uint32_t)pid);
}

/*
 * A process, or forked child, that gives up rights keeps the memory that it has mapped: while one is alive, the
 * domain's memory is not the tracer's own.
 */
static bool is_lent(const struct session *s)
{
	struct straying st = { .s = s };

	if (s->place->in_target && s->others.each && !domain_of(getpid(), &st.own))
		s->others.each(s->others.ctx, look_for_stray, &st);
	return st.is_lent;
}

bool session_may_act(struct session *s, const struct record *rec, const struct ir_act *act)
{
	if (!ir_act_is_own(act->kind) || (!rec->is_foreign && !is_lent(s)))
		return true;
	if (!s->others.nrefused++)
		session_warn(s, "%s() is not carried out by what a process of another trust domain than %s's says: see the "
			     "place option", ir_act_text(act->kind), s->conf.command);
	return false;
}

void session_report_refused(struct session *s)
{
	if (s->others.nrefused > 1)
		session_warn(s, "%llu actions were not carried out for processes of other trust domains",
			     (unsigned long long)s->others.nrefused);
}
