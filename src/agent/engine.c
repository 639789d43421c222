/* SPDX-License-Identifier: MIT */
/*
 * The engine: taking in segments, and running their programs.
 *
 * The GIL serialises events of a process, so one lane serves all its threads; that thread variables are kept apart
 * is the programs' business, which put the thread into their keys.  A lane is taken with the first event.  Interpreters
 * with a GIL of their own have few events, and from the first of them on all events take turns.
 */
#include "agent/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/control.h"
#include "agent/pyframes.h"
#include "agent/stacks.h"
#include "vm/shm.h"

/* A program that a marker runs. */
struct fire {
	const struct vm_prog *prog;
	uint64_t probe;
	const struct abi_fire *from;
};

struct session {
	struct session *next;
	uint64_t channel;
	uint32_t pid;			/* of this process, as the tracer calls it */
	void *image, *data;
	uint64_t image_size, data_size;
	struct shm shm;
	struct vm_prog **progs;
	struct fire *fires;
	uint32_t first[WANT_COUNT + 1];	/* by marker: in fires */
	unsigned char uses[WANT_COUNT];
	unsigned markers;
	uint64_t strings[ENGINE_ARGS];
	uint64_t ctx[11];		/* of the event; what markers do not have stays 0 */
	struct shm_run run;		/* lane NULL: none taken yet */
	struct shm_stacks *stacks;	/* NULL: no program asks for one */
	struct cookie_fd wake;
	bool unserved;			/* there is no lane left */
};

unsigned engine_markers;
unsigned char engine_uses[WANT_COUNT];
struct engine_count engine_counts[WANT_COUNT];

static struct session *active;		/* with the GIL */
static struct session *pending;		/* pushed by the agent's thread, atomic */
enum { ENDED = 16 };
static uint64_t ended[ENDED];
#define INHERITED UINT64_MAX		/* in place of a channel: the parent had it */		/* channels; 0: a free place; atomic */
static bool some_ended;			/* atomic */
static __thread uint32_t own_tid;
const void *engine_frame;
static bool forks_told;			/* by the C library */
static bool forked;			/* a child, in which engine_forked() is still to come ... */
static struct session *held;		/* ... with the parent's sessions */

/* --- turns -------------------------------------------------------------------------------------------- */

/*
 * While there are no other interpreters, who has the main one's GIL only says that it is inside.  The first of another
 * sees to it that this is seen (membarrier), and that from then on whoever comes in has the turn: the number of its thread.
 */
static int crowded, inside;		/* atomic; @inside is written with the GIL */
static uint32_t turn;			/* atomic */

enum entered { ENTERED_ALONE, ENTERED_IN_TURN, ENTERED_AGAIN };

static uint32_t thread_id(void)
{
	if (__builtin_expect(!own_tid, 0))
		own_tid = (uint32_t)syscall(SYS_gettid);
	return own_tid;
}

static __attribute__((noinline)) enum entered take_turn(void)
{
	uint32_t self = thread_id(), nobody = 0;

	if (__atomic_load_n(&turn, __ATOMIC_RELAXED) == self)
		return ENTERED_AGAIN;
	while (!__atomic_compare_exchange_n(&turn, &nobody, self, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
		nobody = 0;
		syscall(SYS_sched_yield);
	}
	return ENTERED_IN_TURN;
}

/* With the main interpreter's GIL; also while inside. */
static inline enum entered enter(void)
{
	__atomic_store_n(&inside, inside + 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(!__atomic_load_n(&crowded, __ATOMIC_RELAXED), 1))
		return ENTERED_ALONE;
	__atomic_store_n(&inside, inside - 1, __ATOMIC_RELEASE);
	return take_turn();
}

static inline void leave(enum entered how)
{
	if (__builtin_expect(how == ENTERED_ALONE, 1))
		__atomic_store_n(&inside, inside - 1, __ATOMIC_RELEASE);
	else if (how == ENTERED_IN_TURN)
		__atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
}

/* In another interpreter.  False: the system has no such barrier. */
static bool enter_beside(void)
{
	enum { PRIVATE_EXPEDITED = 8, REGISTER_PRIVATE_EXPEDITED = 16 };	/* Linux 4.14 */

	take_turn();
	if (!crowded) {
		__atomic_store_n(&crowded, 1, __ATOMIC_SEQ_CST);
		for (unsigned k = 0; k < WANT_COUNT; k++)
			engine_counts[k].control = NULL;
		if (syscall(SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) || syscall(SYS_membarrier, PRIVATE_EXPEDITED, 0, 0)) {
			crowded = 0;
			leave(ENTERED_IN_TURN);
			return false;
		}
	}
	while (__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
		syscall(SYS_sched_yield);
	return true;
}

/* --- taking in ---------------------------------------------------------------------------------------- */

static void leave_lane(struct session *s);

static void session_free(struct session *s)
{
	if (!s)
		return;
	leave_lane(s);
	for (uint32_t k = 0; s->progs && k < s->shm.nprogs; k++)
		vm_free(s->progs[k]);
	free(s->progs);
	free(s->fires);
	stacks_free(s->stacks);
	shm_fini(&s->shm);
	if (s->image)
		munmap(s->image, s->image_size);
	if (s->data)
		munmap(s->data, s->data_size);
	if (cookie_same(&s->wake))
		close(s->wake.fd);
	free(s);
}

/* Map all of @fd.  The tracer sealed its size, so that reading never meets the end of the file. */
static int map_file(int fd, int prot, int seals, void **ret, uint64_t *size)
{
	long end = lseek(fd, 0, SEEK_END);
	int have = fcntl(fd, F_GET_SEALS);
	void *at;

	if (end <= 0 || have < 0 || (have & seals) != seals)
		return -EINVAL;
	at = mmap(NULL, (size_t)end, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	madvise(at, (size_t)end, MADV_DONTDUMP);
	*ret = at;
	*size = (uint64_t)end;
	return 0;
}

static int load_programs(struct session *s, const char **why)
{
	struct vm_error error;

	s->progs = calloc(s->shm.nprogs + 1, sizeof(struct vm_prog *));
	if (!s->progs)
		return -ENOMEM;
	for (uint32_t k = 0; k < s->shm.nprogs; k++) {
		int err = shm_load(&s->shm, k, SHM_BUDGET_TARGET, &s->progs[k], &error);

		if (err) {
			*why = "the agent refuses a program of the tracer's";
			return err;
		}
		/* Where no code can be made the interpreter serves. */
		err = vm_compile(s->progs[k]);
		if (err)
			__atomic_store_n(&((struct abi_control *)s->data)->interpreted, (uint64_t)-err, __ATOMIC_RELAXED);
	}
	return 0;
}

/* Sort what markers run, those of one in their order. */
static int sort_fires(struct session *s)
{
	uint32_t n = 0;

	s->markers = 0;
	memset(s->uses, 0, sizeof(s->uses));
	s->fires = calloc(s->shm.nfires + 1, sizeof(*s->fires));
	if (!s->fires)
		return -ENOMEM;
	for (uint32_t marker = 0; marker < WANT_COUNT; marker++) {
		s->first[marker] = n;
		for (uint32_t k = 0; k < s->shm.nfires; k++) {
			const struct abi_fire *f = &s->shm.fires[k];

			if (f->marker != marker || f->prog >= s->shm.nprogs || (f->pid && f->pid != s->pid))
				continue;
			s->fires[n++] = (struct fire){ s->progs[f->prog], f->probe, f };
			s->uses[marker] |= (unsigned char)f->uses;
			s->markers |= 1u << marker;
		}
	}
	s->first[WANT_COUNT] = n;
	return 0;
}

static uint32_t process_id(void)
{
	return (uint32_t)syscall(SYS_getpid);
}

int engine_receive(uint64_t channel, const int fds[3], const struct engine_who *who, const char **why)
{
	enum { SIZE = F_SEAL_SHRINK | F_SEAL_GROW };
	struct session *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	*why = "no memory for the tracer's segment";
	if (!s)
		return err;
	s->channel = channel;
	s->pid = who->other_pids ? who->pid : process_id();
	s->wake.fd = -1;
	err = map_file(fds[0], PROT_READ, SIZE | F_SEAL_WRITE, &s->image, &s->image_size);
	if (!err)
		err = map_file(fds[1], PROT_READ | PROT_WRITE, SIZE, &s->data, &s->data_size);
	if (!err)
		err = shm_open_segment(s->image, s->image_size, s->data, s->data_size, &s->shm, why);
	s->shm.other_pids = who->other_pids;
	if (!err && s->shm.flags & ABI_SEGMENT_STACKS) {
		s->stacks = stacks_new();
		err = s->stacks ? 0 : -ENOMEM;
	}
	if (!err)
		err = load_programs(s, why);
	if (!err)
		err = sort_fires(s);
	if (err) {
		session_free(s);
		return err;
	}
	s->wake = (struct cookie_fd){ fds[2], cookie_of(fds[2]) };
	s->next = __atomic_load_n(&pending, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&pending, &s->next, s, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return 0;
}

/* --- coming and going --------------------------------------------------------------------------------- */

void engine_channel_ended(uint64_t channel)
{
	for (unsigned k = 0; k < ENDED; k++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&ended[k], &none, channel, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			break;
	}
	__atomic_store_n(&some_ended, true, __ATOMIC_RELEASE);
}

bool engine_changed(void)
{
	return __atomic_load_n(&pending, __ATOMIC_RELAXED) || __atomic_load_n(&some_ended, __ATOMIC_RELAXED);
}

/*
 * Where @marker runs one program that only counts: from then on it is not run.  Off until the lane is taken, which is
 * when the program has run once.
 */
static void find_count(enum want_index marker)
{
	struct engine_count *c = &engine_counts[marker];
	const struct session *s = active;
	const struct abi_fire *f;

	*c = (struct engine_count){ .control = NULL };
	if (crowded || !s || s->next || s->first[marker + 1] - s->first[marker] != 1 || !s->run.lane || !s->run.cache ||
	    !s->run.objects || (marker != WANT_INDEX_function__entry && marker != WANT_INDEX_function__return))
		return;
	f = s->fires[s->first[marker]].from;
	if (f->count_arg < 1 || f->count_arg > 2 || f->count_map >= s->shm.nmaps ||
	    !shm_good_classes(&s->shm, &s->shm.maps[f->count_map], f->count_classes))
		return;
	*c = (struct engine_count){
		.control = s->data,
		.in = { s->run.objects, (const struct abi_lane *)s->run.lane,
			f->count_arg == 1 ? agent.code_file_off : agent.code_name_off, (uint16_t)f->count_map },
		.run = &s->run, .classes = f->count_classes, .arg = f->count_arg - 1,
	};
}

void engine_learn(enum want_index marker, struct pyobj *code, uint64_t address)
{
	const struct engine_count *c = &engine_counts[marker];
	uint64_t learned, forgotten;

	if (!c->control)
		return;
	learned = add_learn_object(c->run, &c->in, c->classes, (uint64_t)(uintptr_t)code, address, &forgotten);
	if (learned)
		agent.py.Py_IncRef((struct pyobj *)(uintptr_t)learned);
	agent_release((struct pyobj *)(uintptr_t)forgotten);
}

/* The lane goes: what was kept for its sake need not be.  With the GIL. */
static void leave_lane(struct session *s)
{
	for (unsigned k = 0; s->run.objects && k < SHM_OBJECTS; k++)
		agent_release((struct pyobj *)(uintptr_t)s->run.objects[k].object);
	shm_run_fini(&s->run);
}

static void sum_up(void)
{
	unsigned markers = 0;

	memset(engine_uses, 0, sizeof(engine_uses));
	for (struct session *s = active; s; s = s->next) {
		markers |= s->markers;
		for (unsigned k = 0; k < WANT_COUNT; k++)
			engine_uses[k] |= s->uses[k];
	}
	engine_markers = markers;
	for (unsigned k = 0; k < WANT_COUNT; k++)
		find_count((enum want_index)k);
}

static void remove_session(uint64_t channel)
{
	struct session **link = &active, *s;

	while ((s = *link)) {
		if (s->channel != channel) {
			link = &s->next;
			continue;
		}
		*link = s->next;
		session_free(s);
	}
}

static uint64_t id_of(const struct session *s)
{
	return ((const struct abi_image *)s->image)->id;
}

/*
 * Segments that this process has already are left out, those from its parent given their channel; returns the others.
 */
static struct session *take_over(struct session *news)
{
	struct session **link = &news, *s, *have;

	while ((s = *link)) {
		for (have = active; have && id_of(have) != id_of(s); have = have->next)
			;
		if (have) {
			if (have->channel == INHERITED)
				have->channel = s->channel;
			*link = s->next;
			session_free(s);
		} else {
			link = &s->next;
		}
	}
	return news;
}

/*
 * With the first segment whose programs want frames of Python: code of Python is run, so that other threads may come in
 * between, before anything is changed.
 */
static void prepare_stacks(const struct session *news)
{
	bool wanted = false;

	for (const struct session *s = news; s; s = s->next)
		wanted |= (s->shm.flags & ABI_SEGMENT_PYTHON) != 0;
	if (wanted && !pyframes_measure())
		agent_why("frames of Python: where this CPython keeps them cannot be told");
}

void engine_update(void)
{
	struct session **end = &active, *news;
	uint64_t gone[ENDED];
	enum entered how;

	if (forked)
		engine_forked();
	if (!engine_changed())
		return;
	__atomic_store_n(&some_ended, false, __ATOMIC_SEQ_CST);
	/* The ended first: what came over one of them was pending before it ended. */
	for (unsigned k = 0; k < ENDED; k++)
		gone[k] = __atomic_exchange_n(&ended[k], 0, __ATOMIC_ACQUIRE);
	news = __atomic_exchange_n(&pending, NULL, __ATOMIC_ACQUIRE);
	prepare_stacks(news);
	how = enter();
	while (*end)
		end = &(*end)->next;
	*end = take_over(news);
	for (unsigned k = 0; k < ENDED; k++)
		if (gone[k])
			remove_session(gone[k]);
	if (!control_has_channel())
		remove_session(INHERITED);
	sum_up();
	leave(how);
}

/*
 * Python runs functions in the child before it calls the agent's own, and their events are not to be written into the
 * parent's lane, of which the child has the memory.  In fork() itself nothing but this can be done.
 */
static void in_child(void)
{
	forked = true;
	turn = 0;		/* who had it is not here */
	inside = 0;
	held = active;
	active = NULL;
	own_tid = 0;
	for (unsigned k = 0; k < WANT_COUNT; k++)
		engine_counts[k].control = NULL;
}

void engine_watch_forks(void)
{
	if (agent.py.__register_atfork)
		forks_told = !agent.py.__register_atfork(NULL, NULL, in_child, &agent);
	else if (agent.py.pthread_atfork)
		forks_told = !agent.py.pthread_atfork(NULL, NULL, in_child);
}

void engine_forked(void)
{
	struct session **link = &active, *s;

	if (forks_told && !forked)
		return;		/* an event came before and has done it */
	if (forked)
		active = held;
	held = NULL;
	forked = false;
	own_tid = 0;
	pending = NULL;		/* taken in by a thread that is not here: lost, not freed */
	memset(ended, 0, sizeof(ended));
	some_ended = false;
	while ((s = *link)) {
		s->run.lane = NULL;	/* it is the parent's still */
		leave_lane(s);
		s->channel = INHERITED;
		free(s->fires);
		s->fires = NULL;
		s->pid = process_id();
		/* What the tracer calls it is not known yet where that differs: it comes with the channel. */
		if (s->shm.other_pids || sort_fires(s) || !s->markers) {
			*link = s->next;
			session_free(s);
		} else {
			link = &s->next;
		}
	}
	sum_up();
}

void engine_orphaned(void)
{
	remove_session(INHERITED);
	sum_up();
}

/* --- events ------------------------------------------------------------------------------------------- */

static bool take_lane(struct session *s)
{
	struct abi_data *d = s->data;
	struct timespec now;

	if (s->run.lane)
		return true;
	if (!s->unserved) {
		clock_gettime(CLOCK_BOOTTIME, &now);
		if (!shm_run_init(&s->run, &s->shm, -1, s->pid, (uint64_t)now.tv_sec * 1000000000 +
				  (uint64_t)now.tv_nsec)) {
			s->run.wake = s->wake;
			s->run.stacks = s->stacks;
			sum_up();
			return true;
		}
		s->unserved = true;
	}
	__atomic_fetch_add(&d->no_lane, 1, __ATOMIC_RELAXED);
	return false;
}

/* The strings of the event, where helpers look for them. */
static void note_strings(struct session *s, unsigned strings)
{
	if (strings == 3) {
		s->run.strings = s->ctx + 1;
		s->run.nstrings = 2;
		return;
	}
	s->run.strings = s->strings;
	s->run.nstrings = 0;
	for (unsigned k = 0; k < ENGINE_ARGS; k++)
		if (strings & 1u << k)
			s->strings[s->run.nstrings++] = s->ctx[1 + k];
}

/* Written where they are read from, word by word: what is just written cannot be read at once in other portions. */
static void set_args(struct session *s, uint64_t arg0, uint64_t arg1, uint64_t arg2, uint64_t arg3)
{
	_Static_assert(ENGINE_ARGS == 4, "arguments");
	s->ctx[1] = arg0;
	s->ctx[2] = arg1;
	s->ctx[3] = arg2;
	s->ctx[4] = arg3;
}

/* The tracer's number of the first thread is the process's, those of the others nobody knows here. */
static uint32_t other_tid(const struct session *s)
{
	return own_tid == process_id() ? s->pid : own_tid;
}

static inline void run(enum want_index marker, uint64_t arg0, uint64_t arg1, uint64_t arg2, uint64_t arg3, unsigned strings)
{
	thread_id();
	for (struct session *s = active; s; s = s->next) {
		uint32_t k = s->first[marker], end = s->first[marker + 1];

		if (k == end || !take_lane(s))
			continue;
		set_args(s, arg0, arg1, arg2, arg3);
		shm_set_tid(&s->run, __builtin_expect(s->shm.other_pids, 0) ? other_tid(s) : own_tid);
		note_strings(s, strings);
		for (; k < end; k++) {
			s->ctx[0] = s->fires[k].probe;
			shm_run_prog(&s->run, s->fires[k].prog, s->ctx);
		}
	}
}

void engine_run(enum want_index marker, uint64_t arg0, uint64_t arg1, uint64_t arg2, uint64_t arg3, unsigned strings)
{
	enum entered how;

	if (__builtin_expect(forked, 0))
		engine_forked();
	how = enter();
	engine_frame = __builtin_frame_address(0);
	run(marker, arg0, arg1, arg2, arg3, strings);
	leave(how);
}

void engine_run_beside(enum want_index marker, const uint64_t args[ENGINE_ARGS], unsigned strings)
{
	if (forked || !enter_beside())
		return;
	engine_frame = __builtin_frame_address(0);
	run(marker, args[0], args[1], args[2], args[3], strings);
	leave(ENTERED_IN_TURN);
}
