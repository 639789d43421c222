/*
 * Symbols: the function that contains an address, the address of a name, a file's imports.
 *
 * A stripped program keeps .dynsym, the functions that other files may call.  Some distributions add
 * .gnu_debugdata: an ELF file of its own, compressed with xz, with a .symtab of the functions that .dynsym
 * lacks.  Its addresses are the outer file's.
 *
 * Functions are sorted by address, each with the highest end of itself and all before it: a search walks
 * back from the last start until no earlier function can reach the address.
 */
#include "elf/obj.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/library.h"
#include "elf/priv.h"

enum {
	XZ_MEM_MAX = 128 << 20,		/* bytes that the decoder may use: twice what xz -9 needs */
	XZ_OUT_MAX = 256 << 20,		/* limit of decompressed bytes */
};

struct func {
	uint64_t addr, end;	/* end is exclusive */
	uint64_t reach;		/* the highest end of this one and all before it in the table */
	const char *name;
	uint8_t bind;
	bool sized, ifunc;
};

struct object {
	uint64_t addr, end;		/* @end is @addr where its size is unknown */
	const char *name;
};

struct obj_symtab {
	struct func *funcs;
	size_t nfuncs, funcs_cap;
	bool is_sorted;
	unsigned int nsearched;	/* how often before it is sorted */
	struct object *objects;
	size_t nobjects, objects_cap;
	char *mini;		/* the decompressed .gnu_debugdata */
	Elf *mini_elf;
};

/* The end of section @ndx, which bounds a function without a size. */
static uint64_t section_end(Elf *elf, size_t ndx)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_getscn(elf, ndx);

	if (!scn || !gelf_getshdr(scn, &shdr) || shdr.sh_size > UINT64_MAX - shdr.sh_addr)
		return 0;
	return shdr.sh_addr + shdr.sh_size;
}

static void add_symbol(struct obj *o, struct obj_symtab *t, Elf *elf, const GElf_Sym *sym, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);
	uint64_t end = sym->st_size <= UINT64_MAX - sym->st_value ? sym->st_value + sym->st_size : UINT64_MAX;

	if (type == STT_OBJECT || type == STT_NOTYPE) {
		t->objects = arena_grow(o->arena, t->objects, &t->objects_cap, t->nobjects, sizeof(*t->objects));
		t->objects[t->nobjects++] = (struct object){ sym->st_value, type == STT_OBJECT ? end : sym->st_value, name };
		return;
	}
	if (type != STT_FUNC && type != STT_GNU_IFUNC)
		return;
	t->funcs = arena_grow(o->arena, t->funcs, &t->funcs_cap, t->nfuncs, sizeof(*t->funcs));
	t->funcs[t->nfuncs++] = (struct func){
		.addr = sym->st_value,
		.end = sym->st_size ? end : section_end(elf, sym->st_shndx),
		.name = name,
		.bind = GELF_ST_BIND(sym->st_info),
		.sized = sym->st_size,
		.ifunc = type == STT_GNU_IFUNC,
	};
}

/* The names of a table of symbols. */
struct names {
	const char *text;
	size_t size;
};

static struct names names_of(Elf *elf, size_t section)
{
	Elf_Scn *scn = elf_getscn(elf, section);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

	if (!data || !data->d_buf) {
		obj_memory();
		return (struct names){ 0 };
	}
	return (struct names){ data->d_buf, data->d_size };
}

/* NULL: it is none, or does not end in the section. */
static const char *name_at(const struct names *names, size_t at)
{
	const char *name = at < names->size ? names->text + at : NULL;

	return name && *name && memchr(name, '\0', names->size - at) ? name : NULL;
}

/* Room for as many symbols as a table with @n has of each kind, so that the arena does not get the halves of growing arrays. */
static void make_room(struct obj *o, struct obj_symtab *t, const Elf_Data *data, size_t n)
{
	size_t funcs = 0, objects = 0;
	GElf_Sym sym;

	for (size_t i = 0; i < n && gelf_getsym((Elf_Data *)data, (int)i, &sym); i++) {
		int type = GELF_ST_TYPE(sym.st_info);

		funcs += type == STT_FUNC || type == STT_GNU_IFUNC;
		objects += type == STT_OBJECT || type == STT_NOTYPE;
	}
	if (!t->nfuncs && funcs) {
		t->funcs = arena_alloc(o->arena, funcs * sizeof(*t->funcs));
		t->funcs_cap = funcs;
	}
	if (!t->nobjects && objects) {
		t->objects = arena_alloc(o->arena, objects * sizeof(*t->objects));
		t->objects_cap = objects;
	}
}

/* Add the defined symbols of the tables of type @type.  True: there were functions among them. */
static bool add_table(struct obj *o, struct obj_symtab *t, Elf *elf, GElf_Word type)
{
	size_t before = t->nfuncs, entry = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	Elf_Data *data;
	GElf_Sym sym;

	while (entry && (scn = obj_next_section(elf, scn, type, &shdr, &data))) {
		size_t n = data->d_size / entry < INT32_MAX ? data->d_size / entry : INT32_MAX;
		struct names names = names_of(elf, shdr.sh_link);

		make_room(o, t, data, n);
		for (size_t i = 0; i < n && gelf_getsym(data, (int)i, &sym); i++) {
			const char *name;

			if (sym.st_shndx == SHN_UNDEF || sym.st_shndx == SHN_ABS || sym.st_shndx == SHN_COMMON)
				continue;
			name = name_at(&names, sym.st_name);
			if (name)
				add_symbol(o, t, elf, &sym, name);
		}
	}
	return t->nfuncs > before;
}

#define LZMA(X) X(lzma_stream_decoder, stream_decoder) X(lzma_code, code) X(lzma_end, end)
LIBRARY_DECLARE(lzma, LZMA)
LIBRARY_DEFINE(lzma, LZMA, "liblzma.so.5", "liblzma5")

/* Decompress @in, @len bytes of xz: on the heap, *out_len bytes.  NULL: that failed. */
static char *unxz(const uint8_t *in, size_t len, size_t *out_len)
{
	lzma_stream s = LZMA_STREAM_INIT;
	lzma_ret ret = LZMA_OK;
	char *out = NULL, *bigger;
	size_t cap = 0;

	if (!lzma_is_there() || lzma.stream_decoder(&s, XZ_MEM_MAX, LZMA_CONCATENATED) != LZMA_OK)
		return NULL;
	s.next_in = in;
	s.avail_in = len;
	while (ret == LZMA_OK && cap < XZ_OUT_MAX) {
		size_t done = (size_t)s.total_out;

		cap = cap ? cap * 2 : 64 * 1024;
		bigger = realloc(out, cap);
		if (!bigger)
			break;
		out = bigger;
		s.next_out = (uint8_t *)out + done;
		s.avail_out = cap - done;
		ret = lzma.code(&s, LZMA_FINISH);
	}
	*out_len = (size_t)s.total_out;
	lzma.end(&s);
	if (ret != LZMA_STREAM_END) {
		free(out);
		return NULL;
	}
	return out;
}

static void add_debugdata(struct obj *o, struct obj_symtab *t)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = obj_section(o->elf, ".gnu_debugdata", &shdr);
	Elf_Data *data = scn && shdr.sh_type == SHT_PROGBITS ? elf_rawdata(scn, NULL) : NULL;
	size_t len;

	if (!data)
		obj_memory();
	if (!data || !data->d_buf)
		return;
	t->mini = unxz(data->d_buf, data->d_size, &len);
	if (!t->mini)
		return;
	t->mini_elf = elf_memory(t->mini, len);
	if (t->mini_elf && elf_kind(t->mini_elf) == ELF_K_ELF && gelf_getclass(t->mini_elf) == gelf_getclass(o->elf))
		add_table(o, t, t->mini_elf, SHT_SYMTAB);
}

/*
 * The order at one address: unsized first, then local, then the others, of these first the names with more leading
 * underscores (internal to a library) and the longer ones, so that the walk back meets the best name first.
 */
static int rank(const struct func *f)
{
	return !f->sized ? 0 : f->bind == STB_LOCAL ? 1 : 2;
}

static int name_cmp(const char *a, const char *b)
{
	size_t ua = strspn(a, "_"), ub = strspn(b, "_"), la = strlen(a), lb = strlen(b);

	if (ua != ub)
		return ua > ub ? -1 : 1;
	if (la != lb)
		return la > lb ? -1 : 1;
	return strcmp(b, a);
}

static int func_cmp(const void *x, const void *y)
{
	const struct func *a = x, *b = y;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (rank(a) != rank(b))
		return rank(a) - rank(b);
	return name_cmp(a->name, b->name);
}

static void sort_funcs(struct obj_symtab *t)
{
	uint64_t reach = 0, next = UINT64_MAX;

	if (!t->nfuncs)
		return;
	qsort(t->funcs, t->nfuncs, sizeof(*t->funcs), func_cmp);
	/* A function without a size ends where the next one starts. */
	for (size_t i = t->nfuncs; i-- > 0;) {
		struct func *f = &t->funcs[i];

		if (i + 1 < t->nfuncs && t->funcs[i + 1].addr != f->addr)
			next = t->funcs[i + 1].addr;
		if (!f->sized && f->end > next)
			f->end = next;
	}
	for (size_t i = 0; i < t->nfuncs; i++) {
		if (t->funcs[i].end > reach)
			reach = t->funcs[i].end;
		t->funcs[i].reach = reach;
	}
}

/* In no order. */
static struct obj_symtab *symbols(struct obj *o)
{
	struct obj_symtab *t = o->symtab;

	if (t)
		return t;
	t = o->symtab = arena_new_of(o->arena, struct obj_symtab);
	if (!add_table(o, t, o->elf, SHT_SYMTAB)) {
		add_table(o, t, o->elf, SHT_DYNSYM);
		add_debugdata(o, t);
	}
	return t;
}

static struct obj_symtab *symtab(struct obj *o)
{
	struct obj_symtab *t = symbols(o);

	if (!t->is_sorted)
		sort_funcs(t);
	t->is_sorted = true;
	return t;
}

void obj_symtab_fini(struct obj_symtab *t)
{
	if (!t)
		return;
	elf_end(t->mini_elf);
	free(t->mini);
}

static struct obj_func described(const struct func *f)
{
	return (struct obj_func){ f->name, f->addr, f->end, f->ifunc, f->bind != STB_LOCAL };
}

/* As find_sorted() would find it: the last one in that order that contains @addr. */
static const struct func *find_unsorted(const struct obj_symtab *t, uint64_t addr)
{
	const struct func *best = NULL;
	uint64_t start = 0;

	for (size_t i = 0; i < t->nfuncs; i++)
		if (t->funcs[i].addr <= addr && t->funcs[i].addr > start)
			start = t->funcs[i].addr;
	for (size_t i = 0; i < t->nfuncs; i++) {
		const struct func *f = &t->funcs[i];

		if (f->addr <= addr && addr < f->end && (f->sized || f->addr == start) && (!best || func_cmp(best, f) < 0))
			best = f;
	}
	return best;
}

static const struct func *find_sorted(const struct obj_symtab *t, uint64_t addr)
{
	size_t lo = 0, hi = t->nfuncs;

	while (lo < hi) {	/* find the first function that starts after @addr */
		size_t mid = lo + (hi - lo) / 2;

		if (t->funcs[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo-- > 0 && t->funcs[lo].reach > addr)
		if (t->funcs[lo].end > addr)
			return &t->funcs[lo];
	return NULL;
}

/* Sorting takes as long as some dozen searches without. */
bool obj_func_find(struct obj *o, uint64_t addr, struct obj_func *ret)
{
	enum { UNSORTED = 32 };
	struct obj_symtab *t = symbols(o);
	const struct func *f;

	f = !t->is_sorted && t->nsearched++ < UNSORTED ? find_unsorted(t, addr) : find_sorted(symtab(o), addr);
	if (f)
		*ret = described(f);
	return f;
}

bool obj_data_find(struct obj *o, uint64_t addr, struct obj_func *ret)
{
	const struct obj_symtab *t = symtab(o);

	for (size_t i = 0; i < t->nobjects; i++)
		if (addr >= t->objects[i].addr && addr < t->objects[i].end) {
			*ret = (struct obj_func){ .name = t->objects[i].name, .addr = t->objects[i].addr, .end = t->objects[i].end };
			return true;
		}
	return false;
}

const char *obj_func_at(struct obj *o, uint64_t addr, uint64_t *off)
{
	struct obj_func f;

	if (!obj_func_find(o, addr, &f))
		return NULL;
	if (off)
		*off = addr - f.addr;
	return f.name;
}

bool obj_func(struct obj *o, size_t i, struct obj_func *ret)
{
	const struct obj_symtab *t = symtab(o);

	if (i >= t->nfuncs)
		return false;
	*ret = described(&t->funcs[i]);
	return true;
}

int obj_read(const struct obj *o, uint64_t off, void *buf, size_t n)
{
	ssize_t got = file_pread(o->file->fd, buf, n, off);

	return got < 0 ? (int)got : (size_t)got == n ? 0 : -EIO;
}

/* Record a further address for a name.  False: it differs from the first one. */
static bool same_addr(uint64_t *addr, bool *found, uint64_t next)
{
	if (*found && *addr != next)
		return false;
	*addr = next;
	*found = true;
	return true;
}

static bool is_name(const char *s, const char *name, size_t len)
{
	return *s == *name && !strncmp(s, name, len) && !s[len];
}

bool obj_symbol(struct obj *o, const char *name, size_t len, uint64_t *addr)
{
	const struct obj_symtab *t = symbols(o);
	bool found = false;

	for (size_t i = 0; i < t->nobjects; i++)
		if (is_name(t->objects[i].name, name, len) && !same_addr(addr, &found, t->objects[i].addr))
			return false;
	for (size_t i = 0; i < t->nfuncs; i++)
		if (is_name(t->funcs[i].name, name, len) && !same_addr(addr, &found, t->funcs[i].addr))
			return false;
	return found;
}

/* Does @wanted accept one of the object's dynamic symbols? */
static bool any_dynamic(struct obj *o, bool (*wanted)(const GElf_Sym *, const char *, void *), void *arg)
{
	size_t entry = gelf_fsize(o->elf, ELF_T_SYM, 1, EV_CURRENT);
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	Elf_Data *data;
	GElf_Sym sym;

	while (entry && (scn = obj_next_section(o->elf, scn, SHT_DYNSYM, &shdr, &data))) {
		for (size_t i = 0; i < data->d_size / entry && i < INT32_MAX && gelf_getsym(data, (int)i, &sym); i++) {
			const char *name = elf_strptr(o->elf, shdr.sh_link, sym.st_name);

			if (name && wanted(&sym, name, arg))
				return true;
		}
	}
	return false;
}

struct export_wanted {
	const char *name;
	uint64_t *addr;
};

bool obj_is_export(uint16_t section, uint8_t info)
{
	/* The value of an IFUNC symbol is the address of its resolver, not of the function. */
	return section != SHN_UNDEF && GELF_ST_TYPE(info) != STT_GNU_IFUNC && GELF_ST_BIND(info) != STB_LOCAL;
}

static bool exports(const GElf_Sym *sym, const char *name, void *arg)
{
	const struct export_wanted *w = arg;

	if (!obj_is_export(sym->st_shndx, sym->st_info) || strcmp(name, w->name))
		return false;
	*w->addr = sym->st_value;
	return true;
}

bool obj_exports_searched(struct obj *o, const char *name, uint64_t *addr)
{
	return any_dynamic(o, exports, &(struct export_wanted){ name, addr });
}

static bool imports(const GElf_Sym *sym, const char *name, void *arg)
{
	if (sym->st_shndx != SHN_UNDEF)
		return false;
	for (const char *const *n = arg; *n; n++) {
		if (!strcmp(name, *n))
			return true;
	}
	return false;
}

bool obj_imports(struct obj *o, const char *const *names)
{
	return any_dynamic(o, imports, (void *)names);
}
