/*
 * Declarations shared by the files of elf/: the open file.  No other folder includes this.
 */
#ifndef DTAP_ELF_PRIV_H
#define DTAP_ELF_PRIV_H

#include <gelf.h>

#include "elf/obj.h"

struct arena;
struct debug;
struct obj_symtab;

struct obj_seg {
	uint64_t addr, off, filesz, memsz;
	bool exec;
};

struct obj {
	struct obj_info info;
	struct arena *arena;
	struct file *file;
	Elf *elf;
	struct obj_seg *segs;		/* PT_LOADs */
	size_t nsegs;
	GElf_Phdr dynamic;		/* PT_DYNAMIC; p_filesz 0: there is none */
	bool links_read;
	struct obj_links links;
	bool markers_read;
	struct obj_marker *markers;
	size_t nmarkers, markers_cap;
	bool debug_tried;
	struct debug *debug;		/* debug.h */
	struct obj_symtab *symtab;	/* NULL before the first use */
	uint64_t cold_start, cold_end;	/* cold.c: the part that was looked up last */
	const char *cold_name;		/* its function, or NULL */
};

/*
 * As obj_offset(), also for data without bytes in the file (.bss) if it lies in the last page that is mapped from the
 * file: the kernel identifies a semaphore by the file offset of its page's mapping.
 */
bool obj_mapped_offset(const struct obj *o, uint64_t addr, uint64_t *off);

/*
 * libelf has failed: if it had no memory, end as everybody does who has none (base/oom.h).  A file that only seems to have no
 * such section would be one without markers, for as long as the tracer runs.
 */
void obj_memory(void);

/* Add "PATH: ..." to @why, which may be NULL; returns @err.  Out of memory: obj_memory(). */
int obj_fail(const struct obj *o, struct strbuf *why, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Is a dynamic symbol of section @section, with st_info @info, one that other files may use, with its own address? */
bool obj_is_export(uint16_t section, uint8_t info);

/* obj_exports() without a table of hashes. */
bool obj_exports_searched(struct obj *o, const char *name, uint64_t *addr);

/* Release what is not in the arena; accepts NULL. */
void obj_symtab_fini(struct obj_symtab *t);

/* note_usdt.c: add the sites of the notes in @data, which is section @sec.  0, or -ENOEXEC with a line in @why. */
int notes_usdt(struct obj *o, Elf_Data *data, const char *sec, struct strbuf *why);

/* The same for the types in the notes of dtap's own -G: after all sites of the file. */
int notes_types(struct obj *o, Elf_Data *data, const char *sec, struct strbuf *why);

/* limits.c: is the memory limited that libelf needs to open @f (limits_begin), and to load its sections? */
bool limits_begin(const struct file *f);
bool limits_sections(Elf *elf, const struct file *f, bool debug);

/*
 * unwind.c: the table in .eh_frame_hdr: *@n pairs of the start of a function, or of a part of it, and its FDE, as
 * distances from *addr, sorted by start.  *ret is on the heap, and must be freed also after a failure.
 */
int obj_frames(const struct obj *o, uint64_t *addr, int32_t **ret, uint32_t *n);

/*
 * The next section of type @type after @scn (NULL: the first) and its contents.  A section without bytes in
 * the file, or with bytes outside the file, is skipped.  NULL: there are no more.
 */
Elf_Scn *obj_next_section(Elf *elf, Elf_Scn *scn, GElf_Word type, GElf_Shdr *shdr, Elf_Data **data);

/* The name of the section; "": none that can be read. */
const char *obj_section_name(Elf *elf, const GElf_Shdr *shdr);

/* The first section called @name. */
Elf_Scn *obj_section(Elf *elf, const char *name, GElf_Shdr *shdr);

#endif
