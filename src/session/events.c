/*
 * The events that wake a session's loop (session_turn): records, timers of rates and tick probes, signals, the end of
 * a target, standard input, and descriptors of the session's owner.
 */
#include "session/private.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/now.h"
#include "ir/facts.h"
#include "out/dialect.h"
#include "out/sink.h"
#include "target/target.h"

/* Wake the loop for @events (of epoll) on @fd. */
static struct source_fd *add_source(struct session *s, int fd, bool owned, uint32_t events,
				    void (*ready)(struct session *s, struct source_fd *src))
{
	struct source_fd *src = arena_new_of(s->arena, struct source_fd);
	struct epoll_event ev = { .events = events, .data.ptr = src };

	src->fd = fd;
	src->owned = owned;
	src->ready = ready;
	if (epoll_ctl(s->loop.epoll, EPOLL_CTL_ADD, fd, &ev))
		return NULL;
	s->loop.sources = arena_grow(s->arena, s->loop.sources, &s->loop.cap, s->loop.n, sizeof(*s->loop.sources));
	s->loop.sources[s->loop.n++] = src;
	return src;
}

void event_loop_close(struct event_loop *l)
{
	if (l->terminal)
		tcsetattr(STDIN_FILENO, TCSANOW, l->terminal);
	for (size_t i = 0; i < l->n; i++)
		if (l->sources[i]->owned)
			close(l->sources[i]->fd);
	if (l->epoll >= 0)
		close(l->epoll);
}

/*
 * A program that calls exit() stops all other programs at once; its record, with the status, arrives later, if there
 * is room.
 */
void session_notice_exit(struct session *s)
{
	struct place_told told;

	s->place->ops->told(s->place, &told);
	s->finish.is_due |= told.over;
}

static void buffer_ready(struct session *s, struct source_fd *src)
{
	(void)src;
	session_spend_begin(s);
	s->finish.error = session_drain(s, false);
	session_spend_end(s);
}

static void status_ready(struct session *s, struct source_fd *src)
{
	uint64_t ticks;

	if (read(src->fd, &ticks, sizeof(ticks)) == sizeof(ticks)) {
		session_keep_clock(s);
		session_report_drops(s);
		session_notice_exit(s);
	}
}

static int set_period(int fd, int64_t period_ns)
{
	struct timespec period = { period_ns / 1000000000, period_ns % 1000000000 };
	struct itimerspec it = { period, period };

	return timerfd_settime(fd, 0, &it, NULL) ? -errno : 0;
}

/*
 * Somebody waits for the first records, so the buffer is looked at after 1 ms, 2 ms, 4 ms ... until that is switchrate.  One that
 * is slower than QUICK_NS was chosen by the user.
 */
enum { FIRST_NS = 1000000, QUICK_NS = 100000000 };

static void slow_down(struct session *s)
{
	s->loop.quick_ns *= 2;
	if (s->loop.quick_ns >= s->opts.v[OPT_switchrate])
		s->loop.quick_ns = 0;
	set_period(s->loop.switcher->fd, s->loop.quick_ns ? s->loop.quick_ns : s->opts.v[OPT_switchrate]);
}

static void switch_ready(struct session *s, struct source_fd *src)
{
	uint64_t ticks;

	if (read(src->fd, &ticks, sizeof(ticks)) == sizeof(ticks)) {
		if (s->loop.quick_ns)
			slow_down(s);
		buffer_ready(s, src);
		if (!s->finish.error)
			s->finish.error = session_look_again(s);
		session_spend(s);
		session_notice_exit(s);
	}
}

/* The next firing of a timer whose periods vary: once, between period - random and period + random. */
static void tick_again(struct source_fd *src)
{
	const struct probe *p = src->tick->probe;
	uint64_t ns, dice;

	if (getrandom(&dice, sizeof(dice), 0) != sizeof(dice))
		dice = now_ns();
	ns = p->period_ns - p->random_ns + dice % (2 * p->random_ns + 1);
	ns += !ns;
	struct itimerspec it = { .it_value = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) } };
	timerfd_settime(src->fd, 0, &it, NULL);
}

static void timeout_ready(struct session *s, struct source_fd *src)
{
	(void)src;
	s->finish.is_due = true;
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
	while (ticks-- && !s->finish.is_due && !s->finish.error) {
		s->finish.error = session_fire(s, src->tick, no_args);
		if (!s->finish.error)
			s->finish.error = session_drain(s, false);
		session_notice_exit(s);
	}
}

/* --- standard input ---------------------------------------------------------------------------------- */

static void input_ready(struct session *s, struct source_fd *src)
{
	uint64_t args[10] = { 0 };
	unsigned char bytes[256];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		epoll_ctl(s->loop.epoll, EPOLL_CTL_DEL, src->fd, NULL);
	for (ssize_t k = 0; k < n; k++) {
		args[0] = bytes[k];
		for (uint32_t i = 0; i < s->on.n && !s->finish.is_due && !s->finish.error; i++) {
			if (s->on.v[i].probe->kind != PROBE_INPUT)
				continue;
			s->finish.error = session_fire(s, &s->on.v[i], args);
			if (!s->finish.error)
				s->finish.error = session_drain(s, false);
			session_notice_exit(s);
		}
	}
}

void session_watch_keys(struct session *s)
{
	bool watched = false;
	struct termios t;

	for (uint32_t i = 0; i < s->on.n; i++)
		watched |= s->on.v[i].probe->kind == PROBE_INPUT;
	if (!watched || tcgetattr(STDIN_FILENO, &t))
		return;
	s->loop.terminal = arena_new_of(s->arena, struct termios);
	*s->loop.terminal = t;
	t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

static int add_input(struct session *s)
{
	int always;

	if (add_source(s, STDIN_FILENO, false, EPOLLIN, input_ready))
		return 0;
	if (errno != EPERM)	/* closed; what has its number now is another's */
		return errno == EBADF || errno == EEXIST ? 0 : -errno;
	/* A file, which is not waited for. */
	always = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (always < 0)
		return -errno;
	return add_source(s, always, true, EPOLLIN, input_ready) ? 0 : -errno;
}

static void signal_ready(struct session *s, struct source_fd *src)
{
	struct signalfd_siginfo info;

	if (read(src->fd, &info, sizeof(info)) == sizeof(info))
		s->finish.is_due = true;
}

static void target_ready(struct session *s, struct source_fd *src)
{
	if (target_poll(src->target) != TARGET_EXITED)
		return;
	epoll_ctl(s->loop.epoll, EPOLL_CTL_DEL, src->fd, NULL);
	if (--s->loop.targets == 0)
		s->finish.is_due = true;
}

/* Is there a clause that reads a string of the process? */
static bool reads_strings(const struct ir_prog *p)
{
	struct ir_walk w = ir_walk_prog(p);

	for (const struct ir_insn *i; (i = ir_next(&w));)
		if (i->op == IR_CALL && i->fn == IR_FN_COPYINSTR)
			return true;
	return false;
}

int session_watch(struct session *s, struct target *t)
{
	struct source_fd *src = add_source(s, target_fd(t), false, EPOLLIN, target_ready);

	if (!src)
		return -errno;
	src->target = t;
	s->loop.targets++;
	session_know_pid(s, (uint32_t)target_pid(t));
	if (!s->place->in_target && (target_state(t) == TARGET_AT_EXEC || target_state(t) == TARGET_AT_ENTRY) &&
	    reads_strings(s->conf.prog))
		target_warm(t);
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

/* --- timers and signals --------------------------------------------------------------------------------- */

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
	s->loop.quick_ns = 0;
	if (s->loop.switcher)
		set_period(s->loop.switcher->fd, s->opts.v[OPT_switchrate]);
	if (s->loop.teller)
		set_period(s->loop.teller->fd, s->opts.v[OPT_statusrate]);
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

static void log_ready(struct session *s, struct source_fd *src)
{
	(void)src;
	session_followed(s);
}

int session_add_sources(struct session *s)
{
	int fd = s->place->ops->out_fd(s->place), e;
	uint32_t i;

	/* Edge-triggered: only when a program wakes us.  Under load there are always more records. */
	if (fd >= 0 && !add_source(s, fd, false, EPOLLIN | EPOLLET, buffer_ready))
		return -errno;
	e = s->conf.keep_signals ? 0 : add_signals(s);
	if (!e && s->known.log_fd >= 0 && !add_source(s, s->known.log_fd, false, EPOLLIN, log_ready))
		e = -errno;
	if (!e)
		e = add_timer(s, s->opts.v[OPT_switchrate], NULL, switch_ready, &s->loop.switcher);
	if (!e && s->opts.v[OPT_switchrate] > FIRST_NS && s->opts.v[OPT_switchrate] <= QUICK_NS) {
		s->loop.quick_ns = FIRST_NS;
		e = set_period(s->loop.switcher->fd, s->loop.quick_ns);
	}
	if (!e)
		/* Too many skipped handlers may end the session. */
		e = add_timer(s, s->opts.v[out_dialect(s->conf.out)->counts ? OPT_switchrate : OPT_statusrate], NULL,
			      status_ready, &s->loop.teller);
	if (!e && s->conf.timeout_ns)
		e = add_timer(s, (int64_t)s->conf.timeout_ns, NULL, timeout_ready, NULL);
	for (i = 0; i < s->on.n && !e; i++)
		if (s->on.v[i].probe->kind == PROBE_TICK && !session_interrupts(s, &s->on.v[i]))
			e = add_timer(s, (int64_t)s->on.v[i].probe->period_ns, &s->on.v[i], tick_ready,
				      NULL);
	for (i = 0; i < s->on.n && !e; i++)
		if (s->on.v[i].probe->kind == PROBE_INPUT)
			return add_input(s);
	return e;
}
