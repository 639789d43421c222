/*
 * Marker notes: from an ELF file to the marker sites in it.
 *
 * A marker is a nop in the text and a note that says where the nop is, where its semaphore is, and where
 * each argument is stored at that point.  Inlining gives one marker many sites, each with its own operands.
 * The note is not part of any segment and can only be found by section.  Its descriptor, in the file's byte
 * order and address size:
 *
 *	| location | base | semaphore | provider NUL | name NUL | arguments NUL |
 *
 * prelink moves a library without changing the notes, but moves the section .stapsdt.base with the text: its
 * address minus `base` must be added to location and semaphore.
 *
 * Format: SystemTap note version 3; the notes of "dtrace -G" are read by note_usdt.c.
 */
#include "elf/obj.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "elf/priv.h"

static const char owner[] = "stapsdt";
enum { NOTE_TYPE = 3, NADDRS = 3 };

/* The position of a note, offset @at of section @sec, for messages. */
struct note_at {
	const char *sec;
	size_t at;
};

/* Read the three addresses at the start of the descriptor.  Returns their size in the file; 0: it is too short. */
static size_t read_addrs(struct obj *o, const char *desc, size_t len, uint64_t addrs[NADDRS])
{
	size_t size = gelf_fsize(o->elf, ELF_T_ADDR, NADDRS, EV_CURRENT);
	union {
		Elf64_Addr a64[NADDRS];
		Elf32_Addr a32[NADDRS];
	} buf;
	Elf_Data dst = { .d_type = ELF_T_ADDR, .d_version = EV_CURRENT, .d_buf = &buf, .d_size = sizeof(buf) };
	Elf_Data src = { .d_type = ELF_T_ADDR, .d_version = EV_CURRENT, .d_buf = (void *)desc, .d_size = size };
	const char *ident = elf_getident(o->elf, NULL);

	if (!ident || size > len || !gelf_xlatetom(o->elf, &dst, &src, (unsigned char)ident[EI_DATA]))
		return 0;
	for (int i = 0; i < NADDRS; i++)
		addrs[i] = o->info.elf_class == ELFCLASS32 ? buf.a32[i] : buf.a64[i];
	return size;
}

/* The string at *@p, which must end before @end; advances *@p past it. */
static const char *read_string(const char **p, const char *end)
{
	const char *s = *p, *nul = memchr(s, '\0', (size_t)(end - s));

	if (!nul)
		return NULL;
	*p = nul + 1;
	return s;
}

static int add_marker(struct obj *o, struct note_at at, const char *desc, size_t len, uint64_t base_addr,
		      bool has_base, struct strbuf *why)
{
	const char *p = desc, *end = desc + len;
	uint64_t addrs[NADDRS], shift = 0;
	struct obj_marker m = { 0 };
	size_t size;

	size = read_addrs(o, desc, len, addrs);
	if (!size)
		return obj_fail(o, why, -ENOEXEC, "notes: descriptor too short for its addresses at offset 0x%zx of %s",
				at.at, at.sec);
	p += size;
	m.prov = read_string(&p, end);
	m.name = m.prov ? read_string(&p, end) : NULL;
	m.args = m.name ? read_string(&p, end) : NULL;
	if (!m.args)
		return obj_fail(o, why, -ENOEXEC, "notes: a string without an end at offset 0x%zx of %s", at.at, at.sec);
	if (!*m.prov || !*m.name)
		return obj_fail(o, why, -ENOEXEC, "notes: a marker without a name at offset 0x%zx of %s", at.at, at.sec);
	if (has_base && addrs[1])
		shift = base_addr - addrs[1];
	m.addr = addrs[0] + shift;
	if (o->info.elf_class == ELFCLASS32)
		m.addr = (uint32_t)m.addr;
	if (!obj_offset(o, m.addr, true, &m.off) || m.off >= o->info.size)
		return obj_fail(o, why, -ENOEXEC,
				"notes: location 0x%" PRIx64 " of marker %s:%s is in no executable part of the file",
				m.addr, m.prov, m.name);
	if (addrs[2]) {
		m.sem_addr = addrs[2] + shift;
		if (o->info.elf_class == ELFCLASS32)
			m.sem_addr = (uint32_t)m.sem_addr;
		if (!obj_mapped_offset(o, m.sem_addr, &m.sem_off))
			return obj_fail(o, why, -ENOEXEC,
					"notes: semaphore 0x%" PRIx64 " of marker %s:%s is in no page of the file",
					m.sem_addr, m.prov, m.name);
	}
	o->markers = arena_grow(o->arena, o->markers, &o->markers_cap, o->nmarkers, sizeof(m));
	o->markers[o->nmarkers++] = m;
	return 0;
}

static int read_section(struct obj *o, const char *sec, Elf_Data *data, uint64_t base_addr, bool has_base,
			struct strbuf *why)
{
	size_t at, next, name, desc;
	GElf_Nhdr nhdr;
	int err;

	for (at = 0; (next = gelf_getnote(data, at, &nhdr, &name, &desc)) > at; at = next) {
		if (nhdr.n_type != NOTE_TYPE || nhdr.n_namesz != sizeof(owner) ||
		    memcmp((char *)data->d_buf + name, owner, sizeof(owner)))
			continue;
		err = add_marker(o, (struct note_at){ sec, at }, (char *)data->d_buf + desc, nhdr.n_descsz, base_addr,
				 has_base, why);
		if (err)
			return err;
	}
	/* Damage in other sections does not matter. */
	if (at < data->d_size && !strcmp(sec, ".note.stapsdt"))
		return obj_fail(o, why, -ENOEXEC, "notes: truncated note at offset 0x%zx of %s", at, sec);
	return 0;
}

static const char types_section[] = ".note.dtap";

static int read_markers(struct obj *o, struct strbuf *why)
{
	Elf_Data *data, *types = NULL;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr, base;
	bool has_base;
	int err;

	/* An object file's notes are not relocated yet, and it has no segments. */
	if (o->info.type != ET_EXEC && o->info.type != ET_DYN)
		return 0;
	has_base = obj_section(o->elf, ".stapsdt.base", &base);
	while ((scn = elf_nextscn(o->elf, scn))) {
		const char *sec;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_NOTE || !shdr.sh_size)
			continue;
		sec = obj_section_name(o->elf, &shdr);
		data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf) {
			if (!strcmp(sec, ".note.stapsdt"))
				return obj_fail(o, why, -ENOEXEC, "notes: section %s is outside of the file", sec);
			continue;
		}
		if (!strcmp(sec, types_section)) {
			types = data;
			continue;
		}
		err = strcmp(sec, ".note.usdt") ? read_section(o, sec, data, has_base ? base.sh_addr : 0, has_base, why)
						: notes_usdt(o, data, sec, why);
		if (err)
			return err;
	}
	obj_memory();
	return types ? notes_types(o, types, types_section, why) : 0;
}

int obj_marker_names(struct obj *o, obj_name_fn *each, void *ctx)
{
	size_t addrs = gelf_fsize(o->elf, ELF_T_ADDR, NADDRS, EV_CURRENT), at, next, name, desc;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Nhdr nhdr;
	int e;

	while ((scn = elf_nextscn(o->elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_NOTE)
			continue;
		data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		for (at = 0; (next = gelf_getnote(data, at, &nhdr, &name, &desc)) > at; at = next) {
			const char *p = (char *)data->d_buf + desc, *end = p + nhdr.n_descsz, *prov, *marker;

			if (nhdr.n_type != NOTE_TYPE || nhdr.n_namesz != sizeof(owner) || nhdr.n_descsz <= addrs ||
			    memcmp((char *)data->d_buf + name, owner, sizeof(owner)) != 0)
				continue;
			p += addrs;
			prov = read_string(&p, end);
			marker = prov ? read_string(&p, end) : NULL;
			e = marker ? each(ctx, prov, marker) : 0;
			if (e)
				return e;
		}
	}
	obj_memory();
	return 0;
}

int obj_markers(struct obj *o, const struct obj_marker **ret, size_t *n, struct strbuf *why)
{
	int err;

	if (!o->markers_read) {
		err = read_markers(o, why);
		if (err) {
			o->nmarkers = 0;
			return err;
		}
		o->markers_read = true;
	}
	*ret = o->markers;
	*n = o->nmarkers;
	return 0;
}
