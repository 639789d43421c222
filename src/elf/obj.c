/*
 * Opening an ELF file: headers, segments, the dynamic section, the build id.
 *
 * Only headers and the dynamic section are read here; notes and symbols are read when asked for, because
 * most files that a process maps have no markers.
 */
#include "elf/obj.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/oom.h"
#include "base/strbuf.h"
#include "elf/debug.h"
#include "elf/priv.h"

/* The largest values that are accepted; real ones are far smaller. */
enum {
	SEGMENTS_MAX = 1 << 16,
	STRINGS_MAX = 128 << 20,	/* bytes of a dynamic section's names */
	DYNAMIC_MAX = 1 << 20,		/* bytes of a dynamic section */
};

void obj_memory(void)
{
	enum { NO_MEMORY = 8 };		/* ELF_E_NOMEM, in each version; libelf.h has no names for errors */

	if (elf_errno() == NO_MEMORY)
		oom();
}

int obj_fail(const struct obj *o, struct strbuf *why, int err, const char *fmt, ...)
{
	va_list ap;

	obj_memory();
	if (!why)
		return err;
	va_start(ap, fmt);
	strbuf_printf(why, "%s: ", o->info.path);
	strbuf_vprintf(why, fmt, ap);
	va_end(ap);
	return err;
}

Elf_Scn *obj_next_section(Elf *elf, Elf_Scn *scn, GElf_Word type, GElf_Shdr *shdr, Elf_Data **data)
{
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, shdr) || shdr->sh_type != type)
			continue;
		*data = elf_getdata(scn, NULL);
		if (*data && (*data)->d_buf && (*data)->d_size)
			return scn;
	}
	obj_memory();
	return NULL;
}

const char *obj_section_name(Elf *elf, const GElf_Shdr *shdr)
{
	size_t strndx;
	const char *name = NULL;

	if (!elf_getshdrstrndx(elf, &strndx))
		name = elf_strptr(elf, strndx, shdr->sh_name);
	if (!name)
		obj_memory();
	return name ? name : "";
}

Elf_Scn *obj_section(Elf *elf, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		if (gelf_getshdr(scn, shdr) && !strcmp(obj_section_name(elf, shdr), name))
			return scn;
	}
	obj_memory();
	return NULL;
}

/* @len bytes at file offset @off as a string that ends within them, or NULL. */
static const char *read_string(struct obj *o, uint64_t off, uint64_t len)
{
	Elf_Data *data;

	if (!len || len > STRINGS_MAX || off > INT64_MAX || len > o->info.size || off > o->info.size - len)
		return NULL;
	data = elf_getdata_rawchunk(o->elf, (int64_t)off, len, ELF_T_BYTE);
	if (!data)
		obj_memory();
	if (!data || !data->d_buf || data->d_size < len || !memchr(data->d_buf, '\0', len))
		return NULL;
	return data->d_buf;
}

bool obj_addr(const struct obj *o, uint64_t off, uint64_t *addr)
{
	for (size_t i = 0; i < o->nsegs; i++) {
		const struct obj_seg *g = &o->segs[i];

		if (off >= g->off && off - g->off < g->filesz) {
			*addr = g->addr + (off - g->off);
			return true;
		}
	}
	return false;
}

bool obj_offset(const struct obj *o, uint64_t addr, bool exec, uint64_t *off)
{
	for (size_t i = 0; i < o->nsegs; i++) {
		const struct obj_seg *g = &o->segs[i];

		if ((exec && !g->exec) || addr < g->addr || addr - g->addr >= g->filesz)
			continue;
		*off = addr - g->addr + g->off;
		return true;
	}
	return false;
}

bool obj_mapped_offset(const struct obj *o, uint64_t addr, uint64_t *off)
{
	enum { PAGE = 4096 };	/* the smallest page size */

	for (size_t i = 0; i < o->nsegs; i++) {
		const struct obj_seg *g = &o->segs[i];
		uint64_t rest = (PAGE - (g->addr + g->filesz) % PAGE) % PAGE;

		if (addr < g->addr || addr - g->addr >= g->memsz || addr - g->addr >= g->filesz + rest)
			continue;
		*off = addr - g->addr + g->off;
		return true;
	}
	return false;
}

/* The dynamic section's entries, *n of them up to DT_NULL, or NULL. */
static Elf_Data *read_dynamic(struct obj *o, int *n)
{
	const GElf_Phdr *ph = &o->dynamic;
	Elf_Data *data;
	GElf_Dyn dyn;
	size_t max;

	*n = 0;
	if (!ph->p_filesz || ph->p_filesz > DYNAMIC_MAX || ph->p_offset > o->info.size || ph->p_filesz > o->info.size - ph->p_offset)
		return NULL;
	data = elf_getdata_rawchunk(o->elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_DYN);
	if (!data)
		obj_memory();
	if (!data || !data->d_buf)
		return NULL;
	max = data->d_size / gelf_fsize(o->elf, ELF_T_DYN, 1, EV_CURRENT);
	while ((size_t)*n < max && *n < INT32_MAX && gelf_getdyn(data, *n, &dyn) && dyn.d_tag != DT_NULL)
		++*n;
	return data;
}

/* The value of the entry @tag, 0 when there is none. */
static uint64_t dyn_value(Elf_Data *data, int n, int64_t tag)
{
	GElf_Dyn dyn;

	for (int i = 0; i < n; i++)
		if (gelf_getdyn(data, i, &dyn) && dyn.d_tag == tag)
			return dyn.d_un.d_val;
	return 0;
}

/* Names are offsets in the string table, whose address is in the section. */
static void read_links(struct obj *o)
{
	uint64_t strsz, off;
	const char **needed = NULL, *names = NULL;
	size_t cap = 0;
	GElf_Dyn dyn;
	int n;
	Elf_Data *data = read_dynamic(o, &n);

	strsz = dyn_value(data, n, DT_STRSZ);
	if (strsz && obj_offset(o, dyn_value(data, n, DT_STRTAB), false, &off))
		names = read_string(o, off, strsz);
	if (!names)
		return;
	for (int i = 0; i < n; i++) {
		const char *s, **one;

		if (!gelf_getdyn(data, i, &dyn))
			continue;
		one = dyn.d_tag == DT_SONAME ? &o->links.soname : dyn.d_tag == DT_RPATH ? &o->links.rpath :
		      dyn.d_tag == DT_RUNPATH ? &o->links.runpath : NULL;
		if ((!one && dyn.d_tag != DT_NEEDED) || dyn.d_un.d_val >= strsz)
			continue;
		s = names + dyn.d_un.d_val;
		if (!memchr(s, '\0', strsz - dyn.d_un.d_val))
			continue;
		if (one) {
			*one = s;
			continue;
		}
		needed = arena_grow(o->arena, needed, &cap, o->links.nneeded, sizeof(*needed));
		needed[o->links.nneeded++] = s;
	}
	o->links.needed = needed;
}

const struct obj_links *obj_links(struct obj *o)
{
	if (!o->links_read) {
		o->links_read = true;
		read_links(o);
	}
	return &o->links;
}

/* Read the segments, and from them how the file is started. */
static int read_segments(struct obj *o, struct strbuf *why)
{
	size_t n = 0, cap = 0;
	GElf_Phdr ph;
	int ndyn;
	Elf_Data *dyn;

	if (elf_getphdrnum(o->elf, &n) || n > SEGMENTS_MAX)
		return obj_fail(o, why, -ENOEXEC, "damaged ELF file: program headers: %s", elf_errmsg(-1));
	for (int i = 0; i < (int)n; i++) {
		if (!gelf_getphdr(o->elf, i, &ph))
			return obj_fail(o, why, -ENOEXEC, "damaged ELF file: program header %d: %s", i, elf_errmsg(-1));
		if (ph.p_filesz > UINT64_MAX - ph.p_vaddr || ph.p_filesz > UINT64_MAX - ph.p_offset)
			return obj_fail(o, why, -ENOEXEC, "damaged ELF file: program header %d wraps around", i);
		if (ph.p_type == PT_INTERP)
			o->info.interp = read_string(o, ph.p_offset, ph.p_filesz);
		else if (ph.p_type == PT_DYNAMIC)
			o->dynamic = ph;
		if (ph.p_type != PT_LOAD || !ph.p_filesz)
			continue;
		o->segs = arena_grow(o->arena, o->segs, &cap, o->nsegs, sizeof(*o->segs));
		o->segs[o->nsegs++] = (struct obj_seg){ ph.p_vaddr, ph.p_offset, ph.p_filesz, ph.p_memsz, ph.p_flags & PF_X };
	}
	/* Static PIE programs have no interpreter; shared libraries may have one (libc). */
	dyn = read_dynamic(o, &ndyn);
	o->info.is_pie = dyn_value(dyn, ndyn, DT_FLAGS_1) & DF_1_PIE || (o->info.type == ET_DYN && o->info.interp);
	o->info.is_static = !o->info.interp && (o->info.type == ET_EXEC || o->info.is_pie);
	return 0;
}

/* The bytes of the first note of that owner and type, *n of them; or NULL. */
static const uint8_t *find_note(struct obj *o, const char *owner, uint32_t type, size_t *n)
{
	size_t at, next, name, desc, size = strlen(owner) + 1;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Nhdr nhdr;
	Elf_Data *data;

	while ((scn = obj_next_section(o->elf, scn, SHT_NOTE, &shdr, &data))) {
		for (at = 0; (next = gelf_getnote(data, at, &nhdr, &name, &desc)) > at; at = next) {
			if (nhdr.n_type != type || nhdr.n_namesz != size || memcmp((char *)data->d_buf + name, owner, size))
				continue;
			*n = nhdr.n_descsz;
			return (const uint8_t *)data->d_buf + desc;
		}
	}
	return NULL;
}

bool obj_note(struct obj *o, const char *owner, uint32_t type, void *buf, size_t n)
{
	size_t size;
	const uint8_t *found = find_note(o, owner, type, &size);

	if (!found || size != n)
		return false;
	memcpy(buf, found, n);
	return true;
}

static int read_headers(struct obj *o, struct strbuf *why)
{
	GElf_Ehdr ehdr;

	o->info.dev = o->file->dev;
	o->info.ino = o->file->ino;
	o->info.size = o->file->size;
	elf_errno();			/* what others did before is not this file's */
	if (elf_version(EV_CURRENT) == EV_NONE)
		return obj_fail(o, why, -ENOTSUP, "libelf: %s", elf_errmsg(-1));
	if (!limits_begin(o->file))
		return obj_fail(o, why, -ENOEXEC, "damaged ELF file: more sections than any file has");
	o->elf = elf_begin(o->file->fd, ELF_C_READ, NULL);
	if (!o->elf)
		return obj_fail(o, why, -ENOEXEC, "damaged ELF file: %s", elf_errmsg(-1));
	if (elf_kind(o->elf) != ELF_K_ELF)
		return obj_fail(o, why, -ENOEXEC, "not an ELF file");
	if (!gelf_getehdr(o->elf, &ehdr))
		return obj_fail(o, why, -ENOEXEC, "damaged ELF file: %s", elf_errmsg(-1));
	if (!limits_sections(o->elf, o->file, false))
		return obj_fail(o, why, -ENOEXEC, "damaged ELF file: its sections are larger than what it stores");
	o->info.machine = ehdr.e_machine;
	o->info.type = ehdr.e_type;
	o->info.elf_class = ehdr.e_ident[EI_CLASS];
	o->info.entry = ehdr.e_entry;
	return read_segments(o, why);
}

int obj_open_file(struct file *f, struct obj **ret, struct strbuf *why)
{
	struct arena *a = arena_new();
	struct obj *o;
	int err;

	o = arena_new_of(a, struct obj);
	o->arena = a;
	o->file = file_use(f);
	o->info.path = f->path;
	errno = 0;
	err = read_headers(o, why);
	if (err && err != -ENOMEM && errno == EIO)
		err = -EIO;
	if (err) {
		obj_close(o);
		return shortage_note(err);
	}
	o->info.build_id = find_note(o, "GNU", NT_GNU_BUILD_ID, &o->info.build_id_len);
	*ret = o;
	return 0;
}

/* Open @f and drop the caller's reference, also on failure. */
static int open_only(struct file *f, struct obj **ret, struct strbuf *why)
{
	int err = obj_open_file(f, ret, why);

	file_close(f);
	return err;
}

int obj_open_fd(int fd, const char *path, struct obj **ret, struct strbuf *why)
{
	struct file *f;
	int err = file_from(fd, path, &f, why);

	return err ? err : open_only(f, ret, why);
}

int obj_open(const char *path, struct obj **ret, struct strbuf *why)
{
	struct file *f;
	int err = file_open(path, &f, why);

	return err ? err : open_only(f, ret, why);
}

struct file *obj_file(const struct obj *o)
{
	return o->file;
}

void obj_close(struct obj *o)
{
	if (!o)
		return;
	debug_close(o->debug);
	obj_symtab_fini(o->symtab);
	elf_end(o->elf);
	file_close(o->file);
	arena_free(o->arena);
}

uint64_t obj_code_start(const struct obj *o)
{
	uint64_t start = UINT64_MAX;

	for (size_t i = 0; i < o->nsegs; i++)
		if (o->segs[i].exec && o->segs[i].addr < start)
			start = o->segs[i].addr;
	return start == UINT64_MAX ? 0 : start;
}

const struct obj_info *obj_info(const struct obj *o)
{
	return &o->info;
}
