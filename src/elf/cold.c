/*
 * The function to which code without a symbol belongs.
 *
 * GCC and clang put seldom executed code, and so most markers, into a separate part far from the function.  In a
 * stripped file this part has no symbol; in others one that ends with ".cold".  Each part has its own call frame
 * information (FDE), which contains its start and end.  The code of such a part jumps back into the middle of its
 * function, and no other function's code does so: this identifies the function.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "elf/obj.h"
#include "elf/priv.h"

enum { CODE_MAX = 1 << 18 };	/* bytes of a part that are searched for jumps */

/* The start of each part, by address. */
struct parts {
	uint64_t base;		/* the entries, pairs of a start and its FDE's address, are relative to this */
	int32_t *v;
	uint32_t n;
};

static uint64_t start_of(const struct parts *p, uint32_t i)
{
	return p->base + (uint64_t)(int64_t)p->v[2 * i];
}

/* The index of the part that contains @addr; false: @addr is before the first. */
static bool find_part(const struct parts *p, uint64_t addr, uint32_t *ret)
{
	uint32_t lo = 0, hi = p->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (start_of(p, mid) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret = lo - 1;
	return lo;
}

/*
 * The end of part @i: from its FDE, with the 4-byte fields that all compilers write (Linux Standard Base Core,
 * 10.6.1.2); else the start of the next part.
 */
static uint64_t end_of(const struct obj *o, const struct parts *p, uint32_t i)
{
	uint64_t fde = p->base + (uint64_t)(int64_t)p->v[2 * i + 1], off, end = i + 1 < p->n ? start_of(p, i + 1) : UINT64_MAX;
	struct { uint32_t length, cie; int32_t begin; uint32_t size; } head;

	if (obj_offset(o, fde, false, &off) && !obj_read(o, off, &head, sizeof(head)) && head.length < UINT32_MAX &&
	    fde + 8 + (uint64_t)(int64_t)head.begin == start_of(p, i) && start_of(p, i) + head.size < end)
		end = start_of(p, i) + head.size;
	return end;
}

/* The only function into whose middle the code of part @i jumps; false: there is none, or several. */
static bool find_target(struct obj *o, const struct arch *arch, const struct parts *p, uint32_t i, const uint8_t *code, size_t n,
			struct obj_func *ret)
{
	uint64_t start = start_of(p, i), to;
	bool found = false;
	unsigned int len;
	struct obj_func f;
	uint32_t other, known = UINT32_MAX;
	uint64_t known_end = 0;

	for (size_t at = 0; at < n; at += len) {
		len = arch->insn_len(code + at, n - at);
		if (!len)
			return false;	/* the start of the next instruction is not known */
		if (!arch->jump(code + at, len, start + at, &to) || (to >= start && to - start < n) ||
		    !find_part(p, to, &other) || to == start_of(p, other))
			continue;
		if (other != known)	/* most jumps lead to the same part */
			known_end = end_of(o, p, other);
		known = other;
		if (to >= known_end)
			continue;
		if (!obj_func_find(o, to, &f) || f.addr != start_of(p, other) || (found && f.addr != ret->addr))
			return false;
		*ret = f;
		found = true;
	}
	return found;
}

static const char *owner(struct obj *o, uint64_t addr)
{
	const struct arch *arch = arch_find(o->info.machine);
	struct parts p = { 0 };
	const char *name = NULL;
	struct obj_func f = { 0 };
	uint64_t off, end;
	uint8_t *code;
	uint32_t i;

	if (!arch || obj_frames(o, &p.base, &p.v, &p.n) || !find_part(&p, addr, &i))
		goto out;
	end = end_of(o, &p, i);
	if (addr >= end || end - start_of(&p, i) > CODE_MAX || !obj_offset(o, start_of(&p, i), true, &off))
		goto out;
	code = malloc(end - start_of(&p, i));
	if (code && !obj_read(o, off, code, end - start_of(&p, i)) &&
	    find_target(o, arch, &p, i, code, end - start_of(&p, i), &f))
		name = f.name;
	o->cold_start = start_of(&p, i);
	o->cold_end = end;
	o->cold_name = name;
	free(code);
out:
	free(p.v);
	return name;
}

const char *obj_func_of(struct obj *o, uint64_t addr)
{
	const char *name = obj_func_at(o, addr, NULL), *cold;

	if (!name && addr >= o->cold_start && addr < o->cold_end)
		return o->cold_name;
	if (!name)
		return owner(o, addr);
	cold = strstr(name, ".cold");
	return cold && (!cold[5] || cold[5] == '.') ? arena_strndup(o->arena, name, (size_t)(cold - name)) : name;
}
