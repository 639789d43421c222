/*
 * Stacks: the helper ABI_HELPER_STACK, which makes a number of one that fits in fields and keys.
 *
 * The number is a hash of the frames and of the process.  The first time that a process meets one it tells the tracer, in
 * a record of its own (ABI_REC_STACK), before the first that has the number.  What the frames are only the process itself
 * can say: it brings a struct stack_walker.
 */
#ifndef DTAP_VM_STACK_H
#define DTAP_VM_STACK_H

#include "abi/python.h"
#include "vm/shm.h"

enum { STACK_FRAMES_MAX = 127, STACK_WORDS_MAX = 3 * STACK_FRAMES_MAX };

struct stack_walker {
	/*
	 * The frames of this thread, as many as @frames of each of the kinds that @flags (ABI_STACK_...) asks for, as they
	 * stand in the record of a stack: *naddrs addresses, behind them struct abi_pyframe.  Returns the words used.  The
	 * tracer may be asked for what is missing, by shm_output().
	 */
	uint32_t (*walk)(struct shm_run *r, const struct shm_map *out, uint32_t flags, uint32_t frames,
			 uint64_t words[STACK_WORDS_MAX], uint32_t *naddrs);
	/* The last walk's frames are new to the tracer: send what it must know of them, by shm_output().  False: lost. */
	bool (*tell)(struct shm_run *r, const struct shm_map *out);
};

/* Numbers that the tracer was told of; some are forgotten when there are too many, and told again. */
enum { STACK_TOLD = 1 << 16, STACK_TOLD_CODES = 1 << 14 };

/* Bytes for the record of a code object: its table may be longer than programs in the kernel can send it. */
enum { STACK_CODE = 1 << 16 };

/* What a user of a lane needs for stacks: shm_run.stacks. */
struct shm_stacks {
	const struct stack_walker *walker;
	uint64_t told[STACK_TOLD], codes[STACK_TOLD_CODES];
	struct {
		struct abi_record hdr;
		uint64_t number, flags;
		uint64_t words[STACK_WORDS_MAX];
	} rec;
	union {				/* the walker's, for a record */
		struct abi_code code;
		uint8_t bytes[STACK_CODE];
	} code;
};

/* Is @number in the table of @n, a power of two? */
bool stack_told(const uint64_t *table, uint32_t n, uint64_t number);
void stack_note_told(uint64_t *table, uint32_t n, uint64_t number);

static inline uint64_t stack_mix(uint64_t hash, uint64_t v)
{
	hash = (hash ^ v) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

#endif
