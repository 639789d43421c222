#include "probe/pystacks_priv.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/cpython.h"
#include "abi/python.h"
#include "base/arena.h"
#include "base/now.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "probe/natives.h"
#include "probe/pycode.h"
#include "probe/pylocals.h"
#include "probe/pylocks.h"
#include "probe/pyoffsets.h"
#include "probe/pytasks.h"
#include "probe/symbols.h"
#include "probe/walks.h"
#include "vm/record.h"

enum {
	INTERPS_MAX = 256, THREADS_MAX = 1 << 14,
	TRIES = 4,			/* attempts to read the stack of a running thread */
	STOP_NS = 200000000,		/* time for a thread to stop: it may wait for a processor or a disk */
	SHIM_OWNER = 3,			/* FRAME_OWNED_BY_CSTACK, FRAME_OWNED_BY_INTERPRETER and later ones */
	TAG_BITS = 7,			/* of a _PyStackRef (3.14) */
	PTHREAD_MAX = 2304,		/* bytes of the C library's structure for a thread */
	STACK_COPY = 1 << 18,		/* bytes of a stack that are copied while its thread is stopped */
	NATIVES_MAX = 1 << 12,		/* native frames of a thread */
	STOPPED_NS = 2000000,		/* for which a thread is stopped at most while its variables and tasks are read */
};

/* --- a stack ------------------------------------------------------------------------------------------- */

size_t pystacks_walk(const struct pystacks_reader *r, uint64_t state, struct pystacks_raw *v, bool *whole)
{
	const struct abi_python *py = &r->py;
	uint8_t bytes[ABI_PYTHON_FRAME];
	uint64_t addr, code;
	bool first = true;
	size_t n = 0;

	remote_forget(&r->mem);
	*whole = false;
	addr = remote_word(&r->mem, state + py->frame);
	if (addr && py->cframe_frame != ABI_PYTHON_NONE)
		addr = remote_word(&r->mem, addr + py->cframe_frame);
	/* Shim frames of the interpreter are skipped. */
	for (int left = 2 * PYSTACKS_FRAMES; addr && left && n < PYSTACKS_FRAMES; left--) {
		uint64_t at = addr;
		int32_t lasti;

		if (!remote_get(&r->mem, addr, bytes, py->frame_size))
			return n;
		memcpy(&code, bytes + py->code, sizeof(code));
		memcpy(&addr, bytes + py->back, sizeof(addr));
		code &= ~(uint64_t)TAG_BITS;
		if (py->runs == ABI_PYTHON_SHIM && bytes[py->owner] >= SHIM_OWNER) {
			first = true;
			for (size_t i = n; i-- && !v[i].entry;)
				v[i].entry = at;
			continue;
		}
		if (remote_word(&r->mem, code + py->type) != py->code_type)
			return n;
		v[n].addr = at;
		v[n].code = code;
		v[n].first = first;
		v[n].entry = 0;
		if (py->lasti_scale) {
			memcpy(&lasti, bytes + py->instr, sizeof(lasti));
			v[n].instr = (uint64_t)((int64_t)lasti * py->lasti_scale);
		} else {
			memcpy(&v[n].instr, bytes + py->instr, sizeof(v[n].instr));
			v[n].instr -= code + py->first_instr;
		}
		n++;
		first = py->runs == ABI_PYTHON_EACH || (py->runs == ABI_PYTHON_MARKED && bytes[py->owner]);
	}
	*whole = !addr || n == PYSTACKS_FRAMES;
	return n;
}

/* Is the process a child of ours? */
static bool is_child(uint32_t pid)
{
	struct strbuf text = { 0 };
	const char *parent = proc_read((pid_t)pid, "status", &text) ? NULL : proc_status_field(strbuf_str(&text), "PPid");
	bool ret = parent && strtol(parent, NULL, 10) == getpid();

	strbuf_fini(&text);
	return ret;
}

/* Has thread @tid ended?  Then take note of it, unless it is a process whose status somebody else here waits for. */
static bool has_ended(const struct pystacks_reader *r, uint32_t tid)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, tid, &info, WEXITED | WNOWAIT | WNOHANG | __WALL) || !info.si_pid)
		return false;
	if (tid != r->mem.pid || !is_child(tid))
		waitid(P_PID, tid, &info, WEXITED | WNOHANG | __WALL);
	return true;
}

/*
 * Stop thread @tid with ptrace.  It may have stopped to receive a signal, which is then in *signal, for let_go() to
 * deliver.
 */
static bool stop(const struct pystacks_reader *r, uint32_t tid, int *signal)
{
	const struct timespec step = { 0, 50000 };
	uint64_t until = now_ns() + STOP_NS;

	if (!tid || ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return false;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	while (now_ns() < until) {
		siginfo_t info = { 0 };

		if (!waitid(P_PID, tid, &info, WSTOPPED | WNOHANG | __WALL) && info.si_pid) {
			*signal = info.si_status >> 8 == PTRACE_EVENT_STOP ? 0 : info.si_status & 0x7f;
			return true;
		}
		if (has_ended(r, tid))
			return false;
		nanosleep(&step, NULL);
	}
	return false;		/* it is in the kernel, or has no processor; it is let go when this thread ends */
}

static void let_go(uint32_t tid, int signal)
{
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal);
}

/* The registers of a waiting thread: proc_pid_syscall(5).  False: it runs, or they cannot be read. */
static bool waiting_regs(const struct pystacks_reader *r, uint32_t tid, struct natives_regs *ret)
{
	struct strbuf text = { 0 };
	const char *ip, *sp;
	char file[32];

	snprintf(file, sizeof(file), "task/%" PRIu32 "/syscall", tid);
	ip = proc_read((pid_t)r->mem.pid, file, &text) ? NULL : strrchr(strbuf_str(&text), ' ');
	sp = ip ? memrchr(strbuf_str(&text), ' ', (size_t)(ip - strbuf_str(&text))) : NULL;
	*ret = (struct natives_regs){ .ip = ip ? strtoull(ip + 1, NULL, 16) : 0, .sp = sp ? strtoull(sp + 1, NULL, 16) : 0 };
	strbuf_fini(&text);
	return ret->ip && ret->sp;
}

/* A copy of a stopped thread's stack. */
struct copy {
	const struct pystacks_reader *r;
	uint64_t start;
	size_t n;
	uint8_t *bytes;
};

static bool get_copied(void *ctx, uint64_t addr, void *buf, size_t n)
{
	const struct copy *c = ctx;

	if (!c->bytes)
		return remote_get(&c->r->mem, addr, buf, n);
	if (addr < c->start || addr - c->start > c->n || n > c->n - (addr - c->start))
		return false;
	memcpy(buf, c->bytes + (addr - c->start), n);
	return true;
}

/* Read a stopped thread's registers and copy its stack. */
static bool stopped_regs(const struct pystacks_reader *r, uint32_t tid, struct natives_regs *ret, struct copy *c)
{
#if defined(__x86_64__) || defined(__aarch64__)
	struct user_regs_struct regs;
	struct iovec to = { &regs, sizeof(regs) }, from;
	ssize_t n;

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &to) || to.iov_len != sizeof(regs))
		return false;
#if defined(__x86_64__)
	*ret = (struct natives_regs){ .ip = regs.rip, .sp = regs.rsp, .bp = regs.rbp, .has_bp = true };
#else
	*ret = (struct natives_regs){ .ip = regs.pc, .sp = regs.sp, .bp = regs.regs[29], .has_bp = true, .link = regs.regs[30] };
#endif
	c->bytes = malloc(STACK_COPY);
	c->start = ret->sp;
	/* In pieces: the stack mostly ends before STACK_COPY bytes. */
	for (c->n = 0; c->bytes && c->n < STACK_COPY; c->n += (size_t)n) {
		to = (struct iovec){ c->bytes + c->n, REMOTE_PAGE - (c->start + c->n) % REMOTE_PAGE };
		if (to.iov_len > STACK_COPY - c->n)
			to.iov_len = STACK_COPY - c->n;
		from = (struct iovec){ (void *)(uintptr_t)(c->start + c->n), to.iov_len };
		n = process_vm_readv((pid_t)r->mem.pid, &to, 1, &from, 1, 0);
		if (n <= 0)
			break;
	}
	return c->bytes;
#else
	(void)r, (void)tid, (void)ret, (void)c;
	return false;
#endif
}

static void walk_natives(struct pystacks_reader *r, const struct natives_regs *regs, struct copy *c, const uint64_t *entries,
			 struct pystack *st)
{
	struct symbol *v = malloc(NATIVES_MAX * sizeof(*v));
	uint64_t *ends = malloc(NATIVES_MAX * sizeof(*ends));
	size_t at = 0;
	bool whole;

	if (!v || !ends)
		goto out;
	remote_forget(&r->mem);
	st->nnatives = natives_walk(r->natives, regs, get_copied, c, v, ends, NATIVES_MAX, &whole);
	/* From 3.12 on the evaluator has an entry frame in its native frame (Python/ceval.c, _PyEntryFrame). */
	for (size_t i = 0; i < st->n; i++) {
		while (entries[i] && at < st->nnatives && ends[at] && ends[at] <= entries[i])
			at++;
		st->frames[i].native = entries[i] && at < st->nnatives && ends[at] ? at : SIZE_MAX;
	}
	st->natives_cut = !whole;
	st->natives = memcpy(arena_alloc(r->arena, st->nnatives * sizeof(*v) + 1), v, st->nnatives * sizeof(*v));
out:
	free(v);
	free(ends);
}

static bool same(const struct pystacks_raw *a, const struct pystacks_raw *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].addr != b[i].addr || a[i].code != b[i].code || a[i].instr != b[i].instr || a[i].first != b[i].first)
			return false;
	return true;
}

/* Fill in the string object at @addr. */
static void tell_text(const struct pystacks_reader *r, uint64_t addr, uint64_t *at, uint32_t *length, uint32_t *kind)
{
	uint64_t state = remote_word(&r->mem, addr + r->py.state), n = remote_word(&r->mem, addr + r->py.length);
	enum { COMPACT = 0x20, ASCII = 0x40 };

	*at = addr + (state & ASCII ? r->py.ascii_data : r->py.other_data);
	*kind = state >> 2 & 7;
	*length = !(state & COMPACT) || n > UINT32_MAX ? 0 : (uint32_t)n;
}

/* As from a record in which a program has put only the addresses. */
const struct pycode *pystacks_code(struct pystacks_reader *r, uint64_t addr)
{
	struct abi_code *rec;
	struct pycode *c;
	uint64_t table;

	for (size_t i = r->ncodes; i--;)
		if (r->code_addrs[i] == addr)
			return r->codes[i];
	rec = calloc(1, sizeof(*rec));
	if (!rec)
		return NULL;
	rec->hdr.pid = r->mem.pid;
	rec->hdr.size = offsetof(struct abi_code, table_bytes);
	rec->version = r->py.version;
	remote_get(&r->mem, addr + r->py.line, &rec->line, sizeof(rec->line));
	tell_text(r, remote_word(&r->mem, addr + r->py.file), &rec->file.addr, &rec->file.length, &rec->file.kind);
	tell_text(r, remote_word(&r->mem, addr + r->py.name), &rec->name.addr, &rec->name.length, &rec->name.kind);
	table = remote_word(&r->mem, addr + r->py.table);
	rec->table.addr = table + r->py.bytes_data;
	rec->table.length = (uint32_t)remote_word(&r->mem, table + r->py.bytes_size);
	c = pycode_read(r->arena, &(struct record){ &rec->hdr, rec->hdr.size }, true);
	free(rec);
	r->codes = arena_grow(r->arena, r->codes, &r->codes_cap, r->ncodes, sizeof(*r->codes));
	r->code_addrs = arena_grow(r->arena, r->code_addrs, &r->addrs_cap, r->ncodes, sizeof(*r->code_addrs));
	r->code_addrs[r->ncodes] = addr;
	r->codes[r->ncodes++] = c;
	return c;
}

/* The frames of @st from the @n in @raw.  Returns the entries of their calls of the evaluator. */
static const uint64_t *add_frames(struct pystacks_reader *r, const struct pystacks_raw *raw, size_t n, struct pystack *st)
{
	uint64_t *entries = arena_alloc(r->arena, n * sizeof(*entries) + 1);

	st->frames = arena_alloc(r->arena, n * sizeof(*st->frames) + 1);
	st->n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct pycode *c = pystacks_code(r, raw[i].code);

		if (!c)
			continue;
		entries[st->n] = raw[i].entry;
		st->frames[st->n++] = (struct pystack_frame){
			.code = c, .line = pycode_line(c, (int32_t)raw[i].instr), .first = raw[i].first, .native = SIZE_MAX,
			.at = raw[i].addr, .code_at = raw[i].code, .instr = raw[i].instr,
		};
	}
	return entries;
}

/* The variables of a waiting thread.  False: it has gone on meanwhile. */
static bool read_locals(struct pystacks_reader *r, uint64_t state, const struct pystacks_raw *now, struct pystacks_raw *again,
			size_t n, struct pystack *st)
{
	bool whole;

	r->values.until_ns = 0;
	pylocals_read(r, st);
	return pystacks_walk(r, state, again, &whole) == n && whole && same(now, again, n);
}

/* The tasks of a waiting thread.  False: it does not wait, and there are none. */
static bool read_tasks_of(struct pystacks_reader *r, struct pystack *st)
{
	struct natives_regs regs, again;

	if (waiting_regs(r, st->tid, &regs)) {
		r->values.until_ns = 0;
		pytasks_read(r, st);
		if (waiting_regs(r, st->tid, &again) && again.ip == regs.ip && again.sp == regs.sp)
			return true;
	}
	st->ntasks = 0;
	return false;
}

/* Stop the thread and walk its stack.  False: it could not be stopped, and the stack is as it was seen. */
static bool walk_stopped(struct pystacks_reader *r, uint64_t state, struct pystack *st, struct pystacks_raw *raw, size_t *n, int *signal)
{
	bool whole, stopped = stop(r, st->tid, signal);

	*n = pystacks_walk(r, state, raw, &whole);
	st->is_unsure = !stopped || !whole;
	return stopped;
}

static void read_stack(struct pystacks_reader *r, uint64_t state, struct pystack *st)
{
	struct natives_regs regs = { 0 }, again = { 0 };
	bool stopped = false, stable = false, whole, needs_regs = r->natives || r->locals;
	bool has_regs = needs_regs && waiting_regs(r, st->tid, &regs);
	struct copy copy = { .r = r };
	const uint64_t *entries = NULL;
	size_t n = pystacks_walk(r, state, r->raw[0], &whole), next;
	int now = 0, signal = 0;

	for (int i = 0; i < TRIES && !stable; i++, n = next, now = !now) {
		next = pystacks_walk(r, state, r->raw[!now], &whole);
		stable = whole && next == n && same(r->raw[0], r->raw[1], n);
	}
	if (stable && has_regs && r->locals) {
		entries = add_frames(r, r->raw[now], n, st);
		stable = read_locals(r, state, r->raw[now], r->raw[!now], n, st);
	}
	if (has_regs)
		has_regs = waiting_regs(r, st->tid, &again) && again.ip == regs.ip && again.sp == regs.sp;
	if (!stable || (needs_regs && !has_regs)) {
		stopped = walk_stopped(r, state, st, r->raw[now], &n, &signal);
		has_regs = r->natives && stopped && stopped_regs(r, st->tid, &regs, &copy);
	}
	/* The code objects and variables are read while the thread is still in these frames. */
	if (!st->has_locals || stopped || !stable || !has_regs) {
		st->has_locals = false;
		entries = add_frames(r, r->raw[now], n, st);
	}
	if (!stopped && r->slots && pytasks_has(st) && !read_tasks_of(r, st)) {
		stopped = walk_stopped(r, state, st, r->raw[now], &n, &signal);
		st->has_locals = false;
		entries = add_frames(r, r->raw[now], n, st);
		has_regs = r->natives && stopped && stopped_regs(r, st->tid, &regs, &copy);
	}
	if (stopped && r->slots) {
		r->values.until_ns = now_ns() + STOPPED_NS;
		if (r->locals)
			pylocals_read(r, st);
		if (pytasks_has(st))
			pytasks_read(r, st);
	}
	if (stopped)
		let_go(st->tid, signal);
	st->is_cut = n == PYSTACKS_FRAMES;
	if (r->slots)
		st->name = pylocals_thread_name(r, st);
	if (has_regs && r->natives)
		walk_natives(r, &regs, &copy, entries, st);
	free(copy.bytes);
}

void pystacks_read_again(struct pystacks_reader *r, struct pystack *st)
{
	st->is_unsure = st->is_cut = st->has_locals = st->locals_cut = st->natives_cut = st->tasks_cut = false;
	st->n = st->nnatives = st->ntasks = 0;
	read_stack(r, st->state, st);
}

/* --- threads ------------------------------------------------------------------------------------------- */

struct task {
	uint32_t tid, inner;		/* in our pid namespace, and in the process's own */
};

struct tasks {
	struct task *v;
	size_t n, cap;
};

/* The thread's id in the innermost pid namespace, of *depth. */
static uint32_t inner_tid(uint32_t pid, uint32_t tid, size_t *depth)
{
	struct strbuf text = { 0 };
	char file[32];
	long ret = 0;

	*depth = 0;
	snprintf(file, sizeof(file), "task/%" PRIu32 "/status", tid);
	if (!proc_read((pid_t)pid, file, &text))
		ret = proc_innermost_id(strbuf_str(&text), "NSpid", depth);
	strbuf_fini(&text);
	return *depth ? (uint32_t)ret : tid;
}

static void read_tasks(struct pystacks_reader *r, struct tasks *ts)
{
	char path[32];
	uint32_t pid = r->mem.pid;
	struct dirent *e;
	size_t depth;
	DIR *d;

	inner_tid(pid, pid, &depth);	/* all threads are in the same namespace */
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	d = opendir(path);
	while (d && ts->n < THREADS_MAX && (e = readdir(d))) {
		uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);

		if (!tid)
			continue;
		ts->v = arena_grow(r->arena, ts->v, &ts->cap, ts->n, sizeof(*ts->v));
		ts->v[ts->n++] = (struct task){ tid, depth == 1 ? tid : inner_tid(pid, tid, &depth) };
	}
	if (d)
		closedir(d);
}

static uint32_t task_of(const struct tasks *ts, uint32_t inner)
{
	for (size_t i = 0; i < ts->n; i++)
		if (inner && ts->v[i].inner == inner)
			return ts->v[i].tid;
	return 0;
}

/* Does every thread's structure have the id of a different thread at this offset? */
static bool all_have(const struct tasks *ts, uint8_t *const *threads, const size_t *sizes, size_t n, size_t off)
{
	uint32_t inner, other;

	for (size_t i = 0; i < n; i++) {
		if (off + sizeof(inner) > sizes[i])
			return false;
		memcpy(&inner, threads[i] + off, sizeof(inner));
		if (!task_of(ts, inner))
			return false;
		for (size_t k = 0; k < i; k++) {
			memcpy(&other, threads[k] + off, sizeof(other));
			if (other == inner)
				return false;
		}
	}
	return n;
}

/*
 * Find the kernel's ids of the threads.  On Linux threading.get_ident() is the address of the C library's structure
 * for the thread, which contains the id.  Its offset is found by comparing all threads.
 */
static void find_tids(struct pystacks_reader *r, const struct tasks *ts, struct pystacks *ret)
{
	uint8_t **threads = arena_alloc(r->arena, ret->n * sizeof(*threads) + 1);
	size_t *sizes = arena_alloc(r->arena, ret->n * sizeof(*sizes) + 1), n = 0, off;
	uint32_t inner;

	for (size_t i = 0; i < ret->n; i++) {
		threads[i] = arena_alloc(r->arena, PTHREAD_MAX);
		/* The structure may be followed by unmapped memory. */
		for (sizes[i] = PTHREAD_MAX; sizes[i] && !remote_get(&r->mem, ret->v[i].ident, threads[i], sizes[i]);)
			sizes[i] -= 256;
		n += sizes[i] > 0;
	}
	if (n < ret->n)
		return;
	for (off = 0; off + sizeof(inner) <= PTHREAD_MAX; off += sizeof(inner))
		if (all_have(ts, threads, sizes, n, off))
			break;
	for (size_t i = 0; i < n && off + sizeof(inner) <= PTHREAD_MAX; i++) {
		memcpy(&inner, threads[i] + off, sizeof(inner));
		ret->v[i].tid = task_of(ts, inner);
	}
}

/* --- the process --------------------------------------------------------------------------------------- */

/* The state of the thread that holds the GIL of the interpreter @interp; 0: none. */
static uint64_t gil_holder(const struct pystacks_reader *r, const struct pyoffsets_gil *g, uint64_t interp)
{
	uint64_t gil;
	int32_t locked;

	if (g->current != ABI_PYTHON_NONE)
		return remote_word(&r->mem, r->py.runtime + g->current);
	gil = remote_word(&r->mem, interp + g->gil);
	return gil && remote_get(&r->mem, gil + g->locked, &locked, sizeof(locked)) && locked == 1 ? remote_word(&r->mem, gil + g->holder) : 0;
}

/* The address of the condition variable that those wait for who want the GIL of the interpreter @interp; 0: unknown. */
static uint64_t gil_cond(const struct pystacks_reader *r, const struct pyoffsets_gil *g, uint64_t interp)
{
	uint64_t gil = g->current != ABI_PYTHON_NONE ? r->py.runtime : remote_word(&r->mem, interp + g->gil);

	return gil ? gil + g->cond : 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct pystack *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Add threads without Python state, if they can be distinguished. */
static void add_others(struct pystacks_reader *r, const struct tasks *ts, struct pystacks *ret, size_t cap)
{
	size_t n = ret->n;

	for (size_t i = 0; i < ts->n; i++) {
		struct natives_regs regs;
		struct copy copy = { .r = r };
		bool is_known = false;

		for (size_t k = 0; k < n && !is_known; k++)
			is_known = !ret->v[k].tid || ret->v[k].tid == ts->v[i].tid;
		if (is_known)
			continue;
		ret->v = arena_grow(r->arena, ret->v, &cap, ret->n, sizeof(*ret->v));
		ret->v[ret->n] = (struct pystack){ .tid = ts->v[i].tid };
		if (r->natives && waiting_regs(r, ts->v[i].tid, &regs))
			walk_natives(r, &regs, &copy, NULL, &ret->v[ret->n]);
		ret->n++;
	}
}

static void read_threads(struct pystacks_reader *r, const struct pyoffsets_gil *g, struct pystacks *ret)
{
	uint64_t interp = remote_word(&r->mem, r->py.runtime + r->py.interp), state, holder, cond;
	size_t cap = 0;
	struct tasks ts = { 0 };

	for (int i = 0; interp && i < INTERPS_MAX; i++, interp = remote_word(&r->mem, interp + r->py.next_interp)) {
		holder = g ? gil_holder(r, g, interp) : 0;
		cond = g ? gil_cond(r, g, interp) : 0;
		for (state = remote_word(&r->mem, interp + r->py.threads); state && ret->n < THREADS_MAX;
		     state = remote_word(&r->mem, state + r->py.next_thread)) {
			ret->v = arena_grow(r->arena, ret->v, &cap, ret->n, sizeof(*ret->v));
			ret->v[ret->n++] = (struct pystack){ .is_python = true, .ident = remote_word(&r->mem, state + r->py.thread_id),
							     .has_gil = state == holder, .state = state, .gil_cond = cond };
		}
	}
	read_tasks(r, &ts);
	find_tids(r, &ts, ret);
	for (size_t i = 0; i < ret->n; i++)
		read_stack(r, ret->v[i].state, &ret->v[i]);
	add_others(r, &ts, ret, cap);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_tid);
}

int pystacks_read(struct arena *a, struct symbols *symbols, uint32_t pid, unsigned int what, struct pystacks *ret,
		  struct strbuf *why)
{
	bool natives = what & PYSTACKS_NATIVES, knows_slots;
	struct pystacks_reader r = { .arena = a };
	uint64_t words[PYOFFSETS_WORDS];
	struct pyoffsets_slots slots;
	struct pyoffsets_gil gil;
	int err;

	r.raw[0] = malloc(2 * PYSTACKS_FRAMES * sizeof(*r.raw[0]));
	r.raw[1] = r.raw[0] + PYSTACKS_FRAMES;
	err = remote_init(&r.mem, pid);
	r.natives = natives ? natives_new(symbols, pid) : NULL;
	if (!err)
		err = r.raw[0] && (r.natives || !natives) ? walks_python(symbols, pid, &r.py) : -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	if (!err && !remote_get_now(&r.mem, r.py.runtime, words, sizeof(words)))
		err = -errno;
	if (err == -ENOENT)
		strbuf_printf(why, "process %" PRIu32 " is no CPython that dtap knows: " CPYTHON_RANGE ", and " CPYTHON_FREE_RANGE " without a GIL", pid);
	else if (err == -EPERM || err == -EACCES)
		strbuf_printf(why, "process %" PRIu32 ": permission denied: its memory is for its own user, and for root", pid);
	else if (err)
		strbuf_printf(why, "process %" PRIu32 ": %s", pid, strerror(-err));
	if (err)
		goto out;
	ret->version = (uint16_t)r.py.version;
	ret->knows_gil = !pyoffsets_free_threaded(&r.py) && !pyoffsets_gil(ret->version, words, &gil);
	knows_slots = !pyoffsets_slots(ret->version, words, &slots);
	r.slots = knows_slots && !pyvalue_init(&r.values, &r.mem, &r.py) ? &slots : NULL;
	ret->knows_locals = r.locals = what & PYSTACKS_LOCALS && r.slots;
	read_threads(&r, ret->knows_gil ? &gil : NULL, ret);
	/* A free-threaded build has other locks. */
	ret->knows_locks = !pyoffsets_free_threaded(&r.py) && knows_slots;
	if (ret->knows_locks)
		pylocks_read(&r, &slots, ret);
	if (!remote_lives(&r.mem)) {
		err = -ESRCH;
		strbuf_printf(why, "process %" PRIu32 " ended while it was read", pid);
	}
out:
	natives_free(r.natives);
	free(r.raw[0]);
	remote_fini(&r.mem);
	return err;
}
