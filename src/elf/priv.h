/*
 * What the files of elf/ share: the open file.  Nobody else includes this.
 */
#ifndef DTAP_ELF_PRIV_H
#define DTAP_ELF_PRIV_H

#include <gelf.h>

#include "elf/obj.h"

struct arena;
struct debug;
struct obj_symtab;

struct obj_seg {
	uint64_t addr, off, filesz;
	bool exec;
};

struct obj {
	struct obj_info info;
	struct arena *arena;
	int fd;
	Elf *elf;
	struct obj_seg *segs;		/* PT_LOADs */
	size_t nsegs;
	GElf_Phdr dynamic;		/* PT_DYNAMIC, p_filesz 0 when there is none */
	bool links_read;
	struct obj_links links;
	bool markers_read;
	struct obj_marker *markers;
	size_t nmarkers, markers_cap;
	bool debug_tried;
	struct debug *debug;		/* debug.h */
	struct obj_symtab *symtab;	/* NULL until somebody asks */
};

/* Add "PATH: ..." to @why, which may be NULL; returns @err. */
int obj_fail(const struct obj *o, struct strbuf *why, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Release what the arena does not hold; accepts NULL. */
void obj_symtab_fini(struct obj_symtab *t);

/*
 * The next section of type @type behind @scn (NULL: the first) and its contents.  A section without bytes in
 * the file, or whose bytes lie outside of it, is passed over.  NULL when there are no more.
 */
Elf_Scn *obj_next_section(Elf *elf, Elf_Scn *scn, GElf_Word type, GElf_Shdr *shdr, Elf_Data **data);

/* The name of the section, "" when it has no readable one. */
const char *obj_section_name(Elf *elf, const GElf_Shdr *shdr);

/* The first section called @name. */
Elf_Scn *obj_section(Elf *elf, const char *name, GElf_Shdr *shdr);

#endif
