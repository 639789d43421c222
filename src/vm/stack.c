#include "vm/stack.h"

#include <string.h>

#include "vm/helper.h"

enum { WAYS = 4 };

static uint64_t *ways_of(uint64_t *table, uint32_t n, uint64_t number)
{
	return table + ((number >> 24) & (n - 1) & ~(uint64_t)(WAYS - 1));
}

bool stack_sent(const uint64_t *table, uint32_t n, uint64_t number)
{
	const uint64_t *w = ways_of((uint64_t *)(uintptr_t)table, n, number);

	return w[0] == number || w[1] == number || w[2] == number || w[3] == number;
}

void stack_note_sent(uint64_t *table, uint32_t n, uint64_t number)
{
	uint64_t *w = ways_of(table, n, number);

	memmove(w + 1, w, (WAYS - 1) * sizeof(*w));
	w[0] = number;
}

/*
 * Two words at a time, so that one multiplication does not wait for the other.  The process is mixed before the first of them:
 * processes that were forked from one have the same addresses, and neighbouring numbers.
 */
static uint64_t hash_words(const uint64_t *w, uint32_t n, uint64_t pid)
{
	uint64_t hash = stack_mix(pid, 0), other = n;

	for (; n >= 2; n -= 2, w += 2) {
		hash = stack_mix(hash, w[0]);
		other = stack_mix(other, w[1]);
	}
	if (n)
		hash = stack_mix(hash, w[0]);
	return stack_mix(hash, other * 3);
}

/* Send the stack with @n words in @rec to the tracer; false: it was lost. */
static bool tell(struct shm_run *r, const struct shm_map *out, struct abi_record *rec, uint64_t number, uint64_t flags,
		 uint32_t n)
{
	uint64_t *slots = (uint64_t *)(rec + 1);

	*rec = (struct abi_record){ .rec = ABI_REC_STACK, .tid = (uint32_t)r->thread.values[SHM_TASK],
				    .pid = (uint32_t)(r->thread.values[SHM_TASK] >> 32),
				    .size = (uint32_t)(sizeof(*rec) + 8 * (2 + n)) };
	slots[0] = number;
	slots[1] = flags;
	if (!shm_output(r, out, rec, rec->size))
		return true;
	shm_drop(r, ABI_DROP_RECORD);
	return false;
}

/* map, flags, frames, address: of one frame, if neither native nor Python frames are asked for */
uint64_t stack_number(uint64_t map, uint64_t flags, uint64_t frames, uint64_t address, uint64_t unused, struct vm_thread *t)
{
	struct shm_run *r = t->user;
	const struct shm_map *out = (const struct shm_map *)(uintptr_t)map;
	struct { struct abi_record hdr; uint64_t number, flags, words[1]; } one;
	struct shm_stacks *s = r->stacks;
	bool is_address = !(flags & (ABI_STACK_NATIVE | ABI_STACK_PYTHON)), walked = s && frames && !is_address;
	uint64_t *words = s ? s->rec.words : one.words, number;
	uint32_t n = 0, naddrs = 0;

	(void)unused;
	if (is_address) {
		words[0] = address;
		n = naddrs = frames != 0;
	} else if (walked) {
		if (s->walker->find && s->walker->find(r, (uint32_t)flags, (uint32_t)frames, &number))
			return number;
		n = s->walker->walk(r, out, (uint32_t)flags,
				    frames < STACK_FRAMES_MAX ? (uint32_t)frames : STACK_FRAMES_MAX, words, &naddrs);
	}
	/* With instructions it is another stack than the same frames by line. */
	number = hash_words(words, n, r->thread.values[SHM_TASK] >> 32 | (flags & ABI_STACK_INSTRUCTIONS) << 32);
	if (s && stack_sent(s->sent, STACK_SENT, number)) {
		if (walked && s->walker->learn)
			s->walker->learn(r, (uint32_t)frames, number);
		return number;
	}
	if (n > naddrs && !s->walker->tell(r, out))
		return number;
	flags = (flags & 0xff) | (flags & ABI_STACK_PYTHON ? naddrs << 8 : 0) | frames << 32;
	if (tell(r, out, s ? &s->rec.hdr : &one.hdr, number, flags, n) && s) {
		stack_note_sent(s->sent, STACK_SENT, number);
		if (walked && s->walker->learn)
			s->walker->learn(r, (uint32_t)frames, number);
	}
	return number;
}
