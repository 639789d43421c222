#include "probe/natives.h"

#include <stdlib.h>
#include <string.h>

#include "abi/unwind.h"
#include "arch/arch.h"
#include "elf/obj.h"
#include "elf/unwind.h"
#include "probe/symbols_priv.h"

/* The rows of a file: its pages by number, of each the rows in the order of their addresses. */
struct table {
	const struct object *object;
	struct { uint32_t number, first, n; } *pages;
	struct abi_unwind_row *rows;
	size_t npages, pages_cap, nrows, rows_cap;
	bool failed;
};

struct natives {
	struct symbols *symbols;
	struct process *process;
	struct table *tables;
	size_t ntables, cap;
};

struct natives *natives_new(struct symbols *s, uint32_t pid)
{
	struct natives *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->symbols = s;
	n->process = symbols_process(s, pid);
	if (!n->process) {
		free(n);
		return NULL;
	}
	symbols_look(s, n->process);
	return n;
}

void natives_free(struct natives *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->ntables; i++) {
		free(n->tables[i].pages);
		free(n->tables[i].rows);
	}
	free(n->tables);
	free(n);
}

static bool grow(void **v, size_t *cap, size_t need, size_t size)
{
	size_t more = *cap ? *cap : 256;
	void *p;

	while (more < need)
		more *= 2;
	p = more > *cap ? realloc(*v, more * size) : *v;
	if (!p)
		return false;
	*v = p;
	*cap = more;
	return true;
}

static int add_page(void *ctx, uint32_t number, const struct abi_unwind_row *rows, uint32_t n)
{
	struct table *t = ctx;

	if (!grow((void **)&t->pages, &t->pages_cap, t->npages + 1, sizeof(*t->pages)) ||
	    !grow((void **)&t->rows, &t->rows_cap, t->nrows + n, sizeof(*t->rows)))
		return -1;
	t->pages[t->npages].number = number;
	t->pages[t->npages].first = (uint32_t)t->nrows;
	t->pages[t->npages++].n = n;
	memcpy(&t->rows[t->nrows], rows, n * sizeof(*rows));
	t->nrows += n;
	return 0;
}

static const struct table *table_of(struct natives *n, const struct object *o)
{
	struct table *t;

	for (size_t i = 0; i < n->ntables; i++)
		if (n->tables[i].object == o)
			return &n->tables[i];
	if (!grow((void **)&n->tables, &n->cap, n->ntables + 1, sizeof(*n->tables)))
		return NULL;
	t = &n->tables[n->ntables++];
	memset(t, 0, sizeof(*t));
	t->object = o;
	obj_unwind(o->obj, add_page, t);	/* use what was read so far */
	return t;
}

/* The row for the code at @ip; false: there is none. */
static bool find_row(struct natives *n, uint64_t ip, struct abi_unwind_row *ret)
{
	const struct process *p = n->process;
	const struct table *t;
	uint64_t addr;
	size_t lo, hi;

	for (size_t i = 0; i < p->n; i++) {
		const struct mapping *m = &p->v[i];

		if (ip < m->start || ip >= m->end)
			continue;
		if (!m->object->obj || !obj_addr(m->object->obj, ip - m->start + m->off, &addr))
			return false;
		t = table_of(n, m->object);
		if (!t)
			return false;
		for (lo = 0, hi = t->npages; lo < hi;) {
			size_t mid = lo + (hi - lo) / 2;

			if (t->pages[mid].number <= addr >> ABI_UNWIND_SHIFT)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (!lo || t->pages[lo - 1].number != addr >> ABI_UNWIND_SHIFT)
			return false;
		for (uint32_t k = t->pages[lo - 1].n; k--;) {
			const struct abi_unwind_row *row = &t->rows[t->pages[lo - 1].first + k];

			if (row->at > (addr & ((1 << ABI_UNWIND_SHIFT) - 1)))
				continue;
			*ret = *row;
			return true;
		}
	}
	return false;
}

/* Where the caller's return address is by @row, and the CFA.  0: it is in the link register. */
static uint64_t return_at(const struct natives_regs *r, struct abi_unwind_row row, bool links, uint64_t *cfa)
{
	uint64_t from = ABI_UNWIND_BASE(row.base) == ABI_UNWIND_SP ? r->sp : r->bp, at;

	if (!links) {
		*cfa = from + (uint64_t)(int64_t)row.cfa;
		return *cfa - 8;
	}
	*cfa = from + (uint64_t)(int64_t)ABI_UNWIND_LINK_CFA(row.cfa);
	at = ABI_UNWIND_LINK_AT(row.cfa);
	if (at == ABI_UNWIND_BEHIND)
		return *cfa + (uint64_t)(int64_t)ABI_UNWIND_RBP(row.base) + 8;
	return at ? *cfa - 8 * at : 0;
}

size_t natives_walk(struct natives *n, const struct natives_regs *regs,
		    bool (*read)(void *ctx, uint64_t addr, void *buf, size_t size), void *ctx, struct symbol *v,
		    uint64_t *ends, size_t max, bool *whole)
{
	struct natives_regs r = *regs;
	struct abi_unwind_row row;
	bool links = arch_host() && arch_host()->kept.links;
	size_t count = 0;
	uint64_t cfa, at;

	*whole = false;
	while (count < max && r.ip) {
		v[count] = (struct symbol){ .addr = r.ip };
		ends[count] = 0;
		symbols_user(n->symbols, n->process->pid, 0, &v[count]);
		/* The address after a call may be in the next function. */
		if (!find_row(n, r.ip - (count > 0), &row))
			return count + 1;
		count++;
		if (ABI_UNWIND_BASE(row.base) == ABI_UNWIND_END)
			break;
		if (ABI_UNWIND_BASE(row.base) == ABI_UNWIND_UNKNOWN || (ABI_UNWIND_BASE(row.base) == ABI_UNWIND_BP && !r.has_bp))
			return count;
		at = return_at(&r, row, links, &cfa);
		ends[count - 1] = cfa;
		if (!at && (count > 1 || !r.link))
			return count;
		if (at ? cfa <= r.sp || !read(ctx, at, &r.ip, 8) : cfa < r.sp)
			return count;
		if (!at)
			r.ip = r.link;
		if (links)
			r.ip &= ABI_UNWIND_LINK_ADDR;
		if (ABI_UNWIND_RBP(row.base)) {
			if (!read(ctx, cfa + (uint64_t)(int64_t)ABI_UNWIND_RBP(row.base), &r.bp, 8))
				return count;
			r.has_bp = true;
		}
		r.sp = cfa;
	}
	*whole = count < max;
	return count;
}
