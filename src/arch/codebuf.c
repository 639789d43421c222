#include "arch/codebuf.h"

#include <stdlib.h>
#include <string.h>

void code_bytes(struct code_buf *b, const void *bytes, size_t n)
{
	if (b->n + n > b->cap && !b->failed) {
		size_t cap = b->cap ? b->cap * 2 : 4096;
		uint8_t *p = realloc(b->p, cap);

		b->failed = !p;
		if (p) {
			b->p = p;
			b->cap = cap;
		}
	}
	if (b->failed)
		return;
	memcpy(b->p + b->n, bytes, n);
	b->n += n;
}

void code_u8(struct code_buf *b, int v)
{
	uint8_t byte = (uint8_t)v;

	code_bytes(b, &byte, 1);
}

void code_u32(struct code_buf *b, uint32_t v)
{
	code_bytes(b, &v, sizeof(v));
}
