#include "cmd/ready/proto.h"

#include "base/strbuf.h"
#include "cmd/ready/cell.h"

enum wire { VARINT, BYTES = 2 };

static void put_varint(struct strbuf *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		strbuf_putc(b, (char)(v | 0x80));
	strbuf_putc(b, (char)v);
}

static void put_tag(struct strbuf *b, unsigned int field, enum wire wire)
{
	put_varint(b, (uint64_t)field << 3 | wire);
}

static void put_bytes(struct strbuf *b, unsigned int field, const char *s, size_t len)
{
	put_tag(b, field, BYTES);
	put_varint(b, len);
	strbuf_add(b, s, len);
}

void proto_number(struct strbuf *b, unsigned int field, uint64_t v)
{
	put_tag(b, field, VARINT);
	put_varint(b, v);
}

void proto_text(struct strbuf *b, unsigned int field, const char *s)
{
	struct strbuf text = { 0 };

	ready_utf8(s, &text);
	put_bytes(b, field, strbuf_str(&text), text.len);
	strbuf_fini(&text);
}

void proto_message(struct strbuf *b, unsigned int field, struct strbuf *inner)
{
	put_bytes(b, field, strbuf_str(inner), inner->len);
	strbuf_clear(inner);
}

void proto_packed(struct strbuf *b, unsigned int field, const uint64_t *v, size_t n)
{
	struct strbuf inner = { 0 };

	for (size_t i = 0; i < n; i++)
		put_varint(&inner, v[i]);
	proto_message(b, field, &inner);
	strbuf_fini(&inner);
}
