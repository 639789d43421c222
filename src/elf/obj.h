/*
 * What a tracer needs from an ELF file, read by libelf: markers, functions, linked libraries.
 *
 * Files come from whoever runs a process, so nothing in them is trusted: every offset is checked before
 * use, and a damaged file is an error that names the file and the defect, never a crash.  The file is read
 * with pread, not mapped, so that one that shrinks meanwhile causes an error, too, and no SIGBUS.
 *
 * Functions that can fail return a negative errno and add one line without a newline to @why, which may be
 * NULL: -ENOEXEC if the file is not ELF or damaged, otherwise the system's error.
 *
 * Addresses are the file's own (without the load bias of a running process); offsets count from the start of
 * the file, as the kernel's uprobes need them.  64-bit and 32-bit files of either byte order are read.
 */
#ifndef DTAP_ELF_OBJ_H
#define DTAP_ELF_OBJ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"

struct file;
struct obj;
struct strbuf;

struct obj_info {
	const char *path;		/* for messages */
	uint64_t dev, ino, size;	/* of the file */
	uint16_t machine;		/* e_machine */
	uint16_t type;			/* e_type */
	uint8_t elf_class;		/* ELFCLASS64 or ELFCLASS32 */
	uint64_t entry;			/* address of the entry point */
	const char *interp;		/* the dynamic loader's path, or NULL */
	bool is_pie;			/* a program that may be loaded at any address */
	bool is_static;			/* a program without a dynamic loader */
	const uint8_t *build_id;	/* or NULL */
	size_t build_id_len;
};

/* The names in the dynamic section. */
struct obj_links {
	const char *const *needed;	/* the libraries, DT_NEEDED, in the file's order */
	unsigned int nneeded;
	const char *soname;		/* or NULL */
	const char *rpath, *runpath;	/* folders for them, DT_RPATH and DT_RUNPATH of ld.so(8), or NULL */
};

/* An argument as scripts see it: its type, and number and type of the note's operand that it comes from. */
struct obj_marker_arg {
	const char *type, *native;
	unsigned int operand;
};

/*
 * One site of a marker.  The note's strings are as in the file: they may contain any byte but NUL.
 */
struct obj_marker {
	const char *prov, *name, *args;
	const char *func;		/* the function that it is in, if the note has it, or NULL */
	const struct obj_marker_arg *typed;	/* its arguments, if the notes have types; NULL: the operands */
	unsigned int ntyped;
	uint64_t addr, off;		/* of the marked instruction */
	uint64_t sem_addr, sem_off;	/* of the 16-bit semaphore; both 0: there is none */
	unsigned int event;		/* 0: it is from a note; else for the caller that adds markers of its own */
};

/*
 * Open an ELF file: @path; or @f, of which the obj takes another reference; or @fd, which the obj takes over and which
 * is also closed on failure, with @path for messages.  Errors also as of file_open(): -ENOTSUP, no regular file.  -EIO: its
 * headers could not be read; all that is wrong with them is -ENOEXEC.
 */
int obj_open(const char *path, struct obj **ret, struct strbuf *why);
int obj_open_file(struct file *f, struct obj **ret, struct strbuf *why);
int obj_open_fd(int fd, const char *path, struct obj **ret, struct strbuf *why);

/* The file that it is read from; the obj owns it. */
struct file *obj_file(const struct obj *o);

/* Accepts NULL. */
void obj_close(struct obj *o);

/* The lowest address of its executable segments, as the kernel's mm->start_code; 0: there is none. */
uint64_t obj_code_start(const struct obj *o);

/* The results of the following functions live as long as @o. */
const struct obj_info *obj_info(const struct obj *o);

/* Read the @n bytes of the first note of that owner and type.  False: there is none, or it has another size. */
bool obj_note(struct obj *o, const char *owner, uint32_t type, void *buf, size_t n);

/* Never NULL; empty if there is no dynamic section or a damaged one. */
const struct obj_links *obj_links(struct obj *o);

/*
 * The marker sites in the notes of a program or library, in the file's order; *n may be 0.  The notes are SystemTap's
 * (owner stapsdt, type 3) and those of DTrace for Linux (section .note.usdt).  Locations are corrected for prelink by
 * .stapsdt.base.  One damaged note is an error for the whole file, because the sites of a marker belong together.
 */
int obj_markers(struct obj *o, const struct obj_marker **ret, size_t *n, struct strbuf *why);

/*
 * Call @each with provider and name of each of SystemTap's notes, also in an object file that is not linked yet, whose
 * notes have no addresses.  Damaged notes are passed over.  Returns what @each returned, the first that is not 0.
 */
typedef int obj_name_fn(void *ctx, const char *prov, const char *name);
int obj_marker_names(struct obj *o, obj_name_fn *each, void *ctx);

/*
 * The arguments of marker @m: returns their number; the first @max are stored in @ops.  Symbols are resolved
 * if the operand can then be read at the site; symbol(%rip) gets the displacement from the marker's own
 * address, which is the value of the program counter when the site fires.
 */
unsigned int obj_operands(struct obj *o, const struct obj_marker *m, struct arch_operand *ops,
			  unsigned int max);

/*
 * The file offset of address @addr; false: it is not in the file.  @exec: search executable segments only.
 */
bool obj_offset(const struct obj *o, uint64_t addr, bool exec, uint64_t *off);

/* The address at which offset @off of the file is loaded; false: it is not loaded. */
bool obj_addr(const struct obj *o, uint64_t off, uint64_t *addr);

/*
 * Where a thread has the file's block of thread-local variables.  FIXED: at the thread pointer + @off.  DISTANCE: at the
 * thread pointer + the number of 8 bytes at the file's address @slot + @off.  NUMBER: that number is the block's in the
 * thread's table, whose entries are 16 bytes, beginning with the block's address; the table's address is 8 bytes behind the
 * thread pointer.
 */
struct obj_tls {
	enum { OBJ_TLS_FIXED, OBJ_TLS_DISTANCE, OBJ_TLS_NUMBER } kind;
	uint64_t slot;
	int64_t off;
};

/*
 * @name: what the file says about the block of that variable, of another file; NULL: about its own.  False: there is no such
 * block, or the file does not tell.
 */
bool obj_tls(struct obj *o, const char *name, struct obj_tls *ret);

/* One function of the file, from its symbol. */
struct obj_func {
	const char *name;
	uint64_t addr, end;		/* @end is exclusive */
	bool is_ifunc;			/* it is an IFUNC resolver */
	bool is_global;			/* other files of the program may call it */
};

/* The function that contains @addr, from .symtab, else from .dynsym and .gnu_debugdata, ignoring damaged symbols. */
bool obj_func_find(struct obj *o, uint64_t addr, struct obj_func *ret);

/* The same for a variable of known size. */
bool obj_data_find(struct obj *o, uint64_t addr, struct obj_func *ret);

/* Its name, or NULL; *off (@off may be NULL): the distance of @addr from its start. */
const char *obj_func_at(struct obj *o, uint64_t addr, uint64_t *off);

/*
 * The name of the function to which the code at @addr belongs, also if that code is a part that the compiler has placed
 * elsewhere (cold.c), or NULL.  It lives as long as @o.
 */
const char *obj_func_of(struct obj *o, uint64_t addr);

/*
 * Function @i in order of address, from the same tables; false after the last.  Several at one address are
 * aliases, the best name last.
 */
bool obj_func(struct obj *o, size_t i, struct obj_func *ret);

/* Read @n bytes at offset @off of the file. 0 or a negative errno. */
int obj_read(const struct obj *o, uint64_t off, void *buf, size_t n);

/*
 * The address of the function or object @name (@len bytes), from the same tables.  False: there is none, or
 * several, because two source files of a program may each have a static one of that name.
 */
bool obj_symbol(struct obj *o, const char *name, size_t len, uint64_t *addr);

/* The address of the exported function or object @name, which dlsym could find; the first of several versions. */
bool obj_exports(struct obj *o, const char *name, uint64_t *addr);

/* Call @fn for each function that the file calls through its procedure linkage table, with the entry's address. */
void obj_each_plt(struct obj *o, void (*fn)(void *ctx, const char *name, uint64_t addr), void *ctx);

/*
 * Call @fn for each function of another file whose address the dynamic linker stores when the program is loaded, with the
 * address of that word: code built with -fno-plt calls functions through such words.
 */
void obj_each_got(struct obj *o, void (*fn)(void *ctx, const char *name, uint64_t addr), void *ctx);

/*
 * Call @fn for each direct call of, or jump to, one of the addresses @targets, or through the word there, with its number
 * there and the address of the instruction.  0; -ENOENT: there is no .eh_frame_hdr to tell code by; -ENOTSUP: the machine is not x86-64; -ENOMEM,
 * or the error of reading.
 */
int obj_each_call(struct obj *o, const uint64_t *targets, size_t n, void (*fn)(void *ctx, size_t target, uint64_t addr), void *ctx);

/* Does it import one of the functions @names, a list that ends with NULL, from a shared library? */
bool obj_imports(struct obj *o, const char *const *names);

#endif
