/*
 * The cheapest hook that an interpreter allows, with C that counts: what any tracer inside the process pays before it
 * does something.  Loaded by ctypes; no Python headers.
 *
 * bare_pair_...: the same for the time of each call, which needs two hooks and two readings of the clock, and the bucket of a
 * power of two that the time is in.  Calls inside the call are not thought of: the function calls nothing.
 */
#include <x86intrin.h>

struct object;

unsigned long bare_count;
struct object *bare_none;	/* immortal where it is used, from 3.12 on */
struct object *(*bare_next)(void *thread, void *frame, int throwing);

struct object *bare_callback(struct object *self, struct object *const *args, long nargs);
struct object *bare_evaluator(void *thread, void *frame, int throwing);
struct object *bare_pair_entry(struct object *self, struct object *const *args, long nargs);
struct object *bare_pair_return(struct object *self, struct object *const *args, long nargs);
struct object *bare_pair_evaluator(void *thread, void *frame, int throwing);

static unsigned long from, buckets[65];

struct object *bare_callback(struct object *self, struct object *const *args, long nargs)
{
	(void)self;
	(void)args;
	(void)nargs;
	bare_count++;
	return bare_none;
}

struct object *bare_evaluator(void *thread, void *frame, int throwing)
{
	bare_count++;
	return bare_next(thread, frame, throwing);
}

static void add(void)
{
	unsigned long took = __rdtsc() - from;

	buckets[took ? 64 - __builtin_clzl(took) : 0]++;
}

struct object *bare_pair_entry(struct object *self, struct object *const *args, long nargs)
{
	(void)self;
	(void)args;
	(void)nargs;
	from = __rdtsc();
	return bare_none;
}

struct object *bare_pair_return(struct object *self, struct object *const *args, long nargs)
{
	(void)self;
	(void)args;
	(void)nargs;
	add();
	return bare_none;
}

struct object *bare_pair_evaluator(void *thread, void *frame, int throwing)
{
	struct object *result;

	from = __rdtsc();
	result = bare_next(thread, frame, throwing);
	add();
	return result;
}
