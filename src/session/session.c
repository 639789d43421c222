#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "abi/segment.h"
#include "base/arena.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "elf/ksyms.h"
#include "ir/facts.h"
#include "out/dialect.h"
#include "out/names.h"
#include "probe/symbols.h"
#include "out/sink.h"
#include "place/sched_clock.h"
#include "session/form.h"
#include "session/newcomers.h"
#include "session/private.h"
#include "target/target.h"

/* The minimum size of the kernel's buffer if the session itself holds records (bufpolicy). */
enum { PASS_MIN = 1 << 20 };

/*
 * The kernel's buffer for a program that prints in a loop, which is faster than the thread that takes its records out
 * (fire.c): room for some 50 ms without that thread on a busy machine.  The kernel allocates all of it at once, and a
 * process's resident memory has it twice, since libbpf maps it twice in a row.
 */
enum { LOOP_BUFSIZE = 16 << 20 };

/* The largest buffer: the size of the kernel's ring has 32 bits. */
static const int64_t BUFSIZE_MAX = 1ll << 31;

/* --- life --------------------------------------------------------------------------------------------- */

static uint32_t power_of_two(int64_t at_least)
{
	uint32_t n = 4096;

	while (n < at_least && n < 1u << 31)
		n *= 2;
	return n;
}

static int find_pid_ns(struct session *s, struct strbuf *err)
{
	struct target_pid_ns ns;
	int e = target_pid_ns(&ns);

	if (e) {
		strbuf_printf(err, "cannot tell the pid namespace, is /proc mounted? %s", strerror(-e));
		return e;
	}
	s->kernel.pid_ns = !ns.is_initial;
	s->kernel.ns_dev = ns.dev;
	s->kernel.ns_ino = ns.ino;
	return 0;
}

void session_keep_clock(struct session *s)
{
	if (!s->place->in_target && s->unit->maps[EBPF_MAP_VTIMES].type != BPF_MAP_TYPE_UNSPEC)
		s->place->ops->set_sched_clock(s->place, (uint64_t)sched_clock_off());
}

/* Make the place, and the objects that read from it. */
static int set_place(struct session *s, struct strbuf *err)
{
	int e = session_new_place(s, err);

	if (e)
		return e;
	aggs_free(s->aggs);
	s->aggs = aggs_new(s->unit, s->place);
	if (!s->aggs) {
		strbuf_puts(err, "out of memory");
		return -ENOMEM;
	}
	if (s->known.names)
		aggs_set_names(s->aggs, s->known.names, session_pull, s);
	session_keep_clock(s);
	s->place->ops->set_walltime(s->place, now_wall_off_ns());
	return 0;
}

/* Do its clauses ask for stacks, and it is about the thread that gets the CPU? */
static bool asks_who_comes(const struct enabled *en)
{
	struct ir_walk w = ir_walk_clauses(en->clauses, en->nclauses);

	if (en->probe->kind != PROBE_TP || !en->probe->tp->task.kind)
		return false;
	for (const struct ir_insn *i; (i = ir_next(&w));)
		if (i->op == IR_CALL && i->fn == IR_FN_STACK)
			return true;
	return false;
}

/* Find the clauses' probes and lay out the programs. */
static int lay_out(struct session *s, struct strbuf *err)
{
	const struct options *o = &s->opts;
	bool holds = s->held.policy != BUF_SWITCH;
	struct ebpf_sizes sizes = {
		/* The session holds the records; the kernel's buffer must not lose any. */
		.bufsize = power_of_two(holds && o->v[OPT_bufsize] < PASS_MIN ? PASS_MIN :
					o->v[OPT_bufsize] > BUFSIZE_MAX ? BUFSIZE_MAX : o->v[OPT_bufsize]),
		.aggsize = (uint32_t)o->v[OPT_aggsize],
		.dynvarsize = (uint32_t)o->v[OPT_dynvarsize],
		.ncpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF),
		.costs = s->conf.budget || o->v[OPT_showcost],
		.unwind = !strcmp(o->text[OPT_ustackunwind], "auto"),
	};
	const char *why = NULL;
	uint32_t i;
	int e = session_match(s, err);

	if (e)
		return e;
	if (!s->conf.only_loads && sizes.bufsize < LOOP_BUFSIZE && o->from[OPT_bufsize] == OPTION_DEFAULT && session_loops(s))
		sizes.bufsize = LOOP_BUFSIZE;
	sizes.nprobes = (s->on.n ? s->on.n : 1) + s->on.later;
	for (i = 0; i < s->on.n; i++) {
		sizes.syscalls |= s->on.v[i].probe->kind == PROBE_TP && s->on.v[i].probe->tp->syscalls;
		sizes.uninterrupted |= s->on.v[i].probe->kind == PROBE_TP && !s->on.v[i].probe->tp->syscalls;
		sizes.switched |= asks_who_comes(&s->on.v[i]);
		sizes.gil |= s->on.v[i].probe->nsites && s->on.v[i].probe->sites[0]->gil;
		if (s->on.v[i].probe->kind == PROBE_FUNCTION && session_is_pattern(s->on.v[i].probe))
			sizes.nnamed = ABI_NAMED_MAX;
	}
	s->unit = ebpf_unit_new(s->conf.prog, &sizes, &why);
	if (s->unit)
		return 0;
	strbuf_puts(err, why);
	return -EINVAL;
}

static bool has_stacks(const struct session *s)
{
	return s->unit->maps[EBPF_MAP_STACKS].type != BPF_MAP_TYPE_UNSPEC;
}

/* Does the script print addresses by the names of the kernel's functions? */
static bool has_addresses(const struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;

	for (uint32_t r = 0; r < prog->nrecs; r++)
		for (uint32_t a = 0; a < prog->recs[r]->nacts; a++) {
			const struct fmt *f = prog->recs[r]->acts[a].fmt;

			for (size_t k = 0; f && k < f->n; k++)
				if (f->convs[k].letter == 'a')
					return true;
		}
	return false;
}

static void take_options(struct session *s, const struct session_conf *conf)
{
	const struct options *o = &s->opts;
	const char *policy;

	s->conf = *conf;
	session_find_uses(s);
	s->opts = *conf->opts;
	s->conf.opts = &s->opts;
	policy = o->text[OPT_bufpolicy];
	s->held.policy = !strcmp(policy, "ring") ? BUF_RING : !strcmp(policy, "fill") ? BUF_FILL : BUF_SWITCH;
	s->output.lines.quiet = o->v[OPT_quiet];
	s->output.lines.rawbytes = o->v[OPT_rawbytes] ? (unsigned int)o->v[OPT_strsize] : 0;
	s->output.lines.flow = o->v[OPT_flowindent];
	s->conf.out->dialect = conf->prog->dialect;
	s->conf.out->stack_indent = (unsigned int)o->v[OPT_stackindent];
}

int session_new(const struct session_conf *conf, struct session **ret, struct strbuf *err)
{
	struct session *s = calloc(1, sizeof(*s));
	int e = -ENOMEM;

	if (!s)
		goto no_memory;
	take_options(s, conf);
	s->arena = conf->prog->arena;
	s->held.max = HELD_MAX_BYTES;
	s->output.form = &form_text;
	s->known.log_fd = -1;
	s->loop.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->loop.epoll < 0) {
		e = -errno;
		strbuf_printf(err, "cannot wait for events: %s", strerror(-e));
		goto fail;
	}
	e = find_pid_ns(s, err);
	if (!e)
		e = lay_out(s, err);
	if (e)
		goto fail;
	e = -ENOMEM;
	s->specs = specs_new((size_t)s->opts.v[OPT_specsize]);
	if (!s->specs)
		goto no_memory;
	if (has_stacks(s) || has_addresses(s)) {
		s->known.symbols = symbols_new();
		s->known.names = s->known.symbols ? names_new(s->known.symbols, (size_t)s->opts.v[OPT_namesize]) : NULL;
		if (!s->known.names)
			goto no_memory;
		names_as_numbers(s->known.names, s->opts.v[OPT_noresolve]);
		s->conf.out->names = s->known.names;
	}
	e = set_place(s, err);
	if (e)
		goto fail;
	if (has_stacks(s))
		session_follow(s);
	*ret = s;
	return 0;
no_memory:
	strbuf_puts(err, "out of memory");
fail:
	session_free(s);
	return e;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	if (s->place)
		session_set_state(s, ABI_STATE_OFF);
	session_spend_close(s);
	newcomers_free(s->on.newcomers);
	event_loop_close(&s->loop);
	aggs_free(s->aggs);
	if (s->known.names)
		s->conf.out->names = NULL;
	names_free(s->known.names);
	symbols_free(s->known.symbols);
	specs_free(s->specs);
	ksyms_free(s->kernel.ksyms);
	place_free(s->place);
	place_free(s->away);
	stream_fini(&s->held.stream);
	strbuf_fini(&s->choice.why);
	free(s->output.doc);
	free(s);
}

int session_enable(struct session *s, struct strbuf *err)
{
	int e = session_arm(s, err);

	if (e && session_move(s, err)) {
		if (s->conf.bytecode)
			strbuf_clear(s->conf.bytecode);
		e = set_place(s, err);
		if (!e)
			e = session_arm(s, err);
	}
	if (!e)
		e = session_watch_programs(s, err);
	if (!e)
		session_say_place(s);
	if (!e)
		session_spend_open(s);
	return e;
}

bool session_exited(const struct session *s)
{
	return s->finish.exited;
}

int session_status(const struct session *s)
{
	return s->finish.status;
}

/* --- the run ------------------------------------------------------------------------------------------ */

void session_set_state(struct session *s, enum abi_state state)
{
	s->place->ops->set_state(s->place, state);
}

static bool ends_session(const struct ir_clause *c)
{
	struct ir_walk w = ir_walk_clause(c);

	for (const struct ir_insn *i; (i = ir_next(&w));)
		if (i->op == IR_EXITING)
			return true;
	return false;
}

static int by_order(const void *x, const void *y)
{
	const struct enabled *const *a = x, *const *b = y;
	int64_t m = (*a)->probe->order, n = (*b)->probe->order;

	return m != n ? (m > n) - (m < n) : (*a > *b) - (*a < *b);
}

/* Did programs have more errors than allowed? */
static bool has_failed(struct session *s)
{
	struct place_told told;

	s->place->ops->told(s->place, &told);
	return (int64_t)told.errors > s->conf.max_errors;
}

/* May an event end the session? */
static bool events_may_end(const struct session *s)
{
	for (uint32_t i = 0; i < s->on.nerrors; i++)
		if (ends_session(s->on.errors[i]))
			return true;
	for (uint32_t i = 0; i < s->on.n; i++)
		for (uint32_t k = 0; k < s->on.v[i].nclauses; k++)
			if ((!session_is_tracers(s->on.v[i].probe) || session_interrupts(s, &s->on.v[i])) &&
			    ends_session(s->on.v[i].clauses[k]))
				return true;
	return false;
}

/* Run the programs of BEGIN, END or FAILED, the probes that only the tracer fires, in their order. */
static int fire(struct session *s, enum probe_kind kind)
{
	static const uint64_t no_args[10];
	struct enabled **v = calloc(s->on.n + 1, sizeof(struct enabled *));
	uint32_t i, n = 0;
	int e = v ? 0 : -ENOMEM;

	if (e)
		return e;
	for (i = 0; i < s->on.n; i++)
		if (s->on.v[i].probe->kind == kind && s->on.v[i].prog >= 0)
			v[n++] = &s->on.v[i];
	qsort(v, n, sizeof(*v), by_order);
	for (i = 0; i < n && !e; i++) {
		if (kind == PROBE_BEGIN && out_dialect(s->conf.out)->counts && has_failed(s))
			break;	/* the other probes are skipped */
		e = session_fire(s, v[i], no_args);
	}
	free(v);
	return e;
}

/* Open the requested form; if that fails, the session keeps its present one. */
static int open_form(struct session *s)
{
	const struct form *form = s->conf.taker ? &form_values :
				  strcmp(s->opts.text[OPT_oformat], "text") ? &form_document : &form_text;
	int e = form->open ? form->open(s) : 0;

	if (!e)
		s->output.form = form;
	return e;
}

int session_read(struct session *s)
{
	int e = session_drain(s, true);

	if (!e)
		e = fire(s, PROBE_READ);
	return e ? e : session_drain(s, true);
}

bool session_start(struct session *s)
{
	s->place->events_end = events_may_end(s);
	session_set_state(s, ABI_STATE_WARMUP);
	session_times_start(s);
	session_watch_keys(s);
	s->finish.error = open_form(s);
	if (!s->finish.error)
		s->finish.error = fire(s, PROBE_BEGIN);
	session_notice_exit(s);
	/* Actions of BEGIN that the tracer carries out, such as system(), run while other probes fire already. */
	if (!s->finish.error && !s->finish.is_due) {
		session_know_pythons(s);
		session_set_state(s, ABI_STATE_ACTIVE);
	}
	if (!s->finish.error)
		s->finish.error = session_drain(s, true);
	return !s->finish.error && !s->finish.is_due;
}

void session_ready(struct session *s)
{
	if (!s->finish.error && !s->finish.is_due)
		s->finish.error = session_add_sources(s);
}

int session_fd(const struct session *s)
{
	return s->loop.epoll;
}

void session_end(struct session *s)
{
	s->finish.is_due = true;
}

int session_turn(struct session *s, int timeout_ms)
{
	struct epoll_event ev[16];
	int i, n;

	if (s->finish.error || s->finish.is_due)
		return s->finish.error;
	n = epoll_wait(s->loop.epoll, ev, 16, timeout_ms);
	if (n < 0 && errno != EINTR)
		s->finish.error = -errno;
	for (i = 0; i < n && !s->finish.error && !s->finish.is_due; i++) {
		struct source_fd *src = ev[i].data.ptr;

		src->ready(s, src);
	}
	return s->finish.error ? s->finish.error : !s->finish.is_due;
}

int session_finish(struct session *s, struct strbuf *err)
{
	session_set_state(s, ABI_STATE_DRAINING);
	s->place->ops->disarm(s->place);
	if (!s->finish.error)
		s->finish.error = session_drain(s, true);
	s->finish.end_fires = true;
	session_set_state(s, ABI_STATE_COOLDOWN);
	if (!s->finish.error)
		s->finish.error = fire(s, session_failed(s) ? PROBE_FAILED : PROBE_END);
	if (!s->finish.error)
		s->finish.error = session_drain_rest(s);
	aggs_stale(s->aggs);
	if (!s->finish.error)
		s->finish.error = session_times_print(s);
	if (!s->finish.error && out_dialect(s->conf.out)->stands_apart && s->output.form->stands_apart)
		out_putc(s->conf.out, '\n');	/* dtrace(1M): an empty line separates the end's output */
	if (!s->finish.error)
		s->finish.error = session_print_aggs(s);
	session_report_refused(s);
	session_report_drops(s);
	if (s->output.form->close)
		s->output.form->close(s);
	if (!s->finish.error)
		s->finish.error = out_flush(s->conf.out);
	session_summary(s);
	if (s->finish.error)
		strbuf_printf(err, "the session ended early: %s", strerror(-s->finish.error));
	return s->finish.error;
}
