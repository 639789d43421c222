#include "out/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/python.h"
#include "base/arena.h"
#include "base/bytemap.h"
#include "base/strbuf.h"
#include "elf/debug.h"
#include "elf/ksyms.h"
#include "elf/obj.h"
#include "elf/unwind.h"
#include "out/pycode.h"
#include "out/sink.h"
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

/* An address and what is known of it. */
struct frame {
	uint64_t addr, off, size;	/* @size: of the function; 0: not known */
	uint64_t mod_off;		/* from where the module is mapped */
	const char *mod, *path, *func;	/* NULL: not known */
	struct obj *obj;		/* the file that it is in, NULL: not known; it stays open */
	uint64_t obj_addr;		/* the address there */
	const struct pycode *code;	/* of a frame of Python, which has nothing of the above */
	uint32_t line;
};

struct stack {
	uint32_t pid;
	bool user;
	uint32_t nframes;
	struct frame *frames;
};

struct names {
	struct arena *arena;
	struct bytemap stacks;		/* by number */
	struct bytemap codes;		/* struct pycode by number */
	struct bytemap texts;		/* of names_same: pid and text -> the number, in the arena */
	uint64_t nstacks;
	uint32_t npages, nrows;		/* entries of the tables of abi/unwind.h that are in use */
	struct process *processes;
	struct file *files;
	struct ksyms *ksyms;		/* NULL: not looked at yet */
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

static void add_run(struct names *n, struct stack *st, const struct pyrun *run)
{
	static const struct pycode unknown = { .file = "?", .name = "?" };

	for (const struct abi_pyframe *p = run->v; p < run->end; p++) {
		const struct pycode *c = bytemap_get(&n->codes, &p->code, sizeof(p->code));
		struct frame *f = &st->frames[st->nframes++];

		f->code = c ? c : &unknown;
		f->line = c ? pycode_line(c, (int32_t)p->instr) : 0;
	}
}

/* Does native frame @f, which is number @number, run it? */
static bool runs(const struct frame *f, uint32_t number, const struct pyrun *run)
{
	return run->call == NO_CALL ? is_evaluator(f) : run->call <= number;
}

/* --- the kernel --------------------------------------------------------------------------------------- */

static void name_kernel(struct names *n, struct frame *f)
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

		f->addr = slots[2 + i];
		if (!st->user) {
			name_kernel(n, f);
			continue;
		}
		name_user(n, st->pid, f);
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

static const char *frame_text(const struct frame *f, enum ir_show show, char *buf, size_t size)
{
	if (f->code)
		snprintf(buf, size, "[ %s:%" PRIu32 " (%s) ]", f->code->file, f->line, f->code->name);
	else if (!f->mod)
		snprintf(buf, size, "0x%" PRIx64, f->addr);
	else if (show == IR_SHOW_MOD)
		snprintf(buf, size, "%s", f->mod);
	else if (!f->func)
		snprintf(buf, size, "%s`0x%" PRIx64, f->mod, f->addr);
	else if (show == IR_SHOW_SYM || !f->off)
		snprintf(buf, size, "%s`%s", f->mod, f->func);
	else
		snprintf(buf, size, "%s`%s+0x%" PRIx64, f->mod, f->func, f->off);
	return buf;
}

const char *names_kernel(struct names *n, uint64_t addr, char *buf, size_t size)
{
	struct frame f = { .addr = addr };

	name_kernel(n, &f);
	return frame_text(&f, IR_SHOW_ADDR, buf, size);
}

void names_put_stack(const struct names *n, struct out_sink *s, uint64_t number, unsigned int indent)
{
	const struct stack *st = bytemap_get(&n->stacks, &number, sizeof(number));
	char text[2048];

	out_putc(s, '\n');
	for (uint32_t i = 0; st && i < st->nframes; i++) {
		out_pad(s, ' ', indent);
		out_puts(s, frame_text(&st->frames[i], IR_SHOW_STACK, text, sizeof(text)));
		out_putc(s, '\n');
	}
}

const char *names_text(const struct names *n, enum ir_show show, uint64_t number, char *buf, size_t size)
{
	const struct stack *st = bytemap_get(&n->stacks, &number, sizeof(number));

	if (st && st->nframes)
		return frame_text(&st->frames[0], show, buf, size);
	snprintf(buf, size, "?");
	return buf;
}

uint64_t names_same(struct names *n, enum ir_show show, uint64_t number)
{
	const struct stack *st;
	char text[512 + 16];
	uint64_t *first;
	int len;

	if (show != IR_SHOW_SYM && show != IR_SHOW_MOD)
		return number;
	st = bytemap_get(&n->stacks, &number, sizeof(number));
	if (!st || !st->nframes)
		return number;
	len = snprintf(text, 17, "%08x%d", st->pid, st->user);
	frame_text(&st->frames[0], show, text + len, sizeof(text) - (size_t)len);
	first = bytemap_get(&n->texts, text, strlen(text));
	if (first)
		return *first;
	first = arena_alloc(n->arena, sizeof(*first));
	*first = number;
	bytemap_set(&n->texts, text, strlen(text), first);
	return number;
}

/* --- SystemTap's -------------------------------------------------------------------------------------- */

/* "function+0x1/0x10", without what is not known. */
static void put_place(struct out_sink *s, const struct frame *f, bool size)
{
	out_format(s, "%s+0x%" PRIx64, f->func, f->off);
	if (size && f->size)
		out_format(s, "/0x%" PRIx64, f->size);
}

/* The source and line of a frame; of a caller that of its call, which is before the address. */
static bool source_of(const struct frame *f, bool is_caller, const char **file, int *line)
{
	struct debug *d = f->obj ? obj_debug(f->obj) : NULL;

	return d && debug_source_at(d, f->obj_addr - is_caller, file, line);
}

static void put_source(struct out_sink *s, const struct frame *f, enum ir_show show)
{
	const char *file;
	int line;

	if (!source_of(f, false, &file, &line))
		out_format(s, "0x%" PRIx64, f->addr);
	else if (show == IR_SHOW_STAP_LINE)
		out_format(s, "%d", line);
	else if (show == IR_SHOW_STAP_FILE)
		out_puts(s, file);
	else
		out_format(s, "%s:%d", file, line);
}

static void put_frame(struct out_sink *s, const struct frame *f, enum ir_show show, bool is_caller)
{
	const char *file;
	int line;

	switch (show) {
	case IR_SHOW_STAP_FILE:
	case IR_SHOW_STAP_LINE:
	case IR_SHOW_STAP_FILELINE:
		put_source(s, f, show);
		return;
	case IR_SHOW_STAP_CALLERS:
		out_format(s, "%s0x%" PRIx64, is_caller ? " " : "", f->addr);
		return;
	case IR_SHOW_STAP_HEX:
		out_format(s, "0x%" PRIx64 " ", f->addr);
		return;
	case IR_SHOW_STAP_MOD:
		out_puts(s, f->path ? f->path : "<unknown>");
		return;
	case IR_SHOW_STAP_FULL:
	case IR_SHOW_STAP_FULLER:
		out_format(s, " 0x%" PRIx64, f->addr);
		if (f->func) {
			out_puts(s, " : ");
			put_place(s, f, true);
		}
		if (show == IR_SHOW_STAP_FULLER && source_of(f, is_caller, &file, &line))
			out_format(s, " at %s:%d", file, line);
		break;
	case IR_SHOW_STAP_SYM:
		if (f->func)
			out_puts(s, f->func);
		else
			out_format(s, "0x%" PRIx64, f->addr);
		return;
	default:
		if (f->func)
			put_place(s, f, show == IR_SHOW_STAP_DATA);
		else
			out_format(s, "0x%" PRIx64, f->addr);
	}
	if (show != IR_SHOW_STAP_BRIEF && f->path) {
		out_format(s, " [%s", show == IR_SHOW_STAP_SIMPLE ? f->mod : f->path);
		if (!f->func)
			out_format(s, "+0x%" PRIx64, f->mod_off);
		out_putc(s, ']');
	}
}

void names_put_stap(const struct names *n, struct out_sink *s, enum ir_show show, uint64_t number)
{
	const struct stack *st = bytemap_get(&n->stacks, &number, sizeof(number));

	if (show >= IR_SHOW_STAP_SYM) {
		if (st && st->nframes)
			put_frame(s, &st->frames[0], show, false);
		return;
	}
	for (uint32_t i = 0; st && i < st->nframes; i++) {
		put_frame(s, &st->frames[i], show, i > 0);
		if (show != IR_SHOW_STAP_HEX && show != IR_SHOW_STAP_CALLERS)
			out_putc(s, '\n');
	}
}
