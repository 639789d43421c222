/*
 * What a tracer needs to know of an ELF file, on libelf: markers, functions, what it links to.
 *
 * Files come from whoever runs a process, so nothing in them is trusted: every offset is checked before
 * use, and a damaged file is an error that names the file and what is wrong in it, never a crash.  The file
 * is read with pread, not mapped, so that one that shrinks meanwhile is an error, too, and no SIGBUS.
 *
 * Functions that can fail return a negative errno and add one line without a newline to @why, which may be
 * NULL: -ENOEXEC when the file is no ELF file or a damaged one, otherwise what the system said.
 *
 * Addresses are the file's own (before the load bias of a running process); offsets count from the start of
 * the file, as the kernel's uprobes want them.  64-bit and 32-bit files of either byte order are read.
 */
#ifndef DTAP_ELF_OBJ_H
#define DTAP_ELF_OBJ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"

struct obj;
struct strbuf;

struct obj_info {
	const char *path;		/* as given to obj_open */
	uint64_t dev, ino, size;	/* of the file */
	uint16_t machine;		/* e_machine */
	uint16_t type;			/* e_type */
	uint8_t elf_class;		/* ELFCLASS64 or ELFCLASS32 */
	uint64_t entry;			/* address execution starts at */
	const char *interp;		/* the dynamic loader's path, or NULL */
	bool is_pie;			/* a program that may load anywhere */
	bool is_static;			/* a program that no dynamic loader starts */
	const uint8_t *build_id;	/* or NULL */
	unsigned int build_id_len;
};

/* What the dynamic section says by name. */
struct obj_links {
	const char *const *needed;	/* the libraries it asks for, as it asks */
	unsigned int nneeded;
	const char *soname;		/* or NULL */
	const char *rpath, *runpath;	/* folders for them, DT_RPATH and DT_RUNPATH of ld.so(8), or NULL */
};

/*
 * One site of a marker.  The note's strings are as in the file: any byte but NUL.
 */
struct obj_marker {
	const char *prov, *name, *args;
	uint64_t addr, off;		/* of the marked instruction */
	uint64_t sem_addr, sem_off;	/* of the 16-bit semaphore; both 0 when it has none */
};

/*
 * Open the ELF file @path, or the one that @fd reads; @path is then its name in messages.  @fd becomes the
 * obj's, and is closed also when opening fails.  Regular files only.
 */
int obj_open(const char *path, struct obj **ret, struct strbuf *why);
int obj_open_fd(int fd, const char *path, struct obj **ret, struct strbuf *why);

/* Accepts NULL. */
void obj_close(struct obj *o);

/* What follows lives as long as @o. */
const struct obj_info *obj_info(const struct obj *o);

/* Never NULL; empty when there is no dynamic section or a damaged one. */
const struct obj_links *obj_links(struct obj *o);

/*
 * The marker sites of the notes (owner stapsdt, type 3) of a program or library, in the file's order; *n is 0
 * when there are none.
 * Locations are corrected for prelink by .stapsdt.base.  One damaged note makes the whole an error: the
 * sites of a marker belong together.
 */
int obj_markers(struct obj *o, const struct obj_marker **ret, size_t *n, struct strbuf *why);

/*
 * The operands of marker @m: how many it has, of which the first @max are in @ops.  Symbols are resolved
 * where that makes the operand readable in place; symbol(%rip) gets the displacement from the marker's own
 * address, which is what the program counter holds when the site fires.
 */
unsigned int obj_operands(struct obj *o, const struct obj_marker *m, struct arch_operand *ops,
			  unsigned int max);

/*
 * Where in the file address @addr lies, or false.  For executable code ask with @exec: only executable
 * segments are then looked at.
 */
bool obj_offset(const struct obj *o, uint64_t addr, bool exec, uint64_t *off);

/* The address that offset @off of the file is loaded at, or false: it is not. */
bool obj_addr(const struct obj *o, uint64_t off, uint64_t *addr);

/* One function of the file, by its symbol. */
struct obj_func {
	const char *name;
	uint64_t addr, end;		/* @end: the first byte behind it */
	bool is_ifunc;			/* its code picks the function that callers then get */
	bool is_global;			/* other files of the program may call it */
};

/* The function that contains @addr.  From .symtab, else from .dynsym and .gnu_debugdata; damaged symbols are none. */
bool obj_func_find(struct obj *o, uint64_t addr, struct obj_func *ret);

/* Its name, or NULL; *off, when not NULL, becomes the distance from its start. */
const char *obj_func_at(struct obj *o, uint64_t addr, uint64_t *off);

/*
 * Function @i in the order of addresses, by the same tables; false behind the last.  Several at one address are
 * aliases, the best name last.
 */
bool obj_func(struct obj *o, size_t i, struct obj_func *ret);

/* Read @n bytes at offset @off of the file. 0 or a negative errno. */
int obj_read(const struct obj *o, uint64_t off, void *buf, size_t n);

/*
 * The address of the function or object @name (@len bytes), by the same tables.  False when there is none, or
 * several: two files of a program may each have a static one of that name.
 */
bool obj_symbol(struct obj *o, const char *name, size_t len, uint64_t *addr);

/* The address of the function or object @name that it exports, for dlsym to find; the first of several versions. */
bool obj_exports(struct obj *o, const char *name, uint64_t *addr);

/* Call @fn for each function that the file calls through its procedure linkage table, with the entry's address. */
void obj_each_plt(struct obj *o, void (*fn)(void *ctx, const char *name, uint64_t addr), void *ctx);

/* Does it import one of the functions @names, a list that ends with NULL, from a shared library? */
bool obj_imports(struct obj *o, const char *const *names);

#endif
