/*
 * Can dtap's object be loaded into a process, and what must be known about it for that: which functions, which files,
 * where they are mapped.  The process is only read.
 */
#ifndef DTAP_TARGET_GUEST_H
#define DTAP_TARGET_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "target/maps.h"

struct agents;
struct strbuf;
struct target;

enum { GUEST_ANCHORS = 10 };

struct guest {
	struct target_maps maps;	/* at the time of guest_find() or the last guest_holds() */
	/* Addresses of functions of the C library. */
	uint64_t dlopen, syscall, close, recvmsg, swab;
	uint64_t setenv;		/* or 0 */
	uint64_t errno_location;
	uint64_t restorer;		/* arch/remote.h */
	uint64_t entry;			/* entry point of an object that is loaded already; 0: there is none */
	uint64_t python_dev, python_ino;	/* of the interpreter's file */
	uint64_t anchor[GUEST_ANCHORS];	/* an address in each mapping that the fields above depend on; 0: none */
	uint64_t program_dev, program_ino;	/* as of stat, of the program's file */
	long tracer;			/* the process or thread that traces it; 0: none */
	bool is_musl;
	bool has_allocator;		/* malloc is replaced by another library's */
	bool sees_object;		/* it has our user id, and our object's path is the same file for it */
};

/*
 * -ENOTSUP: the object cannot be loaded, the reason is in @why; -ESRCH: the process has ended.  The caller releases
 * @ret in each case.
 */
int guest_find(const struct agents *a, const struct target *t, struct guest *ret, struct strbuf *why);
void guest_fini(struct guest *g);

/* After a refusal: no C library is mapped yet, as in a program whose dynamic loader is still running. */
bool guest_is_starting(const struct guest *g);

/*
 * Is @g still true of process @t, whose mappings are @now and whose status is @status (proc_pid_status(5))?  That is so if it
 * runs the same program and the anchors are in the same mappings of the same files, and no object has come since.  Then @g
 * takes over @now.
 */
bool guest_holds(const struct agents *a, const struct target *t, struct guest *g, struct target_maps *now, const char *status);

/* The present address of the object's entry point in process @t.  0: it is not loaded. */
uint64_t guest_entry(const struct agents *a, const struct target *t);

/* What kind of code is at @pc?  By the name of the file that is mapped there. */
enum guest_code {
	GUEST_NONE,		/* no executable mapping */
	GUEST_KERNEL,		/* pages of the kernel such as [vdso] */
	GUEST_LOADER,		/* the dynamic loader, libdl or an unwinder */
	GUEST_LIBC,
	GUEST_ALLOCATOR,	/* a library that replaces malloc */
	GUEST_PYTHON,		/* the interpreter itself */
	GUEST_OTHER,
};

enum guest_code guest_code(const struct guest *g, uint64_t pc);

/* The mapping of @maps that contains @addr, or NULL. */
const struct target_map *guest_map(const struct target_maps *maps, uint64_t addr);

#endif
