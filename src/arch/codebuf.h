/*
 * Machine code while it is generated: bytes in a growing buffer.
 */
#ifndef DTAP_ARCH_CODEBUF_H
#define DTAP_ARCH_CODEBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_buf {
	uint8_t *p;
	size_t n, cap;
	bool failed;		/* out of memory; later writes are lost */
};

void code_bytes(struct code_buf *b, const void *bytes, size_t n);
void code_u8(struct code_buf *b, int v);
void code_u32(struct code_buf *b, uint32_t v);

#endif
