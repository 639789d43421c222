/*
 * The tracer's reader: the only code that reads what processes write to a session's shared data.
 *
 * A process can write anything there, at any time, also while it is read.  So everything is copied once into private
 * memory of the reader, the copy is checked, and the copy is handed out; no pointer into the data leaves vm/ and
 * place/.  The state that the reader itself relies on, how far each ring was read and which lanes exist, is private
 * to it.  Invalid data is skipped and counted; a corrupt lane does not affect the others.
 *
 * Not thread-safe.
 */
#ifndef DTAP_VM_READER_H
#define DTAP_VM_READER_H

#include "vm/record.h"
#include "vm/shm.h"

struct reader;

/*
 * Read the data of @s, which must outlive the reader.  @data_fd: the data's file, to give memory of rings back, or -1:
 * leave it.  @record_max: bytes of the largest record that the session's programs can write.  0 or -ENOMEM.
 */
int reader_new(const struct shm *s, int data_fd, size_t record_max, struct reader **ret);
void reader_free(struct reader *r);	/* accepts NULL */

/*
 * Pass the records of all lanes' rings to @record; those of one lane in the order in which they were written.  A
 * record is valid until @record returns.  Times outside of @from_ns to now (plus READER_AHEAD_NS, by which clocks may
 * differ) are clamped.  Stops when @record returns a negative errno, and returns it; else returns the number of
 * records.  The next call begins with the next lane.
 */
enum { READER_AHEAD_NS = 10 * 1000 * 1000 };
int reader_drain(struct reader *r, uint64_t from_ns, int (*record)(void *ctx, const struct record *rec), void *ctx);

/*
 * Pass every element of map @map in all lanes ever used to @each; a key of a lane's map can come once for each lane.
 * Keys and values are valid until @each returns; a table's key matches its stored hash.  0 or -ENOMEM.
 */
int reader_each(struct reader *r, uint32_t map, void (*each)(void *ctx, const void *key, const void *value), void *ctx);

/* A copy of the control block. */
void reader_control(const struct reader *r, struct abi_control *ret);

/* What the header of lane @n says; @n must be below reader_lanes(), the number of lanes that are or were in use. */
struct reader_lane {
	uint32_t owner;
	uint64_t events, spent_ps;
};

uint32_t reader_lanes(struct reader *r);
void reader_lane(const struct reader *r, uint32_t n, struct reader_lane *ret);

/* Records and elements that were skipped since the last call because they were invalid. */
uint64_t reader_bad(struct reader *r);

#endif
