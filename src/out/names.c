#include "out/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "abi/python.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "elf/ksyms.h"
#include "elf/obj.h"
#include "elf/unwind.h"
#include "out/names_priv.h"
#include "out/pycode.h"
#include "probe/procs.h"
#include "probe/pylayout.h"

/* A file that was mapped somewhere. */
struct file {
	struct file *next;
	uint64_t dev, ino;
	const char *name, *path;
	struct obj *obj;	/* NULL: it cannot be read */
	bool no_python;		/* it was asked about, and is no Python that is known */
	bool unwound;		/* its rows are in the tables of abi/unwind.h, if it has any: */
	uint32_t first, npages, index;
};

enum {
	IN_VAIN = 64,		/* questions about a process, without anything new */
};

struct mapping {
	uint64_t start, end, off;
	struct file *file;
};

struct process {
	struct process *next;
	uint32_t pid;
	struct mapping *v;	/* on the heap */
	size_t n, cap;
	uint64_t looked;	/* number of the stack that it was last looked at for */
	size_t nunwound;	/* mappings that programs were told of */
	unsigned int in_vain;	/* times that they asked, and there was nothing new */
};

struct names *names_new(void)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->arena = arena_new();
	if (!n->arena) {
		free(n);
		return NULL;
	}
	return n;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	for (struct process *p = n->processes; p; p = p->next)
		free(p->v);
	ksyms_free(n->ksyms);
	for (struct file *f = n->files; f; f = f->next)
		obj_close(f->obj);
	bytemap_fini(&n->stacks);
	bytemap_fini(&n->codes);
	bytemap_fini(&n->texts);
	arena_free(n->arena);
	free(n);
}

/* --- processes ---------------------------------------------------------------------------------------- */

static struct file *file_of(struct names *n, const struct procs_map *map)
{
	struct strbuf path = { 0 };
	const char *slash;
	struct file *f;
	int fd;

	for (f = n->files; f; f = f->next)
		if (f->ino == map->ino && f->dev == map->dev)
			return f;
	f = arena_new_of(n->arena, struct file);
	f->dev = map->dev;
	f->ino = map->ino;
	slash = strrchr(map->path, '/');
	f->path = arena_strdup(n->arena, map->path);
	f->name = arena_strdup(n->arena, slash ? slash + 1 : map->path);
	fd = procs_open(map, &path);
	if (fd >= 0 && obj_open_fd(fd, strbuf_str(&path), &f->obj, NULL))
		f->obj = NULL;
	strbuf_fini(&path);
	f->next = n->files;
	n->files = f;
	return f;
}

struct looking {
	struct names *n;
	struct process *p;
};

static int add_mapping(void *ctx, const struct procs_map *map)
{
	struct looking *l = ctx;
	struct process *p = l->p;

	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 32;
		struct mapping *v = realloc(p->v, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		p->v = v;
		p->cap = cap;
	}
	p->v[p->n++] = (struct mapping){ map->start, map->end, map->off, file_of(l->n, map) };
	return 0;
}

/* A process that has gone keeps what was known of it: false. */
static bool look(struct names *n, struct process *p)
{
	struct process new = { .pid = p->pid };
	struct looking l = { n, &new };

	if (procs_maps(p->pid, add_mapping, &l) || !new.n) {
		free(new.v);
		return false;
	}
	free(p->v);
	p->v = new.v;
	p->n = new.n;
	p->cap = new.cap;
	return true;
}

static struct process *process_of(struct names *n, uint32_t pid)
{
	struct process *p;

	for (p = n->processes; p; p = p->next)
		if (p->pid == pid)
			return p;
	p = arena_new_of(n->arena, struct process);
	p->pid = pid;
	p->next = n->processes;
	n->processes = p;
	return p;
}

void names_watch(struct names *n, uint32_t pid)
{
	look(n, process_of(n, pid));
}

static const struct mapping *find_mapping(const struct process *p, uint64_t addr)
{
	for (size_t i = 0; i < p->n; i++)
		if (addr >= p->v[i].start && addr < p->v[i].end)
			return &p->v[i];
	return NULL;
}

static void name_user(struct names *n, uint32_t pid, struct frame *f)
{
	struct process *p = process_of(n, pid);
	const struct mapping *m = find_mapping(p, f->addr);
	struct obj_func func;
	uint64_t addr;

	if (!m && p->looked != n->nstacks) {	/* once for a stack */
		p->looked = n->nstacks;
		look(n, p);
		m = find_mapping(p, f->addr);
	}
	if (!m)
		return;
	f->mod = m->file->name;
	f->path = m->file->path;
	f->mod_off = f->addr - m->start + m->off;
	if (!m->file->obj || !obj_addr(m->file->obj, f->mod_off, &addr) ||
	    !obj_func_find(m->file->obj, addr, &func))
		return;
	f->obj = m->file->obj;
	f->obj_addr = addr;
	f->func = func.name;		/* the file's, which stays open */
	f->off = addr - func.addr;
	f->size = func.end - func.addr;
}

/* --- tables for walks ---------------------------------------------------------------------------------- */

struct tabling {
	struct names *n;
	struct file *f;
	struct abi_unwind *tables;
};

/* Add the rows of page @number of the file; pages in between have none. */
static int add_page(void *ctx, uint32_t number, const struct abi_unwind_row *rows, uint32_t nrows)
{
	struct tabling *t = ctx;
	struct names *n = t->n;

	if (!t->f->npages)
		t->f->first = number;
	if (number - t->f->first >= ABI_UNWIND_PAGES - t->f->index - 1 || n->nrows + nrows > ABI_UNWIND_ROWS)
		return -ENOSPC;
	while (t->f->npages <= number - t->f->first)
		t->tables->index[t->f->index + t->f->npages++] = n->nrows;
	memcpy(&t->tables->rows[n->nrows], rows, nrows * sizeof(*rows));
	n->nrows += nrows;
	t->tables->index[t->f->index + t->f->npages] = n->nrows;
	return 0;
}

/* What does not fit is looked for by frame pointers. */
static void add_tables(struct names *n, struct file *f, struct abi_unwind *tables)
{
	struct tabling t = { n, f, tables };

	if (f->unwound)
		return;
	f->unwound = true;
	f->index = n->npages;
	if (n->npages < ABI_UNWIND_PAGES - 1)
		obj_unwind(f->obj, add_page, &t);
	if (f->npages)
		n->npages += f->npages + 1;
}

bool names_is_loading(struct names *n, uint32_t pid)
{
	struct process *p = process_of(n, pid);
	const struct obj_links *links;
	const struct obj *o;
	size_t have = 0;

	if (!look(n, p) || !p->v[0].file->obj)
		return false;
	o = p->v[0].file->obj;
	links = obj_links(p->v[0].file->obj);
	for (size_t i = 0; i < p->n; i++)
		have += !i || p->v[i].file != p->v[i - 1].file;
	return have < 1 + (obj_info(o)->interp != NULL) + links->nneeded;
}

int names_unwind(struct names *n, uint32_t pid, struct abi_ranges *ret, struct abi_unwind *tables)
{
	struct process *p = process_of(n, pid);
	uint64_t addr;

	if (!look(n, p))
		return -ESRCH;
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < p->n; i++) {
		const struct mapping *m = &p->v[i];
		struct file *f = m->file;

		if (!f->obj || !obj_addr(f->obj, m->off, &addr) || ret->n == ABI_RANGES || m->end - m->start > UINT32_MAX)
			continue;
		add_tables(n, f, tables);
		ret->v[ret->n++] = (struct abi_range){ m->start, m->start - addr, (uint32_t)(m->end - m->start), f->first,
						       f->npages, f->index };
	}
	for (size_t i = ret->n; i < ABI_RANGES; i++)
		ret->v[i].start = ABI_RANGE_NONE;
	/* Code that no file has is asked about again and again: not for ever. */
	p->in_vain = p->nunwound == p->n ? p->in_vain + 1 : 0;
	p->nunwound = p->n;
	ret->asked = p->in_vain > IN_VAIN;
	return 0;
}

/* --- Python ------------------------------------------------------------------------------------------- */

struct looking_for_python {
	struct names *n;
	uint64_t first_ino;
	struct abi_python *ret;
};

/* Is it, by its name, a program or library of Python? */
static bool names_python_file(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strstr(slash ? slash : path, "python") != NULL;
}

/* 1: found. */
static int look_for_python(void *ctx, const struct procs_map *map)
{
	struct looking_for_python *l = ctx;
	struct file *f;
	uint64_t addr;
	int e;

	/* The program itself, and what is called so: of a process that starts nothing else is worth being opened. */
	if (l->first_ino && map->ino != l->first_ino && !names_python_file(map->path))
		return 0;
	f = file_of(l->n, map);
	if (!l->first_ino)
		l->first_ino = map->ino;
	if (!f->obj || f->no_python || !obj_addr(f->obj, map->off, &addr))
		return 0;
	e = pylayout_find(f->obj, map->start - addr, l->ret);
	f->no_python = e;
	return !e;
}

int names_python(struct names *n, uint32_t pid, struct abi_python *ret)
{
	struct looking_for_python l = { .n = n, .ret = ret };
	int e = procs_maps(pid, look_for_python, &l);

	if (e > 0)
		return 0;
	return e < 0 ? e : -ENOENT;
}

int names_add_code(struct names *n, const void *rec, size_t size, bool look)
{
	const struct abi_code *r = rec;
	struct pycode *c = pycode_read(n->arena, rec, size, look);

	return c ? bytemap_set(&n->codes, &r->number, sizeof(r->number), c) : -EINVAL;
}

/* Is it a call of what runs Python's code? */
static bool is_evaluator(const struct frame *f)
{
	return f->func && !strncmp(f->func, "_PyEval_EvalFrameDefault", 24);
}

/* Frames of Python that one native call runs, of those of a record. */
struct pyrun {
	const struct abi_pyframe *v, *end, *next;
	uint32_t call;			/* the number of that native frame; NO_CALL: whoever is next */
};

enum { NO_CALL = UINT32_MAX };

/* The run that begins at @v, of those up to @end. */
static struct pyrun run_at(const struct abi_pyframe *v, const struct abi_pyframe *end)
{
	struct pyrun run = { .v = v, .next = v, .call = NO_CALL };

	while (run.next < end && !(run.next->flags & ABI_PYFRAME_CALL) && (run.next == v || !(run.next->flags & ABI_PYFRAME_FIRST)))
		run.next++;
	run.end = run.next;
	if (run.next < end && run.next->flags & ABI_PYFRAME_CALL)
		run.call = run.next++->instr;
	return run;
}

/* Is it one of the tracing's own, in the agent? */
static bool is_agents(const struct frame *f)
{
	return f->mod && !strcmp(f->mod, "dtap-agent.so");
}

static void add_run(struct names *n, struct stack *st, const struct pyrun *run)
{
	static const struct pycode unknown = { .file = "?", .name = "?" };

	for (const struct abi_pyframe *p = run->v; p < run->end; p++) {
		const struct pycode *c = bytemap_get(&n->codes, &p->code, sizeof(p->code));
		struct frame *f = &st->frames[st->nframes++];

		*f = (struct frame){ .code = c ? c : &unknown, .line = c ? pycode_line(c, (int32_t)p->instr) : 0 };
	}
}

/* Does native frame @f, which is number @number, run it? */
static bool runs(const struct frame *f, uint32_t number, const struct pyrun *run)
{
	return run->call == NO_CALL ? is_evaluator(f) : run->call <= number;
}

/* --- the kernel --------------------------------------------------------------------------------------- */

void names_find_kernel(struct names *n, struct frame *f)
{
	const struct ksym *k;

	if (!n->ksyms)
		n->ksyms = ksyms_read();
	k = n->ksyms ? ksyms_at(n->ksyms, f->addr) : NULL;
	if (!k)
		return;
	f->mod = f->path = k->mod;
	f->func = k->name;
	f->off = f->addr - k->addr;
}

/* --- stacks ------------------------------------------------------------------------------------------- */

/* Is it a frame of the tracing at a tracepoint? */
static bool is_own(const struct frame *f)
{
	return f->mod && f->func && (!strcmp(f->mod, "bpf") || !strncmp(f->func, "bpf_trace_run", 13) ||
				     !strncmp(f->func, "__bpf_trace_", 12) || !strncmp(f->func, "__traceiter_", 12));
}

/* Leave out the tracing's own frames, and what is more than @most. */
static void trim(struct stack *st, uint32_t most)
{
	while (!st->user && st->nframes && is_own(st->frames)) {
		st->frames++;
		st->nframes--;
	}
	if (most && st->nframes > most)
		st->nframes = most;
}

int names_add(struct names *n, const void *rec, size_t size)
{
	const struct abi_record *hdr = rec;
	const uint64_t *slots = (const uint64_t *)(hdr + 1);
	const struct abi_pyframe *py, *end;
	uint32_t nslots, naddrs;
	struct pyrun run;
	struct stack *st;

	if (size < sizeof(*hdr) + 16 || hdr->size > size || hdr->size < sizeof(*hdr) + 16)
		return -EINVAL;
	if (bytemap_get(&n->stacks, &slots[0], sizeof(slots[0])))
		return 0;
	n->nstacks++;
	st = arena_new_of(n->arena, struct stack);
	st->pid = hdr->pid;
	st->user = slots[1] & ABI_STACK_USER;
	naddrs = nslots = (uint32_t)((hdr->size - sizeof(*hdr) - 16) / 8);
	if (slots[1] & ABI_STACK_PYTHON)
		naddrs = ABI_STACK_ADDRS(slots[1]);
	if (naddrs > nslots)
		return -EINVAL;
	py = (const struct abi_pyframe *)&slots[2 + naddrs];
	end = py + (nslots - naddrs) / 2;
	st->frames = arena_alloc(n->arena, (naddrs + (size_t)(end - py)) * sizeof(*st->frames) + 1);
	run = run_at(py, end);
	for (uint32_t i = 0; i < naddrs; i++) {
		struct frame *f = &st->frames[st->nframes++];
		bool one = false;

		*f = (struct frame){ .addr = slots[2 + i] };
		if (!st->user) {
			names_find_kernel(n, f);
			continue;
		}
		name_user(n, st->pid, f);
		st->nframes -= is_agents(f);
		while (run.v < end && runs(f, i, &run) && !(one && run.call == NO_CALL)) {
			add_run(n, st, &run);
			one = true;
			run = run_at(run.next, end);
		}
	}
	for (; run.v < end; run = run_at(run.next, end))
		add_run(n, st, &run);
	trim(st, (uint32_t)(slots[1] >> 32));
	return bytemap_set(&n->stacks, &slots[0], sizeof(slots[0]), st);
}
