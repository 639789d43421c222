/*
 * A CPython process as a place to bring dtap's object into: could it be, and what has to be known of it.  Nothing
 * is touched to find out.
 */
#ifndef DTAP_TARGET_GUEST_H
#define DTAP_TARGET_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "target/maps.h"

struct agents;
struct strbuf;
struct target;

struct guest {
	struct target_maps maps;	/* as they were */
	/* Functions of the C library. */
	uint64_t dlopen, syscall, close, recvmsg, swab;
	uint64_t setenv;		/* or 0 */
	uint64_t errno_location;
	uint64_t restorer;		/* arch/remote.h */
	uint64_t entry;			/* of an object that is there already; 0: there is none */
	uint64_t python_dev, python_ino;	/* of the interpreter's file */
	bool is_musl;
	bool has_allocator;		/* memory comes from a library that takes the C library's place */
	bool sees_object;		/* finds our object's file by our path, with the same rights as we */
};

/*
 * -ENOTSUP: it cannot be, with the reason; -ESRCH: it has ended.  The caller releases @ret in each case.
 */
int guest_find(const struct agents *a, const struct target *t, struct guest *ret, struct strbuf *why);
void guest_fini(struct guest *g);

/* The entry point of the object in process @t, as of now.  0: it is not there. */
uint64_t guest_entry(const struct agents *a, const struct target *t);

/* What kind of code is at @pc?  By the name of the file that is mapped there. */
enum guest_code {
	GUEST_NONE,		/* nothing that may be executed */
	GUEST_KERNEL,		/* the kernel's own pages, called by anybody */
	GUEST_LOADER,		/* the dynamic loader, or what has to do with it */
	GUEST_LIBC,
	GUEST_ALLOCATOR,	/* a library that replaces malloc */
	GUEST_PYTHON,		/* the interpreter itself */
	GUEST_OTHER,
};

enum guest_code guest_code(const struct guest *g, uint64_t pc);

/* The mapping of @maps that contains @addr, or NULL. */
const struct target_map *guest_map(const struct target_maps *maps, uint64_t addr);

#endif
