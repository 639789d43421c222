/*
 * Exported symbols by their name, as a dynamic loader finds them.
 *
 * .gnu.hash: four words (the number of buckets, the number of the first symbol that is in the table, the number of words of the
 * filter, a shift); a Bloom filter of 64-bit words; for each bucket the number of its first symbol, 0 if it is empty; and for
 * each symbol its hash, with bit 0 set in the last one of a bucket (binutils, bfd/elflink.c; glibc, elf/dl-lookup.c).  Its few
 * words that matter are read one by one: all symbols of a C library with their names are 110 KB.
 *
 * A file without that table, or whose table leads out of the file, is searched symbol by symbol.
 */
#include "elf/obj.h"

#include <endian.h>
#include <string.h>

#include "elf/priv.h"

enum { NAME_MAX_BYTES = 256 };

struct table {
	uint32_t nbuckets, first, nwords, shift;
};

/* A table and its symbols and names, as their sections say. */
struct place {
	const struct obj *o;
	GElf_Shdr hash, syms, names;
};

static bool header_of(const struct obj *o, size_t section, GElf_Shdr *ret)
{
	Elf_Scn *scn = elf_getscn(o->elf, section);

	return scn && gelf_getshdr(scn, ret);
}

static bool find_table(const struct obj *o, struct place *ret)
{
	const char *ident = elf_getident(o->elf, NULL);
	Elf_Scn *scn = NULL;

	if (!ident || ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB || BYTE_ORDER != LITTLE_ENDIAN)
		return false;
	*ret = (struct place){ .o = o };
	while ((scn = elf_nextscn(o->elf, scn)))
		if (gelf_getshdr(scn, &ret->hash) && ret->hash.sh_type == SHT_GNU_HASH)
			return header_of(o, ret->hash.sh_link, &ret->syms) && ret->syms.sh_type == SHT_DYNSYM &&
			       header_of(o, ret->syms.sh_link, &ret->names) && ret->names.sh_type == SHT_STRTAB;
	return false;
}

/* The @n bytes at offset @off of a section. */
static bool read_of(const struct obj *o, const GElf_Shdr *section, uint64_t off, void *buf, size_t n)
{
	return off <= section->sh_size && n <= section->sh_size - off && section->sh_offset <= UINT64_MAX - off &&
	       !obj_read(o, section->sh_offset + off, buf, n);
}

/* 1: symbol @i is called @name, and another file may use it; 0: it is not; -1: it cannot be read. */
static int is_export(const struct place *p, uint64_t i, const char *name, uint64_t *addr)
{
	char other[NAME_MAX_BYTES];
	size_t len = strlen(name) + 1;
	Elf64_Sym sym;

	if (!read_of(p->o, &p->syms, i * sizeof(sym), &sym, sizeof(sym)))
		return -1;
	/* The name at the end of the section may be a shorter one. */
	if (!read_of(p->o, &p->names, sym.st_name, other, len))
		return sym.st_name < p->names.sh_size ? 0 : -1;
	if (memcmp(name, other, len) || !obj_is_export(sym.st_shndx, sym.st_info))
		return 0;
	*addr = sym.st_value;
	return 1;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	for (const unsigned char *s = (const unsigned char *)name; *s; s++)
		h = h * 33 + *s;
	return h;
}

/* 1: found; 0: there is none of that name; -1: the table cannot be used. */
static int look_up(const struct place *p, const char *name, uint64_t *addr)
{
	uint32_t hash = hash_of(name), i, word;
	uint64_t filter, wanted, buckets, words;
	struct table t;
	int is;

	if (!read_of(p->o, &p->hash, 0, &t, sizeof(t)) || !t.nbuckets || !t.nwords)
		return -1;
	buckets = sizeof(t) + 8ull * t.nwords;
	words = buckets + 4ull * t.nbuckets;
	wanted = 1ull << hash % 64 | 1ull << (hash >> t.shift % 32) % 64;
	if (!read_of(p->o, &p->hash, sizeof(t) + 8ull * (hash / 64 % t.nwords), &filter, sizeof(filter)))
		return -1;
	if ((filter & wanted) != wanted)
		return 0;
	if (!read_of(p->o, &p->hash, buckets + 4ull * (hash % t.nbuckets), &i, sizeof(i)) || (i && i < t.first))
		return -1;
	for (; i; i++) {
		if (!read_of(p->o, &p->hash, words + 4ull * (i - t.first), &word, sizeof(word)))
			return -1;
		is = (word | 1) == (hash | 1) ? is_export(p, i, name, addr) : 0;
		if (is)
			return is;
		if (word & 1)
			return 0;
	}
	return 0;
}

bool obj_exports(struct obj *o, const char *name, uint64_t *addr)
{
	struct place p;
	int is = strlen(name) < NAME_MAX_BYTES && find_table(o, &p) ? look_up(&p, name, addr) : -1;

	return is >= 0 ? is : obj_exports_searched(o, name, addr);
}
