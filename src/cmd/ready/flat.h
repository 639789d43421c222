/*
 * Reader of a flat JSON object in a line, as --json writes them: names with texts, integers, or null (RFC 8259).
 *
 * The line may come from anywhere.  Lists, objects inside, fractions and numbers that int64_t cannot hold are refused, and so
 * is U+0000, since texts are C strings.
 */
#ifndef DTAP_CMD_READY_FLAT_H
#define DTAP_CMD_READY_FLAT_H

#include <stdint.h>

struct strbuf;

/* A member: @text is NULL if it is a number; null is the number 0. */
typedef void flat_member(void *ctx, const char *name, const char *text, int64_t number);

/* Call @each for each member of the object in @line.  0, or -EINVAL with the reason in @why. */
int flat_read(const char *line, flat_member *each, void *ctx, struct strbuf *why);

#endif
