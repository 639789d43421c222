/*
 * Stacks: the helper ABI_HELPER_STACK, which returns a number for a stack, to be used in fields and keys.
 *
 * The number is a hash of the frames and of the process.  When a process computes a number for the first time it
 * sends the stack to the tracer in a record (ABI_REC_STACK) that precedes all records with the number.  How to walk
 * the frames is up to the process: it supplies a struct stack_walker.
 */
#ifndef DTAP_VM_STACK_H
#define DTAP_VM_STACK_H

#include "abi/python.h"
#include "vm/shm.h"

enum { STACK_FRAMES_MAX = 127, STACK_WORDS_MAX = 3 * STACK_FRAMES_MAX };

struct stack_walker {
	/*
	 * Write the frames of this thread, at most @frames of each kind that @flags (ABI_STACK_...) asks for, in the
	 * layout of a stack's record: *naddrs addresses, followed by struct abi_pyframe.  Returns the words used.
	 * May ask the tracer for missing information, by shm_output().
	 */
	uint32_t (*walk)(struct shm_run *r, const struct shm_map *out, uint32_t flags, uint32_t frames,
			 uint64_t words[STACK_WORDS_MAX], uint32_t *naddrs);
	/*
	 * The last walk's frames are new to the tracer: send the information about them, by shm_output().  False:
	 * lost.
	 */
	bool (*tell)(struct shm_run *r, const struct shm_map *out);
	/* The number of a stack that was learned before, without a walk; false: walk it.  NULL: always walk. */
	bool (*find)(struct shm_run *r, uint32_t flags, uint32_t frames, uint64_t *number);
	/* Remember that the tracer knows the last walk's stack by @number.  NULL if @find is. */
	void (*learn)(struct shm_run *r, uint32_t frames, uint64_t number);
};

/* The sizes of the tables of numbers that were sent.  Numbers that do not fit are forgotten, and sent again. */
enum { STACK_SENT = 1 << 16, STACK_SENT_CODES = 1 << 14 };

/* Bytes for the record of a code object: its line table may be longer than programs in the kernel can send. */
enum { STACK_CODE = 1 << 16 };

/* The state for stacks of a user of a lane: shm_run.stacks. */
struct shm_stacks {
	const struct stack_walker *walker;
	uint64_t sent[STACK_SENT], codes[STACK_SENT_CODES];
	struct {
		struct abi_record hdr;
		uint64_t number, flags;
		uint64_t words[STACK_WORDS_MAX];
	} rec;
	union {				/* for the walker: a record */
		struct abi_code code;
		uint8_t bytes[STACK_CODE];
	} code;
};

/* Is @number in the table of @n, a power of two? */
bool stack_sent(const uint64_t *table, uint32_t n, uint64_t number);
void stack_note_sent(uint64_t *table, uint32_t n, uint64_t number);

static inline uint64_t stack_mix(uint64_t hash, uint64_t v)
{
	hash = (hash ^ v) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

#endif
