#include "session/supply.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/now.h"
#include "base/oom.h"
#include "base/paths.h"
#include "base/strbuf.h"
#include "lang/desc.h"
#include "place/clock.h"
#include "probe/procs.h"
#include "session/askers.h"
#include "session/busy.h"
#include "session/newcomers.h"
#include "session/session.h"
#include "target/agent.h"
#include "target/starts.h"
#include "target/target.h"

/*
 * An agent answers as soon as its program releases the GIL: within 5 ms, or later if a C function holds it.
 * PATIENCE_MS is the time limit for all agents together to be loaded, to start and to answer.  A process that takes
 * longer is not traced until it answers; one whose own markers do as well has SPARED_MS.
 */
enum { PATIENCE_MS = 5000, SPARED_MS = 500, LOOK_MIN_MS = 200 };

/* A younger process may still be starting its interpreter. */
enum { YOUNG_MS = 10000 };

/* So long one that was held at its exec may take until its agent connects, of itself; and the command until its loader begins. */
enum { HELD_MS = 1000, LOADS_MS = 5000 };

/* Processes whose agents were heard of last. */
enum { HEARD = 1024 };

/* The most processes of one turn whose channels have ended and that connect_cut() looks at; further ones are not connected again. */
enum { CUT = 64 };

struct supply {
	struct supply_conf conf;
	struct strbuf object;	/* path of the agent's object; empty: none */
	struct strbuf missing;	/* why it is missing, if it is needed */
	struct agents *agents;	/* NULL: none needed so far */
	bool awaited, heard;	/* the command's agent; any agent */
	bool lives_on;		/* the command, when the session ends: its agent may come yet */
	pid_t brings;		/* the command, if it has the agent when it goes on */
	uint64_t loads_by_ms;	/* when its loader has opened the object that is lent to it; 0: none is */
	bool started, is_starting;
	struct askers askers;
	struct strbuf deaf;		/* why nobody can; empty: they can, or the session is about processes that are named */
	struct busy *busy;		/* processes into which the agent cannot be brought now, or NULL */
	pid_t *awaited_pids;	/* processes that have it, but had not answered when last checked */
	size_t nawaited, awaited_cap;
	bool all_spared;		/* the own markers of all targets that have it would do as well */
	size_t nexplicit;		/* the number of targets, which come first and which the session needs */
	pid_t only;			/* the only target; 0: none, or several */
	struct strbuf only_refused;	/* why @only gets no segment, before the session runs */
	uint64_t spent_ms;		/* of PATIENCE_MS */
	unsigned int missed;		/* number of processes that could not get it; missed_why: the first's reason */
	struct strbuf missed_why;
	struct session *session;	/* NULL before supply_start() */
	/*
	 * Newcomers that are to be traced and of whose agents nothing is heard yet.  @late: counted in late; @held: was held at
	 * its exec, and brings the agent.
	 */
	struct wanted {
		uint32_t pid;
		bool asked, late, held;
		int trouble;		/* why the last look at it failed, a negative errno; 0: it did not */
	} *wanted;
	size_t nwanted, wanted_cap;
	uint32_t heard_of[HEARD];	/* a ring: processes whose agents have answered */
	size_t nheard;
	struct cut {
		uint32_t pid;
		bool is_off;		/* its agent cannot work there, and need not be connected again */
	} cut[CUT];			/* processes that live on, but whose channels have ended */
	size_t ncut;
	uint32_t traced[HEARD];		/* a ring: processes that are, or were, traced */
	size_t ntraced;
	uint64_t late;			/* had begun before their hooks were installed */
	uint32_t *begun;		/* Pythons that ran before the session: of these nothing is late */
	size_t nbegun, begun_cap;
	uint64_t unseen;		/* Pythons, by their name, that had ended before they could be looked at */
	struct starts *starts;		/* NULL: programs are not held at exec */
	struct newcomers *newcomers;	/* NULL: then the following two are unset */
	const struct probe_desc *descs;	/* those that need the agent there */
	size_t ndescs;
	bool (*also)(void *ctx, uint32_t pid);	/* of supply_limit(), or NULL */
	void (*each)(void *ctx, void (*fn)(void *fn_ctx, uint32_t pid), void *fn_ctx);	/* of supply_limit(), or NULL */
	void *also_ctx;
	bool watches;		/* newcomers watches the programs that are started, or cannot */
};

int supply_new(const struct supply_conf *conf, struct supply **ret, struct strbuf *err)
{
	struct supply *s = calloc(1, sizeof(*s));
	struct strbuf why = { 0 };
	const char *unread;
	int e = 0;

	if (!s) {
		strbuf_puts(err, "out of memory");
		return -ENOMEM;
	}
	s->conf = *conf;
	clock_foresee();
	if (conf->mode != PYTHON_NEVER)
		e = agents_object(&s->object, &why);
	unread = probe_set_python(conf->probes, e ? PYTHON_NEVER : conf->mode, s->object.len ? strbuf_str(&s->object) : NULL);
	if (!e && unread) {
		strbuf_puts(&why, unread);
		e = -EIO;
	}
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
		*ret = s;
	}
	strbuf_fini(&why);
	return e;
}

const char *supply_missing(const struct supply *s)
{
	return strbuf_str(&s->missing);
}

/* Is the session about processes that no description names? */
static bool is_for_everybody(const struct supply *s)
{
	for (size_t i = 0; i < s->ndescs; i++)
		if (desc_is_glob(s->descs[i].prov))
			return !s->also && !s->conf.few;
	return false;
}

static void say_unseen(const struct supply *s)
{
	struct strbuf b = { 0 };

	strbuf_printf(&b, "%llu program%s named python had ended before %s could be looked at, and %s not covered",
		      (unsigned long long)s->unseen, s->unseen == 1 ? "" : "s", s->unseen == 1 ? "it" : "they",
		      s->unseen == 1 ? "is" : "are");
	s->conf.message(s->conf.ctx, strbuf_str(&b));
	strbuf_fini(&b);
}

static void say_late(const struct supply *s)
{
	struct strbuf b = { 0 };

	strbuf_printf(&b, "%llu program%s may have begun before the agent was in %s: the first calls are not covered; ",
		      (unsigned long long)s->late, s->late == 1 ? "" : "s", s->late == 1 ? "it" : "them");
	if (s->deaf.len)
		strbuf_printf(&b, "starting Pythons cannot ask: %s", strbuf_str(&s->deaf));
	else
		strbuf_puts(&b, "where it is installed (dtap agent install) Pythons ask at their start");
	s->conf.message(s->conf.ctx, strbuf_str(&b));
	strbuf_fini(&b);
}

static struct wanted *find_wanted(const struct supply *s, uint32_t pid)
{
	for (size_t i = 0; i < s->nwanted; i++)
		if (s->wanted[i].pid == pid)
			return &s->wanted[i];
	return NULL;
}

static bool ran_before(const struct supply *s, uint32_t pid)
{
	for (size_t i = 0; i < s->nbegun; i++)
		if (s->begun[i] == pid)
			return true;
	return false;
}

/* It may have begun before it is traced. */
static void count_late(struct supply *s, struct wanted *w)
{
	s->late += !w->late && !ran_before(s, w->pid);
	w->late = true;
}

static bool is_in(const uint32_t ring[HEARD], uint32_t pid)
{
	for (size_t i = 0; i < HEARD; i++)
		if (ring[i] == pid)
			return true;
	return false;
}

static bool was_heard_of(const struct supply *s, uint32_t pid)
{
	return is_in(s->heard_of, pid);
}

/* It has executed another program: forget what is known of the former one. */
static void forget_former(struct supply *s, uint32_t pid)
{
	for (size_t i = 0; i < HEARD; i++)
		if (s->heard_of[i] == pid)
			s->heard_of[i] = 0;
	for (size_t i = 0; i < s->nbegun; i++)
		if (s->begun[i] == pid)
			s->begun[i] = 0;
}

static void tell(struct supply *s, enum supply_fate fate, pid_t pid, const char *why)
{
	if (s->conf.process)
		s->conf.process(s->conf.ctx, fate, (uint32_t)pid, why);
}

static void message(struct supply *s, const struct strbuf *text)
{
	if (s->conf.message)
		s->conf.message(s->conf.ctx, strbuf_str(text));
}

/* Of one that has started since the session began. */
static void say_missed(struct supply *s, uint32_t pid, const char *why)
{
	struct strbuf b = { 0 };

	tell(s, SUPPLY_REFUSED, (pid_t)pid, why);
	strbuf_printf(&b, "process %u, which was started meanwhile, cannot be given the agent and is not covered: %s", pid, why);
	message(s, &b);
	strbuf_fini(&b);
}

static void say(struct supply *s, const struct agents_event *e, const char *what)
{
	struct strbuf b = { 0 };

	strbuf_printf(&b, "the agent %s process %d", what, (int)e->pid);
	if (e->python)
		strbuf_printf(&b, " (Python %u.%u)", e->python >> 24, e->python >> 16 & 0xff);
	if (*e->why)
		strbuf_printf(&b, ": %s", e->why);
	message(s, &b);
	strbuf_fini(&b);
}

/* Keep it in @wanted.  NULL: no memory. */
static struct wanted *want(struct supply *s, uint32_t pid)
{
	struct wanted *w = find_wanted(s, pid);

	if (w || !grow_array(&s->wanted, &s->wanted_cap, s->nwanted, sizeof(*s->wanted)))
		return w;
	w = &s->wanted[s->nwanted++];
	*w = (struct wanted){ .pid = pid };
	return w;
}

/* Want one that brings the agent itself; NULL: no memory. */
static struct wanted *want_asked(struct supply *s, uint32_t pid)
{
	struct wanted *w = want(s, pid);

	if (w)
		w->asked = true;
	return w;
}

/* Was it one? */
static bool forget_wanted(struct supply *s, uint32_t pid)
{
	struct wanted *w = find_wanted(s, pid);

	if (w)
		*w = s->wanted[--s->nwanted];
	return w;
}

static void tell_late(struct supply *s, struct wanted *w)
{
	if (w->late)
		return;
	count_late(s, w);
	tell(s, SUPPLY_LATE, (pid_t)w->pid, "");
}

/* It was to be traced, and has ended too early. */
static void tell_ended(struct supply *s, uint32_t pid)
{
	struct wanted *w = find_wanted(s, pid);
	int trouble;

	if (!w)
		return;
	/* One that was traced is looked at again if it ends before that is due; an answer alone is no trace yet. */
	if (is_in(s->traced, pid)) {
		forget_wanted(s, pid);
		return;
	}
	if (w->trouble) {
		trouble = w->trouble;
		forget_wanted(s, pid);
		say_missed(s, pid, strerror(-trouble));
		return;
	}
	count_late(s, w);
	forget_wanted(s, pid);
	tell(s, SUPPLY_REFUSED, (pid_t)pid, "it had ended before it could be traced");
}

/*
 * A program named python has ended before anybody could look at it: whether it is one, and to be traced, is not known.  An
 * agent that it has brought itself was heard of.
 */
static void tell_unseen(struct supply *s, uint32_t pid)
{
	if (was_heard_of(s, pid))
		return;
	s->unseen++;
	tell(s, SUPPLY_UNSEEN, (pid_t)pid, "");
}

static void say_cut(struct supply *s, uint32_t pid, const char *so)
{
	struct strbuf b = { 0 };

	strbuf_printf(&b, "process %u has closed the agent's connection, as programs do that close all their descriptors: it is %s", pid, so);
	message(s, &b);
	strbuf_fini(&b);
}

static void heard(void *ctx, const struct agents_event *e)
{
	struct supply *s = ctx;
	struct strbuf b = { 0 };
	struct wanted *w;

	s->heard |= e->what != AGENTS_WAIT;
	if (e->what == AGENTS_READY)
		s->heard_of[s->nheard++ % HEARD] = (uint32_t)e->pid;
	switch (e->what) {
	case AGENTS_READY:
		agents_leave(s->agents, e->pid, probe_agent_leave(s->conf.probes, (uint32_t)e->pid));
		break;
	case AGENTS_OFF:
	case AGENTS_LOST:
		tell(s, SUPPLY_REFUSED, e->pid, e->why);
		say(s, e, "does not work in");
		break;
	case AGENTS_REFUSED:
		tell(s, SUPPLY_REFUSED, e->pid, e->why);
		if (s->is_starting && e->pid == s->only)
			strbuf_printf(&s->only_refused, "the agent cannot run the script in process %d: %s", (int)e->pid, e->why);
		else
			say(s, e, "cannot run the script in");
		break;
	case AGENTS_WAIT:
		strbuf_printf(&b, "processes that start now have to wait for the agent's connection, and may not be traced: %s", e->why);
		message(s, &b);
		strbuf_fini(&b);
		break;
	case AGENTS_LATE:
		w = find_wanted(s, (uint32_t)e->pid);
		if (w && (w->asked || w->late))
			tell_late(s, w);
		else
			say(s, e, "was answered too late, and what came before that is not traced, in");
		break;
	case AGENTS_ANOTHER:
		strbuf_printf(&b, "process %d has ended its interpreter and begun another one, of which the agent sees nothing", (int)e->pid);
		message(s, &b);
		strbuf_fini(&b);
		break;
	case AGENTS_STATE:
		s->traced[s->ntraced++ % HEARD] = (uint32_t)e->pid;
		tell(s, SUPPLY_READY, e->pid, "");
		if (*e->why && !e->again)
			say(s, e, "does not supply everything in");
		break;
	case AGENTS_GONE:
		tell_ended(s, (uint32_t)e->pid);
		if (s->session)
			session_forget_cost(s->session, (uint32_t)e->pid);
		tell(s, SUPPLY_GONE, e->pid, "");
		if (s->session && s->ncut < CUT && procs_is_alive((uint32_t)e->pid))
			s->cut[s->ncut++] = (struct cut){ (uint32_t)e->pid, e->is_off };
		break;
	}
	/* One that was answered too late may have ended, which is told then. */
	if (e->what != AGENTS_READY && e->what != AGENTS_LATE)
		forget_wanted(s, (uint32_t)e->pid);
}

static int need_agents(struct supply *s, struct strbuf *err)
{
	int e;

	if (s->agents)
		return 0;
	e = agents_new(&s->agents, strbuf_str(&s->object), heard, s, err);
	if (!e && s->conf.keep_signals)
		agents_keep_signals(s->agents);
	return e;
}

/* Continue without the agent, or fail. */
static int without(int e, struct strbuf *err)
{
	strbuf_puts(err, "; -x agent=never traces without it, by the markers that the interpreter has itself");
	return e;
}

/* --- a command ------------------------------------------------------------------------------------------ */

/* Does it describe one process, as "python$target" does, not any process? */
static bool is_of_one(const struct probe_desc *desc)
{
	return *desc->prov && !desc_is_glob(desc->prov);
}

/* Can it need the agent in processes that it does not name?  A probe that the tracer fires, such as END, cannot. */
static bool is_of_any(const struct supply *s, const struct probe_desc *desc)
{
	return !is_of_one(desc) && probe_agent_named(s->conf.probes, desc);
}

bool supply_names(const struct supply *s, const struct probe_desc *descs, size_t n, uint32_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (is_of_one(&descs[i]) && desc_pid(descs[i].prov) == pid && probe_agent_named(s->conf.probes, &descs[i]))
			return true;
	return false;
}

bool supply_is_of_any(const struct supply *s, const struct probe_desc *descs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_of_any(s, &descs[i]))
			return true;
	return false;
}

void supply_prefer(struct supply *s, const struct probe_desc *descs, size_t n)
{
	if (probe_agent_replaces(s->conf.probes, descs, n))
		probe_set_either(s->conf.probes, true);
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
			 (!is_of_one(&descs[i]) || !path.len ||
			  probe_agent_needed(s->conf.probes, strbuf_str(&path), &descs[i]));
	strbuf_fini(&path);
	if (!needed)
		return 0;
	e = need_agents(s, err);
	if (!e)
		*preload = agents_preload(s->agents);
	return e;
}

/* Does one of @descs need the agent in the process? */
static bool needs_agent(const struct supply *s, const struct probe_desc *descs, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (probe_agent_serves(s->conf.probes, (uint32_t)pid, &descs[i]))
			return true;
	return false;
}

/* Would the process's own markers do as well as the agent's? */
static bool is_spared(struct supply *s, const struct probe_desc *descs, size_t n, pid_t pid)
{
	bool needed;

	if (!probe_is_either(s->conf.probes))
		return false;
	probe_set_either(s->conf.probes, false);
	needed = needs_agent(s, descs, n, pid);
	probe_set_either(s->conf.probes, true);
	return !needed;
}

/* A process that is spared has not got the agent: use the interpreters' own markers. */
static int do_without(struct supply *s, int e, struct strbuf *err)
{
	if (e == -EINTR)
		return e;
	probe_set_either(s->conf.probes, false);
	strbuf_clear(err);
	return 0;
}

int supply_settle(struct supply *s, const struct probe_desc *descs, size_t n, struct target *t, struct strbuf *err)
{
	int e = 0;

	if (!s->agents || !needs_agent(s, descs, n, target_pid(t)))
		return 0;
	s->awaited = true;
	if (!target_brings(t) && target_lend(t))
		s->loads_by_ms = now_ms() + LOADS_MS;
	if (target_brings(t)) {
		s->brings = target_pid(t);
		return 0;
	}
	if (target_state(t) == TARGET_AT_EXEC)
		e = target_to_entry(t, err);
	if (!e && target_state(t) == TARGET_AT_ENTRY) {
		e = agents_attach(s->agents, t, err);
		if (!e)
			s->brings = target_pid(t);
		if (e && is_spared(s, descs, n, target_pid(t))) {
			s->awaited = false;
			e = do_without(s, e, err);
		} else if (e) {
			without(e, err);
		}
	}
	return e;
}

/* --- running processes ---------------------------------------------------------------------------------- */

/* Milliseconds left of PATIENCE_MS. */
static int patience(const struct supply *s)
{
	return s->spent_ms < PATIENCE_MS ? (int)(PATIENCE_MS - s->spent_ms) : 0;
}

/* Bring the agent to @t, within the time that is left. */
static int bring(struct supply *s, struct target *t, struct strbuf *err)
{
	uint64_t begin = now_ms();
	int e = (patience(s) ? agents_attach : agents_try)(s->agents, t, err);

	if (e)
		s->spent_ms += now_ms() - begin;
	return e;
}

/* Wait for process @pid, which has the agent now. */
static int await(struct supply *s, pid_t pid)
{
	size_t cap = s->awaited_cap ? 2 * s->awaited_cap : 16;
	pid_t *v = s->awaited_pids;

	if (s->nawaited == s->awaited_cap) {
		v = realloc(v, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		s->awaited_pids = v;
		s->awaited_cap = cap;
	}
	v[s->nawaited++] = pid;
	return 0;
}

/* Try again to bring the agent to a busy process.  True: it need not be tried again. */
static bool try_again(void *ctx, struct target *t)
{
	struct supply *s = ctx;
	int e = agents_have(s->agents, target_pid(t)) ? 0 : agents_try(s->agents, t, NULL);

	return !e || e == -ESRCH || e == -ENOTSUP;
}

/* Load the agent into @t when it is at a safe point. */
static int postpone(struct supply *s, struct target *t)
{
	struct target *same = NULL;
	int e = s->busy ? 0 : busy_new(try_again, s, &s->busy);

	if (!e)
		e = target_attach(target_pid(t), &same, NULL);
	if (!e && target_poll(t) == TARGET_EXITED) {	/* then @same may be another process of that number */
		target_free(same);
		e = -ESRCH;
	}
	return e ? e : busy_add(s->busy, same);
}

/* As postpone(), and say so; @why: what prevented it. */
static int skip(struct supply *s, struct target *t, struct strbuf *why)
{
	int e = postpone(s, t);

	if (e)
		return e;
	strbuf_puts(why, "; it is skipped until the agent can be loaded");
	message(s, why);
	strbuf_clear(why);
	return 0;
}

/* Bring the agent to @t; also 0 if it is postponed, which is reported. */
static int bring_or_skip(struct supply *s, struct target *t, struct strbuf *err)
{
	int e = bring(s, t, err);

	if (e == -EBUSY)
		return skip(s, t, err);
	return e ? e : await(s, target_pid(t));
}

/* Process @pid seems to need no agent: 0, or -errno if it could not be looked at: no memory or descriptors, an I/O error. */
static int needs_none(const struct supply *s, pid_t pid, struct strbuf *err)
{
	int e = probe_trouble(s->conf.probes);

	if (!is_shortage(e) && e != -EIO)
		return 0;
	strbuf_printf(err, "cannot look at process %d: %s", (int)pid, strerror(-e));
	return e;
}

int supply_attach(struct supply *s, const struct probe_desc *descs, size_t n, struct target *t, struct strbuf *err)
{
	bool spared;
	int e;

	if (s->agents && agents_have(s->agents, target_pid(t)))
		return 0;
	if (!needs_agent(s, descs, n, target_pid(t)))
		return needs_none(s, target_pid(t), err);
	spared = is_spared(s, descs, n, target_pid(t));
	e = need_agents(s, err);
	if (!e)
		e = spared ? bring(s, t, err) : bring_or_skip(s, t, err);
	if (!e && spared)
		e = await(s, target_pid(t));
	s->all_spared = spared && (s->all_spared || !s->nexplicit);
	s->nexplicit = s->nawaited;
	if (e && spared)
		return do_without(s, e, err);
	return e && e != -EINTR && target_poll(t) != TARGET_EXITED ? without(e, err) : e;
}

/* Is it so young that its interpreter may still be starting? */
static bool is_young(uint32_t pid)
{
	return procs_age_ms(pid) < YOUNG_MS;
}

int supply_attach_pid(struct supply *s, const struct probe_desc *descs, size_t n, uint32_t pid, struct strbuf *err)
{
	struct target *t = NULL;
	int e;

	if (!needs_agent(s, descs, n, (pid_t)pid))
		return needs_none(s, (pid_t)pid, err);
	e = need_agents(s, err);
	if (!e)
		e = target_attach((pid_t)pid, &t, err);
	/* Young processes are watched by newcomers. */
	if (!e)
		e = s->newcomers && is_young(pid) ? bring(s, t, err) : bring_or_skip(s, t, err);
	target_free(t);
	if (e && e != -ESRCH && e != -EINTR && s->newcomers && is_young(pid))
		return -EAGAIN;
	return e;
}

static bool is_selected(const struct supply *s, uint32_t pid)
{
	return !s->conf.selects || s->conf.selects(s->conf.ctx, pid);
}

/* Is the session about a process that starts? */
static bool is_about(const struct supply *s, uint32_t pid)
{
	return (!s->also || s->also(s->also_ctx, pid)) && is_selected(s, pid);
}

struct attaching {
	struct supply *s;
	const struct probe_desc *descs;
	size_t n;
	bool interrupted;
};

static void attach_one(void *ctx, uint32_t pid)
{
	struct attaching *a = ctx;
	struct supply *s = a->s;
	struct strbuf err = { 0 };
	int e;

	/* A target has it already, or will have it. */
	if (a->interrupted || (pid_t)pid == s->brings || (s->agents && agents_have(s->agents, (pid_t)pid)) || !is_selected(s, pid))
		return;
	e = supply_attach_pid(s, a->descs, a->n, pid, &err);
	a->interrupted = e == -EINTR;
	if (e && e != -ESRCH && e != -EAGAIN && e != -EINTR) {
		tell(s, SUPPLY_REFUSED, (pid_t)pid, strbuf_str(&err));
		if (!s->missed++)
			strbuf_puts(&s->missed_why, strbuf_str(&err));
	}
	strbuf_fini(&err);
}

int supply_attach_all(struct supply *s, const struct probe_desc *descs, size_t n)
{
	struct attaching a = { .s = s, .descs = descs, .n = n };

	if (supply_is_of_any(s, descs, n))
		probe_agent_each(s->conf.probes, attach_one, &a);
	return a.interrupted ? -EINTR : 0;
}

static void say_skipped(struct supply *s, struct strbuf *why)
{
	strbuf_puts(why, "; it is skipped until it does");
	message(s, why);
}

int supply_await(struct supply *s, unsigned int *missed, struct strbuf *missed_why, struct strbuf *err)
{
	uint64_t begin = now_ms();
	int ms = s->all_spared && s->nawaited == s->nexplicit && patience(s) > SPARED_MS ? SPARED_MS : patience(s);
	int e = s->nawaited ? agents_wait(s->agents, s->awaited_pids, s->nawaited, ms) : 0;

	s->spent_ms += now_ms() - begin;
	if (e == -EINTR)
		return e;
	e = 0;
	for (size_t i = 0; i < s->nawaited && !e; i++) {
		struct strbuf why = { 0 };
		enum agents_said said = agents_said(s->agents, s->awaited_pids[i], &why);

		if (said != AGENTS_SAID_READY && i < s->nexplicit && s->all_spared) {
			do_without(s, 0, &why);
			said = AGENTS_SAID_READY;
		}
		switch (said) {
		case AGENTS_SAID_READY:
			break;
		case AGENTS_SAID_NOTHING:
			say_skipped(s, &why);
			break;
		case AGENTS_SAID_END:
			/* Usually because its process has ended. */
			if (procs_is_alive((uint32_t)s->awaited_pids[i]))
				message(s, &why);
			break;
		case AGENTS_SAID_OFF:
			if (i < s->nexplicit) {
				strbuf_puts(err, strbuf_str(&why));
				e = without(-ENOTSUP, err);
			} else if (!s->missed++) {
				strbuf_puts(&s->missed_why, strbuf_str(&why));
			}
		}
		strbuf_fini(&why);
	}
	s->only = s->nexplicit == 1 ? s->awaited_pids[0] : 0;
	s->nawaited = s->nexplicit = 0;
	*missed = s->missed;
	if (missed_why)
		strbuf_puts(missed_why, strbuf_str(&s->missed_why));
	return e;
}

/* --- processes that start later ------------------------------------------------------------------------- */

static bool needs_agent_later(const struct supply *s, uint32_t pid)
{
	for (size_t i = 0; i < s->ndescs; i++)
		if (probe_agent_serves_later(s->conf.probes, pid, &s->descs[i]))
			return true;
	return false;
}

/* It has ended.  Of which processes the session is, only a living one can tell. */
static enum newcomer has_ended(struct supply *s, uint32_t pid, bool named)
{
	if (find_wanted(s, pid))
		tell_ended(s, pid);
	else if (named && is_for_everybody(s))
		tell_unseen(s, pid);
	return NEWCOMER_DONE;
}

/* May what prevents the agent from being loaded pass?  What refuses it to root is another tracer, maybe one of dtap's. */
static bool passes(int e)
{
	return e == -EBUSY || (e == -EPERM && !geteuid());
}

/* It has not got the agent in all this time.  One that is busy, or has another tracer, may get it later. */
static void miss(struct supply *s, uint32_t pid, int e, struct strbuf *why)
{
	struct target *t = NULL;

	if (passes(e) && !target_attach((pid_t)pid, &t, NULL)) {
		tell(s, SUPPLY_REFUSED, (pid_t)pid, strbuf_str(why));
		e = skip(s, t, why);
		target_free(t);
	}
	if (e && forget_wanted(s, pid))
		say_missed(s, pid, strbuf_str(why));
}

/* The look at it has failed: another one is taken, and if it is the last, or it ends before, that is said. */
static enum newcomer failed(struct supply *s, uint32_t pid, int err, bool last)
{
	struct wanted *w = want(s, pid);

	if (w)
		w->trouble = err;
	if (last) {
		forget_wanted(s, pid);
		say_missed(s, pid, strerror(-err));
	}
	return NEWCOMER_SOON;
}

/* The look came to @found, unless something could not be read for a moment; then what an earlier look failed by is forgotten. */
static enum newcomer unless_trouble(struct supply *s, uint32_t pid, bool last, enum newcomer found)
{
	struct wanted *w = find_wanted(s, pid);
	int trouble = shortage_take();

	if (trouble && (!kill((pid_t)pid, 0) || errno == EPERM))
		return failed(s, pid, trouble, last);
	if (w)
		w->trouble = 0;
	return found;
}

/* Is the agent in process @pid, whether it has answered or not? */
static bool is_agent_in(struct supply *s, uint32_t pid)
{
	struct target *t = NULL;
	bool ret = !target_attach((pid_t)pid, &t, NULL) && agents_are_in(s->agents, t);

	target_free(t);
	return ret;
}

/* Has process @pid lost its channel in this turn, and not ended? */
static bool is_cut(const struct supply *s, uint32_t pid)
{
	for (size_t i = 0; i < s->ncut; i++)
		if (s->cut[i].pid == pid)
			return true;
	return false;
}

/*
 * Process @pid has lost its channel because it has executed another program, which look_at() cares for.  To connect_cut(), which may
 * find the agent in that program and no channel yet, it would be a process that has closed its channel.
 */
static void forget_cut(struct supply *s, uint32_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < s->ncut; i++)
		if (s->cut[i].pid != pid)
			s->cut[n++] = s->cut[i];
	s->ncut = n;
}

/*
 * An exec closes the agent's channel (connect_cut), so that those who have the agent tell of it; the command has had it since
 * before it began.
 */
static bool tells_exec(const struct supply *s, uint32_t pid)
{
	return agents_have(s->agents, (pid_t)pid) || (pid_t)pid == s->brings;
}

#define CANNOT_WATCH "cannot watch for processes that are started: %s"

/* Watch the programs that are started from now on: a process that the session is about does not tell of those that it executes. */
static void watch_execs(struct supply *s)
{
	struct strbuf b = { 0 };
	int e;

	if (s->watches || !s->newcomers)
		return;
	s->watches = true;
	e = newcomers_watch(s->newcomers);
	if (e) {
		strbuf_printf(&b, CANNOT_WATCH, strerror(-e));
		message(s, &b);
	}
	strbuf_fini(&b);
}

/* Has process @pid a channel now?  Its own; or that of its former program, which the kernel is about to close: then it is cut. */
static bool has_channel(struct supply *s, uint32_t pid)
{
	if (!agents_have(s->agents, (pid_t)pid))
		return false;
	agents_turn(s->agents);
	return agents_have(s->agents, (pid_t)pid) && !is_cut(s, pid);
}

static enum newcomer look_once(struct supply *s, uint32_t pid, bool last, bool named)
{
	struct target *t = NULL;
	struct strbuf err = { 0 };
	enum newcomer found;
	struct wanted *w;
	int e;

	shortage_take();
	if (!is_about(s, pid)) {
		if (!procs_is_alive(pid))
			return has_ended(s, pid, named);
		forget_wanted(s, pid);
		return NEWCOMER_DONE;
	}
	if (!s->starts && has_channel(s, pid)) {	/* whatever its files are, which it costs more to look at */
		want(s, pid);
		return NEWCOMER_HARDLY;
	}
	switch (probe_is_python(s->conf.probes, pid)) {
	case PROBE_PYTHON_GONE:
		return has_ended(s, pid, named);
	case PROBE_PYTHON_NO:
		forget_wanted(s, pid);
		return named ? unless_trouble(s, pid, last, NEWCOMER_HARDLY) : NEWCOMER_HARDLY;
	case PROBE_PYTHON_LOADING:
		return NEWCOMER_SOON;
	case PROBE_PYTHON_UNKNOWN:
		return named || last ? failed(s, pid, -errno, last) : NEWCOMER_SOON;
	case PROBE_PYTHON_YES:
		break;
	}
	if (!needs_agent_later(s, pid))
		return unless_trouble(s, pid, last, NEWCOMER_DONE);
	if (s->starts)
		starts_know(s->starts, (pid_t)pid);
	agents_turn(s->agents);
	if (is_cut(s, pid) && !is_agent_in(s, pid)) {
		forget_former(s, pid);
		forget_cut(s, pid);
	}
	w = want(s, pid);
	/* A preloaded agent; or that of the former program, whose channel the kernel is about to close. */
	if (agents_have(s->agents, (pid_t)pid))
		return NEWCOMER_HARDLY;
	if (!last && ((w && w->held && procs_age_ms(pid) < HELD_MS) || askers_will(&s->askers, pid)))
		return NEWCOMER_SOON;
	e = target_attach((pid_t)pid, &t, &err);
	if (!e)
		e = agents_try(s->agents, t, &err);
	target_free(t);
	found = e && e != -ESRCH && !last ? NEWCOMER_SOON : NEWCOMER_DONE;
	shortage_note(e);
	if (e && unless_trouble(s, pid, last, NEWCOMER_DONE) == NEWCOMER_SOON)
		found = NEWCOMER_SOON;
	else if (!e && w)
		tell_late(s, w);
	else if (e == -ESRCH)
		tell_ended(s, pid);
	else if (last && w)
		miss(s, pid, e, &err);
	strbuf_fini(&err);
	return found;
}

static enum newcomer look_at(void *ctx, uint32_t pid, bool last, bool named)
{
	struct supply *s = ctx;
	enum newcomer found = look_once(s, pid, last, named);

	if (!s->watches && (last || found != NEWCOMER_SOON) && !agents_have(s->agents, (pid_t)pid) && procs_is_alive(pid))
		watch_execs(s);
	return found;
}

static void add_young(void *ctx, uint32_t pid)
{
	struct supply *s = ctx;

	if ((s->also && !s->also(s->also_ctx, pid)) || !is_young(pid))
		return;
	newcomers_add(s->newcomers, pid);
	if ((agents_have(s->agents, (pid_t)pid) || probe_is_python(s->conf.probes, pid) != PROBE_PYTHON_NO) &&
	    grow_array(&s->begun, &s->begun_cap, s->nbegun, sizeof(*s->begun)))
		s->begun[s->nbegun++] = pid;
}

void supply_limit(struct supply *s, bool (*also)(void *ctx, uint32_t pid),
		  void (*each)(void *ctx, void (*fn)(void *fn_ctx, uint32_t pid), void *fn_ctx), void *ctx)
{
	s->also = also;
	s->each = each;
	s->also_ctx = ctx;
}

/* Nobody tells of the programs that it executes. */
static void note_silent(void *ctx, uint32_t pid)
{
	struct supply *s = ctx;

	s->watches |= !tells_exec(s, pid) && procs_is_alive(pid);
}

int supply_follow(struct supply *s, const struct probe_desc *descs, size_t n, struct strbuf *err)
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
	if (supply_is_of_any(s, descs, n))
		agents_follow_forks(s->agents);
	s->descs = descs;
	s->ndescs = n;
	e = newcomers_new(&conf, &s->newcomers);
	if (s->each)
		s->each(s->also_ctx, note_silent, s);
	else
		s->watches = true;
	if (!e && s->watches)
		e = newcomers_watch(s->newcomers);
	if (e)
		strbuf_printf(err, CANNOT_WATCH, strerror(-e));
	else if (s->each)
		s->each(s->also_ctx, add_young, s);
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

/* What becomes of one whose connection was cut: @e is 0, or why it cannot be connected. */
static const char *what_follows(int e)
{
	if (!e)
		return "connected again, and calls between are missing";
	return e == -EBUSY ? "connected again as soon as that can be, and calls until then are missing" :
			     "not connected again, and its calls are missing from now on";
}

/* Nothing is said of one whose connecting is interrupted: the session ends, or has something else to do first. */
static void connect_again(struct supply *s, struct target *t, struct strbuf *why)
{
	int e = agents_try(s->agents, t, why);

	if (e == -ESRCH || (e == -EINTR && !postpone(s, t)))
		return;
	e = passes(e) ? -EBUSY : e;
	say_cut(s, (uint32_t)target_pid(t), what_follows(e));
	if (e == -EBUSY)
		e = skip(s, t, why);
	if (e && e != -ESRCH)
		message(s, why);
}

/* It has executed another program; a look before this may have found the channel of the former one. */
static void look_anew(struct supply *s, uint32_t pid)
{
	forget_former(s, pid);
	if (s->newcomers)
		newcomers_add(s->newcomers, pid);
}

static void take_up(struct supply *s, const struct cut *c)
{
	struct target *t = NULL;
	struct strbuf why = { 0 };
	int e = target_attach((pid_t)c->pid, &t, &why);

	if (!e && agents_are_in(s->agents, t)) {
		if (!c->is_off)
			connect_again(s, t, &why);
	} else if (!e || (e != -ESRCH && s->newcomers)) {
		look_anew(s, c->pid);
	} else if (e != -ESRCH) {
		say_cut(s, c->pid, what_follows(e));
		message(s, &why);
	}
	if (e != -ESRCH && !agents_have(s->agents, (pid_t)c->pid))
		watch_execs(s);
	target_free(t);
	strbuf_fini(&why);
}

/*
 * Processes that have closed their channels, and did not execute another program, are connected again.  A child that its
 * parent's environment has connected may be none of the session's.
 */
static void connect_cut(struct supply *s)
{
	for (size_t i = 0; i < s->ncut; i++)
		if (!agents_have(s->agents, (pid_t)s->cut[i].pid) && is_about(s, s->cut[i].pid))
			take_up(s, &s->cut[i]);
	s->ncut = 0;
}

static void turn(void *ctx)
{
	struct supply *s = ctx;

	agents_turn(s->agents);
	connect_cut(s);
}

static void turn_busy(void *ctx)
{
	struct supply *s = ctx;

	busy_turn(s->busy);
}

static void say_silent(void *ctx, pid_t pid)
{
	struct supply *s = ctx;
	struct strbuf why = { 0 };

	strbuf_printf(&why, "process %d does not let its agent answer: it holds its interpreter's lock, or is stopped", (int)pid);
	say_skipped(s, &why);
	strbuf_fini(&why);
}

static int segment_of(void *session, const struct domain *domain, int fds[3], struct strbuf *why)
{
	return session_segment(session, domain, fds, why);
}

static void each_peer(void *ctx, void (*fn)(void *fn_ctx, pid_t pid), void *fn_ctx)
{
	const struct supply *s = ctx;

	agents_each(s->agents, fn, fn_ctx);
}

static bool let_rest(void *ctx, uint32_t pid, bool rest)
{
	struct supply *s = ctx;

	return agents_rest(s->agents, (pid_t)pid, rest);
}

/* Process @pid has asked.  One that was held at its exec does so for that reason, and others of its interpreter may not. */
static void learn_asker(struct supply *s, uint32_t pid)
{
	const struct wanted *w = find_wanted(s, pid);

	if (!w || !w->held)
		askers_add(&s->askers, pid);
}

/* May a Python that starts, and asks, have the agent? */
static bool is_answered(void *ctx, pid_t pid, bool has)
{
	struct supply *s = ctx;

	if (has) {
		learn_asker(s, (uint32_t)pid);
		return false;
	}
	if (!is_about(s, (uint32_t)pid) ||
	    probe_is_python(s->conf.probes, (uint32_t)pid) != PROBE_PYTHON_YES || !needs_agent_later(s, (uint32_t)pid))
		return false;
	learn_asker(s, (uint32_t)pid);
	return want_asked(s, (uint32_t)pid);
}

/* Does the interpreter that process @pid has just executed need the agent?  Its libraries are not there yet. */
static bool will_need(struct supply *s, uint32_t pid)
{
	char exe[32], path[4096];
	struct stat one, other;
	ssize_t n;

	snprintf(exe, sizeof(exe), "/proc/%u/exe", pid);
	n = readlink(exe, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	/* Another file by that name here: what it is, is seen when it runs. */
	if (stat(exe, &one) || stat(path, &other) || one.st_dev != other.st_dev || one.st_ino != other.st_ino)
		return true;
	for (size_t i = 0; i < s->ndescs; i++)
		if (is_of_any(s, &s->descs[i]) && probe_agent_needed(s->conf.probes, path, &s->descs[i]))
			return true;
	return false;
}

/* Is a program that is held at its exec to bring the agent?  What costs most to find out comes last. */
static bool is_to_bring(void *ctx, pid_t pid)
{
	struct supply *s = ctx;
	struct wanted *w;

	if (!is_about(s, (uint32_t)pid) || !will_need(s, (uint32_t)pid) || !starts_can_bring(s->starts, pid))
		return false;
	w = want_asked(s, (uint32_t)pid);
	if (w)
		w->held = true;
	return w;
}

static void know_if_python(void *ctx, uint32_t pid)
{
	struct supply *s = ctx;

	if (probe_is_python(s->conf.probes, pid) == PROBE_PYTHON_YES)
		starts_know(s->starts, (pid_t)pid);
}

/* Pythons where distributions and their users put them; others are known when they are met. */
static void know_installed(struct supply *s)
{
	static const char *const patterns[] = {
		"/usr/bin/python3", "/usr/bin/python3.[0-9]*", "/usr/local/bin/python3", "/usr/local/bin/python3.[0-9]*",
	};
	struct arena *a = arena_new();
	const char **found;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		size_t n = paths_matching(a, patterns[i], false, &found);

		for (size_t k = 0; k < n; k++)
			starts_know_file(s->starts, found[k]);
	}
	arena_free(a);
}

static void turn_starts(void *ctx)
{
	struct supply *s = ctx;

	starts_turn(s->starts);
}

static void know_all(void *ctx)
{
	struct supply *s = ctx;

	know_installed(s);
	procs_each(know_if_python, s);
}

/*
 * Hold programs at exec where the kernel permits it; elsewhere they are looked at as soon as they run.  Each Python of the
 * machine then waits for this session when it starts, so it must be about all of them.
 */
static void hold_starts(struct supply *s)
{
	const struct starts_conf conf = { agents_preload(s->agents), is_to_bring, know_all, s };

	if (!geteuid() && is_for_everybody(s) && !starts_open(&conf, &s->starts))
		know_all(s);
}

/* Sessions about processes that no description names answer those that start. */
static void answer(struct supply *s)
{
	int e;

	if (!supply_is_of_any(s, s->descs, s->ndescs))
		return;
	hold_starts(s);
	e = agents_answer(s->agents, is_answered, s, &s->deaf);
	/* That others can write there is nobody's wish; that there is no folder, of a user without a login, is usual. */
	if (e == -EPERM || e == -ENOTDIR)
		message(s, &s->deaf);
}

int supply_start(struct supply *s, struct session *session, struct strbuf *err)
{
	int e;

	s->started = true;
	if (!s->agents)
		return 0;
	agents_offer(s->agents, segment_of, session);
	session_set_peers(session, each_peer, s);
	session_set_rest(session, let_rest, s);
	s->session = session;
	if (s->newcomers)
		answer(s);
	s->is_starting = true;
	e = agents_look(s->agents, patience(s) > LOOK_MIN_MS ? patience(s) : LOOK_MIN_MS);
	s->is_starting = false;
	if (e == -EINTR)
		return e;
	if (s->only_refused.len) {	/* there would never be an event */
		strbuf_puts(err, strbuf_str(&s->only_refused));
		return -EPERM;
	}
	agents_each_asked(s->agents, say_silent, s);
	e = session_watch_fd(session, agents_fd(s->agents), turn, s);
	if (!e && s->newcomers)
		e = session_watch_fd(session, newcomers_fd(s->newcomers), turn_newcomers, s);
	if (!e && s->starts)
		e = session_watch_fd(session, starts_fd(s->starts), turn_starts, s);
	if (!e && !s->busy)	/* skip() can need it at any time */
		e = busy_new(try_again, s, &s->busy);
	if (!e)
		e = session_watch_fd(session, busy_fd(s->busy), turn_busy, s);
	if (e)
		strbuf_printf(err, "cannot watch the agents: %s", strerror(-e));
	return e;
}

/* Its hooks may have come, and events, but not its answer. */
static void count_silent(void *ctx, pid_t pid)
{
	struct supply *s = ctx;
	struct wanted *w = want(s, (uint32_t)pid);

	if (w)
		count_late(s, w);
}

/*
 * The command's loader opens the object first of all.  If that is lent by this process, whose descriptor is closed soon, it must
 * have done so, or it complains of a path that names nothing.
 */
static bool await_loader(struct supply *s, struct target *command)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	bool is_in;

	while (!(is_in = agents_are_in(s->agents, command)) && now_ms() < s->loads_by_ms && target_poll(command) != TARGET_EXITED)
		nanosleep(&nap, NULL);
	return is_in;
}

void supply_end(struct supply *s, struct target *command)
{
	enum { ANSWER_MS = 200 };

	if (!s || !s->agents || !s->started)
		return;
	agents_end(s->agents, ANSWER_MS, count_silent, s);
	if (s->heard || !command)
		return;
	s->heard = await_loader(s, command);
	s->lives_on = target_poll(command) != TARGET_EXITED;
}

/* @pid has executed a program, and the session ends before it has looked at that for the last time. */
static void count_rest(void *ctx, uint32_t pid, bool named, bool due)
{
	struct supply *s = ctx;
	struct wanted *w = find_wanted(s, pid);

	if (was_heard_of(s, pid))
		return;
	if (!procs_is_alive(pid)) {
		s->unseen += named && !w && is_for_everybody(s);
		return;
	}
	if (!w && due && is_about(s, pid) && probe_is_python(s->conf.probes, pid) == PROBE_PYTHON_YES && needs_agent_later(s, pid) &&
	    !is_agent_in(s, pid))
		w = want(s, pid);
	if (w)
		count_late(s, w);
}

static void count_rests(struct supply *s)
{
	if (!s->started || !s->newcomers)
		return;
	for (size_t i = 0; i < s->ncut; i++)
		if (!is_agent_in(s, s->cut[i].pid))
			look_anew(s, s->cut[i].pid);
	newcomers_each(s->newcomers, count_rest, s);
	for (size_t i = 0; i < s->nwanted; i++)
		if (!was_heard_of(s, s->wanted[i].pid))
			count_late(s, &s->wanted[i]);
}

void supply_free(struct supply *s)
{
	if (!s)
		return;
	/* For example a set-user-ID program, or a statically linked one. */
	if (s->started && s->awaited && !s->heard && !s->lives_on && s->conf.message)
		s->conf.message(s->conf.ctx, "the command ended without having loaded the agent: the agent's markers have "
				"not fired");
	for (size_t i = 0; i < s->nwanted; i++)
		if (s->wanted[i].trouble && !is_in(s->traced, s->wanted[i].pid))
			say_missed(s, s->wanted[i].pid, strerror(-s->wanted[i].trouble));
	count_rests(s);
	if (s->unseen && s->conf.message)
		say_unseen(s);
	if (s->late && s->conf.message)
		say_late(s);
	starts_close(s->starts);
	newcomers_free(s->newcomers);
	busy_free(s->busy);
	agents_free(s->agents);
	free(s->awaited_pids);
	free(s->wanted);
	free(s->begun);
	strbuf_fini(&s->missed_why);
	strbuf_fini(&s->deaf);
	strbuf_fini(&s->only_refused);
	strbuf_fini(&s->object);
	strbuf_fini(&s->missing);
	free(s);
}

void supply_say(const struct supply *s, struct strbuf *out)
{
	probe_agent_say(s->conf.probes, out);
}
