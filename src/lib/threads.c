/*
 * dtap_threads(): what the threads of a Python process do now, as typed values.
 *
 * It reads the process from outside (probe/pystacks.h, probe/natives.h), loads nothing into it and does not wait for
 * its GIL, so it also works on a process that hangs.  What a thread waits for is the system call that it is in, and
 * the lock behind it (probe/pylocks.h).
 */
#include "dtap.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "probe/provider.h"
#include "probe/pycode.h"
#include "probe/pystacks.h"
#include "probe/symbols.h"

enum { TEXT_MAX = 4096 };

/* The text of /proc/PID/@file, with spaces in place of control characters. */
static const char *proc_text(struct arena *a, uint32_t pid, const char *file)
{
	struct strbuf text = { 0 };
	size_t n = proc_read((pid_t)pid, file, &text) ? 0 : text.len;
	char *ret;

	if (n > TEXT_MAX)
		n = TEXT_MAX;
	while (n && (text.s[n - 1] == '\0' || text.s[n - 1] == '\n'))
		n--;
	ret = arena_alloc(a, n + 1);
	for (size_t i = 0; i < n; i++)
		ret[i] = iscntrl((unsigned char)text.s[i]) ? ' ' : text.s[i];
	strbuf_fini(&text);
	return ret;
}

static const char *task_text(struct arena *a, uint32_t pid, uint32_t tid, const char *file)
{
	return proc_text(a, pid, arena_printf(a, "task/%" PRIu32 "/%s", tid, file));
}

/* What thread @tid does: "running", "in futex", or "" if the kernel does not tell. */
static const char *doing(struct arena *a, uint32_t pid, uint32_t tid)
{
	const char *text = task_text(a, pid, tid, "syscall"), *name;
	char *end;
	long number;

	if (!strncmp(text, "running", 7))
		return "running";
	number = strtol(text, &end, 10);
	if (end == text || number < 0)
		return "";
	name = syscall_name((uint32_t)number);
	return name ? arena_printf(a, "in %s", name) : arena_printf(a, "in system call %ld", number);
}

/* Is Python frame @f run by native frame @i?  If that is not known: is @i a call of the evaluator? */
static bool runs(const struct pystack_frame *f, const struct symbol *natives, size_t i)
{
	static const char evaluator[] = "_PyEval_EvalFrameDefault";

	if (f->native != SIZE_MAX)
		return f->native == i;
	return natives[i].func && !strncmp(natives[i].func, evaluator, sizeof(evaluator) - 1);
}

static struct dtap_object object(const struct pystack_object *o)
{
	return (struct dtap_object){ o->type, o->addr };
}

static void add_python(struct arena *a, struct dtap_thread *t, struct dtap_frame *frames, const struct pystack_frame *f)
{
	struct dtap_lock *locks = arena_alloc(a, f->nlocks * sizeof(*locks) + 1);
	struct dtap_local *locals = arena_alloc(a, f->nlocals * sizeof(*locals) + 1);

	for (size_t i = 0; i < f->nlocks; i++)
		locks[i] = (struct dtap_lock){ object(&f->locks[i].lock), f->locks[i].in_with, f->locks[i].may_be_free };
	for (size_t i = 0; i < f->nlocals; i++)
		locals[i] = (struct dtap_local){ f->locals[i].name, f->locals[i].value };
	frames[t->nframes++] = (struct dtap_frame){ .is_python = true, .function = f->code->name, .file = f->code->file,
						    .line = f->line, .locks = locks, .nlocks = f->nlocks,
						    .locals = locals, .nlocals = f->nlocals };
}

/* Python frames follow the evaluator's frame that runs them; those without one come last. */
static void add_frames(struct arena *a, struct dtap_thread *t, const struct pystack *st)
{
	struct dtap_frame *frames = arena_alloc(a, (st->n + st->nnatives) * sizeof(*frames) + 1);
	size_t next = 0;

	for (size_t i = 0; i < st->nnatives; i++) {
		const struct symbol *s = &st->natives[i];
		bool python = next < st->n && runs(&st->frames[next], st->natives, i);

		frames[t->nframes++] = (struct dtap_frame){ .is_evaluator = python, .function = s->func, .file = s->mod,
							    .address = s->addr };
		while (python) {
			add_python(a, t, frames, &st->frames[next++]);
			python = next < st->n && !st->frames[next].first;
		}
	}
	for (; next < st->n; next++)
		add_python(a, t, frames, &st->frames[next]);
	t->frames = frames;
}

static void add_tasks(struct arena *a, struct dtap_thread *t, const struct pystack *st)
{
	struct dtap_task *tasks = arena_alloc(a, st->ntasks * sizeof(*tasks) + 1);

	for (size_t i = 0; i < st->ntasks; i++) {
		const struct pystack_task *from = &st->tasks[i];
		struct dtap_frame *frames = arena_alloc(a, from->n * sizeof(*frames) + 1);
		struct dtap_thread only = { 0 };

		for (size_t k = 0; k < from->n; k++)
			add_python(a, &only, frames, &from->frames[k]);
		tasks[i] = (struct dtap_task){
			.name = from->name, .runs = from->runs, .frames = frames, .nframes = from->n,
			.awaits = { from->awaits_type ? from->awaits_type : "", from->awaits }, .awaits_task = from->awaits_task,
		};
	}
	t->tasks = tasks;
	t->ntasks = st->ntasks;
	t->tasks_complete = !st->tasks_cut;
}

/* The tids of the @n threads whose indexes are @v. */
static const uint32_t *tids(struct arena *a, const struct pystacks *all, const size_t *v, size_t n)
{
	uint32_t *ret = arena_alloc(a, n * sizeof(*ret) + 1);

	for (size_t i = 0; i < n; i++)
		ret[i] = all->v[v[i]].tid;
	return ret;
}

static struct dtap_wait wait_of(struct arena *a, const struct pystacks *all, const struct pystack_wait *w)
{
	static const enum dtap_wait_kind kinds[] = {
		[PYSTACK_WAITS_UNKNOWN] = DTAP_WAIT_UNKNOWN, [PYSTACK_WAITS_GIL] = DTAP_WAIT_GIL,
		[PYSTACK_WAITS_LOCK] = DTAP_WAIT_LOCK, [PYSTACK_WAITS_THREAD] = DTAP_WAIT_THREAD,
	};
	struct dtap_object *objects = arena_alloc(a, w->nobjects * sizeof(*objects) + 1);

	for (size_t i = 0; i < w->nobjects; i++)
		objects[i] = object(&w->objects[i]);
	return (struct dtap_wait){
		.kind = kinds[w->what], .has_timeout = w->has_timeout, .objects = objects, .nobjects = w->nobjects,
		.owner = w->owner, .owner_tid = w->owner && w->owner_index != SIZE_MAX ? all->v[w->owner_index].tid : 0,
		.inside = tids(a, all, w->inside, w->ninside), .ninside = w->ninside,
		.cycle = tids(a, all, w->cycle, w->ncycle), .ncycle = w->ncycle, .cycle_is_sure = w->cycle_is_sure,
	};
}

static int give(struct arena *a, uint32_t pid, const struct pystacks *all,
		int (*thread)(void *ctx, const struct dtap_thread *t), void *ctx)
{
	const char *command = proc_text(a, pid, "cmdline");
	int ret = 0;

	for (size_t i = 0; i < all->n && !ret; i++) {
		const struct pystack *st = &all->v[i];
		struct dtap_thread t = {
			.pid = pid, .tid = st->tid, .ident = st->ident, .command = command, .version = all->version,
			.name = st->tid ? task_text(a, pid, st->tid, "comm") : "", .state = st->tid ? doing(a, pid, st->tid) : "",
			.python_name = st->name, .is_python = st->is_python, .knows_gil = all->knows_gil, .has_gil = st->has_gil,
			.is_exact = !st->is_unsure, .is_complete = !st->is_cut, .natives_complete = !st->natives_cut,
			.knows_locks = all->knows_locks, .wait = wait_of(a, all, &st->wait),
			.knows_locals = st->has_locals, .locals_complete = st->has_locals && !st->locals_cut,
		};

		add_frames(a, &t, st);
		add_tasks(a, &t, st);
		ret = thread(ctx, &t);
	}
	return ret;
}

struct look {
	struct arena *a;
	struct symbols *symbols;
	uint32_t pid;
	unsigned int flags;
	struct pystacks *all;
	struct strbuf *why;
	int err;
};

static void *look(void *arg)
{
	struct look *l = arg;

	l->err = pystacks_read(l->a, l->symbols, l->pid, l->flags, l->all, l->why);
	return NULL;
}

/*
 * In a thread of its own: when that ends, the kernel lets go what it has seized (ptrace(2)).  One of the process's threads may
 * stop only later, when it gets a processor, and would stay so as long as its tracer lives.
 */
static int look_apart(struct look *l)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, look, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		strbuf_printf(l->why, "cannot start a thread: %s", strerror(err));
		return -err;
	}
	pthread_join(thread, NULL);
	return l->err;
}

int dtap_threads(uint32_t pid, unsigned int what, char *why, size_t size, int (*thread)(void *ctx, const struct dtap_thread *t),
		 void *ctx)
{
	unsigned int flags = (what & DTAP_THREADS_NATIVES ? PYSTACKS_NATIVES : 0) | (what & DTAP_THREADS_LOCALS ? PYSTACKS_LOCALS : 0);
	struct symbols *symbols = symbols_new();
	struct arena *a = arena_new();
	struct strbuf text = { 0 };
	struct pystacks all;
	int err = symbols ? look_apart(&(struct look){ a, symbols, pid, flags, &all, &text, 0 }) : -ENOMEM;

	if (!symbols)
		strbuf_puts(&text, "out of memory");
	if (size)
		snprintf(why, size, "%s", strbuf_str(&text));
	if (!err)
		err = give(a, pid, &all, thread, ctx);
	strbuf_fini(&text);
	symbols_free(symbols);
	if (a)
		arena_free(a);
	return err;
}
