#include "session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "abi/python.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "out/names.h"
#include "out/sink.h"
#include "place/sched_clock.h"
#include "place/target.h"
#include "probe/procs.h"
#include "session/private.h"
#include "target/target.h"

/* Records held at once; then the buffer in the kernel is left to fill, and what does not fit is a drop. */
enum { HELD_MAX_BYTES = 8 << 20 };

enum { PASS_MIN = 1 << 20 };
/* How often programs may ask again about processes that are no Python. */
enum { PYTHON_ASKED = 1000 };

/* How often to look whether a process has loaded its libraries. */
enum { LOADING_TRIES = 50 };

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

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

/* For vtimestamp: the clocks drift apart. */
static void keep_clock(struct session *s)
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
	keep_clock(s);
	place_control(s->place)->walltime_off_ns = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC);
	return 0;
}

int session_new(const struct session_conf *conf, struct session **ret, struct strbuf *err)
{
	const struct options *o = conf->opts;
	const char *policy = o->text[OPT_bufpolicy];
	bool holds = !strcmp(policy, "ring") || !strcmp(policy, "fill");
	struct ebpf_sizes sizes = {
		/* What is held back is held here, and the buffer in between must not lose any of it. */
		.bufsize = power_of_two(holds && o->v[OPT_bufsize] < PASS_MIN ? PASS_MIN : o->v[OPT_bufsize]),
		.aggsize = (uint32_t)o->v[OPT_aggsize],
		.dynvarsize = (uint32_t)o->v[OPT_dynvarsize],
		.ncpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF),
		.unwind = !strcmp(o->text[OPT_ustackunwind], "auto"),
	};
	struct session *s = calloc(1, sizeof(*s));
	const char *why = NULL;
	int e = -ENOMEM;
	uint32_t i;

	if (!s)
		goto no_memory;
	s->conf = *conf;
	s->opts = *conf->opts;
	s->conf.opts = &s->opts;
	s->arena = conf->prog->arena;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0) {
		e = -errno;
		strbuf_printf(err, "cannot wait for events: %s", strerror(-e));
		goto fail;
	}
	e = find_pid_ns(s, err);
	if (e)
		goto fail;
	session_match(s);
	sizes.nprobes = (s->nenabled ? s->nenabled : 1) + s->later;
	for (i = 0; i < s->nenabled; i++)
		sizes.syscalls |= s->enabled[i].probe->kind == PROBE_TP && s->enabled[i].probe->tp->syscalls;
	s->unit = ebpf_unit_new(conf->prog, &sizes, &why);
	if (!s->unit) {
		strbuf_puts(err, why);
		e = -EINVAL;
		goto fail;
	}
	s->specs = specs_new((size_t)o->v[OPT_specsize]);
	if (!s->specs) {
		e = -ENOMEM;
		goto no_memory;
	}
	if (s->unit->maps[EBPF_MAP_STACKS].type != BPF_MAP_TYPE_UNSPEC) {
		s->names = names_new();
		if (!s->names) {
			e = -ENOMEM;
			goto no_memory;
		}
		s->conf.out->names = s->names;
	}
	e = set_place(s, err);
	if (e)
		goto fail;
	s->policy = !strcmp(policy, "ring") ? BUF_RING : holds ? BUF_FILL : BUF_SWITCH;
	s->held_max = HELD_MAX_BYTES;
	s->lines.quiet = o->v[OPT_quiet];
	s->lines.rawbytes = o->v[OPT_rawbytes] ? (unsigned int)o->v[OPT_strsize] : 0;
	s->lines.flow = o->v[OPT_flowindent];
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

/* --- events ------------------------------------------------------------------------------------------- */

/* Wake the loop for @events (of epoll) on @fd. */
static struct source_fd *add_source(struct session *s, int fd, bool owned, uint32_t events,
				    void (*ready)(struct session *s, struct source_fd *src))
{
	struct source_fd *src = arena_new_of(s->arena, struct source_fd);
	struct epoll_event ev = { .events = events, .data.ptr = src };

	src->fd = fd;
	src->owned = owned;
	src->ready = ready;
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev))
		return NULL;
	s->sources = arena_grow(s->arena, s->sources, &s->sources_cap, s->nsources, sizeof(*s->sources));
	s->sources[s->nsources++] = src;
	return src;
}

/* A program that calls exit() shuts the gate at once; its record, with the status, comes later. */
static void notice_exit(struct session *s)
{
	if (__atomic_load_n(&place_control(s->place)->state, __ATOMIC_RELAXED) != ABI_STATE_ACTIVE)
		s->ending = true;
}

static void buffer_ready(struct session *s, struct source_fd *src)
{
	(void)src;
	s->error = session_drain(s, false);
}

static void status_ready(struct session *s, struct source_fd *src)
{
	uint64_t ticks;

	if (read(src->fd, &ticks, sizeof(ticks)) == sizeof(ticks)) {
		keep_clock(s);
		session_report_drops(s);
	}
}

static void switch_ready(struct session *s, struct source_fd *src)
{
	uint64_t ticks;

	if (read(src->fd, &ticks, sizeof(ticks)) == sizeof(ticks)) {
		s->error = session_drain(s, false);
		if (!s->error)
			s->error = session_look_again(s);
		notice_exit(s);
	}
}

/* The next firing of a timer whose periods vary: once, between period - random and period + random. */
static void tick_again(struct source_fd *src)
{
	const struct probe *p = src->tick->probe;
	uint64_t ns, dice;

	if (getrandom(&dice, sizeof(dice), 0) != sizeof(dice))
		dice = now_ns(CLOCK_MONOTONIC);
	ns = p->period_ns - p->random_ns + dice % (2 * p->random_ns + 1);
	ns += !ns;
	struct itimerspec it = { .it_value = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) } };
	timerfd_settime(src->fd, 0, &it, NULL);
}

static void timeout_ready(struct session *s, struct source_fd *src)
{
	(void)src;
	s->ending = true;
}

static void tick_ready(struct session *s, struct source_fd *src)
{
	static const uint64_t no_args[10];
	uint64_t ticks;

	if (read(src->fd, &ticks, sizeof(ticks)) != sizeof(ticks))
		return;
	if (src->tick->probe->random_ns)
		tick_again(src);
	/* A tracer that was held up fires once for each tick missed, but does not try to make up for a sleep. */
	if (ticks > 100)
		ticks = 100;
	while (ticks-- && !s->ending && !s->error) {
		s->error = s->place->ops->run(s->place, src->tick->prog, (uint32_t)(src->tick - s->enabled), no_args);
		if (!s->error)
			s->error = session_drain(s, false);
		notice_exit(s);
	}
}

static void signal_ready(struct session *s, struct source_fd *src)
{
	struct signalfd_siginfo info;

	if (read(src->fd, &info, sizeof(info)) == sizeof(info))
		s->ending = true;
}

static void target_ready(struct session *s, struct source_fd *src)
{
	if (target_poll(src->target) != TARGET_EXITED)
		return;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, src->fd, NULL);
	if (--s->targets == 0)
		s->ending = true;
}

/* Where process @pid, which programs know by @key, has its frames of Python. */
static void tell_python(struct session *s, uint32_t pid, const struct abi_process_key *key, bool asked)
{
	struct abi_python python;

	if (!names_python(s->names, pid, &python)) {
		s->place->ops->map_set(s->place, EBPF_MAP_PYTHONS, key, &python);
	} else if (asked && s->nasked < PYTHON_ASKED) {
		/* It may load one later: let it be asked about again, some times. */
		s->nasked++;
		s->place->ops->map_delete(s->place, EBPF_MAP_PYTHONS, key);
	}
}

static bool has_map(const struct session *s, uint32_t map)
{
	return s->names && s->place->ops->map_set && s->unit->maps[map].type != BPF_MAP_TYPE_UNSPEC;
}

/* Tell the programs what they need to walk the stacks of process @pid. */
static void tell_process(struct session *s, uint32_t pid, const struct abi_process_key *key, bool asked)
{
	struct abi_unwind *tables = has_map(s, EBPF_MAP_RANGES) ? s->place->ops->map_memory(s->place, EBPF_MAP_UNWIND) : NULL;
	struct abi_ranges ranges;

	if (has_map(s, EBPF_MAP_PYTHONS))
		tell_python(s, pid, key, asked);
	if (tables && !names_unwind(s->names, pid, &ranges, tables))
		s->place->ops->map_set(s->place, EBPF_MAP_RANGES, key, &ranges);
}

/* Is @pid, or what started it, one of the targets? */
static bool is_target(const struct session *s, uint32_t pid)
{
	for (int generations = 0; pid > 1 && generations < 32; generations++) {
		for (size_t i = 0; i < s->nsources; i++)
			if (s->sources[i]->target && (uint32_t)target_pid(s->sources[i]->target) == pid)
				return true;
		pid = procs_parent(pid);
	}
	return false;
}

/*
 * A process has called exec: what it will need is told now, as far as it is traced for certain; the others will ask.
 * It loads its libraries in no time, and Python takes some to start behind that.
 */
static void tell_starting(struct session *s, uint32_t pid, const struct abi_process_key *key)
{
	static const struct timespec pause = { 0, 200000 };

	if (is_target(s, pid)) {
		for (int tries = 0; tries < LOADING_TRIES && names_is_loading(s->names, pid); tries++)
			nanosleep(&pause, NULL);
		tell_process(s, pid, key, true);
		return;
	}
	if (has_map(s, EBPF_MAP_RANGES))
		s->place->ops->map_delete(s->place, EBPF_MAP_RANGES, key);
	if (!s->targets && has_map(s, EBPF_MAP_PYTHONS))
		tell_python(s, pid, key, true);
	else if (has_map(s, EBPF_MAP_PYTHONS))
		s->place->ops->map_delete(s->place, EBPF_MAP_PYTHONS, key);
}

/* The same for a process that is known from the start, before anything of it is traced. */
static void know_process(struct session *s, uint32_t pid)
{
	struct abi_process_key key;

	if ((has_map(s, EBPF_MAP_RANGES) || has_map(s, EBPF_MAP_PYTHONS)) && !procs_key(pid, &key))
		tell_process(s, pid, &key, false);
}

static void know_if_python(void *session, uint32_t pid)
{
	char link[64], exe[256];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", pid);
	n = readlink(link, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	if (strstr(exe, "python"))
		know_process(session, pid);
}

/* Of other processes, programs ask when they meet them; those that say that they are Python are known at once. */
static void know_pythons(struct session *s)
{
	if (!s->targets && has_map(s, EBPF_MAP_PYTHONS))
		procs_each(know_if_python, s);
}

int session_watch(struct session *s, struct target *t)
{
	struct source_fd *src = add_source(s, target_fd(t), false, EPOLLIN, target_ready);

	if (!src)
		return -errno;
	src->target = t;
	s->targets++;
	session_know_pid(s, (uint32_t)target_pid(t));
	return 0;
}

static void other_ready(struct session *s, struct source_fd *src)
{
	(void)s;
	src->other(src->ctx);
}

int session_watch_fd(struct session *s, int fd, void (*ready)(void *ctx), void *ctx)
{
	struct source_fd *src = add_source(s, fd, false, EPOLLIN, other_ready);

	if (!src)
		return -errno;
	src->other = ready;
	src->ctx = ctx;
	return 0;
}

void session_know_pid(struct session *s, uint32_t pid)
{
	if (!s->names)
		return;
	names_watch(s->names, pid);
	know_process(s, pid);
}

void session_know(struct session *s, struct target *t)
{
	if (!s->names)
		return;
	if (target_state(t) == TARGET_AT_EXEC)
		target_to_entry(t, NULL);
	if (target_state(t) != TARGET_EXITED)
		session_know_pid(s, (uint32_t)target_pid(t));
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

static int set_period(int fd, int64_t period_ns)
{
	struct timespec period = { period_ns / 1000000000, period_ns % 1000000000 };
	struct itimerspec it = { period, period };

	return timerfd_settime(fd, 0, &it, NULL) ? -errno : 0;
}

/* Call @ready each @period_ns. */
static int add_timer(struct session *s, int64_t period_ns, struct enabled *tick,
		     void (*ready)(struct session *s, struct source_fd *src), struct source_fd **ret)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), e;
	struct source_fd *src;

	if (fd < 0)
		return -errno;
	src = add_source(s, fd, true, EPOLLIN, ready);
	if (!src) {
		e = -errno;
		close(fd);
		return e;
	}
	src->tick = tick;
	if (ret)
		*ret = src;
	return set_period(fd, period_ns);
}

void session_set_rates(struct session *s)
{
	if (s->switcher)
		set_period(s->switcher->fd, s->opts.v[OPT_switchrate]);
	if (s->teller)
		set_period(s->teller->fd, s->opts.v[OPT_statusrate]);
}

void session_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

static int add_signals(struct session *s)
{
	sigset_t set;
	int fd;

	session_signals(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (!add_source(s, fd, true, EPOLLIN, signal_ready)) {
		close(fd);
		return -errno;
	}
	return 0;
}

static int add_sources(struct session *s)
{
	int fd = s->place->ops->out_fd(s->place), e;
	uint32_t i;

	/* Only when a program wakes us: that there are records again at once is no news under load. */
	if (fd >= 0 && !add_source(s, fd, false, EPOLLIN | EPOLLET, buffer_ready))
		return -errno;
	e = add_signals(s);
	if (!e)
		e = add_timer(s, s->opts.v[OPT_switchrate], NULL, switch_ready, &s->switcher);
	if (!e)
		/* What SystemTap's handlers could not do may end its session. */
		e = add_timer(s, s->opts.v[s->conf.stp ? OPT_switchrate : OPT_statusrate], NULL, status_ready, &s->teller);
	if (!e && s->conf.timeout_ns)
		e = add_timer(s, (int64_t)s->conf.timeout_ns, NULL, timeout_ready, NULL);
	for (i = 0; i < s->nenabled && !e; i++)
		if (s->enabled[i].probe->kind == PROBE_TICK)
			e = add_timer(s, (int64_t)s->enabled[i].probe->period_ns, &s->enabled[i], tick_ready,
				      NULL);
	return e;
}

/* --- the run ------------------------------------------------------------------------------------------ */

/*
 * Any bytes can stand where a target writes records, and what is none is a loss; from the kernel it is our mistake.
 * 0, or @e.
 */
static int forgive(struct session *s, int e)
{
	if (e != -EINVAL || !s->place->in_target)
		return e;
	__atomic_fetch_add(&place_control(s->place)->drops[ABI_DROP_RECORD], 1, __ATOMIC_RELAXED);
	return 0;
}

static int carry_out(void *session, const void *rec, size_t size, const void *next)
{
	return forgive(session, session_record(session, rec, size, next));
}

static void set_state(struct session *s, enum abi_state state)
{
	__atomic_store_n(&place_control(s->place)->state, state, __ATOMIC_SEQ_CST);
}

/*
 * DTrace guide, "fill Policy": the first record that finds its CPU's buffer full ends the tracing, and it and those
 * behind it are lost.  What END records has room: it is fired when this is over.
 */
static bool finds_full(struct session *s, const struct abi_record *hdr, size_t size)
{
	uint64_t *filled = &s->filled[hdr->cpu % BUF_CPUS];

	if (s->policy != BUF_FILL || s->ended)
		return false;
	*filled += size;
	if (*filled <= (uint64_t)s->opts.v[OPT_bufsize])
		return false;
	if (!s->ending)
		set_state(s, ABI_STATE_DRAINING);
	s->ending = true;
	__atomic_fetch_add(&place_control(s->place)->drops[ABI_DROP_RECORD], 1, __ATOMIC_RELAXED);
	return true;
}

/* Records that are held back still end the session at once. */
static bool calls_exit(const struct session *s, const struct abi_record *hdr)
{
	const struct ir_prog *prog = s->conf.prog;
	const struct ir_rec *rec = hdr->rec < prog->nrecs ? prog->recs[hdr->rec] : NULL;

	for (uint32_t i = 0; rec && i < rec->nacts; i++)
		if (rec->acts[i].kind == IR_ACT_EXIT)
			return true;
	return false;
}

/* What is not carried out but known: at once, while its process lives. */
static int name_record(struct session *s, const void *rec, size_t size)
{
	const struct abi_record *hdr = rec;
	const struct abi_ask *ask = rec;

	if (!s->names)
		return 0;
	switch (hdr->rec) {
	case ABI_REC_STACK:
		return names_add(s->names, rec, size);
	case ABI_REC_CODE:
		return names_add_code(s->names, rec, size);
	default:
		if (size < sizeof(*ask))
			return -EINVAL;
		if (ask->starts)
			tell_starting(s, hdr->pid, &ask->key);
		else
			tell_process(s, hdr->pid, &ask->key, true);
		return 0;
	}
}

static int hold_record(void *session, const void *rec, size_t size)
{
	const struct abi_record *hdr = rec;
	struct session *s = session;
	int e;

	if (hdr->rec >= ABI_REC_CODE && hdr->rec <= ABI_REC_STACK)
		return s->place->in_target ? forgive(s, -EINVAL) : name_record(s, rec, size);
	if (s->policy != BUF_SWITCH && calls_exit(s, hdr))
		s->ending = true;
	if (finds_full(s, hdr, size))
		return 0;
	e = forgive(s, stream_add(&s->stream, rec, size));
	if (!e && s->stream.len > HELD_MAX_BYTES && s->policy == BUF_SWITCH)
		e = -EAGAIN;
	if (!e && s->policy == BUF_RING && s->stream.len > s->held_max) {
		e = stream_keep_last(&s->stream, (size_t)s->opts.v[OPT_bufsize]);
		s->held_max = 2 * s->stream.len + HELD_MAX_BYTES;
	}
	return e;
}

int session_pull(void *session)
{
	struct session *s = session;
	int n = s->place->ops->drain(s->place, hold_record, s);

	return n < 0 && n != -EAGAIN ? n : 0;
}

int session_drain(struct session *s, bool last)
{
	uint64_t until;
	int e, n;

	if (s->policy != BUF_SWITCH && !s->closing) {
		e = session_pull(s);
		return e;
	}
	do {
		until = last ? UINT64_MAX : now_ns(CLOCK_MONOTONIC) - STREAM_SLACK_NS;
		n = s->place->ops->drain(s->place, hold_record, s);
		if (n < 0 && n != -EAGAIN)
			return n;
		aggs_stale(s->aggs);
		e = stream_take(&s->stream, until, carry_out, s);
	} while (!e && n == -EAGAIN && last);
	if (!e)
		e = out_flush(s->conf.out);
	if (!e && s->conf.written)
		s->conf.written(s->conf.message_ctx);
	return e;
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
	set_state(s, ABI_STATE_WARMUP);
	s->error = structured_begin(s);
	if (!s->error)
		s->error = fire(s, PROBE_BEGIN);
	if (!s->error)
		s->error = session_drain(s, true);
	if (s->error || s->ending)
		return false;
	know_pythons(s);
	set_state(s, ABI_STATE_ACTIVE);
	return true;
}

static int take_the_rest(struct session *s)
{
	int e = session_drain(s, true);

	if (e || s->policy == BUF_SWITCH)
		return e;
	if (s->policy == BUF_RING)
		e = stream_keep_last(&s->stream, (size_t)s->opts.v[OPT_bufsize]);
	s->closing = true;
	return e ? e : session_drain(s, true);
}

int session_run(struct session *s, struct strbuf *err)
{
	struct epoll_event ev[16];
	int i, n;

	if (!s->error && !s->ending)
		s->error = add_sources(s);
	while (!s->error && !s->ending) {
		n = epoll_wait(s->epoll, ev, 16, -1);
		if (n < 0 && errno != EINTR)
			s->error = -errno;
		for (i = 0; i < n && !s->error && !s->ending; i++) {
			struct source_fd *src = ev[i].data.ptr;

			src->ready(s, src);
		}
	}
	set_state(s, ABI_STATE_DRAINING);
	s->place->ops->disarm(s->place);
	if (!s->error)
		s->error = session_drain(s, true);
	s->ended = true;
	set_state(s, ABI_STATE_COOLDOWN);
	if (!s->error)
		s->error = fire(s, session_stap_failed(s) ? PROBE_FAILED : PROBE_END);
	if (!s->error)
		s->error = take_the_rest(s);
	aggs_stale(s->aggs);
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
