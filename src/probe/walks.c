#include "probe/walks.h"

#include <errno.h>
#include <string.h>

#include "abi/python.h"
#include "abi/unwind.h"
#include "elf/obj.h"
#include "elf/unwind.h"
#include "probe/procs.h"
#include "probe/pylayout.h"
#include "probe/symbols_priv.h"

enum {
	IN_VAIN = 64,		/* requests about a process that found nothing new */
};

struct tabling {
	struct symbols *s;
	struct object *f;
	int (*write)(void *ctx, size_t off, const void *bytes, size_t size);
	void *ctx;
};

/* Write entry @i of the index. */
static int write_index(const struct tabling *t, uint32_t i)
{
	return t->write(t->ctx, offsetof(struct abi_unwind, index) + i * sizeof(t->s->nrows), &t->s->nrows, sizeof(t->s->nrows));
}

/* Add the rows of page @number of the file; pages before it have none. */
static int add_page(void *ctx, uint32_t number, const struct abi_unwind_row *rows, uint32_t nrows)
{
	struct tabling *t = ctx;
	struct symbols *s = t->s;
	int e = 0;

	if (!t->f->npages)
		t->f->first = number;
	if (number - t->f->first >= ABI_UNWIND_PAGES - t->f->index - 1 || s->nrows + nrows > ABI_UNWIND_ROWS)
		return -ENOSPC;
	while (!e && t->f->npages <= number - t->f->first)
		e = write_index(t, t->f->index + t->f->npages++);
	if (!e)
		e = t->write(t->ctx, offsetof(struct abi_unwind, rows) + s->nrows * sizeof(*rows), rows, nrows * sizeof(*rows));
	s->nrows += nrows;
	return e ? e : write_index(t, t->f->index + t->f->npages);
}

/* Code without rows for lack of room is walked by frame pointers. */
static void add_tables(struct tabling t, struct object *f)
{
	struct symbols *s = t.s;

	t.f = f;
	if (f->unwound)
		return;
	f->unwound = true;
	f->index = s->npages;
	if (s->npages < ABI_UNWIND_PAGES - 1)
		obj_unwind(f->obj, add_page, &t);
	if (f->npages)
		s->npages += f->npages + 1;
}

bool walks_is_loading(struct symbols *s, uint32_t pid)
{
	struct process *p = symbols_process(s, pid);
	const struct obj_links *links;
	const struct obj *o;
	size_t have = 0;

	if (!p || !symbols_look(s, p) || !p->v[0].object->obj)
		return false;
	o = p->v[0].object->obj;
	links = obj_links(p->v[0].object->obj);
	for (size_t i = 0; i < p->n; i++)
		have += !i || p->v[i].object != p->v[i - 1].object;
	return have < 1 + (obj_info(o)->interp != NULL) + links->nneeded;
}

int walks_unwind(struct symbols *s, uint32_t pid, struct abi_ranges *ret,
		 int (*write)(void *ctx, size_t off, const void *bytes, size_t size), void *ctx)
{
	const struct tabling t = { .s = s, .write = write, .ctx = ctx };
	struct process *p = symbols_process(s, pid);
	uint64_t addr;

	if (!p || !symbols_look(s, p))
		return -ESRCH;
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < p->n; i++) {
		const struct mapping *m = &p->v[i];
		struct object *f = m->object;

		if (!f->obj || !obj_addr(f->obj, m->off, &addr) || ret->n == ABI_RANGES || m->end - m->start > UINT32_MAX)
			continue;
		add_tables(t, f);
		ret->v[ret->n++] = (struct abi_range){ m->start, m->start - addr, (uint32_t)(m->end - m->start), f->first,
						       f->npages, f->index };
	}
	for (size_t i = ret->n; i < ABI_RANGES; i++)
		ret->v[i].start = ABI_RANGE_NONE;
	/* Limit repeated requests about code that is in no file. */
	p->in_vain = p->nunwound == p->n ? p->in_vain + 1 : 0;
	p->nunwound = p->n;
	ret->asked = p->in_vain > IN_VAIN;
	return 0;
}

/* --- Python ------------------------------------------------------------------------------------------- */

struct looking_for_python {
	struct symbols *s;
	uint64_t first_ino;
	struct abi_python *ret;
};

/* Does the name look like a Python program or library? */
static bool is_python_file(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strstr(slash ? slash : path, "python") != NULL;
}

/* 1: found. */
static int look_for_python(void *ctx, const struct procs_map *map)
{
	struct looking_for_python *l = ctx;
	struct object *f;
	uint64_t addr;
	int e;

	/* Only the program itself and files with such names are opened. */
	if (l->first_ino && map->ino != l->first_ino && !is_python_file(map->path))
		return 0;
	f = symbols_object(l->s, map);
	if (!l->first_ino)
		l->first_ino = map->ino;
	if (!f->obj || f->no_python || !obj_addr(f->obj, map->off, &addr))
		return 0;
	e = pylayout_find(f->obj, map->start - addr, l->ret);
	f->no_python = e;
	return !e;
}

int walks_python(struct symbols *s, uint32_t pid, struct abi_python *ret)
{
	struct looking_for_python l = { .s = s, .ret = ret };
	int e = procs_maps(pid, look_for_python, &l);

	if (e > 0)
		return 0;
	return e < 0 ? e : -ENOENT;
}
