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

#include <string.h>

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

/* memory_read_string() where that takes no system call; 0: it does. */
int64_t memory_copy_string(const struct shm_run *r, char *dst, uint64_t size, uint64_t addr);

/*
 * The same for a string that is known (memory_is_known()), word by word without a call: half the instructions of
 * strnlen() and memcpy() for a name.  A word that reaches behind the NUL ends in the same page, so it can be read; the sanitizer
 * would object.  @dst has room for 7 bytes more than @size.  0: the string is longer, or goes on in another page.
 */
static inline __attribute__((no_sanitize_address)) int64_t memory_copy_words(char *dst, uint64_t size, uint64_t addr)
{
	enum { PAGE_BYTES = 4096 };
	const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
	int64_t last = PAGE_BYTES - (int64_t)(addr % PAGE_BYTES) - (int64_t)sizeof(ones);
	uint64_t word, ends;

	for (int64_t at = 0; at <= last && at < (int64_t)size; at += sizeof(word)) {
		memcpy(&word, (const char *)(uintptr_t)addr + at, sizeof(word));
		ends = (word - ones) & ~word & highs;	/* the lowest bit is that of the first NUL */
		if (!ends) {
			memcpy(dst + at, &word, sizeof(word));
			continue;
		}
		word &= (ends & -ends) - 1;
		memcpy(dst + at, &word, sizeof(word));
		at += __builtin_ctzll(ends) / 8 + 1;
		return at <= (int64_t)size ? at : 0;
	}
	return 0;
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
