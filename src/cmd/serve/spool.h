/*
 * Batches of events on disk, while the store that they are for is away.
 *
 * A folder of the service alone, with a file for each batch, NUMBER-EVENTS.SUFFIX.  What a service left behind when it
 * ended is delivered by the next one.  The folder has a bound: the oldest batches make room for new ones.
 */
#ifndef DTAP_CMD_SERVE_SPOOL_H
#define DTAP_CMD_SERVE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

struct strbuf;

struct spool;

/*
 * Open the folder @path, which is created unless it is there; its files have that suffix.  -EBUSY: another service has it; -EPERM: others than its
 * owner can write to it; or another negative errno, with a line in @err.
 */
int spool_open(const char *path, const char *suffix, uint64_t max_bytes, struct spool **ret, struct strbuf *err);
void spool_close(struct spool *s);	/* accepts NULL */

/* Keep a batch of @events events.  0 or a negative errno; *lost: events of batches that made room. */
int spool_add(struct spool *s, const struct strbuf *text, uint64_t events, uint64_t *lost);

/* Read the oldest batch.  0, or -ENOENT: there is none.  One that cannot be read is removed: its events are in *lost. */
int spool_first(struct spool *s, struct strbuf *text, uint64_t *events, uint64_t *lost);

/* Remove that batch: it is delivered. */
void spool_remove(struct spool *s);

size_t spool_batches(const struct spool *s);
uint64_t spool_bytes(const struct spool *s);

#endif
