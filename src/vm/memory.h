/*
 * The memory of the process that programs run in: all helpers access it through this file.
 *
 * An address comes from a script or from data of the traced program, so nothing is known about it.  Three kinds of
 * memory are read directly: the program's own stack, the session's segment, and the strings that the agent passed as
 * this event's arguments.  All other memory is copied by the kernel (process_vm_readv(2), process_vm_writev(2)),
 * which returns an error where a load would kill the process.  A handler for SIGSEGV is not an option: it would
 * replace the traced program's own.  No program has a reader with shm_run.is_alive: with it the agent reads objects that
 * it knows to be alive, and nothing else.
 *
 * In a process whose seccomp filter would kill it for those two calls (shm.no_memory) they are not made; access to
 * other memory is a fault.
 *
 * No function here waits, allocates or changes errno.
 */
#ifndef DTAP_VM_MEMORY_H
#define DTAP_VM_MEMORY_H

#include "abi/unwind.h"
#include "vm/shm.h"

/* Copy @size bytes at @addr.  0; -EFAULT: not all of them can be read, and @dst is zeroed. */
int memory_read(struct shm_run *r, void *dst, uint64_t size, uint64_t addr);

/*
 * Copy a string, cut to @size bytes with the NUL, which @dst always gets; @size is not 0.  Returns bytes with the
 * NUL; -EFAULT: neither its end nor @size bytes could be read, and @dst is zeroed.
 */
int64_t memory_read_string(struct shm_run *r, char *dst, uint64_t size, uint64_t addr);

/*
 * Copy @n pieces of memory, one after the other, to @dst.  0; -EFAULT: not all can be read, and @dst has anything.  Nothing is
 * noted (shm_run.note).
 */
enum { MEMORY_PIECES = 32 };
struct memory_piece { uint64_t addr, size; };
int memory_read_pieces(const struct shm_run *r, void *dst, const struct memory_piece *pieces, unsigned n);

/* Write into the process.  0; -EFAULT: not all could be written; always in the tracer. */
int memory_write(struct shm_run *r, uint64_t addr, const void *src, uint64_t size);

/*
 * Is the string at @addr one that the agent passed, valid during this event?  An argument that the event lacks is 0,
 * which is not a string.
 */
static inline bool memory_is_known(const struct shm_run *r, uint64_t addr)
{
	for (uint32_t k = 0; k < r->nstrings; k++)
		if (r->strings[k] == addr)
			return addr != 0;
	return false;
}

/*
 * Where the process has its code, stack, arguments and environment: fields 26 to 51 of proc(5)'s /proc/pid/stat, read
 * once in each process.
 */
uint64_t memory_own(unsigned int field);

/* The key by which programs find this process (abi/unwind.h). */
struct abi_process_key memory_own_key(void);

/* Parse a decimal number.  Not strtoull: newer headers map it to a function that older C libraries lack. */
static inline uint64_t memory_decimal(const char *p)
{
	uint64_t n = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	return n;
}

#endif
