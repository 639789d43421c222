/*
 * What names.c, which finds out what stacks are, and names_text.c, which prints them, share.  Nobody else includes this.
 */
#ifndef DTAP_OUT_NAMES_PRIV_H
#define DTAP_OUT_NAMES_PRIV_H

#include "base/bytemap.h"
#include "out/names.h"

struct arena;
struct file;
struct ksyms;
struct obj;
struct process;
struct pycode;

/* An address and what is known of it. */
struct frame {
	uint64_t addr, off, size;	/* @size: of the function; 0: not known */
	uint64_t mod_off;		/* from where the module is mapped */
	const char *mod, *path, *func;	/* NULL: not known */
	struct obj *obj;		/* the file that it is in, NULL: not known; it stays open */
	uint64_t obj_addr;		/* the address there */
	const struct pycode *code;	/* of a frame of Python, which has nothing of the above */
	uint32_t line;
};

struct stack {
	uint32_t pid;
	bool user;
	uint32_t nframes;
	struct frame *frames;
};

struct names {
	struct arena *arena;
	struct bytemap stacks;		/* by number */
	struct bytemap codes;		/* struct pycode by number */
	struct bytemap texts;		/* of names_same: pid and text -> the number, in the arena */
	uint64_t nstacks;
	uint32_t npages, nrows;		/* entries of the tables of abi/unwind.h that are in use */
	struct process *processes;
	struct file *files;
	struct ksyms *ksyms;		/* NULL: not looked at yet */
};

/* Find what is known of f->addr, an address of the kernel. */
void names_find_kernel(struct names *n, struct frame *f);

#endif
