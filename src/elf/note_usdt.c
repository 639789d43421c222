/*
 * Marker notes of "dtrace -G" of DTrace for Linux (2.0.3 and later): from the section .note.usdt to marker sites with
 * types.
 *
 * Three kinds of notes, by owner; integers in the file's byte order, strings end with a NUL, "align" is to 4 bytes from
 * the descriptor's start:
 *
 *	usdt	a site:
 *		| u64 address | u64 address of the function's name | provider | name | u8 n | n operands, as SDT's |
 *		type 1 is a probe, type 2 asks whether the probe is enabled
 *	prov	a provider: | name, align | 5 u32 of attributes | u32 n | n probes, each
 *		| name | u8 n | n native types | u8 m | m times: script's type, u8 number of its native type | align |
 *	dver	the program that made the notes
 *
 * dtap's own "dtrace -G" writes notes of owner dtap in the section .note.dtap, with the contents of prov's, for the
 * markers of <sys/sdt.h> of that file.
 *
 * An is-enabled check (type 2) needs a tracer that writes to the program's memory, which dtap does not do: a probe with
 * such a check does not fire.  Only 64-bit little-endian files are read.  Source: readelf -n of such programs.
 */
#include "elf/obj.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "elf/priv.h"

static const char OWN[] = "dtap";

enum { NOTE_PROBE = 1, NOTE_ALIGN = 4, PROV_ATTRS = 5, FUNC_NAME_MAX = 512 };

/* A descriptor that is being read; @p becomes NULL when a field exceeds the descriptor. */
struct desc {
	const char *start, *p, *end;
};

static void take(struct desc *d, void *to, size_t n)
{
	if (!d->p || (size_t)(d->end - d->p) < n) {
		d->p = NULL;
		memset(to, 0, n);
		return;
	}
	memcpy(to, d->p, n);
	d->p += n;
}

static unsigned int take_byte(struct desc *d)
{
	uint8_t byte;

	take(d, &byte, sizeof(byte));
	return byte;
}

/* Never NULL. */
static const char *take_string(struct desc *d)
{
	const char *s = d->p, *nul = s ? memchr(s, '\0', (size_t)(d->end - s)) : NULL;

	d->p = nul ? nul + 1 : NULL;
	return nul ? s : "";
}

static void align(struct desc *d)
{
	size_t at = d->p ? (size_t)(d->p - d->start) : 0, up = (at + NOTE_ALIGN - 1) & ~(size_t)(NOTE_ALIGN - 1);

	if (d->p)
		d->p = (size_t)(d->end - d->start) < up ? d->end : d->start + up;
}

/* The function's name in the program's read-only data, or NULL. */
static const char *function_at(struct obj *o, uint64_t addr)
{
	char name[FUNC_NAME_MAX];
	uint64_t off;
	size_t n;

	if (!obj_offset(o, addr, false, &off) || off >= o->info.size)
		return NULL;
	n = o->info.size - off < sizeof(name) ? (size_t)(o->info.size - off) : sizeof(name);
	if (obj_read(o, off, name, n) || !memchr(name, '\0', n) || !*name)
		return NULL;
	return arena_strdup(o->arena, name);
}

static int add_site(struct obj *o, struct desc d, const char *sec, struct strbuf *why)
{
	struct obj_marker m = { 0 };
	uint64_t addr, func;

	take(&d, &addr, sizeof(addr));
	take(&d, &func, sizeof(func));
	m.prov = take_string(&d);
	m.name = take_string(&d);
	take_byte(&d);
	m.args = take_string(&d);
	if (!d.p || !*m.prov || !*m.name)
		return obj_fail(o, why, -ENOEXEC, "notes: a damaged note of owner usdt in %s", sec);
	m.addr = addr;
	if (!obj_offset(o, m.addr, true, &m.off) || m.off >= o->info.size)
		return obj_fail(o, why, -ENOEXEC, "notes: location 0x%" PRIx64 " of marker %s:%s is in no executable part of "
				"the file", m.addr, m.prov, m.name);
	m.func = function_at(o, func);
	o->markers = arena_grow(o->arena, o->markers, &o->markers_cap, o->nmarkers, sizeof(m));
	o->markers[o->nmarkers++] = m;
	return 0;
}

/*
 * Does a definition with @n arguments describe site @m?  Not if the site has another number of arguments: a program can use
 * <sys/sdt.h> directly, without the header made from the definition.  The arguments of such a site stay those of its note.
 */
static bool takes_types(struct obj *o, const struct obj_marker *m, unsigned int n)
{
	struct arch_operand first;

	return !m->typed && obj_operands(o, m, &first, 1) == n;
}

/* Read the types of one probe of provider @prov and set them for its sites: for all, or with @check for those that fit. */
static bool add_types(struct obj *o, struct desc *d, const char *prov, bool check)
{
	const char *name = take_string(d), *natives[UINT8_MAX + 1];
	unsigned int n = take_byte(d), nargs;
	struct obj_marker_arg *args;

	for (unsigned int i = 0; i < n; i++)
		natives[i] = take_string(d);
	nargs = take_byte(d);
	args = arena_alloc(o->arena, (nargs + 1) * sizeof(*args));
	for (unsigned int i = 0; i < nargs; i++) {
		args[i].type = take_string(d);
		args[i].operand = take_byte(d);
		if (args[i].operand >= n)
			return false;
		args[i].native = natives[args[i].operand];
	}
	align(d);
	for (size_t i = 0; d->p && i < o->nmarkers; i++) {
		struct obj_marker *m = &o->markers[i];

		if (strcmp(m->prov, prov) || strcmp(m->name, name) || (check && !takes_types(o, m, n)))
			continue;
		m->typed = args;
		m->ntyped = nargs;
	}
	return d->p;
}

static int add_provider(struct obj *o, struct desc d, const char *sec, bool check, struct strbuf *why)
{
	uint32_t attrs[PROV_ATTRS], n;
	const char *prov = take_string(&d);

	align(&d);
	take(&d, attrs, sizeof(attrs));
	take(&d, &n, sizeof(n));
	while (d.p && n--)
		if (!add_types(o, &d, prov, check))
			return obj_fail(o, why, -ENOEXEC, "notes: a damaged note of owner prov in %s", sec);
	return d.p ? 0 : obj_fail(o, why, -ENOEXEC, "notes: a damaged note of owner prov in %s", sec);
}

static bool is_of(const GElf_Nhdr *nhdr, const char *name, const char *owner)
{
	return nhdr->n_namesz == strlen(owner) + 1 && !memcmp(name, owner, nhdr->n_namesz);
}

/* Read the providers of owner @prov, or, without one, the sites: types can be set only for sites that are known. */
static int read_notes(struct obj *o, Elf_Data *data, const char *sec, const char *prov, struct strbuf *why)
{
	size_t at, next, name, off;
	GElf_Nhdr nhdr;

	for (at = 0; (next = gelf_getnote(data, at, &nhdr, &name, &off)) > at; at = next) {
		const char *owner = (const char *)data->d_buf + name, *start = (const char *)data->d_buf + off;
		struct desc d = { start, start, start + nhdr.n_descsz };
		int err = 0;

		if (!prov && nhdr.n_type == NOTE_PROBE && is_of(&nhdr, owner, "usdt"))
			err = add_site(o, d, sec, why);
		else if (prov && is_of(&nhdr, owner, prov))
			err = add_provider(o, d, sec, !strcmp(prov, OWN), why);
		if (err)
			return err;
	}
	if (at < data->d_size)
		return obj_fail(o, why, -ENOEXEC, "notes: truncated note at offset 0x%zx of %s", at, sec);
	return 0;
}

static bool is_readable(struct obj *o)
{
	const char *ident = elf_getident(o->elf, NULL);

	return o->info.elf_class == ELFCLASS64 && ident && ident[EI_DATA] == ELFDATA2LSB;
}

int notes_usdt(struct obj *o, Elf_Data *data, const char *sec, struct strbuf *why)
{
	int err = is_readable(o) ? read_notes(o, data, sec, NULL, why) : 0;

	return err || !is_readable(o) ? err : read_notes(o, data, sec, "prov", why);
}

int notes_types(struct obj *o, Elf_Data *data, const char *sec, struct strbuf *why)
{
	return is_readable(o) ? read_notes(o, data, sec, OWN, why) : 0;
}
