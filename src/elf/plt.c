/*
 * The procedure linkage table, through which a program calls the functions of its libraries.
 *
 * Its entries, 16 bytes each, are in the order of the relocations in .rela.plt: those of .plt.sec, or without that
 * section those of .plt after its first.  A function whose address the program also takes has its entry in .plt.got: a
 * jump through a place that a relocation in .rela.dyn fills.  System V ABI, AMD64 supplement: "Procedure Linkage Table".
 */
#include "elf/obj.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/oom.h"
#include "elf/priv.h"

enum { ENTRY = 16, JUMP = 6 };

/* A table of relocations and the symbols that they name. */
struct relocs {
	Elf *elf;
	Elf_Data *data, *sym_data;
	size_t n, nsyms;
	uint32_t strings;		/* section of the symbols' names */
};

static bool open_relocs(struct obj *o, const char *section, struct relocs *r)
{
	size_t entry = gelf_fsize(o->elf, ELF_T_RELA, 1, EV_CURRENT), sym_size = gelf_fsize(o->elf, ELF_T_SYM, 1, EV_CURRENT);
	GElf_Shdr rel, syms;
	Elf_Scn *scn = obj_section(o->elf, section, &rel), *sym_scn;

	if (!scn || rel.sh_type != SHT_RELA || !entry || !sym_size)
		return false;
	sym_scn = elf_getscn(o->elf, rel.sh_link);
	r->elf = o->elf;
	r->data = elf_getdata(scn, NULL);
	r->sym_data = sym_scn ? elf_getdata(sym_scn, NULL) : NULL;
	if (!r->data || !r->sym_data || !gelf_getshdr(sym_scn, &syms)) {
		obj_memory();
		return false;
	}
	r->strings = syms.sh_link;
	r->n = r->data->d_size / entry < INT32_MAX ? r->data->d_size / entry : INT32_MAX;
	r->nsyms = r->sym_data->d_size / sym_size;
	return true;
}

/* Relocation @i, if its type is @type. */
static bool reloc_at(const struct relocs *r, size_t i, uint32_t type, GElf_Rela *rela)
{
	return gelf_getrela(r->data, (int)i, rela) && GELF_R_TYPE(rela->r_info) == type;
}

/* The name of the symbol in relocation @i, whose type is @type, and the place that it fills; NULL: none. */
static const char *reloc_name(const struct relocs *r, size_t i, uint32_t type, uint64_t *place)
{
	const char *name;
	GElf_Rela rela;
	GElf_Sym sym;

	if (!reloc_at(r, i, type, &rela) ||
	    GELF_R_SYM(rela.r_info) >= r->nsyms || !gelf_getsym(r->sym_data, (int)GELF_R_SYM(rela.r_info), &sym))
		return NULL;
	*place = rela.r_offset;
	name = elf_strptr(r->elf, r->strings, sym.st_name);
	return name && *name ? name : NULL;
}

static void each_in_order(struct obj *o, void (*fn)(void *ctx, const char *name, uint64_t addr), void *ctx)
{
	struct relocs r;
	GElf_Shdr plt;
	uint64_t first;

	if (obj_section(o->elf, ".plt.sec", &plt))
		first = plt.sh_addr;
	else if (obj_section(o->elf, ".plt", &plt))
		first = plt.sh_addr + ENTRY;
	else
		return;
	if (!open_relocs(o, ".rela.plt", &r))
		return;
	for (size_t i = 0; i < r.n; i++) {
		uint64_t addr = first + i * ENTRY, place;
		const char *name = reloc_name(&r, i, R_X86_64_JUMP_SLOT, &place);

		if (name && addr >= plt.sh_addr && addr + ENTRY <= plt.sh_addr + plt.sh_size)
			fn(ctx, name, addr);
	}
}

void obj_each_got(struct obj *o, void (*fn)(void *ctx, const char *name, uint64_t addr), void *ctx)
{
	struct relocs r;

	if (o->info.machine != EM_X86_64 || !open_relocs(o, ".rela.dyn", &r))
		return;
	for (size_t i = 0; i < r.n; i++) {
		uint64_t place;
		const char *name = reloc_name(&r, i, R_X86_64_GLOB_DAT, &place);

		if (name)
			fn(ctx, name, place);
	}
}

/* The bytes of the entry at @p, of which @n are left: jmp *off(%rip), maybe after endbr64.  *off: from the entry's start. */
static size_t entry_of(const unsigned char *p, size_t n, int64_t *off)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = n >= ENTRY && !memcmp(p, endbr64, sizeof(endbr64)) ? sizeof(endbr64) : 0;
	int32_t rel;

	if (n < at + JUMP || p[at] != 0xff || p[at + 1] != 0x25)
		return 0;
	memcpy(&rel, p + at + 2, sizeof(rel));
	*off = (int64_t)(at + JUMP) + rel;
	return at ? ENTRY : ENTRY / 2;
}

/* An entry of .plt.got, and the place that it jumps through. */
struct jump {
	uint64_t addr, place;
};

struct jumps {
	struct jump *v;
	size_t n, cap;
};

static int by_place(const void *x, const void *y)
{
	const struct jump *a = x, *b = y;

	return a->place != b->place ? (a->place > b->place ? 1 : -1) : (a->addr > b->addr) - (a->addr < b->addr);
}

/* Sorted by the place. */
static void read_jumps(const Elf_Data *code, uint64_t start, struct jumps *ret)
{
	int64_t off;
	size_t len;

	for (size_t at = 0; at < code->d_size && (len = entry_of((unsigned char *)code->d_buf + at, code->d_size - at, &off)); at += len) {
		if (!grow_array(&ret->v, &ret->cap, ret->n, sizeof(*ret->v)))
			oom();
		ret->v[ret->n++] = (struct jump){ .addr = start + at, .place = start + at + (uint64_t)off };
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_place);
}

/* The first of those that jump through @place, or the one that would follow it. */
static size_t first_through(const struct jumps *jumps, uint64_t place)
{
	size_t low = 0, high = jumps->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (jumps->v[mid].place < place)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The relocations are many more than the entries, of which there are some ten. */
static void each_jump(struct obj *o, void (*fn)(void *ctx, const char *name, uint64_t addr), void *ctx)
{
	struct jumps jumps = { 0 };
	struct relocs r;
	GElf_Shdr plt;
	Elf_Scn *scn = obj_section(o->elf, ".plt.got", &plt);
	Elf_Data *code = scn ? elf_getdata(scn, NULL) : NULL;

	if (!code)
		obj_memory();
	if (!code || !code->d_buf || !open_relocs(o, ".rela.dyn", &r))
		return;
	read_jumps(code, plt.sh_addr, &jumps);
	for (size_t i = 0; i < r.n && jumps.n; i++) {
		const char *name;
		GElf_Rela rela;
		uint64_t place;

		if (!reloc_at(&r, i, R_X86_64_GLOB_DAT, &rela))
			continue;
		for (size_t k = first_through(&jumps, rela.r_offset); k < jumps.n && jumps.v[k].place == rela.r_offset; k++) {
			name = reloc_name(&r, i, R_X86_64_GLOB_DAT, &place);
			if (name)
				fn(ctx, name, jumps.v[k].addr);
		}
	}
	free(jumps.v);
}

/*
 * Of aarch64: a head of 32 bytes, then entries in the order of the relocations, each of 16 bytes, or of 24 where calls and
 * returns are protected (ELF for the Arm 64-bit Architecture, "Procedure Linkage Table").
 */
static void each_of_words(struct obj *o, void (*fn)(void *ctx, const char *name, uint64_t addr), void *ctx)
{
	enum { HEAD = 32 };
	struct relocs r;
	GElf_Shdr plt;
	uint64_t entry;

	if (!obj_section(o->elf, ".plt", &plt) || !open_relocs(o, ".rela.plt", &r) || !r.n || plt.sh_size < HEAD)
		return;
	entry = (plt.sh_size - HEAD) / r.n;
	if (entry != 16 && entry != 24)
		return;
	for (size_t i = 0; i < r.n; i++) {
		uint64_t place;
		const char *name = reloc_name(&r, i, R_AARCH64_JUMP_SLOT, &place);

		if (name)
			fn(ctx, name, plt.sh_addr + HEAD + i * entry);
	}
}

void obj_each_plt(struct obj *o, void (*fn)(void *ctx, const char *name, uint64_t addr), void *ctx)
{
	if (o->info.machine == EM_AARCH64)
		each_of_words(o, fn, ctx);
	if (o->info.machine != EM_X86_64)
		return;
	each_in_order(o, fn, ctx);
	each_jump(o, fn, ctx);
}
