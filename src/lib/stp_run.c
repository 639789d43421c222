/*
 * SystemTap scripts: from the checked script to the session, and loading the agent into the processes of its points.
 */
#include "lib/stp_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "ir/ir.h"
#include "lang/diag.h"
#include "probe/points.h"
#include "probe/probe.h"
#include "probe/procs.h"
#include "session/session.h"
#include "session/supply.h"
#include "target/agent.h"
#include "target/target.h"
#include "target/words.h"

/* The command that is held, or NULL. */
static struct target *held(const struct dtap *t)
{
	return t->ntargets ? t->targets[0] : NULL;
}

/* --- pass 3 ------------------------------------------------------------------------------------------- */

static bool is_number(const char *text)
{
	char *end;

	errno = 0;
	strtoll(text, &end, 0);
	return end != text && !*end && !errno;
}

/* Set a global's initial value, converted to its type. */
static void set_global(struct dtap *t, struct stp_var *v, const char *value)
{
	struct stp_node *n = arena_new_of(t->arena, struct stp_node);

	n->kind = v->type == STP_STRINGS ? STP_STR : STP_NUM;
	n->type = v->type;
	n->pos = v->pos;
	n->str = value;
	n->str_len = strlen(value);
	n->value = strtoll(value, NULL, 0);
	v->init = n;
}

static struct stp_var *find_global(const struct dtap *t, const char *name)
{
	struct stp_var *v = stp_run_of(t)->prog->globals.first;

	while (v && (strcmp(v->name, name) || v->arity > 0 || v->is_private || v->type == STP_STATS))
		v = v->next;
	return v;
}

static void set_own(struct dtap *t, const char *name, const char *value)
{
	struct stp_var *v = find_global(t, name);

	if (v)
		set_global(t, v, value);
}

/* Set the globals whose values the tapset cannot determine. */
static void set_own_globals(struct dtap *t)
{
	time_t now = time(NULL);
	pid_t target = held(t) ? target_pid(held(t)) : stp_pid(t);
	struct tm tm = { 0 };

	localtime_r(&now, &tm);
	set_own(t, "_stap_target", arena_printf(t->arena, "%d", (int)target));
	set_own(t, "_stap_tz_west", arena_printf(t->arena, "%ld", -tm.tm_gmtoff));
	set_own(t, "_stap_tz_name", arena_strdup(t->arena, tm.tm_zone ? tm.tm_zone : "UTC"));
}

static int set_globals(struct dtap *t)
{
	set_own_globals(t);
	for (size_t i = 0; i < t->globals.n; i++) {
		const char *text = t->globals.v[i], *eq = strchr(text, '=');
		char *name = arena_strndup(t->arena, text, eq ? (size_t)(eq - text) : strlen(text));
		struct stp_var *v = eq ? find_global(t, name) : NULL;

		if (v && (v->type == STP_STRINGS || is_number(eq + 1))) {
			set_global(t, v, eq + 1);
			continue;
		}
		if (v)
			lib_error(t, "-G %s: the variable is a number, and '%s' is none", text, eq + 1);
		else
			lib_error(t, "-G %s: the script has no global variable of that name that is no array", text);
		return -EINVAL;
	}
	return 0;
}

int stp_translate(struct dtap *t)
{
	struct stp_run *r = stp_run_of(t);
	int e = set_globals(t);

	if (e)
		return e;
	r->code = stp_compile(r->stp, r->prog);
	stp_msg_print(&r->msg, &t->diag);
	if (!r->code || t->diag.errors)
		return -EINVAL;
	t->prog = r->code->prog;
	return 0;
}

/* --- Python's markers ---------------------------------------------------------------------------------- */

bool stp_in_target(const struct dtap *t)
{
	return session_in_target(&t->set) && (stp_run_of(t)->agent.len || !strcmp(t->set.text[OPT_place], "target"));
}

/* Find the agent, and determine how the command must be started (@preload). */
static int foresee(struct dtap *t, const struct target_preload **preload)
{
	struct supply_conf conf = { .probes = t->probes, .message = lib_agent_message, .process = lib_agent_process,
				    .selects = lib_is_selected, .ctx = t, .keep_signals = t->conf.keep_signals };
	struct points_conf points = { .command = t->command, .sysroot = t->stap.sysroot, .hz = stp_run_of(t)->env.hz };
	struct stp_run *r = stp_run_of(t);
	const struct probe_desc *descs;
	struct points *look;
	struct strbuf err = { 0 };
	size_t n;
	int e;

	*preload = NULL;
	conf.few = t->command || t->npids;
	conf.mode = stp_in_target(t) ? PYTHON_ALWAYS : PYTHON_AUTO;
	points.agent_always = stp_in_target(t);
	e = supply_new(&conf, &t->supply, &err);
	if (!e && r->agent.len && t->command) {
		points.agent = strbuf_str(&r->agent);
		look = points_new(t->arena, t->probes, &points);
		n = points_foresee(look, stp_tree(r->stp), &descs);
		e = supply_foresee(t->supply, descs, n, t->command, preload, &err);
		points_free(look);
	}
	if (e)
		return lib_fail(t, e, &err);
	strbuf_fini(&err);
	return 0;
}

static void add_pid(struct dtap *t, uint32_t pid)
{
	struct stp_run *r = stp_run_of(t);

	r->pids = arena_grow(t->arena, r->pids, &r->pids_cap, r->npids, sizeof(*r->pids));
	r->pids[r->npids++] = pid;
}

static int bring_to(struct dtap *t, uint32_t pid, struct strbuf *err)
{
	const struct probe_desc *descs;
	size_t n = points_supplied(stp_run_of(t)->points, pid, &descs);
	int e = supply_attach_pid(t->supply, descs, n, pid, err);

	if (!e)
		add_pid(t, pid);
	return e;
}

struct bringing {
	struct dtap *t;
	unsigned int missed;
	struct strbuf why;
	bool interrupted;
};

static void bring_to_each(void *ctx, uint32_t pid)
{
	struct bringing *b = ctx;
	struct strbuf err = { 0 };
	int e;

	if (b->interrupted || !points_is_supplied(stp_run_of(b->t)->points, pid) || !lib_is_selected(b->t, pid))
		return;
	e = bring_to(b->t, pid, &err);
	b->interrupted = e == -EINTR;
	if (e && e != -ESRCH && e != -EAGAIN && e != -EINTR && !b->missed++)
		strbuf_puts(&b->why, strbuf_str(&err));
	strbuf_fini(&err);
}

static bool runs_program(void *ctx, uint32_t pid)
{
	const struct dtap *t = ctx;

	return points_is_supplied_program(stp_run_of(t)->points, pid) &&
	       (!held(t) || procs_descends(pid, (uint32_t)target_pid(held(t))));
}

/* Follow each process that executes a program named in a point, now or later; with a command only its descendants. */
static int follow(struct dtap *t, struct strbuf *err)
{
	const struct probe_desc *descs;
	size_t n = points_supplied(stp_run_of(t)->points, 0, &descs);

	supply_limit(t->supply, runs_program, NULL, t);
	return supply_follow(t->supply, descs, n, err);
}

/* Load the agent into the target, or, without one, into all processes that the points name. */
static int bring_agent(struct dtap *t)
{
	struct points *points = stp_run_of(t)->points;
	struct bringing b = { .t = t };
	const struct probe_desc *descs;
	struct strbuf err = { 0 };
	uint32_t pid = held(t) ? (uint32_t)target_pid(held(t)) : 0;
	size_t n = points_supplied(points, pid, &descs);
	unsigned int unwilling = 0;
	int e = 0;

	if (points_found_python(points) && *supply_missing(t->supply))
		lib_note(t, "%s", supply_missing(t->supply));
	if (!n)
		return 0;
	if (held(t)) {
		/* It may still be a wrapper, which will execute the program that the points name. */
		while (!points_is_supplied(points, pid) && stp_next_image(t))
			;
		e = supply_settle(t->supply, descs, n, held(t), &err);
		if (!e && !target_passes_on(held(t)))	/* what it executes would not have it */
			e = follow(t, &err);
		add_pid(t, pid);
	} else if (stp_pid(t)) {
		e = bring_to(t, (uint32_t)stp_pid(t), &err);
	} else {
		e = follow(t, &err);
		if (!e)
			procs_each(bring_to_each, &b);
		e = b.interrupted ? -EINTR : e;
	}
	if (!e)
		e = supply_await(t->supply, &unwilling, b.missed ? NULL : &b.why, &err);
	if (!e && stp_pid(t) && unwilling) {
		e = -ENOTSUP;
		strbuf_puts(&err, strbuf_str(&b.why));
	}
	b.missed += unwilling;
	if (!e)
		lib_say_missed(t, b.missed, "process", "processes", strbuf_str(&b.why));
	strbuf_fini(&b.why);
	e = lib_done(t, e, &err);
	if (e)
		return e;
	points_say_supplied(points, &err);
	if (!t->stap.no_warnings)
		lib_note(t, "dtap's agent supplies %s", strbuf_str(&err));
	strbuf_fini(&err);
	return 0;
}

/* ------------------------------------------------------------------------------------------------------- */

/* staprun(8) runs a command with operators, variables or patterns by sh. */
static const char *by_shell(struct arena *a, const char *command)
{
	struct strbuf b = { 0 };
	const char *ret;

	strbuf_puts(&b, "sh -c '");
	for (; *command; command++) {
		if (*command == '\'')
			strbuf_puts(&b, "'\\''");
		else
			strbuf_putc(&b, *command);
	}
	strbuf_putc(&b, '\'');
	ret = arena_strdup(a, strbuf_str(&b));
	strbuf_fini(&b);
	return ret;
}

int stp_hold(struct dtap *t)
{
	const struct target_preload *preload;
	int e;

	if (t->command && words_want_shell(t->command))
		t->command = by_shell(t->arena, t->command);
	e = foresee(t, &preload);

	return e ? e : lib_open_targets(t, preload);
}

bool stp_next_image(void *ctx)
{
	struct target *t = held(ctx);

	return target_state(t) == TARGET_AT_EXEC && target_image_can_exec(t) && !target_next_exec(t, NULL) &&
	       target_state(t) == TARGET_AT_EXEC;
}

static void add_probe(struct dtap *t, struct ir_clause *code, size_t *cap, const struct probe *probe)
{
	code->descs = arena_grow(t->arena, code->descs, cap, code->ndescs, sizeof(*code->descs));
	code->descs[code->ndescs++] = (struct probe_desc){ .prov = "", .mod = "", .func = "", .name = "",
							   .id = probe->id, .pos = code->pos };
}

/* Give each clause the probe or probes that its handler's point was resolved to. */
static void name_probes(struct dtap *t)
{
	struct stp_run *r = stp_run_of(t);
	/* By the program, unless handlers cannot check it where they run, or a single process is selected. */
	bool each = stp_pid(t) || (t->command && session_in_target(&t->set));

	for (uint32_t i = 0; i < r->code->prog->nclauses; i++) {
		const struct stp_clause *c = &r->code->clauses[i];
		struct probe *probe = c->handler ? points_probe(r->points, c->handler->point) : NULL, *one;
		bool own = !probe && (c->kind == STP_P_BEGIN || c->kind == STP_P_END || c->kind == STP_P_ERROR ||
					c->kind == STP_P_READ);
		size_t cap = 0;

		c->code->descs = NULL;
		c->code->ndescs = 0;
		if (own && !(t->stap.no_globals && c->kind != STP_P_BEGIN && c->kind != STP_P_READ))
			probe = points_own(r->points, c->kind);
		if (!probe)
			continue;
		for (size_t k = 0; k < r->npids; k++) {
			one = c->handler && (each || !probe->exe_ino) ?
				      points_in_process(r->points, c->handler->point, r->pids[k]) : NULL;
			if (one)
				add_probe(t, c->code, &cap, one);
		}
		probe->order = c->order;
		if (c->code->ndescs)
			continue;
		add_probe(t, c->code, &cap, probe);
		for (size_t k = 1; c->handler && (one = points_probe_at(r->points, c->handler->point, k)); k++)
			add_probe(t, c->code, &cap, one);
	}
}

/* What stap -t prints for each handler; NULL: nothing is measured. */
static const struct session_times *times_of(struct dtap *t)
{
	const struct stp_code *code = stp_run_of(t)->code;
	struct session_times *ret;

	if (!code->times[0])
		return NULL;
	ret = arena_new_of(t->arena, struct session_times);
	ret->shortest = code->times[STP_TIME_MIN];
	ret->longest = code->times[STP_TIME_MAX];
	ret->all = code->times[STP_TIME_ALL];
	ret->rows = arena_alloc(t->arena, (code->prog->nclauses + 1) * sizeof(*ret->rows));
	for (uint32_t i = 0; i < code->prog->nclauses; i++) {
		const struct stp_clause *c = &code->clauses[i];
		struct strbuf from = { 0 };
		struct stp_point written;

		if (!c->handler)
			continue;
		written = *c->handler->written;
		written.optional = written.sufficient = false;
		written.cond = NULL;
		stp_dump_point(&from, &written);
		ret->rows[ret->n++] = (struct session_timed){ .clause = c->code->id, .point = c->pp, .pos = written.pos,
							      .written = arena_strdup(t->arena, strbuf_str(&from)) };
		strbuf_fini(&from);
	}
	return ret;
}

int stp_enable(struct dtap *t, struct session_conf *conf)
{
	struct stp_run *r = stp_run_of(t);
	int e = t->purpose == DTAP_TO_RUN ? bring_agent(t) : 0;

	if (e)
		return e;
	name_probes(t);
	conf->times = times_of(t);
	conf->silent_errors = t->stap.no_handler_errors;
	conf->max_errors = stp_get_limit(r->stp, STP_MAXERRORS);
	conf->max_skipped = stp_get_limit(r->stp, STP_MAXSKIPPED);
	conf->timeout_ns = t->stap.timeout_ns;
	return 0;
}
