/*
 * Running the programs that only the tracer fires: BEGIN, END, timers.
 *
 * The kernel runs such a program while the tracer waits for it.  A program that prints in a loop would fill the buffer,
 * so meanwhile a thread takes the records out and holds them; they are processed afterwards as usual.
 */
#include "session/private.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "ir/facts.h"

enum { KEPT_MAX_BYTES = 256 << 20 };

struct taker {
	struct session *s;
	atomic_bool done;
	int error;
};

static void *take(void *taker)
{
	static const struct timespec nap = { 0, 100000 };
	struct taker *t = taker;

	while (!atomic_load_explicit(&t->done, memory_order_acquire)) {	/* pairs with session_fire */
		t->error = session_pull(t->s);
		if (t->error || t->s->held.stream.len > KEPT_MAX_BYTES)
			break;
		nanosleep(&nap, NULL);
	}
	return NULL;
}

/* Can @en's clauses make many records: do they loop? */
static bool loops(const struct enabled *en)
{
	struct ir_walk w = ir_walk_clauses(en->clauses, en->nclauses);

	for (const struct ir_insn *i; (i = ir_next(&w));)
		if (i->op == IR_TURN)
			return true;
	return false;
}

bool session_loops(const struct session *s)
{
	for (uint32_t i = 0; i < s->on.n; i++)
		if (session_is_tracers(s->on.v[i].probe) && loops(&s->on.v[i]))
			return true;
	return false;
}

static int fire(struct session *s, const struct enabled *en, const uint64_t args[10])
{
	uint32_t index = (uint32_t)(en - s->on.v);
	struct taker t = { .s = s };
	sigset_t all, old;
	pthread_t thread;
	bool helped;
	int e;

	if (s->place->in_target || !loops(en))
		return s->place->ops->run(s->place, en->prog, index, args);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	helped = !pthread_create(&thread, NULL, take, &t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	e = s->place->ops->run(s->place, en->prog, index, args);
	if (!helped)
		return e;
	atomic_store_explicit(&t.done, true, memory_order_release);
	pthread_join(thread, NULL);
	return e ? e : t.error;
}

/* Move this thread to CPU @cpu; false: it may not run there.  *@from: where it might run. */
static bool move_to(int64_t cpu, cpu_set_t *from)
{
	cpu_set_t one;

	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(*from), from))
		return false;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	return !sched_setaffinity(0, sizeof(one), &one);
}

int session_fire(struct session *s, const struct enabled *en, const uint64_t args[10])
{
	cpu_set_t from;
	bool moved = move_to(s->opts.v[OPT_cpu], &from);
	int e = fire(s, en, args);

	if (moved)
		sched_setaffinity(0, sizeof(from), &from);
	return e;
}
