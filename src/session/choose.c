/*
 * Which place a session runs in.
 *
 * By default (-x place=auto) a script runs in the traced process if that changes only the cost: all its markers would
 * come from dtap's agent anyway, in processes that the script names, and the tracer fires all other probes.  So the
 * events are the same, from the same hooks, in the same processes.  These scripts run in the kernel although a
 * process could run them:
 *
 * - Correct markers of the interpreter itself (on 3.9 line, and everywhere gc, import and audit).  They also fire before the
 *   agent installs its hooks, and after it has removed them.  Not so function-entry and function-return of 3.9, of which the
 *   agent notes the first calls (agent/early.h): they have a twin (probe.twin) where the process is named and has got the
 *   agent, which is brought in if no other of the interpreter's markers is asked for.
 * - Patterns for all processes (python*): most of them have no agent.
 * - Processes with an address space limit (RLIMIT_AS).
 * - Processes of another pid namespace: only the kernel knows the numbers of their threads and parents.
 * - Processes with another root directory, if the script uses their paths: they only see paths below it.
 * - Processes of several trust domains that would share variables; and of another one than the tracer's if the script
 *   has actions that need the tracer's rights (domains.c).
 *
 * A script with Python functions by name runs in the target place if all its probes fire there, and may share what they share;
 * else in the kernel, which the agent tells of each event (ABI_FIRE_AWAY).  One with an operation that is for the target place
 * alone, such as copyout(), runs there if all its probes fire there.
 *
 * If the kernel does not let this user trace, only the target place is possible, and all markers come from the agent.
 * A script that the target place refuses when its programs are compiled (session_enable) moves to the kernel, too.
 */
#include <errno.h>
#include <string.h>

#include "base/proc.h"
#include "base/strbuf.h"
#include "place/kernel.h"
#include "place/target.h"
#include "session/private.h"
#include "target/target.h"

enum { BUF_MIN = 4096 };

static bool is(const struct options *o, enum option_id id, const char *value)
{
	return !strcmp(o->text[id], value);
}

/* Programs in the kernel cannot wait. */
static bool must_wait(const struct options *o)
{
	return is(o, OPT_bufpolicy, "wait");
}

/* An option that asks for the target place, or prefers it, since one process can rest there without the others; or NULL. */
static const char *target_option(const struct options *o)
{
	return must_wait(o) ? "bufpolicy=wait" : is(o, OPT_budget, "none") ? NULL : "budget";
}

bool session_in_target(const struct options *o)
{
	struct strbuf why = { 0 };
	bool in_target = is(o, OPT_place, "target");

	if (is(o, OPT_place, "auto"))
		in_target = target_option(o) || kernel_available(&why);
	strbuf_fini(&why);
	return in_target;
}

bool session_is_tracers(const struct probe *p)
{
	return p->kind == PROBE_BEGIN || p->kind == PROBE_END || p->kind == PROBE_ERROR || p->kind == PROBE_TICK ||
	       p->kind == PROBE_FAILED || p->kind == PROBE_INPUT || p->kind == PROBE_READ;
}

/* The first probe that the target place cannot fire, or NULL. */
static const struct probe *kernel_probe(const struct enabled_probes *on)
{
	for (uint32_t i = 0; i < on->n; i++)
		if (!session_is_tracers(on->v[i].probe) && probe_marker_or_twin(on->v[i].probe) < 0)
			return on->v[i].probe;
	return NULL;
}

/* The first probe that is functions of Python by name, or NULL. */
static const struct probe *function_probe(const struct enabled_probes *on)
{
	for (uint32_t i = 0; i < on->n; i++)
		if (on->v[i].probe->kind == PROBE_FUNCTION)
			return on->v[i].probe;
	return NULL;
}

/* A probe of the interpreter's own that has a twin, or NULL. */
static const struct probe *twin_probe(const struct enabled_probes *on)
{
	for (uint32_t i = 0; i < on->n; i++)
		if (on->v[i].probe->twin)
			return on->v[i].probe;
	return NULL;
}

static void because(struct place_choice *c, const struct probe *p, const char *why)
{
	strbuf_clear(&c->why);
	if (p)
		strbuf_printf(&c->why, "%s:%s:%s:%s ", p->prov, p->mod, p->func, p->name);
	strbuf_puts(&c->why, why);
}

/* Is the target place equivalent for the script? */
static bool is_alike(struct session *s)
{
	const struct probe *p = kernel_probe(&s->on), *twin = twin_probe(&s->on);
	const char *why = NULL, *ours = twin ? "dtap's agent has the same events" : "all its markers come from dtap's agent";
	bool some = false, paths = session_uses(s, IR_B_CWD) || session_uses(s, IR_B_ROOT);

	if (p) {
		because(&s->choice, p, p->kind == PROBE_SITES && !strncmp(p->prov, "python", 6) ?
			"is the interpreter's own marker" : "fires there alone");
		return false;
	}
	if (s->on.later) {
		because(&s->choice, NULL, "functions and markers that are loaded later fire there alone");
		return false;
	}
	if (twin && (s->unit->asks_values || s->unit->asks_tasks))
		ours = "values of Python are read there";
	else if (twin && s->conf.starts && (!target_place_runs_later(s->unit) || s->conf.opts->v[OPT_destructive])) {
		because(&s->choice, twin, "fires before the agent is set up, when programs that look at stacks, values, tasks or "
			"vtimestamp, or change something, must run at once");
		return false;
	}
	for (uint32_t i = 0; i < s->on.n; i++) {
		p = s->on.v[i].probe;
		if (session_is_tracers(p))
			continue;
		if (!p->pid)
			why = "is for all processes";
		else if (target_other_pids((pid_t)p->pid))
			why = "is in another pid namespace";
		else if (paths && target_other_root((pid_t)p->pid))
			why = "is in a process with another root directory";
		else if (proc_is_limited((pid_t)p->pid))
			why = "is in a process whose memory is limited (RLIMIT_AS)";
		if (why) {
			because(&s->choice, p, why);
			return false;
		}
		some = true;
	}
	strbuf_clear(&s->choice.why);
	if (session_spans(s, &s->choice.why) || session_acts_for_others(s, &s->choice.why))
		return false;
	because(&s->choice, NULL, some ? ours : "it has no probe in a process");
	return some;
}

/* Must it run in the target place, although that may not be equivalent? */
static bool must_be_inside(struct session *s)
{
	if (!s->unit->is_for_target || s->on.later || kernel_probe(&s->on))
		return false;
	because(&s->choice, NULL, "what it does is for programs inside the process");
	return true;
}

/* Must a script with functions of Python by name run in the kernel?  Then s->choice.why says why. */
static bool needs_kernel(struct session *s)
{
	const struct probe *other = kernel_probe(&s->on);

	strbuf_clear(&s->choice.why);
	if (!other && !s->on.later)
		return session_spans(s, &s->choice.why);
	because(&s->choice, other, other ? "fires there alone" : "functions and markers that are loaded later fire there alone");
	return true;
}

/* @p is functions of Python by name: they fire in both places. */
static int choose_by_function(struct session *s, const struct probe *p, struct strbuf *err)
{
	struct strbuf refusal = { 0 };
	int e = kernel_available(&refusal);

	s->choice.in_target = !needs_kernel(s);
	if (s->choice.in_target) {
		s->choice.may_move = !e && !must_wait(s->conf.opts);
		because(&s->choice, p, "costs least there");
		e = 0;
	} else if (e) {
		strbuf_printf(err, "the script must run in the kernel (%s): %s", strbuf_str(&s->choice.why), strbuf_str(&refusal));
	} else if (must_wait(s->conf.opts)) {
		strbuf_printf(err, "the script must run in the kernel (%s), where programs cannot wait (bufpolicy=wait): make bufsize larger "
			      "instead", strbuf_str(&s->choice.why));
		e = -EINVAL;
	}
	strbuf_fini(&refusal);
	return e;
}

/* Report the probe that prevents the target place, where the kernel does not let this user trace. */
static void say_without(const struct session *s, struct strbuf *err)
{
	const struct probe *p = kernel_probe(&s->on);

	if (p)
		strbuf_printf(err, "; without that Python's markers and functions can be traced, in processes of one's own, but not "
			      "%s:%s:%s:%s", p->prov, p->mod, p->func, p->name);
}

/* Set s->choice from the options and the probes. */
static int choose(struct session *s, struct strbuf *err)
{
	const struct options *o = s->conf.opts;
	bool is_auto = is(o, OPT_place, "auto"), by_cpu = o->v[OPT_cpu] >= 0;
	const char *option = target_option(o);
	struct strbuf refusal = { 0 };
	int e;

	s->choice.may_move = false;
	if (is_auto && !by_cpu && function_probe(&s->on))
		return choose_by_function(s, function_probe(&s->on), err);
	s->choice.in_target = is(o, OPT_place, "target");
	because(&s->choice, NULL, "-x place says so");
	if (s->choice.in_target && by_cpu) {
		strbuf_puts(err, "the option cpu is for the kernel place: in the target a thread's CPU is not asked for at"
				 " each event; compare the variable cpu in a predicate");
		return -EINVAL;
	}
	if (s->choice.in_target && s->on.later) {
		strbuf_puts(err, "functions of libraries, whenever they are loaded, and markers of programs that start later cannot "
				 "fire in the target place: use -x place=kernel");
		return -EINVAL;
	}
	e = s->choice.in_target ? 0 : kernel_available(&refusal);
	if (!e && is_auto && by_cpu) {
		because(&s->choice, NULL, "-x cpu is for that place");
	} else if (!e && is_auto && !option) {
		s->choice.may_move = is_alike(s);
		s->choice.in_target = s->choice.may_move || must_be_inside(s);
	} else if (is_auto && !by_cpu && (e || option) && !s->on.later && !kernel_probe(&s->on)) {
		s->choice.in_target = true;
		strbuf_clear(&s->choice.why);
		strbuf_printf(&s->choice.why, "%s%s", e ? strbuf_str(&refusal) : option, e ? "" : " is for that place");
		e = 0;
	}
	if (!e && s->choice.in_target && session_spans(s, err)) {
		strbuf_puts(err, kernel_available(&refusal) ? ": trace them one by one" : ": use -x place=kernel");
		e = -EINVAL;
		strbuf_clear(&refusal);
	}
	/* session_enable() reports what the target place cannot do; report here why the kernel place is impossible. */
	if (e && !err->len) {
		strbuf_puts(err, strbuf_str(&refusal));
		say_without(s, err);
	} else if (!e && !s->choice.in_target && must_wait(o)) {
		strbuf_printf(err, "%s is for the target place: programs in the kernel cannot wait; make bufsize larger instead", option);
		e = -EINVAL;
	}
	strbuf_fini(&refusal);
	return e;
}

/*
 * Make a kernel place with as much memory for records as is available, if not all that was asked for; programs do not
 * depend on the size.
 */
static int kernel_place(struct session *s, struct strbuf *err)
{
	struct ebpf_map *out = &s->unit->maps[EBPF_MAP_OUT];
	uint32_t wanted = out->max_entries;
	int e;

	for (;;) {
		e = kernel_new(s->unit, &s->place, err);
		if ((e != -ENOMEM && e != -E2BIG) || strcmp(s->opts.text[OPT_bufresize], "auto") ||
		    out->max_entries <= BUF_MIN)
			break;
		out->max_entries /= 2;
		strbuf_clear(err);
	}
	if (!e && out->max_entries < wanted && !s->opts.v[OPT_quiet] && !s->opts.v[OPT_quietresize])
		session_warn(s, "buffer size lowered to %uk", out->max_entries >> 10);
	return e;
}

/* The number of processes that the script names; 0: not limited. */
static unsigned int processes(const struct enabled_probes *on)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < on->n; i++) {
		const struct probe *p = on->v[i].probe;
		uint32_t k = 0;

		if (session_is_tracers(p))
			continue;
		if (!p->pid)
			return 0;
		while (on->v[k].probe->pid != p->pid)
			k++;
		n += k == i;
	}
	return n;
}

static int new_place(struct session *s, struct strbuf *err)
{
	if (s->choice.in_target)
		return target_place_new(s->unit, is(s->conf.opts, OPT_bufpolicy, "wait"), processes(&s->on), &s->place, err);
	return kernel_place(s, err);
}

bool session_move(struct session *s, struct strbuf *err)
{
	if (!s->choice.may_move)
		return false;
	s->choice.may_move = s->choice.in_target = false;
	strbuf_clear(&s->choice.why);
	strbuf_puts(&s->choice.why, strbuf_str(err));
	strbuf_clear(err);
	place_free(s->place);
	s->place = NULL;
	return true;
}

int session_new_place(struct session *s, struct strbuf *err)
{
	int e = s->choice.is_made ? 0 : choose(s, err);

	s->choice.is_made = true;
	if (!e)
		e = new_place(s, err);
	if (e && session_move(s, err))
		e = new_place(s, err);
	return e;
}

void session_places(const struct options *o, struct strbuf *out)
{
	struct strbuf why = { 0 };

	if (!is(o, OPT_place, "auto"))
		strbuf_printf(out, "scripts run in the %s: -x place says so", o->text[OPT_place]);
	else if (kernel_available(&why))
		strbuf_printf(out, "scripts of Python's markers run in the target: %s", strbuf_str(&why));
	else
		strbuf_puts(out, "scripts run in the kernel, or in the target when all their markers come from dtap's agent");
	strbuf_fini(&why);
}

void session_say_place(struct session *s)
{
	struct strbuf text = { 0 };

	if (!s->conf.opts->v[OPT_showplace])
		return;
	strbuf_printf(&text, "# %s: the script runs in the %s: %s\n", s->conf.command,
		      s->choice.in_target ? "target" : "kernel", strbuf_str(&s->choice.why));
	s->conf.message(s->conf.message_ctx, strbuf_str(&text));
	strbuf_fini(&text);
}
