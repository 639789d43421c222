/* SPDX-License-Identifier: MIT */
/*
 * The engine: accepting segments and running their programs.
 *
 * The GIL serialises the events of a process, so one lane serves all its threads; programs keep thread variables apart
 * by the thread in their keys.  A lane is taken at the first event.  Interpreters with a GIL of their own have few
 * events; from the first one on, all events take turns.
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
#include "agent/away.h"
#include "agent/context.h"
#include "agent/control.h"
#include "agent/cost.h"
#include "agent/emit.h"
#include "agent/lap.h"
#include "agent/object.h"
#include "agent/pyframes.h"
#include "agent/pyval.h"
#include "agent/reads.h"
#include "agent/span.h"
#include "agent/stacks.h"
#include "agent/task.h"
#include "agent/variable.h"
#include "agent/vtime.h"
#include "base/glob.h"
#include "vm/calls.h"
#include "vm/enter.h"
#include "vm/shm.h"

/* A program run by a marker. */
struct fire {
	const struct vm_prog *prog;
	uint64_t probe;
	const struct abi_fire *from;
	const struct known *known;	/* NULL: what the program does is not known */
};

/* What a program does that the agent can do without it: one of them. */
struct known {
	struct span span;
	struct shm_record emit;
};

/* A function matched by a pattern, and its entry in the probe table (abi_data.named); @index is never 0. */
struct name {
	uint64_t hash;
	uint32_t index;
};

struct session {
	struct session *next;
	uint64_t channel;
	uint32_t pid;			/* of this process, for the tracer */
	uint64_t start;			/* when this process was given the segment: of all lanes that it takes */
	void *image, *data;
	uint64_t image_size, data_size;
	struct shm shm;
	struct vm_prog **progs;
	struct fire *fires;
	struct known *known;		/* by the image's fires */
	uint32_t first[ABI_MARKERS + 1];	/* by marker: index in fires */
	unsigned char uses[ABI_MARKERS];
	unsigned markers, functions;
	uint64_t strings[ABI_MARKER_ARGS];
	struct name *names;		/* a hash table, names_size large */
	uint32_t nnames, names_size;
	uint64_t ctx[11];		/* of the event; unused words stay 0 */
	struct shm_run run;		/* lane NULL: not taken yet */
	struct shm_stacks *stacks;	/* NULL: no program records stacks */
	struct cookie_fd wake;
	bool unserved;			/* no lane is left */
	bool rests;			/* no event is for it */
	bool by_name;			/* some program is for functions by name */
	bool settles;			/* some program may return ABI_RUN_SETTLED */
	void *given;			/* values of an event for programs elsewhere */
	/*
	 * Seats of threads: copies of the session, linked by @next, in which everything that is not written at events is
	 * the session's, and lane and context are the thread's own.
	 */
	struct session *seats;
	unsigned since;			/* the epoch from which on it is active */
	bool seats_lock;		/* for the list; atomic */
	uint32_t sitter;		/* in a seat: its thread */
	void *seat_memory;		/* in a seat: of the allocation */
};

#define INHERITED UINT64_MAX		/* in place of a channel: from the parent */

/* --- turns -------------------------------------------------------------------------------------------- */

/*
 * With one interpreter its GIL serialises events; a thread only marks that it is inside (agent.engine.inside).  The
 * first event of a subinterpreter makes these marks visible to itself (membarrier) and waits until nobody is inside.
 * From then on agent.engine.turn holds the number of the thread whose turn it is, and all threads take turns.
 *
 * Without a GIL, threads are at events at the same time: each marks that it is inside, in memory of its own, and runs
 * programs in a seat, which has a lane of its own (ENGINE_SEATED).  Who changes the set of sessions takes the turn, has
 * all others wait for theirs (ENGINE_IN_TURN), makes the marks visible to itself (membarrier) and waits until nobody is
 * inside.  Threads take turns, and run programs in the session itself, where there is no seat for them (no lane is left),
 * while programs read more than the marker's arguments (stacks, values), where there are subinterpreters, and where the system
 * has no membarrier.  A thread that is inside or has the turn never detaches from the interpreter: another one that stops
 * the world would wait for those that wait for their turn, and these for the one that it has stopped.
 */
enum entered { ENTERED_ALONE, ENTERED_IN_TURN, ENTERED_AGAIN, ENTERED_SEATED };

static uint32_t thread_id(void)
{
	if (__builtin_expect(!agent_thread.tid, 0))
		agent_thread.tid = (uint32_t)syscall(SYS_gettid);
	return agent_thread.tid;
}

static __attribute__((noinline)) enum entered take_turn(void)
{
	uint32_t self = thread_id(), nobody = 0;

	if (__atomic_load_n(&agent.engine.turn, __ATOMIC_RELAXED) == self)
		return ENTERED_AGAIN;
	while (!__atomic_compare_exchange_n(&agent.engine.turn, &nobody, self, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
		nobody = 0;
		syscall(SYS_sched_yield);
	}
	return ENTERED_IN_TURN;
}

/* Has thread @tid of this process ended?  False if that cannot be told. */
static bool has_ended(uint32_t tid)
{
	int saved = errno;
	bool ret = calls_may(ABI_CALLS_SIGNAL) && syscall(SYS_tkill, (int)tid, 0) < 0 && errno == ESRCH;

	errno = saved;
	return ret;
}

enum { LINE = 64, MARKS = 256 };	/* bytes of a cache line; marks before those of ended threads are looked for */

/* @size bytes, zeroed, that share no cache line with others; *@memory is to be freed. */
static void *own_lines(size_t size, void **memory)
{
	*memory = calloc(1, (size + 2 * LINE - 1) & ~(size_t)(LINE - 1));
	return *memory ? (void *)(((uintptr_t)*memory + LINE - 1) & ~(uintptr_t)(LINE - 1)) : NULL;
}

static struct engine_mark *find_mark(void)
{
	uint32_t self = thread_id();
	bool many = __atomic_load_n(&agent.engine.nmarks, __ATOMIC_RELAXED) >= MARKS;

	for (struct engine_mark *m = __atomic_load_n(&agent.engine.marks, __ATOMIC_ACQUIRE); m; m = m->next) {
		uint32_t was = __atomic_load_n(&m->tid, __ATOMIC_RELAXED);

		/* The number of a thread that has ended may be this one's. */
		if (was == self || (many && has_ended(was) &&
				    __atomic_compare_exchange_n(&m->tid, &was, self, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)))
			return m;
	}
	return NULL;
}

static __attribute__((noinline)) struct engine_mark *take_mark(void)
{
	struct engine_mark *m = find_mark();
	void *memory;

	if (!m) {
		m = own_lines(sizeof(*m), &memory);
		if (!m)
			return NULL;
		m->tid = thread_id();
		m->next = __atomic_load_n(&agent.engine.marks, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&agent.engine.marks, &m->next, m, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		__atomic_fetch_add(&agent.engine.nmarks, 1, __ATOMIC_RELAXED);
	}
	agent_thread.mark = m;
	return m;
}

static void take_seats(void);

/* Take the turn, and seats. */
static __attribute__((noinline)) enum entered take_turn_seated(void)
{
	enum entered how = take_turn();

	if (agent_thread.seated != agent.engine.epoch)
		take_seats();
	return how;
}

static __attribute__((noinline)) enum entered enter_without_gil(void)
{
	struct engine_mark *m = agent_thread.mark ? agent_thread.mark : take_mark();

	if (!m)
		return take_turn_seated();
	if (m->inside) {
		__atomic_store_n(&m->inside, m->inside + 1, __ATOMIC_RELAXED);
		return ENTERED_SEATED;
	}
	__atomic_store_n(&m->inside, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* The partner of choose_turns(): what it has changed is seen. */
	if (__builtin_expect(__atomic_load_n(&agent.engine.turns, __ATOMIC_ACQUIRE) == ENGINE_SEATED, 1)) {
		if (__builtin_expect(agent_thread.seated != agent.engine.epoch, 0))
			take_seats();
		if (__builtin_expect(!agent_thread.shares, 1))
			return ENTERED_SEATED;
	}
	__atomic_store_n(&m->inside, 0, __ATOMIC_RELEASE);
	return take_turn_seated();
}

/*
 * With the main interpreter's GIL, or in a subinterpreter that has been expected (engine_expect_subinterpreters()), or
 * attached to an interpreter without a GIL; calls may be nested.
 */
static inline enum entered enter(void)
{
	enum engine_turns turns = __atomic_load_n(&agent.engine.turns, __ATOMIC_RELAXED);

	if (__builtin_expect(turns, 0))
		return agent.py.free_threaded ? enter_without_gil() : take_turn();
	__atomic_store_n(&agent.engine.inside, agent.engine.inside + 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(!__atomic_load_n(&agent.engine.turns, __ATOMIC_RELAXED), 1))
		return ENTERED_ALONE;
	__atomic_store_n(&agent.engine.inside, agent.engine.inside - 1, __ATOMIC_RELEASE);
	return take_turn();
}

static inline void leave(enum entered how)
{
	if (__builtin_expect(how == ENTERED_ALONE, 1))
		__atomic_store_n(&agent.engine.inside, agent.engine.inside - 1, __ATOMIC_RELEASE);
	else if (how == ENTERED_IN_TURN)
		__atomic_store_n(&agent.engine.turn, 0, __ATOMIC_RELEASE);
	else if (how == ENTERED_SEATED)
		__atomic_store_n(&agent_thread.mark->inside, agent_thread.mark->inside - 1, __ATOMIC_RELEASE);
}

unsigned engine_enter(void)
{
	return enter();
}

void engine_leave(unsigned how)
{
	leave((enum entered)how);
}

/* Have all events go the way that is always right. */
static void forget_quick(void)
{
	for (unsigned k = 0; k < ABI_MARKERS; k++) {
		agent.engine.counts[k].control = NULL;
		agent.engine.counts[k].run = NULL;
		agent.engine.quick[k].prog = NULL;
		agent.engine.quick[k].straight = false;
	}
	agent.engine.functions_quick = false;
	agent.laps.control = NULL;
}

/* From now on nothing is done without turns. */
static void begin_turns(void)
{
	__atomic_store_n(&agent.engine.turns, ENGINE_IN_TURN, __ATOMIC_SEQ_CST);
	context_stop();
	forget_quick();
	/* Its memory is left to who may be reading it. */
	__atomic_store_n(&agent.engine.settled, NULL, __ATOMIC_RELAXED);
}

/* Make what other threads have written before visible to this one, and the reverse.  False: not supported. */
static bool barrier(void)
{
	enum { PRIVATE_EXPEDITED = 8, REGISTER_PRIVATE_EXPEDITED = 16 };	/* Linux 4.14 */

	return calls_may(ABI_CALLS_BARRIER) && !syscall(SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) &&
	       !syscall(SYS_membarrier, PRIVATE_EXPEDITED, 0, 0);
}

void engine_expect_threads(void)
{
	agent.engine.turns_stay = !barrier();
	begin_turns();
}

/* Without a GIL: take the turn, when nobody is inside any more. */
static enum entered enter_alone(void)
{
	enum entered how;

	if (!agent.py.free_threaded)
		return enter();
	how = take_turn();
	__atomic_store_n(&agent.engine.turns, ENGINE_IN_TURN, __ATOMIC_SEQ_CST);
	if (!agent.engine.turns_stay)
		barrier();
	for (struct engine_mark *m = __atomic_load_n(&agent.engine.marks, __ATOMIC_ACQUIRE); m; m = m->next)
		while (__atomic_load_n(&m->inside, __ATOMIC_ACQUIRE))
			syscall(SYS_sched_yield);
	return how;
}

/* Without a GIL: from now on nothing is done without turns. */
static void stay_in_turn(void)
{
	enum entered how;

	if (!agent.py.free_threaded || agent.engine.turns_stay)
		return;
	how = enter_alone();
	agent.engine.turns_stay = true;
	leave(how);
}

bool engine_stay_in_turn(void)
{
	stay_in_turn();
	return reads_prepare();
}

static void forget_settled(void);

/* Nobody is inside: who is, has the main interpreter's GIL. */
void engine_expect_subinterpreters(void)
{
	stay_in_turn();
	if (agent.engine.turns)
		return;
	forget_settled();
	begin_turns();
	variable_forget();
}

/* In another interpreter.  False: the system does not support the barrier. */
static bool enter_sub(void)
{
	stay_in_turn();
	take_turn();
	if (!agent.engine.turns) {
		begin_turns();
		if (!barrier()) {
			agent.engine.turns = ENGINE_BY_GIL;
			leave(ENTERED_IN_TURN);
			return false;
		}
	}
	while (__atomic_load_n(&agent.engine.inside, __ATOMIC_ACQUIRE))
		syscall(SYS_sched_yield);
	return true;
}

bool engine_meet_subinterpreter(void)
{
	if (!enter_sub())
		return false;
	leave(ENTERED_IN_TURN);
	return true;
}

/* --- taking in ---------------------------------------------------------------------------------------- */

static void leave_lane(struct session *s);
static void free_seats(struct session *s);

static void session_free(struct session *s)
{
	if (!s)
		return;
	free_seats(s);
	leave_lane(s);
	for (uint32_t k = 0; s->progs && k < s->shm.nprogs; k++)
		vm_free(s->progs[k]);
	free(s->progs);
	free(s->fires);
	free(s->known);
	free(s->names);
	free(s->given);
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

/* Map all of @fd.  The tracer has sealed its size, so that an access never gets beyond the end of the file. */
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
			if (err != -ENOMEM)
				*why = "the agent refuses a program of the tracer's";
			return err;
		}
		s->settles |= vm_gives(s->progs[k], ABI_RUN_SETTLED);
		/* Where compilation is not possible, the interpreter is used. */
		err = vm_compile(s->progs[k]);
		if (err)
			__atomic_store_n(&((struct abi_control *)s->data)->interpreted, (uint64_t)-err, __ATOMIC_RELAXED);
	}
	return 0;
}

static bool is_function(const struct session *s, const struct abi_fire *f)
{
	return f->marker >= ABI_FUNCTION_FIRST && f->marker < ABI_FUNCTION_FIRST + ABI_FUNCTIONS && (f->prog < s->shm.nprogs || away_good(&s->shm, f)) &&
	       f->module < s->shm.texts_size && f->function < s->shm.texts_size && f->file < s->shm.texts_size && (!f->pid || f->pid == s->pid);
}

static int find_known(struct session *s)
{
	s->known = calloc(s->shm.nfires + 1, sizeof(*s->known));
	for (uint32_t k = 0; s->known && k < s->shm.nfires; k++)
		s->known[k] = (struct known){ span_of(&s->shm, &s->shm.fires[k]), emit_of(&s->shm, &s->shm.fires[k]) };
	return s->known ? 0 : -ENOMEM;
}

/* What the program of @f does, if the agent can do it, else NULL. */
static const struct known *known_of(const struct session *s, const struct abi_fire *f)
{
	const struct known *known = &s->known[f - s->shm.fires];

	return known->span.what || known->emit.out ? known : NULL;
}

/* Find the kinds of events of functions by name. */
static void find_functions(struct session *s)
{
	s->functions = 0;
	for (uint32_t k = 0; k < s->shm.nfires; k++)
		if (is_function(s, &s->shm.fires[k]))
			s->functions |= 1u << (s->shm.fires[k].marker - ABI_FUNCTION_FIRST);
}

/* Sort the programs by marker, keeping their order within each. */
static int sort_fires(struct session *s)
{
	uint32_t n = 0;

	s->markers = 0;
	memset(s->uses, 0, sizeof(s->uses));
	s->fires = calloc(s->shm.nfires + 1, sizeof(*s->fires));
	if (!s->fires)
		return -ENOMEM;
	for (uint32_t marker = 0; marker < ABI_MARKERS; marker++) {
		s->first[marker] = n;
		for (uint32_t k = 0; k < s->shm.nfires; k++) {
			const struct abi_fire *f = &s->shm.fires[k];

			if (f->marker != marker || f->prog >= s->shm.nprogs || (f->pid && f->pid != s->pid))
				continue;
			s->fires[n++] = (struct fire){ s->progs[f->prog], f->probe, f, known_of(s, f) };
			s->uses[marker] |= (unsigned char)f->uses;
			s->markers |= 1u << marker;
		}
	}
	s->first[ABI_MARKERS] = n;
	find_functions(s);
	return 0;
}

/* With no programs in any row it wants nothing. */
static void rest(struct session *s)
{
	memset(s->first, 0, sizeof(s->first));
	memset(s->uses, 0, sizeof(s->uses));
	s->markers = s->functions = 0;
	s->rests = true;
}

/* Let sessions rest or go on.  Without memory one rests until it is asked again. */
static void set_rests(void)
{
	for (struct session *s = agent.engine.active; s; s = s->next) {
		bool rests = s->channel != INHERITED && control_rests(s->channel);

		if (s->rests == rests)
			continue;
		if (!rests)
			free(s->fires);
		if (rests || sort_fires(s))
			rest(s);
		else
			s->rests = false;
	}
}

static uint32_t process_id(void)
{
	return (uint32_t)syscall(SYS_getpid);
}

static uint64_t boot_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int engine_receive(uint64_t channel, const int fds[3], const struct engine_who *who, const char **why)
{
	enum { SIZE = F_SEAL_SHRINK | F_SEAL_GROW };
	struct session *s = calloc(1, sizeof(*s));
	static const char no_memory[] = "no memory for the tracer's segment";
	int err = -ENOMEM;

	*why = no_memory;
	if (!s)
		return err;
	s->channel = channel;
	s->pid = who->other_pids ? who->pid : process_id();
	s->start = boot_time_ns();
	s->wake.fd = -1;
	s->run.shm = &s->shm;	/* without a lane it reads values for programs elsewhere */
	s->run.thread.user = &s->run;
	err = map_file(fds[0], PROT_READ, SIZE | F_SEAL_WRITE, &s->image, &s->image_size);
	if (!err)
		err = map_file(fds[1], PROT_READ | PROT_WRITE, SIZE, &s->data, &s->data_size);
	if (!err)
		err = shm_open_segment(s->image, s->image_size, s->data, s->data_size, &s->shm, why);
	if (!err)
		*why = no_memory;	/* the reason for later errors; the call does not set it on success */
	s->shm.other_pids = who->other_pids;
	s->shm.no_memory = who->no_memory;
	if (!err && agent.py.free_threaded && s->shm.flags & (ABI_SEGMENT_VALUES | ABI_SEGMENT_TASKS))
		err = reads_prepare() ? 0 : -ENOMEM;
	if (!err && s->shm.flags & ABI_SEGMENT_STACKS) {
		s->stacks = stacks_new();
		err = s->stacks ? 0 : -ENOMEM;
	}
	if (!err)
		err = load_programs(s, why);
	if (!err)
		err = away_room(&s->shm, &s->given);
	if (!err)
		err = find_known(s);
	if (!err)
		err = sort_fires(s);
	s->by_name = s->functions;
	if (err) {
		session_free(s);
		return err;
	}
	s->wake = (struct cookie_fd){ fds[2], cookie_of(fds[2]) };
	s->next = __atomic_load_n(&agent.engine.pending, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&agent.engine.pending, &s->next, s, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return 0;
}

/* --- coming and going --------------------------------------------------------------------------------- */

void engine_channel_ended(uint64_t channel)
{
	for (unsigned k = 0; k < ENGINE_ENDED; k++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&agent.engine.ended[k], &none, channel, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			break;
	}
	__atomic_store_n(&agent.engine.some_ended, true, __ATOMIC_RELEASE);
}

void engine_rest_changed(void)
{
	__atomic_store_n(&agent.engine.some_rest, true, __ATOMIC_RELEASE);
}

bool engine_changed(void)
{
	return __atomic_load_n(&agent.engine.pending, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&agent.engine.some_ended, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&agent.engine.some_rest, __ATOMIC_RELAXED);
}

static struct abi_lane *lane_of(const struct session *s)
{
	return (struct abi_lane *)(void *)s->run.lane;
}

/* The first session that wants such events pays for the hook. */
static void find_payers(void)
{
	for (unsigned k = 0; k < COST_KINDS; k++) {
		const struct session *s = agent.engine.active;

		while (s && !(k < ABI_MARKERS ? s->markers >> k & 1 : s->functions))
			s = s->next;
		cost_set_payer(k, s ? lane_of(s) : NULL);
	}
}

/* Is what @f says of its counting right, so far as it can be told? */
static bool counts_well(const struct session *s, const struct abi_fire *f)
{
	const struct shm_map *m = &s->shm.maps[f->count_map];

	if (f->count_arg == ABI_COUNT_BY_CODE)
		return s->run.recent && shm_good_tables(&s->shm, m, f->count_classes);
	return (f->count_arg == 1 || f->count_arg == 2) && shm_good_classes(m, f->count_classes);
}

/* How the element of a code object is known, in @classes maps from @map on, whose keys follow from it and the process. */
static struct engine_count by_code(const struct session *s, uint16_t map, uint32_t classes)
{
	return (struct engine_count){
		.in = { s->run.objects, lane_of(s), agent.code_name_off, map, s->run.others, agent.code_file_off },
		.run = &s->run, .classes = classes, .by_code = true,
	};
}

/* The only program of @marker is a span with keys: learn the elements of code objects. */
static void learn_elements(struct engine_count *c, const struct session *s, enum abi_marker marker)
{
	const struct known *known = s->fires[s->first[marker]].known;

	if (known && known->span.classes && s->run.recent)
		*c = by_code(s, known->span.map, known->span.classes);
}

/*
 * If @marker runs a single program that only counts, count its events without running it.  Not before the lane is
 * taken, which is when the program has run once.
 */
static void find_count(enum abi_marker marker)
{
	struct engine_count *c = &agent.engine.counts[marker];
	const struct session *s = agent.engine.active;
	const struct abi_fire *f;
	const struct shm_map *m;

	*c = (struct engine_count){ .control = NULL };
	if (agent.engine.turns || context_on() || !s || s->next || s->first[marker + 1] - s->first[marker] != 1 ||
	    !s->run.lane || !s->run.cache || !s->run.objects || !s->run.others ||
	    (marker != ABI_MARKER_function__entry && marker != ABI_MARKER_function__return))
		return;
	f = s->fires[s->first[marker]].from;
	learn_elements(c, s, marker);
	if (f->count_map >= s->shm.nmaps || !counts_well(s, f))
		return;
	m = &s->shm.maps[f->count_map];
	*c = by_code(s, (uint16_t)f->count_map, f->count_classes);
	c->control = s->data;
	c->by_code = f->count_arg == ABI_COUNT_BY_CODE;
	if (c->by_code && m->kind == ABI_MAP_LANE_ARRAY)
		c->word = (uint64_t *)(void *)(s->run.lane + m->off);
	if (c->by_code)
		return;
	c->arg = f->count_arg - 1;
	c->in.ref = f->count_arg == 1 ? agent.code_file_off : agent.code_name_off;
	c->in.others = NULL;
}

/* The program of @marker, if it is the only one of all sessions' and a lap, else NULL. */
static const struct abi_fire *find_lap(const struct session *s, enum abi_marker marker)
{
	const struct abi_fire *f = s->first[marker + 1] - s->first[marker] == 1 ? s->fires[s->first[marker]].from : NULL;

	return f && f->known && lap_good(&s->shm, f) ? f : NULL;
}

/* Both programs are needed: each stores the time that the other reads.  Not before the lane is taken. */
static void find_laps(void)
{
	const struct session *s = agent.engine.active;
	const struct abi_fire *entry, *ret;

	lap_stop();
	if (agent.engine.vtime || !context_on() || !s || s->next || !s->run.lane ||
	    !s->run.recent)
		return;
	entry = find_lap(s, ABI_MARKER_function__entry);
	ret = find_lap(s, ABI_MARKER_function__return);
	if (entry && ret)
		lap_start(&s->run, entry, ret);
}

static bool can_be_quick(void)
{
	return !agent.engine.turns && !agent.engine.vtime && !agent.engine.forked;
}

/* Of markers whose arguments are file, function and line.  Not before the lane is taken. */
static void find_quick(enum abi_marker marker)
{
	const bool hot = marker == ABI_MARKER_function__entry || marker == ABI_MARKER_function__return || marker == ABI_MARKER_line;
	struct session *s = agent.engine.active;
	const struct fire *f;

	agent.engine.quick[marker] = (struct engine_quick){ .prog = NULL };
	if (!hot || !can_be_quick() || !s || s->next || s->first[marker + 1] - s->first[marker] != 1 || !s->run.lane ||
	    s->shm.other_pids)
		return;
	f = &s->fires[s->first[marker]];
	agent.engine.quick[marker] = (struct engine_quick){
		f->prog, s, f->known, f->probe, agent.engine.counts[marker].run || agent.engine.settled, !context_on(),
	};
}

static void find_counts(void)
{
	for (unsigned k = 0; k < ABI_MARKERS; k++) {
		find_count((enum abi_marker)k);
		find_quick((enum abi_marker)k);
	}
	agent.engine.functions_quick = can_be_quick();
	find_payers();
	find_laps();
}

void engine_learn(enum abi_marker marker, struct pyobj *code, uint64_t address)
{
	const struct engine_count *c = &agent.engine.counts[marker];
	struct add_pair learned, forgotten;

	if (!c->run || c->word)
		return;
	learned = c->by_code ? add_learn_found(c->run, &c->in, c->classes, (uint64_t)(uintptr_t)code, &forgotten) :
			       add_learn_object(c->run, &c->in, c->classes, (uint64_t)(uintptr_t)code, address, &forgotten);
	if (learned.object)
		agent.py.Py_IncRef((struct pyobj *)(uintptr_t)learned.object);
	if (learned.other)
		agent.py.Py_IncRef((struct pyobj *)(uintptr_t)learned.other);
	agent_release((struct pyobj *)(uintptr_t)forgotten.object);
	agent_release((struct pyobj *)(uintptr_t)forgotten.other);
}

/* --- what is settled ---------------------------------------------------------------------------------- */

static void forget_settled(void)
{
	struct engine_settled *all = agent.engine.settled;

	agent.engine.settled = NULL;
	agent.engine.all_settled = false;
	for (unsigned k = 0; all && k < ENGINE_SETTLED; k++) {
		agent_release(all[k].file);
		agent_release(all[k].name);
	}
	free(all);
}

/* Notes of contexts need every call. */
static void expect_settled(void)
{
	enum { FILE_OR_NAME = 3 };
	bool reads = (agent.engine.uses[ABI_MARKER_function__entry] | agent.engine.uses[ABI_MARKER_function__return]) & FILE_OR_NAME;
	const struct session *s = agent.engine.active;

	while (s && !s->settles)
		s = s->next;
	if (s && reads && !context_on() && !agent.engine.turns)
		agent.engine.settled = calloc(ENGINE_SETTLED, sizeof(*agent.engine.settled));
}

void engine_settle(enum abi_marker marker, struct pyobj *code)
{
	struct engine_settled *all = __atomic_load_n(&agent.engine.settled, __ATOMIC_RELAXED), *s, was;

	if (!all)
		return;
	s = engine_settled_at(all, code);
	if (s->code != code && (s[1].code == code || !s[1].code || (s->code && !((uintptr_t)code >> 9 & 1))))
		s++;
	was = *s;
	if (s->code == code && s->file == *engine_file_of(code) && s->name == *engine_name_of(code)) {
		s->markers |= 1u << marker;
		return;
	}
	*s = (struct engine_settled){ code, *engine_file_of(code), *engine_name_of(code), 1u << marker };
	agent.py.Py_IncRef(s->file);
	agent.py.Py_IncRef(s->name);
	agent_release(was.file);
	agent_release(was.name);
}

/* Leave the lane and release the objects kept alive for it.  With the GIL. */
static void leave_lane(struct session *s)
{
	for (unsigned k = 0; s->run.objects && s->run.others && k < SHM_OBJECTS; k++) {
		if (!s->run.objects[k].object)	/* nor has it another one, whose memory is not touched */
			continue;
		agent_release((struct pyobj *)(uintptr_t)s->run.objects[k].object);
		agent_release((struct pyobj *)(uintptr_t)s->run.others[k]);
	}
	shm_run_fini(&s->run);
}

static bool try_lane(struct session *s);

/* Where an evaluator sees each call, functions by name cost before the first event. */
static void take_lanes_early(void)
{
	for (struct session *s = agent.engine.active; s && agent.py.minor < 12; s = s->next)
		if (s->functions && s->shm.nprogs)
			try_lane(s);
}

/* --- seats --------------------------------------------------------------------------------------------- */

static void free_seats(struct session *s)
{
	struct session *seat, *next;

	for (seat = s->seats; seat; seat = next) {
		next = seat->next;
		shm_run_fini(&seat->run);
		free(seat->seat_memory);
	}
	s->seats = NULL;
}

/* In a child of fork: the lanes belong to the parent. */
static void forget_seats(struct session *s)
{
	for (struct session *seat = s->seats; seat; seat = seat->next)
		seat->run.lane = NULL;
	free_seats(s);
	s->seats_lock = false;
}

/* The seat of this thread, or of one that has ended; NULL: there is none. */
static struct session *find_seat(struct session *s, bool of_ended)
{
	struct session *seat = s->seats;

	while (seat && !(of_ended ? has_ended(seat->sitter) : seat->sitter == agent_thread.tid))
		seat = seat->next;
	if (seat)
		seat->sitter = agent_thread.tid;
	return seat;
}

static bool init_run(struct session *s, struct shm_run *run);

/* A new seat; NULL: there is no lane, or no memory. */
static struct session *make_seat(struct session *s)
{
	void *memory;
	struct session *seat = own_lines(sizeof(*seat), &memory);

	if (!seat)
		return NULL;
	/* What does not change at events: another thread may be at one, in turn. */
	*seat = (struct session){
		.channel = s->channel, .pid = s->pid, .start = s->start, .image = s->image, .data = s->data,
		.image_size = s->image_size, .data_size = s->data_size, .shm = s->shm, .progs = s->progs, .fires = s->fires,
		.markers = s->markers, .functions = s->functions, .stacks = s->stacks, .wake = s->wake, .since = s->since,
	};
	memcpy(seat->first, s->first, sizeof(seat->first));
	memcpy(seat->uses, s->uses, sizeof(seat->uses));
	if (!init_run(s, &seat->run)) {
		free(memory);
		return NULL;
	}
	seat->seat_memory = memory;
	seat->sitter = agent_thread.tid;
	seat->next = s->seats;
	s->seats = seat;
	return seat;
}

/*
 * Are there seats?  Not if programs look at more than the event and its thread, or at functions by name: what that needs, a
 * session has once.
 */
static bool has_seats(const struct session *s)
{
	return !s->by_name && !(s->shm.flags & SHM_NOW & ~(uint32_t)ABI_SEGMENT_VTIME);
}

/* A thread keeps its seat, in which its variables are. */
static struct session *seat_in(struct session *s)
{
	struct session *seat = NULL;

	while (__atomic_exchange_n(&s->seats_lock, true, __ATOMIC_ACQUIRE))
		syscall(SYS_sched_yield);
	if (has_seats(s))
		seat = find_seat(s, false);
	if (!seat && has_seats(s) && !agent_thread.shares) {
		seat = make_seat(s);
		if (!seat)
			seat = find_seat(s, true);
		agent_thread.shares = !seat;
	}
	__atomic_store_n(&s->seats_lock, false, __ATOMIC_RELEASE);
	return seat ? seat : s;
}

/* Find the thread's seats, inside or in turn. */
static void take_seats(void)
{
	unsigned n = 0;

	thread_id();
	for (struct session *s = agent.engine.active; s && n < ENGINE_SEATS; s = s->next)
		agent_thread.seats[n++] = seat_in(s);
	agent_thread.seated = agent.engine.epoch;
}

/* Alone: a session that has begun or stopped to rest has other programs at its markers. */
static void refresh_seats(struct session *s)
{
	for (struct session *seat = s->seats; seat; seat = seat->next) {
		seat->fires = s->fires;
		memcpy(seat->first, s->first, sizeof(seat->first));
	}
}

/* In an interpreter without a GIL, alone: how threads run programs from now on. */
static void choose_turns(void)
{
	bool sit = !agent.engine.turns_stay;
	unsigned n = 0;

	for (struct session *s = agent.engine.active; s; s = s->next, n++) {
		/* Before the seats take all lanes, the one in which the threads without a seat will take turns. */
		try_lane(s);
		refresh_seats(s);
		sit &= n < ENGINE_SEATS && has_seats(s) && s->shm.flags & ABI_SEGMENT_APART;
	}
	__atomic_store_n(&agent.engine.turns, sit ? ENGINE_SEATED : ENGINE_IN_TURN, __ATOMIC_RELEASE);
}

static void sum_up(void)
{
	unsigned markers = 0, functions = 0;
	bool values = false, stacks = false, frames = false;
	unsigned char uses[ABI_MARKERS] = { 0 };

	agent.engine.vtime = NULL;
	for (struct session *s = agent.engine.active; s; s = s->next) {
		if (s->rests)
			continue;
		markers |= s->markers;
		functions |= s->functions;
		values |= (s->shm.flags & ABI_SEGMENT_VALUES) != 0;
		frames |= (s->shm.flags & SHM_NOW) != 0;
		if (s->shm.flags & ABI_SEGMENT_VTIME && !agent.engine.vtime)
			agent.engine.vtime = &s->shm;
		stacks |= (s->shm.flags & ABI_SEGMENT_PYTHON) != 0 && s->markers & WANT_function__entry;
		for (unsigned k = 0; k < ABI_MARKERS; k++)
			uses[k] |= s->uses[k];
	}
	/* Without a GIL other threads read them meanwhile: what a session needs is there all the time. */
	for (unsigned k = 0; k < ABI_MARKERS; k++)
		__atomic_store_n(&agent.engine.uses[k], uses[k], __ATOMIC_RELAXED);
	__atomic_store_n(&agent.engine.markers, markers, __ATOMIC_RELAXED);
	agent.engine.functions = functions;
	agent.engine.values = values;
	agent.engine.frames = frames;
	__atomic_store_n(&agent.engine.epoch, agent.engine.epoch + 1, __ATOMIC_RELEASE);
	variable_forget();
	forget_settled();
	context_update(stacks && markers & WANT_function__entry && !agent.engine.turns);
	expect_settled();
	if (agent.py.free_threaded)
		choose_turns();
	find_counts();
}

static void remove_session(uint64_t channel)
{
	struct session **link = &agent.engine.active, *s;

	while ((s = *link)) {
		if (s->channel != channel) {
			link = &s->next;
			continue;
		}
		*link = s->next;
		session_free(s);
	}
}

static const struct abi_image *image_of(const struct session *s)
{
	return s->image;
}

/* Is the same segment in @list before @s, which is also in it? */
static bool is_among(const struct session *s, const struct session *list)
{
	for (; list != s; list = list->next)
		if (image_of(list)->id == image_of(s)->id && image_of(list)->number == image_of(s)->number)
			return true;
	return false;
}

/*
 * Remove from @news the segments that this process already has, giving inherited ones their channel; returns the rest.
 * If it now gets a different segment of the same session, because it is in another trust domain than its parent, the
 * old one is removed.
 */
static struct session *take_over(struct session *news)
{
	struct session **link = &news, *s, *have, **old;

	while ((s = *link)) {
		/*
		 * The same segment may arrive twice before an update: by two channels, one made by the process and one
		 * by the tracer.
		 */
		if (is_among(s, news)) {
			*link = s->next;
			session_free(s);
			continue;
		}
		for (old = &agent.engine.active; *old && image_of(*old)->id != image_of(s)->id; old = &(*old)->next)
			;
		have = *old;
		if (have && image_of(have)->number != image_of(s)->number) {
			*old = have->next;
			session_free(have);
			have = NULL;
		}
		if (have) {
			if (have->channel == INHERITED)
				have->channel = s->channel;
			have->shm.no_memory = s->shm.no_memory;
			*link = s->next;
			session_free(s);
		} else {
			link = &s->next;
		}
	}
	return news;
}

/*
 * For the first segment whose programs want Python frames, values or tasks: this runs Python code, during which other
 * threads may run, so it is done before anything is changed.
 */
static void prepare_stacks(const struct session *news)
{
	bool wanted = false, values = false, tasks = false;

	for (const struct session *s = news; s; s = s->next) {
		wanted |= (s->shm.flags & ABI_SEGMENT_PYTHON) != 0;
		values |= (s->shm.flags & ABI_SEGMENT_VALUES) != 0;
		tasks |= (s->shm.flags & ABI_SEGMENT_TASKS) != 0;
	}
	if (values)
		object_measure();
	if (tasks)
		task_want();
	if (wanted && !pyframes_measure())
		agent_why("frames of Python: where this CPython keeps them cannot be told");
}

void engine_update(void)
{
	struct session **end = &agent.engine.active, *news;
	uint64_t gone[ENGINE_ENDED];
	enum entered how;

	if (agent.engine.forked)
		engine_forked();
	if (!engine_changed())
		return;
	__atomic_store_n(&agent.engine.some_ended, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.engine.some_rest, false, __ATOMIC_SEQ_CST);
	/* Ended channels first: the segments of a channel were pending before it ended. */
	for (unsigned k = 0; k < ENGINE_ENDED; k++)
		gone[k] = __atomic_exchange_n(&agent.engine.ended[k], 0, __ATOMIC_ACQUIRE);
	news = __atomic_exchange_n(&agent.engine.pending, NULL, __ATOMIC_ACQUIRE);
	prepare_stacks(news);
	how = enter_alone();
	news = take_over(news);
	while (*end)
		end = &(*end)->next;
	*end = news;
	for (struct session *s = news; s; s = s->next)
		s->since = agent.engine.epoch + 1;
	for (unsigned k = 0; k < ENGINE_ENDED; k++)
		if (gone[k])
			remove_session(gone[k]);
	if (!control_has_channel())
		remove_session(INHERITED);
	set_rests();
	sum_up();
	take_lanes_early();
	leave(how);
}

/*
 * In the child Python runs functions before it calls the agent's own.  Their events must not be written into the
 * parent's lane, which the child still maps.  Nothing more can be done inside fork().
 */
static void in_child(void)
{
	agent.engine.forked = true;
	agent.engine.turn = 0;		/* its thread is not in the child */
	agent.engine.inside = 0;
	for (struct engine_mark *m = agent.engine.marks; m; m = m->next)
		m->inside = 0;
	agent_thread.mark = NULL;
	agent_thread.seated = 0;
	agent.engine.held = agent.engine.active;
	agent.engine.active = NULL;
	agent_thread.tid = 0;
	vtime_forked();
	forget_quick();
	find_payers();
}

void engine_watch_forks(void)
{
	if (agent.py.__register_atfork)
		agent.engine.forks_told = !agent.py.__register_atfork(NULL, NULL, in_child, &agent);
	else if (agent.py.pthread_atfork)
		agent.engine.forks_told = !agent.py.pthread_atfork(NULL, NULL, in_child);
}

void engine_forked(void)
{
	struct session **link = &agent.engine.active, *s;

	if (agent.engine.forks_told && !agent.engine.forked)
		return;		/* already done at an event */
	if (agent.engine.forked)
		agent.engine.active = agent.engine.held;
	agent.engine.held = NULL;
	agent.engine.forked = false;
	agent_thread.tid = 0;
	vtime_forked();
	agent.engine.pending = NULL;		/* from a thread that is not in the child: leaked */
	memset(agent.engine.ended, 0, sizeof(agent.engine.ended));
	agent.engine.some_ended = false;
	while ((s = *link)) {
		forget_seats(s);
		s->run.lane = NULL;	/* it still belongs to the parent */
		leave_lane(s);
		s->channel = INHERITED;
		s->rests = false;
		free(s->fires);
		s->fires = NULL;
		s->pid = process_id();
		s->start = boot_time_ns();
		/* With other pids, the tracer's number for this process is not known until the channel is connected. */
		if (s->shm.other_pids || sort_fires(s) || (!s->markers && !s->functions)) {
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

static inline const struct shm *begin_vtime(void)
{
	const struct shm *clock = agent.engine.vtime;

	if (__builtin_expect(clock != NULL, 0))
		vtime_begin(clock);
	return clock;
}

static inline void end_vtime(const struct shm *clock)
{
	if (__builtin_expect(clock != NULL, 0))
		vtime_end(clock);
}

/* Take a lane of @s for @run.  False: none is left. */
static bool init_run(struct session *s, struct shm_run *run)
{
	if (shm_run_init(run, &s->shm, -1, s->pid, s->start))
		return false;
	run->wake = s->wake;
	run->stacks = s->stacks;
	run->values = &pyval_values;
	run->thread_time = s->shm.flags & ABI_SEGMENT_VTIME ? vtime_now : NULL;
	return true;
}

static bool try_lane(struct session *s)
{
	if (s->run.lane || s->unserved)
		return s->run.lane;
	s->unserved = !init_run(s, &s->run);
	if (s->unserved)
		return false;
	find_counts();
	return true;
}

static __attribute__((noinline)) bool take_new_lane(struct session *s)
{
	if (try_lane(s))
		return true;
	__atomic_fetch_add(&((struct abi_data *)s->data)->no_lane, 1, __ATOMIC_RELAXED);
	return false;
}

static inline bool take_lane(struct session *s)
{
	return __builtin_expect(s->run.lane != NULL, 1) || take_new_lane(s);
}

/* Tell the helpers which words of the event are strings. */
static void note_strings(struct session *s, unsigned strings)
{
	if (strings == 3) {
		s->run.strings = s->ctx + 1;
		s->run.nstrings = 2;
		return;
	}
	s->run.strings = s->strings;
	s->run.nstrings = 0;
	for (unsigned k = 0; k < ABI_MARKER_ARGS; k++)
		if (strings & 1u << k)
			s->strings[s->run.nstrings++] = s->ctx[1 + k];
}

/*
 * Written directly and word by word, as they are read: a load of a different size would stall on the store just before
 * it.
 */
static void set_args(struct session *s, uint64_t arg0, uint64_t arg1, uint64_t arg2, uint64_t arg3)
{
	_Static_assert(ABI_MARKER_ARGS == 4, "arguments");
	s->ctx[1] = arg0;
	s->ctx[2] = arg1;
	s->ctx[3] = arg2;
	s->ctx[4] = arg3;
}

/* The tracer's number of the main thread is that of the process; those of other threads are not known here. */
static uint32_t other_tid(const struct session *s)
{
	return agent_thread.tid == process_id() ? s->pid : agent_thread.tid;
}

/* Run the programs of @s, which has a lane.  True: all are settled. */
static inline bool run_session(struct session *s, enum abi_marker marker, uint64_t arg0, uint64_t arg1, uint64_t arg2,
			       uint64_t arg3, unsigned strings)
{
	bool settled = true;

	set_args(s, arg0, arg1, arg2, arg3);
	shm_set_tid(&s->run, __builtin_expect(s->shm.other_pids, 0) ? other_tid(s) : agent_thread.tid);
	note_strings(s, strings);
	for (uint32_t k = s->first[marker]; k < s->first[marker + 1]; k++) {
		s->ctx[0] = s->fires[k].probe;
		settled &= shm_run_prog(&s->run, s->fires[k].prog, s->ctx) && s->run.thread.ret == ABI_RUN_SETTLED;
	}
	return settled;
}

/* The same for an event that is measured, for @weight of them; returns the ns in *took. */
static __attribute__((noinline)) bool run_measured(struct session *s, enum abi_marker marker, const uint64_t args[ABI_MARKER_ARGS],
						   unsigned strings, uint32_t weight, uint64_t *took)
{
	uint64_t from = shm_now(&s->shm), ns;
	bool settled = run_session(s, marker, args[0], args[1], args[2], args[3], strings);

	ns = shm_now(&s->shm) - from;
	cost_measured(lane_of(s), weight, ns);
	*took = ns > *took ? ns : *took;
	return settled;
}

static __attribute__((noinline)) void run_all_measured(enum abi_marker marker, const uint64_t args[ABI_MARKER_ARGS], unsigned strings,
						       uint32_t weight)
{
	bool settled = agent.engine.settled, first = true;
	uint64_t took = 0;

	for (struct session *s = agent.engine.active; s; s = s->next) {
		if (s->first[marker] == s->first[marker + 1])
			continue;
		if (!take_lane(s)) {
			settled = false;
			continue;
		}
		cost_pay(lane_of(s), first ? cost_hook_and_way(marker) : 0);
		first = false;
		settled &= run_measured(s, marker, args, strings, weight, &took);
	}
	cost_next(took);
	agent.engine.all_settled = settled;
}

static inline void run(enum abi_marker marker, uint64_t arg0, uint64_t arg1, uint64_t arg2, uint64_t arg3, unsigned strings)
{
	bool settled = agent.engine.settled;
	uint64_t hook = cost_hook_and_way(marker);
	uint32_t weight = cost_due();

	thread_id();
	if (__builtin_expect(weight, 0)) {
		run_all_measured(marker, (const uint64_t[]){ arg0, arg1, arg2, arg3 }, strings, weight);
		return;
	}
	for (struct session *s = agent.engine.active; s; s = s->next) {
		if (s->first[marker] == s->first[marker + 1])
			continue;
		if (!take_lane(s)) {
			settled = false;
			continue;
		}
		cost_pay(lane_of(s), hook);
		hook = 0;
		settled &= run_session(s, marker, arg0, arg1, arg2, arg3, strings);
	}
	agent.engine.all_settled = settled;
}

/* Where the thread runs the programs of @s, the @k-th active session; NULL: there is no lane. */
static inline struct session *place_of(struct session *s, unsigned k)
{
	if (agent.py.free_threaded && k < ENGINE_SEATS)
		s = agent_thread.seats[k];
	return take_lane(s) ? s : NULL;
}

/* The same in the thread's seats. */
static __attribute__((noinline)) void run_seated(enum abi_marker marker, const uint64_t args[ABI_MARKER_ARGS], unsigned strings)
{
	uint64_t hook = cost_hook(marker), took = 0;
	uint32_t weight = cost_due();
	unsigned k = 0;

	for (struct session *s = agent.engine.active; s; s = s->next, k++) {
		bool is_late = agent_thread.asked && (int)(s->since - agent_thread.asked) > 0;
		struct session *at = is_late || s->first[marker] == s->first[marker + 1] ? NULL : place_of(s, k);

		if (!at)
			continue;
		cost_pay(lane_of(at), hook);
		hook = 0;
		if (__builtin_expect(weight, 0))
			run_measured(at, marker, args, strings, weight, &took);
		else
			run_session(at, marker, args[0], args[1], args[2], args[3], strings);
	}
	if (__builtin_expect(weight, 0))
		cost_next(took);
}

/*
 * Enter where run_quick() may be called.  False: the event must go the other way, for it is to be measured, or another
 * interpreter has come.
 */
static inline bool enter_quick(void)
{
	if (__builtin_expect(agent_thread.cost.left <= 1 || !agent_thread.tid, 0))
		return false;
	__atomic_store_n(&agent.engine.inside, agent.engine.inside + 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&agent.engine.turns, __ATOMIC_RELAXED), 0)) {
		__atomic_store_n(&agent.engine.inside, agent.engine.inside - 1, __ATOMIC_RELEASE);
		return false;
	}
	agent_thread.cost.left--;
	agent.engine.frame = __builtin_frame_address(0);
	object_forget();
	return true;
}

/*
 * What run_session() does, for one program.  What differs from event to event is written, word by word, as it is read: a load
 * of another size would wait for the store.
 */
static inline bool run_quick(struct session *s, const struct vm_prog *prog, uint64_t probe, uint64_t file, uint64_t name,
			     uint64_t line, uint64_t hook)
{
	cost_pay(lane_of(s), hook);
	s->ctx[0] = probe;
	set_args(s, file, name, line, 0);
	shm_set_tid(&s->run, agent_thread.tid);
	note_strings(s, 3);
	return shm_run_inline(&s->run, prog, s->ctx);
}

static inline __attribute__((always_inline)) bool try_quick(enum abi_marker marker, uint64_t file, uint64_t name,
							      uint64_t line, bool learns)
{
	const struct engine_quick *q = &agent.engine.quick[marker];
	struct session *s = q->session;
	bool ran;

	if (!enter_quick())
		return false;
	ran = run_quick(s, q->prog, q->probe, file, name, line, cost_hook_and_way(marker));
	if (learns)
		agent.engine.all_settled = ran && s->run.thread.ret == ABI_RUN_SETTLED && agent.engine.settled;
	leave(ENTERED_ALONE);
	return true;
}

bool engine_try(enum abi_marker marker, uint64_t file, uint64_t name, uint64_t line)
{
	return engine_is_quick(marker) && try_quick(marker, file, name, line, agent.engine.quick[marker].learns);
}

/* Do what the program does, a span.  False: nothing was done.  @found: as span_words(); @hook: what the hook has cost. */
static inline __attribute__((always_inline)) bool try_span(const struct session *s, const struct span *p, const struct span_found *found,
							     uint64_t hook)
{
	uint64_t *time = span_time(p, &s->run), *words;

	if (!time)
		return false;
	if (p->what == ABI_KNOWN_START) {
		span_start(&s->run, time);
	} else if (*time) {
		words = span_words(p, &s->run, found);
		if (__builtin_expect(!words, 0))
			return false;
		span_stop(p, &s->run, time, words);
	}
	cost_pay(lane_of(s), hook + cost_hook(COST_SPAN));
	return true;
}

/* The same, a record. */
static inline bool try_emit(struct session *s, const struct shm_record *rec, uint64_t probe, uint64_t file, uint64_t name, uint64_t line,
			    uint64_t hook)
{
	if (!emit_record(rec, &s->run, probe, file, name, line))
		return false;
	cost_pay(lane_of(s), hook + cost_hook(COST_EMIT));
	return true;
}

/* code_text(), without its call. */
static inline uint64_t text_of(struct pyobj *str)
{
	const char *text = agent.py.PyUnicode_AsUTF8(str);

	return (uint64_t)(uintptr_t)(__builtin_expect(text != NULL, 1) ? text : code_text(str));
}

static inline __attribute__((always_inline)) bool try_marker_span(enum abi_marker marker, const struct pyobj *code)
{
	const struct engine_quick *q = &agent.engine.quick[marker];
	const struct engine_count *c = &agent.engine.counts[marker];
	const struct span_found found = { c->run ? &c->in : NULL, code, NULL };

	return try_span(q->session, &q->known->span, &found, cost_hook(marker));
}

static inline __attribute__((always_inline)) bool try_marker_emit(enum abi_marker marker, struct pyobj *code, int line)
{
	const struct engine_quick *q = &agent.engine.quick[marker];
	const unsigned uses = agent.engine.uses[marker];
	const uint64_t file = uses & 1 ? text_of(*engine_file_of(code)) : 0, name = uses & 2 ? text_of(*engine_name_of(code)) : 0;

	return try_emit(q->session, &q->known->emit, q->probe, file, name, (uint64_t)(int64_t)line, cost_hook(marker));
}

/* The program has run: learn what it has found. */
static void learn_known(const struct session *s, const struct known *known)
{
	if (known->span.what)
		span_learn(&known->span, &s->run);
}

/* @line is used if the program reads it. */
static inline __attribute__((always_inline)) bool try_code(enum abi_marker marker, struct pyobj *code, struct pyobj *result,
							     struct pyobj *exception, int line, bool learns)
{
	unsigned uses = agent.engine.uses[marker];
	uint64_t file = 0, name = 0;
	bool ran;

	if (learns)
		engine_before(marker);
	if (uses & 3) {
		file = uses & 1 ? text_of(*engine_file_of(code)) : 0;
		name = uses & 2 ? text_of(*engine_name_of(code)) : 0;
	}
	if (result)
		agent_thread.result = result;
	if (exception)
		agent_thread.exception = exception;
	ran = try_quick(marker, file, name, (uint64_t)(int64_t)line, learns);
	if (ran && __builtin_expect(agent.engine.quick[marker].known != NULL, 0))
		learn_known(agent.engine.quick[marker].session, agent.engine.quick[marker].known);
	if (result)
		agent_thread.result = NULL;
	if (exception)
		agent_thread.exception = NULL;
	if (learns && ran)
		engine_fired(marker, code, file, name);
	return ran;
}

/* In functions of their own, so that each knows its marker, and whether something is learned. */
static __attribute__((noinline)) bool try_entry_learning(struct pyobj *code, struct pyobj *exception, int line)
{
	return try_code(ABI_MARKER_function__entry, code, NULL, exception, line, true);
}

static __attribute__((noinline)) bool try_return_learning(struct pyobj *code, struct pyobj *result,
							     struct pyobj *exception, int line)
{
	return try_code(ABI_MARKER_function__return, code, result, exception, line, true);
}

static __attribute__((noinline)) bool run_entry(struct pyobj *code, struct pyobj *exception, int line)
{
	if (agent.engine.quick[ABI_MARKER_function__entry].learns)
		return try_entry_learning(code, exception, line);
	return try_code(ABI_MARKER_function__entry, code, NULL, exception, line, false);
}

static __attribute__((noinline)) bool run_return(struct pyobj *code, struct pyobj *result, struct pyobj *exception, int line)
{
	if (agent.engine.quick[ABI_MARKER_function__return].learns)
		return try_return_learning(code, result, exception, line);
	return try_code(ABI_MARKER_function__return, code, result, exception, line, false);
}

/* In functions of their own, so that others save no registers for them. */
#define KNOWN(event, name, CALL, ...)									\
	static __attribute__((noinline)) bool span_##event(__VA_ARGS__)					\
	{												\
		return try_marker_span(ABI_MARKER_##name, code) || run_##event CALL;			\
	}												\
													\
	static __attribute__((noinline)) bool emit_##event(__VA_ARGS__)					\
	{												\
		return try_marker_emit(ABI_MARKER_##name, code, line) || run_##event CALL;		\
	}												\
													\
	bool engine_try_##event(__VA_ARGS__)								\
	{												\
		const struct known *known = agent.engine.quick[ABI_MARKER_##name].known;		\
													\
		return !known ? run_##event CALL : known->span.what ? span_##event CALL : emit_##event CALL;	\
	}
KNOWN(entry, function__entry, (code, exception, line), struct pyobj *code, struct pyobj *exception, int line)
KNOWN(return, function__return, (code, result, exception, line), struct pyobj *code, struct pyobj *result, struct pyobj *exception,
      int line)
#undef KNOWN

void engine_run(enum abi_marker marker, uint64_t arg0, uint64_t arg1, uint64_t arg2, uint64_t arg3, unsigned strings)
{
	const struct shm *vtime;
	enum entered how;

	if (__builtin_expect(agent.engine.forked, 0))
		engine_forked();
	how = enter();
	vtime = begin_vtime();
	if (__builtin_expect(how != ENTERED_SEATED, 1)) {
		agent.engine.frame = __builtin_frame_address(0);
		object_forget();
	}
	if (__builtin_expect(how == ENTERED_ALONE || !agent.py.free_threaded, 1))
		run(marker, arg0, arg1, arg2, arg3, strings);
	else
		run_seated(marker, (const uint64_t[]){ arg0, arg1, arg2, arg3 }, strings);
	reads_release();
	end_vtime(vtime);
	leave(how);
}

void engine_run_sub(enum abi_marker marker, const uint64_t args[ABI_MARKER_ARGS], unsigned strings)
{
	const struct shm *vtime;

	if (agent.engine.forked || !enter_sub())
		return;
	vtime = begin_vtime();
	agent.engine.frame = __builtin_frame_address(0);
	object_forget();
	run(marker, args[0], args[1], args[2], args[3], strings);
	reads_release();
	end_vtime(vtime);
	leave(ENTERED_IN_TURN);
}

/* Are the marker's arguments, the process and the time all that its programs can ask for? */
static bool can_replay(const struct session *s)
{
	return !(s->shm.flags & SHM_NOW);
}

void engine_replay(enum abi_marker marker, struct pyobj *code, int line, uint64_t time_ns)
{
	uint64_t file = (uint64_t)(uintptr_t)code_file(code), name = (uint64_t)(uintptr_t)code_name(code);
	enum entered how = enter();

	unsigned k = 0;

	thread_id();
	for (struct session *s = agent.engine.active; s; s = s->next, k++) {
		struct session *at = s->first[marker] == s->first[marker + 1] || !can_replay(s) ? NULL : place_of(s, k);

		if (!at)
			continue;
		at->run.at_ns = time_ns;
		run_session(at, marker, file, name, (uint64_t)(int64_t)line, 0, 3);
		at->run.at_ns = 0;
	}
	leave(how);
}

void engine_lost(uint64_t n)
{
	for (struct session *s = agent.engine.active; s; s = s->next)
		if (can_replay(s) && (s->markers & (WANT_function__entry | WANT_function__return)))
			__atomic_fetch_add(&((struct abi_data *)s->data)->control.drops[ABI_DROP_RECORD], n, __ATOMIC_RELAXED);
}

/* --- functions by name -------------------------------------------------------------------------------- */

unsigned engine_fits(const char *function)
{
	unsigned fits = 0;

	for (const struct session *s = agent.engine.active; s; s = s->next)
		for (uint32_t k = 0; s->functions && k < s->shm.nfires; k++) {
			const struct abi_fire *f = &s->shm.fires[k];

			if (is_function(s, f) && glob_match(s->shm.texts + f->function, function))
				fits |= 1u << (f->marker - ABI_FUNCTION_FIRST);
		}
	return fits;
}

static uint64_t hash_name(uint32_t probe, const char *module, const char *function)
{
	uint64_t h = 0xcbf29ce484222325 ^ probe;

	for (const char *s = module; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3;
	h = (h ^ 0xff) * 0x100000001b3;
	for (const char *s = function; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3;
	return h ^ h >> 29;
}

/* Is entry @index of the probe table for this function? */
static bool is_named(const struct session *s, uint32_t index, uint32_t probe, const char *module, const char *function)
{
	struct abi_probe p;

	return shm_named(&s->shm, index, &p) && p.pattern == probe + 1 && !strncmp(p.mod, module, sizeof(p.mod) - 1) &&
	       !strncmp(p.func, function, sizeof(p.func) - 1);
}

static bool grow_names(struct session *s)
{
	uint32_t size = s->names_size ? 2 * s->names_size : 64;
	struct name *v = calloc(size, sizeof(*v));

	if (!v)
		return false;
	for (uint32_t k = 0; k < s->names_size; k++) {
		uint64_t at = s->names[k].hash;

		if (!s->names[k].index)
			continue;
		while (v[at % size].index)
			at++;
		v[at % size] = s->names[k];
	}
	free(s->names);
	s->names = v;
	s->names_size = size;
	return true;
}

/*
 * The probe table's entry for this function, which a pattern matches; the existing one if this process has added it
 * before.
 */
static uint32_t name_probe(struct session *s, uint32_t probe, const char *module, const char *function)
{
	uint64_t hash = hash_name(probe, module, function), at = hash;
	uint32_t index;

	if (2 * s->nnames >= s->names_size && !grow_names(s))
		return probe;
	for (; s->names[at % s->names_size].index; at++) {
		const struct name *n = &s->names[at % s->names_size];

		if (n->hash == hash && is_named(s, n->index, probe, module, function))
			return n->index;
	}
	index = shm_name_probe(&s->shm, probe, module, function);
	if (index != probe) {
		s->names[at % s->names_size] = (struct name){ hash, index };
		s->nnames++;
	}
	return index;
}

/* The probe of a function that @f's patterns match: @f's own if they name only that function. */
static uint32_t probe_of(struct session *s, const struct abi_fire *f, const char *module, const char *function)
{
	if (!glob_is(s->shm.texts + f->module) && !glob_is(s->shm.texts + f->function))
		return f->probe;
	return name_probe(s, f->probe, module, function);
}

/* Does the pattern match the module? */
static bool is_module(const struct session *s, const struct abi_fire *f, const struct engine_function *fn)
{
	const char *pattern = s->shm.texts + f->module;

	return glob_match(pattern, fn->module) || (f->by_script && fn->script && glob_match(pattern, fn->script));
}

/* Does the pattern, if there is one, match the file's path, or what is behind one of its slashes? */
static bool is_file(const struct session *s, const struct abi_fire *f, const char *file)
{
	const char *pattern = s->shm.texts + f->file;

	if (!f->file || glob_match(pattern, file))
		return true;
	while ((file = strchr(file, '/')))
		if (glob_match(pattern, ++file))
			return true;
	return false;
}

static struct engine_match match_of(struct session *s, const struct abi_fire *f, const struct engine_function *fn)
{
	struct engine_match m = { .session = s, .line = f->line + (f->from_first ? fn->first : 0), .uses = f->uses };

	if (f->prog == ABI_FIRE_AWAY) {
		m.away = f;
		m.module = fn->module;
		m.name = fn->name;
	} else {
		m.prog = s->progs[f->prog];
		m.known = known_of(s, f);
		m.learns = m.known && m.known->span.classes;
		m.probe = probe_of(s, f, fn->module, fn->name);
	}
	return m;
}

unsigned engine_match(enum abi_function what, const struct engine_function *fn, struct engine_match *found, unsigned most)
{
	unsigned n = 0;

	for (struct session *s = agent.engine.active; s; s = s->next)
		for (uint32_t k = 0; s->functions >> what & 1 && k < s->shm.nfires && n < most; k++) {
			const struct abi_fire *f = &s->shm.fires[k];

			if (f->marker == ABI_FUNCTION_FIRST + (uint32_t)what && is_function(s, f) &&
			    glob_match(s->shm.texts + f->function, fn->name) && is_module(s, f, fn) && is_file(s, f, fn->file))
				found[n++] = match_of(s, f, fn);
		}
	return n;
}

static void run_matches(const struct engine_match *m, unsigned n, uint64_t file, uint64_t name, int line)
{
	uint64_t hook = cost_hook_and_way(COST_FUNCTIONS), from = 0, ns, took = 0;
	uint32_t weight = cost_due();

	thread_id();
	for (unsigned k = 0; k < n; k++) {
		struct session *s = m[k].session;

		if (m[k].line && m[k].line != (uint32_t)line)
			continue;
		if (m[k].away) {
			const struct away_event event = { &s->run, m[k].away, m[k].module, m[k].name, file, name, line, s->given };

			away_fire(&event);
			continue;
		}
		if (!take_lane(s))
			continue;
		cost_pay(lane_of(s), hook);
		hook = 0;
		if (__builtin_expect(weight, 0))
			from = shm_now(&s->shm);
		set_args(s, file, name, (uint64_t)(int64_t)line, 0);
		shm_set_tid(&s->run, __builtin_expect(s->shm.other_pids, 0) ? other_tid(s) : agent_thread.tid);
		note_strings(s, 3);
		s->ctx[0] = m[k].probe;
		shm_run_prog(&s->run, m[k].prog, s->ctx);
		if (__builtin_expect(weight, 0)) {
			ns = shm_now(&s->shm) - from;
			cost_measured(lane_of(s), weight, ns);
			took = ns > took ? ns : took;
		}
	}
	if (__builtin_expect(weight, 0))
		cost_next(took);
}

static __attribute__((noinline)) bool try_match_span(const struct engine_match *m, uint64_t hook)
{
	const struct span_found found = { NULL, NULL, m->element };

	return try_span(m->session, &m->known->span, &found, hook);
}

/* Do what the program does, if that is known.  False: nothing was done. */
static inline bool try_match_known(const struct engine_match *m, uint64_t file, uint64_t name, uint64_t line, uint64_t hook)
{
	return m->known->span.what ? try_match_span(m, hook) :
				     try_emit(m->session, &m->known->emit, m->probe, file, name, line, hook);
}

/* Inside: run the program, and learn what it has found. */
static inline void run_match(const struct engine_match *m, uint64_t file, uint64_t name, uint64_t line, uint64_t hook)
{
	if (m->element)
		span_forget(&m->known->span, &m->session->run);
	run_quick(m->session, m->prog, m->probe, file, name, line, hook);
	if (m->known)
		learn_known(m->session, m->known);
	if (m->element)
		*m->element = span_element(&m->known->span, &m->session->run);
}

/* False: the matches are to be run by run_matches(). */
static inline bool run_matches_quick(const struct engine_match *m, unsigned n, uint64_t file, uint64_t name, int line)
{
	uint64_t hook = cost_hook(COST_FUNCTIONS), at = (uint64_t)(int64_t)line;

	if (!agent.engine.functions_quick)
		return false;
	for (unsigned k = 0; k < n; k++)
		if (__builtin_expect(!m[k].session->run.lane || m[k].session->shm.other_pids, 0))
			return false;
	if (!enter_quick())
		return false;
	for (unsigned k = 0; k < n; k++)
		if (!m[k].line || m[k].line == (uint32_t)line) {
			if (!m[k].known || !try_match_known(&m[k], file, name, at, hook))
				run_match(&m[k], file, name, at, hook ? hook + cost_hook(COST_WAY) : 0);
			hook = 0;
		}
	leave(ENTERED_ALONE);
	return true;
}

bool engine_try_match(const struct engine_match *m, struct pyobj *code)
{
	uint64_t file = 0, name = 0;

	if (!agent.engine.functions_quick || m->line || m->uses & 4 || !m->session->run.lane || m->session->shm.other_pids)
		return false;
	if (m->known && m->known->span.what && try_match_span(m, cost_hook(COST_FUNCTIONS)))
		return true;
	if (m->uses & 3) {
		file = m->uses & 1 ? (uint64_t)(uintptr_t)code_file(code) : 0;
		name = m->uses & 2 ? (uint64_t)(uintptr_t)code_name(code) : 0;
	}
	if (m->known && m->known->emit.out && try_emit(m->session, &m->known->emit, m->probe, file, name, 0, cost_hook(COST_FUNCTIONS)))
		return true;
	if (!enter_quick())
		return false;
	run_match(m, file, name, 0, cost_hook_and_way(COST_FUNCTIONS));
	leave(ENTERED_ALONE);
	return true;
}

void engine_run_matches(const struct engine_match *m, unsigned n, struct pyobj *code, int line)
{
	const struct shm *vtime;
	unsigned uses = 0;
	uint64_t file, name;
	enum entered how;

	for (unsigned k = 0; k < n; k++)
		uses |= m[k].uses;
	file = uses & 1 ? (uint64_t)(uintptr_t)code_file(code) : 0;
	name = uses & 2 ? (uint64_t)(uintptr_t)code_name(code) : 0;
	if (__builtin_expect(run_matches_quick(m, n, file, name, line), 1))
		return;
	how = enter();
	vtime = begin_vtime();
	agent.engine.frame = __builtin_frame_address(0);
	object_forget();
	run_matches(m, n, file, name, line);
	reads_release();
	end_vtime(vtime);
	leave(how);
}

void engine_look_at_forks(void)
{
	if (__builtin_expect(agent.engine.forked, 0))
		engine_forked();
}
