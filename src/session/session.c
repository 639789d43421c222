#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "elf/ksyms.h"
#include "out/names.h"
#include "out/sink.h"
#include "place/sched_clock.h"
#include "place/target.h"
#include "session/private.h"
#include "target/target.h"

/* At least so large is the buffer in the kernel that records only pass through. */
enum { PASS_MIN = 1 << 20 };

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
	s->pid_ns = !ns.is_initial;
	s->ns_dev = ns.dev;
	s->ns_ino = ns.ino;
	return 0;
}

void session_keep_clock(struct session *s)
{
	if (!s->place->in_target && s->unit->maps[EBPF_MAP_VTIMES].type != BPF_MAP_TYPE_UNSPEC)
		place_control(s->place)->sched_off_ns = (uint64_t)sched_clock_off();
}

/* The place, and what reads from it. */
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
	if (s->names)
		aggs_set_names(s->aggs, s->names, session_pull, s);
	session_keep_clock(s);
	place_control(s->place)->walltime_off_ns = now_wall_ns() - now_ns();
	return 0;
}

/* The clauses' probes, and the layout of the programs for them. */
static int lay_out(struct session *s, struct strbuf *err)
{
	const struct options *o = &s->opts;
	bool holds = s->policy != BUF_SWITCH;
	struct ebpf_sizes sizes = {
		/* What is held back is held here, and the buffer in between must not lose any of it. */
		.bufsize = power_of_two(holds && o->v[OPT_bufsize] < PASS_MIN ? PASS_MIN : o->v[OPT_bufsize]),
		.aggsize = (uint32_t)o->v[OPT_aggsize],
		.dynvarsize = (uint32_t)o->v[OPT_dynvarsize],
		.ncpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF),
		.unwind = !strcmp(o->text[OPT_ustackunwind], "auto"),
	};
	const char *why = NULL;
	uint32_t i;

	session_match(s);
	sizes.nprobes = (s->nenabled ? s->nenabled : 1) + s->later;
	for (i = 0; i < s->nenabled; i++)
		sizes.syscalls |= s->enabled[i].probe->kind == PROBE_TP && s->enabled[i].probe->tp->syscalls;
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
	s->policy = !strcmp(policy, "ring") ? BUF_RING : !strcmp(policy, "fill") ? BUF_FILL : BUF_SWITCH;
	s->lines.quiet = o->v[OPT_quiet];
	s->lines.rawbytes = o->v[OPT_rawbytes] ? (unsigned int)o->v[OPT_strsize] : 0;
	s->lines.flow = o->v[OPT_flowindent];
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
	s->held_max = HELD_MAX_BYTES;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0) {
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
		s->names = names_new();
		if (!s->names)
			goto no_memory;
		s->conf.out->names = s->names;
	}
	e = set_place(s, err);
	if (e)
		goto fail;
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
	size_t i;

	if (!s)
		return;
	if (s->place)
		place_control(s->place)->state = ABI_STATE_OFF;
	for (i = 0; i < s->nsources; i++)
		if (s->sources[i]->owned)
			close(s->sources[i]->fd);
	if (s->epoll >= 0)
		close(s->epoll);
	aggs_free(s->aggs);
	if (s->names)
		s->conf.out->names = NULL;
	names_free(s->names);
	specs_free(s->specs);
	ksyms_free(s->ksyms);
	place_free(s->place);
	stream_fini(&s->stream);
	strbuf_fini(&s->why);
	free(s->doc);
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
		session_say_place(s);
	return e;
}

int session_status(const struct session *s)
{
	return s->status;
}

bool session_segment(const struct session *s, int fds[3])
{
	struct target_place_fds f;

	if (!s->place->in_target)
		return false;
	f = target_place_fds(s->place);
	fds[0] = f.image;
	fds[1] = f.data;
	fds[2] = f.wake;
	return true;
}

/* --- the run ------------------------------------------------------------------------------------------ */

void session_set_state(struct session *s, enum abi_state state)
{
	__atomic_store_n(&place_control(s->place)->state, state, __ATOMIC_SEQ_CST);
}

static int by_order(const void *x, const void *y)
{
	const struct enabled *const *a = x, *const *b = y;
	int64_t m = (*a)->probe->order, n = (*b)->probe->order;

	return m != n ? (m > n) - (m < n) : (*a > *b) - (*a < *b);
}

/* Run the programs of BEGIN, END or FAILED, the probes that only the tracer fires, in their order. */
static int fire(struct session *s, enum probe_kind kind)
{
	static const uint64_t no_args[10];
	struct enabled **v = arena_alloc(s->arena, (s->nenabled + 1) * sizeof(struct enabled *));
	uint32_t i, n = 0;
	int e = 0;

	for (i = 0; i < s->nenabled; i++)
		if (s->enabled[i].probe->kind == kind && s->enabled[i].prog >= 0)
			v[n++] = &s->enabled[i];
	qsort(v, n, sizeof(*v), by_order);
	for (i = 0; i < n && !e; i++) {
		if (kind == PROBE_BEGIN && s->conf.stp && (int64_t)place_control(s->place)->errors > s->conf.max_errors)
			break;	/* the others have nothing to begin with any more */
		e = s->place->ops->run(s->place, v[i]->prog, (uint32_t)(v[i] - s->enabled), no_args);
	}
	return e;
}

bool session_start(struct session *s)
{
	session_set_state(s, ABI_STATE_WARMUP);
	session_times_start(s);
	s->error = structured_begin(s);
	if (!s->error)
		s->error = fire(s, PROBE_BEGIN);
	if (!s->error)
		s->error = session_drain(s, true);
	if (s->error || s->ending)
		return false;
	session_know_pythons(s);
	session_set_state(s, ABI_STATE_ACTIVE);
	return true;
}

int session_run(struct session *s, struct strbuf *err)
{
	struct epoll_event ev[16];
	int i, n;

	if (!s->error && !s->ending)
		s->error = session_add_sources(s);
	while (!s->error && !s->ending) {
		n = epoll_wait(s->epoll, ev, 16, -1);
		if (n < 0 && errno != EINTR)
			s->error = -errno;
		for (i = 0; i < n && !s->error && !s->ending; i++) {
			struct source_fd *src = ev[i].data.ptr;

			src->ready(s, src);
		}
	}
	session_set_state(s, ABI_STATE_DRAINING);
	s->place->ops->disarm(s->place);
	if (!s->error)
		s->error = session_drain(s, true);
	s->ended = true;
	session_set_state(s, ABI_STATE_COOLDOWN);
	if (!s->error)
		s->error = fire(s, session_stap_failed(s) ? PROBE_FAILED : PROBE_END);
	if (!s->error)
		s->error = session_drain_rest(s);
	aggs_stale(s->aggs);
	if (!s->error)
		s->error = session_times_print(s);
	if (!s->error)
		s->error = session_print_aggs(s);
	session_report_drops(s);
	structured_end(s);
	if (!s->error)
		s->error = out_flush(s->conf.out);
	if (s->conf.stp)
		session_stap_summary(s);
	if (s->error)
		strbuf_printf(err, "the session ended early: %s", strerror(-s->error));
	return s->error;
}
