/* SPDX-License-Identifier: MIT */
#include "agent/reads.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "vm/memory.h"

/* PyObject.ob_mutex, a byte: after ob_tid and two bytes of padding.  Bit 0: it is held; bit 1: threads wait for it. */
enum { LOCK = 10, LOCK_HELD = 1 };
enum { MOST = 4096, PART = 512, PIECES = MEMORY_PIECES, PIECES_BYTES = 2048, NOBODY = 0 };

static struct reads_state *const reads = &agent.reads;

bool reads_prepare(void)
{
	if (!reads->rows)
		reads->rows = calloc(MOST, sizeof(*reads->rows));
	return reads->rows;
}

/* Words as they are; of longer pieces a hash. */
static uint64_t sum_of(const uint8_t *bytes, uint64_t size)
{
	uint64_t sum = size > sizeof(sum) ? size * 0xa0761d6478bd642f : 0, word;

	for (; size > sizeof(word); size -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		sum = (sum ^ word) * 0xe7037ed1a0b428db;
		sum ^= sum >> 32;
	}
	word = 0;
	memcpy(&word, bytes, size);
	return sum ^ word;
}

/* @size 0: of a lock. */
static void add(uint64_t addr, uint32_t size, uint64_t sum)
{
	if (reads->n == MOST)
		reads->fails = true;
	else
		reads->rows[reads->n++] = (struct reads_row){ addr, sum, size };
}

static void note(uint64_t addr, const void *copy, uint64_t size)
{
	const uint8_t *bytes = copy;

	for (uint64_t done = 0; done < size && !reads->fails; done += PART) {
		uint32_t part = size - done < PART ? (uint32_t)(size - done) : PART;

		add(addr + done, part, sum_of(bytes + done, part));
	}
}

static bool is_held(struct shm_run *r, uint64_t addr)
{
	uint8_t lock;

	return memory_read(r, &lock, sizeof(lock), addr + LOCK) || lock & LOCK_HELD;
}

/* Has this event locked the object already? */
static bool is_ours(uint64_t addr)
{
	for (unsigned k = 0; k < reads->nheld; k++)
		if (reads->held[k] == addr)
			return true;
	return false;
}

static bool hold(uint64_t addr)
{
	uint8_t *lock = (uint8_t *)(uintptr_t)addr + LOCK, free = 0;

	if (is_ours(addr))
		return true;
	if (reads->nheld == READS_HELD ||
	    !__atomic_compare_exchange_n(lock, &free, LOCK_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	reads->held[reads->nheld++] = addr;
	return true;
}

/* All but the first @n. */
static void release(unsigned n)
{
	while (reads->nheld > n)
		agent.py.PyMutex_Unlock((char *)(uintptr_t)reads->held[--reads->nheld] + LOCK);
}

void reads_release_all(void)
{
	release(0);
}

void reads_open(struct shm_run *r, uint64_t addr)
{
	if (!r->note)
		return;
	if (!reads->loose) {
		reads->fails |= !hold(addr);
		return;
	}
	if (is_ours(addr))
		return;
	r->note = NULL;
	reads->fails |= is_held(r, addr);
	r->note = note;
	add(addr, 0, 0);
}

void reads_loose(void)
{
	reads->loose = true;
}

static bool is_of_event(uint64_t object)
{
	for (unsigned k = 0; k < agent.objects.nliving; k++)
		if (agent.objects.living[k] == object)
			return true;
	return false;
}

void reads_begin(struct shm_run *r, uint64_t object)
{
	struct reads_answer *a = &reads->answers[reads->nanswers];

	if (!agent.py.free_threaded)
		return;
	*a = (struct reads_answer){ .from = reads->nanswers ? a[-1].to : 0, .finder = NOBODY };
	for (unsigned k = reads->nanswers; object && !a->finder && k; k--)
		if (reads->answers[k - 1].given == object)
			a->finder = k;
	reads->loose = a->finder ? reads->answers[a->finder - 1].loose : object && !is_of_event(object);
	reads->was_held = reads->nheld;
	reads->n = a->from;
	memset(reads->types, 0, sizeof(reads->types));
	reads->fails = !reads->rows || !agent.py.PyMutex_Unlock;
	r->note = reads->fails ? NULL : note;
}

void reads_forget(void)
{
	reads->n = reads->answers[reads->nanswers].from;
	reads->fails = false;
}

/* Are the @n rows as they were? */
static bool are_same(struct shm_run *r, const struct reads_row *rows, uint32_t n)
{
	uint8_t all[PIECES_BYTES], *at = all;
	struct memory_piece pieces[PIECES];
	uint32_t used, size;

	for (; n; rows += used, n -= used) {
		for (used = size = 0; used < n && used < PIECES; used++) {
			pieces[used].addr = rows[used].size ? rows[used].addr : rows[used].addr + LOCK;
			pieces[used].size = rows[used].size ? rows[used].size : 1;
			if (size + pieces[used].size > sizeof(all))
				break;
			size += pieces[used].size;
		}
		if (memory_read_pieces(r, all, pieces, used))
			return false;
		at = all;
		for (uint32_t k = 0; k < used; at += pieces[k++].size)
			if (rows[k].size ? sum_of(at, rows[k].size) != rows[k].sum : *at & LOCK_HELD && !is_ours(rows[k].addr))
				return false;
	}
	return true;
}

/* Does answer @number (1: the first) hold, and before it those by which its object was found? */
static bool holds(struct shm_run *r, unsigned number)
{
	unsigned chain[READS_ANSWERS + 1], n = 0;

	for (; number; number = reads->answers[number - 1].finder)
		chain[n++] = number - 1;
	while (n--) {
		const struct reads_answer *a = &reads->answers[chain[n]];

		if (!are_same(r, reads->rows + a->from, a->to - a->from))
			return false;
	}
	return true;
}

bool reads_end(struct shm_run *r, uint64_t given)
{
	struct reads_answer *a = &reads->answers[reads->nanswers];
	bool is_address = given && !(given & 7);

	if (!agent.py.free_threaded)
		return true;
	r->note = NULL;
	a->to = reads->n;
	a->given = given;
	a->loose = reads->loose;
	/* An answer without room is not given: what it rests on would be forgotten. */
	if (!reads->fails && holds(r, reads->nanswers + 1) && (!is_address || reads->nanswers < READS_ANSWERS)) {
		reads->nanswers += is_address;
		return true;
	}
	release(reads->was_held);
	syscall(SYS_sched_yield);
	return false;
}
