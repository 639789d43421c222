/*
 * A writer of protobuf messages: each function appends a field to a buffer (protobuf.dev, "Encoding").
 */
#ifndef DTAP_CMD_READY_PROTO_H
#define DTAP_CMD_READY_PROTO_H

#include <stddef.h>
#include <stdint.h>

struct strbuf;

/* A number: int64, uint64, int32, enum or bool. */
void proto_number(struct strbuf *b, unsigned int field, uint64_t v);

/* A text.  Invalid UTF-8 is replaced, since readers refuse it. */
void proto_text(struct strbuf *b, unsigned int field, const char *s);

/* A message, or other bytes.  @inner is cleared for reuse. */
void proto_message(struct strbuf *b, unsigned int field, struct strbuf *inner);

/* @n numbers as a packed repeated field. */
void proto_packed(struct strbuf *b, unsigned int field, const uint64_t *v, size_t n);

#endif
