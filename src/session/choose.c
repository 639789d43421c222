/*
 * Which place a session runs in.
 *
 * Of itself (-x place=auto) a script runs in the traced process when nothing but the cost changes by that: all its
 * markers are such that dtap's agent would supply them anyway, in processes that the script names, and everything else
 * is fired by the tracer.  So the events are the same ones, from the same hooks, and fire in the same processes.
 * What stays in the kernel though a process could serve it:
 *
 * - Markers of the interpreter's own that are sound (all of 3.9, and gc, import and audit).  They fire before the
 *   agent can have its hooks in, and after it has taken them out: 3.9 makes some 500 calls before the program's first.
 *   Nor should a process that needs no agent be given one.
 * - Patterns for whatever processes there are (python*): in most of them nobody put an agent.
 * - Processes that are not to have all the address space they like.
 * - Processes of another pid namespace: the numbers of their threads and parents are known to the kernel alone.
 * - Processes with another root directory, whose paths the script asks for: they know but what is below it.
 *
 * Where the kernel lets this user trace nothing the target place is all there is, and every marker comes from the
 * agent.  What the target place refuses when programs are made for it (session_enable) goes to the kernel, too.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

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

bool session_in_target(const struct options *o)
{
	struct strbuf why = { 0 };
	bool in_target = is(o, OPT_place, "target");

	if (is(o, OPT_place, "auto"))
		in_target = is(o, OPT_bufpolicy, "wait") || kernel_available(&why);
	strbuf_fini(&why);
	return in_target;
}

static bool is_tracers(const struct probe *p)
{
	return p->kind == PROBE_BEGIN || p->kind == PROBE_END || p->kind == PROBE_ERROR || p->kind == PROBE_TICK ||
	       p->kind == PROBE_FAILED;
}

/* The first probe that the target place cannot fire, or NULL. */
static const struct probe *kernel_probe(const struct session *s)
{
	for (uint32_t i = 0; i < s->nenabled; i++)
		if (!is_tracers(s->enabled[i].probe) && probe_marker(s->enabled[i].probe) < 0)
			return s->enabled[i].probe;
	return NULL;
}

static void because(struct session *s, const struct probe *p, const char *why)
{
	strbuf_clear(&s->why);
	if (p)
		strbuf_printf(&s->why, "%s:%s:%s:%s ", p->prov, p->mod, p->func, p->name);
	strbuf_puts(&s->why, why);
}

static bool has_limit(uint32_t pid)
{
	struct rlimit limit;

	return !prlimit((pid_t)pid, RLIMIT_AS, NULL, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

/* Would the script notice no difference? */
static bool is_alike(struct session *s)
{
	const struct probe *p = kernel_probe(s);
	const char *why = NULL;
	bool some = false, paths = session_uses(s, IR_B_CWD) || session_uses(s, IR_B_ROOT);

	if (p) {
		because(s, p, p->kind == PROBE_SITES && !strncmp(p->prov, "python", 6) ?
			"is the interpreter's own marker" : "fires there alone");
		return false;
	}
	if (s->later) {
		because(s, NULL, "functions of libraries fire there alone");
		return false;
	}
	for (uint32_t i = 0; i < s->nenabled; i++) {
		p = s->enabled[i].probe;
		if (is_tracers(p))
			continue;
		if (!p->pid)
			why = "is for all processes";
		else if (target_other_pids((pid_t)p->pid))
			why = "is in another pid namespace";
		else if (paths && target_other_root((pid_t)p->pid))
			why = "is in a process with another root directory";
		else if (has_limit(p->pid))
			why = "is in a process whose memory is limited (RLIMIT_AS)";
		if (why) {
			because(s, p, why);
			return false;
		}
		some = true;
	}
	because(s, NULL, some ? "all its markers come from dtap's agent" : "it has no probe in a process");
	return some;
}

/* The place that the options and the probes ask for: s->in_target, s->may_move and s->why. */
static int choose(struct session *s, struct strbuf *err)
{
	const struct options *o = s->conf.opts;
	bool is_auto = is(o, OPT_place, "auto"), wait = is(o, OPT_bufpolicy, "wait"), by_cpu = o->v[OPT_cpu] >= 0;
	struct strbuf refusal = { 0 };
	int e;

	s->may_move = false;
	s->in_target = is(o, OPT_place, "target");
	because(s, NULL, "-x place says so");
	if (s->in_target && by_cpu) {
		strbuf_puts(err, "the option cpu is for the kernel place: in the target a thread's CPU is not asked for at"
				 " each event; compare the variable cpu in a predicate");
		return -EINVAL;
	}
	if (s->in_target && s->later) {
		strbuf_puts(err, "functions of libraries, whenever they are loaded, cannot fire in the target place: use -x "
				 "place=kernel");
		return -EINVAL;
	}
	e = s->in_target ? 0 : kernel_available(&refusal);
	if (!e && is_auto && by_cpu) {
		because(s, NULL, "-x cpu is for that place");
	} else if (!e && is_auto && !wait) {
		s->in_target = s->may_move = is_alike(s);
	} else if (is_auto && !by_cpu && (e || wait) && !s->later && !kernel_probe(s)) {
		s->in_target = true;
		because(s, NULL, e ? strbuf_str(&refusal) : "bufpolicy=wait is for that place");
		e = 0;
	}
	/* What the target place cannot do session_enable() says; but who chose nothing is told why not the kernel. */
	if (e) {
		strbuf_puts(err, strbuf_str(&refusal));
	} else if (!s->in_target && wait) {
		strbuf_puts(err, "bufpolicy=wait is for the target place: programs in the kernel cannot wait; make bufsize"
				 " larger instead");
		e = -EINVAL;
	}
	strbuf_fini(&refusal);
	return e;
}

/*
 * As much memory for records as there is, when not as much as was asked for; the programs do not know how much they
 * write to.
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

/* How many processes the script is about; 0: any number. */
static unsigned int processes(const struct session *s)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < s->nenabled; i++) {
		const struct probe *p = s->enabled[i].probe;
		uint32_t k = 0;

		if (is_tracers(p))
			continue;
		if (!p->pid)
			return 0;
		while (s->enabled[k].probe->pid != p->pid)
			k++;
		n += k == i;
	}
	return n;
}

static int new_place(struct session *s, struct strbuf *err)
{
	return s->in_target ? target_place_new(s->unit, is(s->conf.opts, OPT_bufpolicy, "wait"), processes(s), &s->place,
					       err) :
			      kernel_place(s, err);
}

bool session_move(struct session *s, struct strbuf *err)
{
	if (!s->may_move)
		return false;
	s->may_move = s->in_target = false;
	strbuf_clear(&s->why);
	strbuf_puts(&s->why, strbuf_str(err));
	strbuf_clear(err);
	place_free(s->place);
	s->place = NULL;
	return true;
}

int session_new_place(struct session *s, struct strbuf *err)
{
	int e = s->place_chosen ? 0 : choose(s, err);

	s->place_chosen = true;
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
		      s->in_target ? "target" : "kernel", strbuf_str(&s->why));
	s->conf.message(s->conf.message_ctx, strbuf_str(&text));
	strbuf_fini(&text);
}
