/*
 * The cheapest hook that an interpreter allows, with C that counts: what any tracer inside the process pays before it
 * does something.  Loaded by ctypes; no Python headers.
 */
struct object;

unsigned long bare_count;
struct object *bare_none;	/* immortal where it is used, from 3.12 on */
struct object *(*bare_next)(void *thread, void *frame, int throwing);

struct object *bare_callback(struct object *self, struct object *const *args, long nargs);
struct object *bare_evaluator(void *thread, void *frame, int throwing);

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
