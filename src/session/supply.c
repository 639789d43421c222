#include "session/supply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "probe/procs.h"
#include "session/newcomers.h"
#include "session/session.h"
#include "target/agent.h"
#include "target/target.h"

/* An agent answers once its program lets go of the GIL: 5 ms after it is asked, longer while a C function keeps it. */
enum { READY_MS = 5000, LOOK_MS = 5000 };

/* A process that is younger may still be on the way to its interpreter. */
enum { YOUNG_MS = 10000 };

struct supply {
	struct supply_conf conf;
	struct strbuf object;	/* empty: there is none */
	struct strbuf missing;	/* why, if there should be one */
	struct agents *agents;	/* NULL: none needed so far */
	bool awaited, heard;	/* the command's agent, or some other */
	bool started;
	struct newcomers *newcomers;	/* or NULL, and then what follows is unset */
	const struct probe_desc *descs;	/* that mean the agent in them */
	size_t ndescs;
	bool (*also)(void *ctx, uint32_t pid);
	void *also_ctx;
};

int supply_new(const struct supply_conf *conf, struct supply **ret, struct strbuf *err)
{
	struct supply *s = calloc(1, sizeof(*s));
	struct strbuf why = { 0 };
	int e = 0;

	if (!s) {
		strbuf_puts(err, "out of memory");
		return -ENOMEM;
	}
	s->conf = *conf;
	if (conf->mode != PYTHON_NEVER)
		e = agents_object(&s->object, &why);
	if (e)
		strbuf_clear(&s->object);
	if (e && conf->mode == PYTHON_ALWAYS) {
		strbuf_printf(err, "-x agent=always: %s", strbuf_str(&why));
		supply_free(s);
		s = NULL;
	} else {
		if (e)
			strbuf_printf(&s->missing, "%s; markers that a Python lacks or fires wrongly are missing", strbuf_str(&why));
		e = 0;
		probe_set_python(conf->probes, s->object.len ? conf->mode : PYTHON_NEVER,
				 s->object.len ? strbuf_str(&s->object) : NULL);
		*ret = s;
	}
	strbuf_fini(&why);
	return e;
}

const char *supply_missing(const struct supply *s)
{
	return strbuf_str(&s->missing);
}

void supply_free(struct supply *s)
{
	if (!s)
		return;
	/* As with one that takes rights from its file's owner, or is linked statically. */
	if (s->started && s->awaited && !s->heard && s->conf.message)
		s->conf.message(s->conf.ctx, "the command ended without having loaded the agent: the agent's markers have "
				"not fired");
	newcomers_free(s->newcomers);
	agents_free(s->agents);
	strbuf_fini(&s->object);
	strbuf_fini(&s->missing);
	free(s);
}

static void say(struct supply *s, const struct agents_event *e, const char *what)
{
	struct strbuf b = { 0 };

	strbuf_printf(&b, "the agent %s process %d", what, (int)e->pid);
	if (e->python)
		strbuf_printf(&b, " (Python %u.%u)", e->python >> 24, e->python >> 16 & 0xff);
	if (*e->why)
		strbuf_printf(&b, ": %s", e->why);
	if (s->conf.message)
		s->conf.message(s->conf.ctx, strbuf_str(&b));
	strbuf_fini(&b);
}

static void heard(void *ctx, const struct agents_event *e)
{
	struct supply *s = ctx;

	s->heard = true;
	switch (e->what) {
	case AGENTS_READY:
		agents_leave(s->agents, e->pid, probe_agent_leave(s->conf.probes, (uint32_t)e->pid));
		break;
	case AGENTS_OFF:
	case AGENTS_LOST:
		say(s, e, "does not work in");
		break;
	case AGENTS_STATE:
		if (*e->why)
			say(s, e, "does not supply everything in");
		break;
	case AGENTS_GONE:
		break;
	}
}

static int need_agents(struct supply *s, struct strbuf *err)
{
	return s->agents ? 0 : agents_new(&s->agents, strbuf_str(&s->object), heard, s, err);
}

/* What to do when the agent cannot be had. */
static int without(int e, struct strbuf *err)
{
	strbuf_puts(err, "; -x agent=never traces without it, by the markers that the interpreter has itself");
	return e;
}

/* --- a command ------------------------------------------------------------------------------------------ */

/* A description of one process, $target: not of whatever processes there will be. */
static bool is_of_target(const struct probe_desc *desc)
{
	return *desc->prov && !desc_is_glob(desc->prov);
}

int supply_foresee(struct supply *s, const struct probe_desc *descs, size_t n, const char *command,
		   const struct target_preload **preload, struct strbuf *err)
{
	struct strbuf path = { 0 };
	bool needed = false;
	size_t i;
	int e;

	*preload = NULL;
	target_find_command(command, &path);
	for (i = 0; i < n && !needed; i++)
		needed = probe_agent_named(s->conf.probes, &descs[i]) &&
			 (!is_of_target(&descs[i]) || !path.len ||
			  probe_agent_needed(s->conf.probes, strbuf_str(&path), &descs[i]));
	strbuf_fini(&path);
	if (!needed)
		return 0;
	e = need_agents(s, err);
	if (!e)
		*preload = agents_preload(s->agents);
	return e;
}

/* Is the agent meant in the process? */
static bool is_meant(const struct supply *s, const struct probe_desc *descs, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (probe_agent_meant(s->conf.probes, (uint32_t)pid, &descs[i]))
			return true;
	return false;
}

int supply_settle(struct supply *s, const struct probe_desc *descs, size_t n, struct target *t, struct strbuf *err)
{
	int e = 0;

	if (!s->agents || !is_meant(s, descs, n, target_pid(t)))
		return 0;
	s->awaited = true;
	if (target_brings(t))
		return 0;
	if (target_state(t) == TARGET_AT_EXEC)
		e = target_to_entry(t, err);
	if (!e && target_state(t) == TARGET_AT_ENTRY) {
		e = agents_attach(s->agents, t, err);
		if (e)
			without(e, err);
	}
	return e;
}

/* --- running processes ---------------------------------------------------------------------------------- */

int supply_attach(struct supply *s, const struct probe_desc *descs, size_t n, struct target *t, struct strbuf *err)
{
	int e;

	if (!is_meant(s, descs, n, target_pid(t)))
		return 0;
	e = need_agents(s, err);
	if (!e)
		e = agents_attach(s->agents, t, err);
	if (!e)
		e = agents_wait(s->agents, target_pid(t), READY_MS, err);
	return e && target_poll(t) != TARGET_EXITED ? without(e, err) : e;
}

/* So young that its interpreter may still be starting? */
static bool is_young(uint32_t pid)
{
	return procs_age_ms(pid) < YOUNG_MS;
}

struct attaching {
	struct supply *s;
	const struct probe_desc *descs;
	size_t n;
	unsigned int missed;
	struct strbuf *err;
};

int supply_attach_pid(struct supply *s, const struct probe_desc *descs, size_t n, uint32_t pid, struct strbuf *err)
{
	struct target *t = NULL;
	int e;

	e = target_attach((pid_t)pid, &t, err);
	if (!e)
		e = supply_attach(s, descs, n, t, err);
	target_free(t);
	return e && e != -ESRCH && s->newcomers && is_young(pid) ? -EAGAIN : e;
}

static void attach_one(void *ctx, uint32_t pid)
{
	struct attaching *a = ctx;
	struct strbuf err = { 0 };
	int e;

	/* A target has it already. */
	if (!is_meant(a->s, a->descs, a->n, (pid_t)pid) || (a->s->agents && agents_have(a->s->agents, (pid_t)pid)))
		return;
	e = supply_attach_pid(a->s, a->descs, a->n, pid, &err);
	if (e && e != -ESRCH && e != -EAGAIN && !a->missed++)
		strbuf_puts(a->err, strbuf_str(&err));
	strbuf_fini(&err);
}

unsigned int supply_attach_all(struct supply *s, const struct probe_desc *descs, size_t n, struct strbuf *err)
{
	struct attaching a = { .s = s, .descs = descs, .n = n, .err = err };
	bool wide = false;

	for (size_t i = 0; i < n; i++)
		wide = wide || (!is_of_target(&descs[i]) && probe_agent_named(s->conf.probes, &descs[i]));
	if (wide)
		probe_agent_each(s->conf.probes, attach_one, &a);
	return a.missed;
}

/* --- processes to come ---------------------------------------------------------------------------------- */

static void say_missed(struct supply *s, uint32_t pid, const char *why)
{
	struct strbuf b = { 0 };

	strbuf_printf(&b, "process %u, which was started meanwhile, cannot be given the agent and is not covered: %s", pid, why);
	if (s->conf.message)
		s->conf.message(s->conf.ctx, strbuf_str(&b));
	strbuf_fini(&b);
}

static bool is_meant_later(const struct supply *s, uint32_t pid)
{
	for (size_t i = 0; i < s->ndescs; i++)
		if (probe_agent_meant_later(s->conf.probes, pid, &s->descs[i]))
			return true;
	return false;
}

static enum newcomer look_at(void *ctx, uint32_t pid, bool last)
{
	struct supply *s = ctx;
	struct target *t = NULL;
	struct strbuf err = { 0 };
	int e;

	if (s->also && !s->also(s->also_ctx, pid))
		return NEWCOMER_DONE;
	switch (probe_agent_hope(s->conf.probes, pid)) {
	case PROBE_HOPE_NONE:
		return NEWCOMER_DONE;
	case PROBE_HOPE_SMALL:
		return NEWCOMER_HARDLY;
	case PROBE_HOPE_SOON:
		return NEWCOMER_SOON;
	case PROBE_HOPE_IS:
		break;
	}
	if (!is_meant_later(s, pid))
		return NEWCOMER_DONE;
	agents_turn(s->agents);
	/* One that was brought along; or that of its program before, whose channel the kernel is about to close. */
	if (agents_have(s->agents, (pid_t)pid))
		return NEWCOMER_HARDLY;
	e = target_attach((pid_t)pid, &t, &err);
	if (!e)
		e = agents_try(s->agents, t, &err);
	target_free(t);
	if (e && e != -ESRCH && last)
		say_missed(s, pid, strbuf_str(&err));
	strbuf_fini(&err);
	return e && e != -ESRCH && !last ? NEWCOMER_SOON : NEWCOMER_DONE;
}

static void add_young(void *ctx, uint32_t pid)
{
	struct supply *s = ctx;

	if (is_young(pid))
		newcomers_add(s->newcomers, pid);
}

int supply_follow(struct supply *s, const struct probe_desc *descs, size_t n, bool (*also)(void *ctx, uint32_t pid),
		  void *ctx, struct strbuf *err)
{
	const struct newcomers_conf conf = { look_at, s };
	bool named = false;
	int e;

	for (size_t i = 0; i < n; i++)
		named = named || probe_agent_named(s->conf.probes, &descs[i]);
	if (!named)
		return 0;
	e = need_agents(s, err);
	if (e)
		return e;
	for (size_t i = 0; i < n; i++)
		if (!is_of_target(&descs[i]))
			agents_follow_forks(s->agents);
	s->descs = descs;
	s->ndescs = n;
	s->also = also;
	s->also_ctx = ctx;
	e = newcomers_new(&conf, &s->newcomers);
	if (e)
		strbuf_printf(err, "cannot watch for processes that are started: %s", strerror(-e));
	else
		procs_each(add_young, s);
	return e;
}

static void turn_newcomers(void *ctx)
{
	struct supply *s = ctx;

	newcomers_turn(s->newcomers);
}

/* --- the run -------------------------------------------------------------------------------------------- */

static void turn(void *ctx)
{
	struct supply *s = ctx;

	agents_turn(s->agents);
}

int supply_start(struct supply *s, struct session *session, struct strbuf *err)
{
	int segment[3], e;

	s->started = true;
	if (!s->agents)
		return 0;
	if (session_segment(session, segment))
		agents_offer(s->agents, segment);
	e = agents_look(s->agents, LOOK_MS);
	if (e) {
		strbuf_printf(err, "an agent does not answer within %d s: its program keeps the GIL; try again, or use "
			      "-x agent=never", LOOK_MS / 1000);
		return e;
	}
	e = session_watch_fd(session, agents_fd(s->agents), turn, s);
	if (!e && s->newcomers)
		e = session_watch_fd(session, newcomers_fd(s->newcomers), turn_newcomers, s);
	if (e)
		strbuf_printf(err, "cannot watch the agents: %s", strerror(-e));
	return e;
}

void supply_say(const struct supply *s, struct strbuf *out)
{
	probe_agent_say(s->conf.probes, out);
}
