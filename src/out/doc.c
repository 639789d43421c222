#include "out/doc.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "out/sink.h"

static struct doc_level *level(struct out_doc *d)
{
	assert(d->depth);
	return &d->levels[d->depth - 1];
}

static void put_escaped(struct out_doc *d, const char *text)
{
	static const char plain[] = "\"\\\n\r\t\b\f", names[] = "\"\\nrtbf";
	const unsigned char *p = (const unsigned char *)text;
	const char *at;
	unsigned int n;

	for (; *p; p += n ? n : 1) {
		n = utf8_bytes((const char *)p);
		if (!n || (d->xml && *p < ' ' && *p != '\t' && *p != '\n' && *p != '\r'))
			out_puts(d->sink, "\xef\xbf\xbd");
		else if (d->xml && (*p == '<' || *p == '>' || *p == '&'))
			out_puts(d->sink, *p == '<' ? "&lt;" : *p == '>' ? "&gt;" : "&amp;");
		else if (!d->xml && (at = strchr(plain, *p)))
			out_format(d->sink, "\\%c", names[at - plain]);
		else if (!d->xml && *p < ' ')
			out_format(d->sink, "\\u%04x", *p);
		else
			out_put(d->sink, (const char *)p, n);
	}
}

/* Write what precedes a value or an opening bracket.  Returns the name that applies here. */
static const char *lead(struct out_doc *d, const char *name)
{
	struct doc_level *in = level(d);

	if (in->list)
		name = in->name;
	if (d->xml) {
		out_format(d->sink, "<%s>", name);
	} else {
		if (in->any)
			out_puts(d->sink, d->depth == 3 && in->list ? ",\n" : ",");
		if (!in->list)
			out_format(d->sink, "\"%s\":", name);
	}
	in->any = true;
	return name;
}

static void open_level(struct out_doc *d, const char *name, bool list)
{
	assert(d->depth < DOC_DEPTH);
	d->levels[d->depth++] = (struct doc_level){ .name = name, .list = list };
}

void doc_begin(struct out_doc *d, struct out_sink *sink, bool xml)
{
	*d = (struct out_doc){ .sink = sink, .xml = xml };
	out_puts(sink, xml ? "<?xml version=\"1.0\"?>\n" : "{");
	open_level(d, NULL, false);
}

void doc_end(struct out_doc *d)
{
	while (d->depth > 1)
		doc_close(d);
	out_puts(d->sink, d->xml ? "\n" : "}\n");
}

void doc_object(struct out_doc *d, const char *name)
{
	name = lead(d, name);
	if (!d->xml)
		out_putc(d->sink, '{');
	open_level(d, name, false);
}

void doc_list(struct out_doc *d, const char *name)
{
	if (!d->xml) {
		lead(d, name);
		out_putc(d->sink, '[');
	}
	open_level(d, name, true);
}

void doc_item(struct out_doc *d)
{
	doc_object(d, NULL);
}

void doc_close(struct out_doc *d)
{
	const struct doc_level *l = level(d);

	if (!d->xml)
		out_putc(d->sink, l->list ? ']' : '}');
	else if (!l->list)
		out_format(d->sink, "</%s>", l->name);
	d->depth--;
}

void doc_signed(struct out_doc *d, const char *name, int64_t v)
{
	name = lead(d, name);
	out_format(d->sink, "%lld", (long long)v);
	if (d->xml)
		out_format(d->sink, "</%s>", name);
}

void doc_unsigned(struct out_doc *d, const char *name, uint64_t v)
{
	name = lead(d, name);
	out_format(d->sink, "%llu", (unsigned long long)v);
	if (d->xml)
		out_format(d->sink, "</%s>", name);
}

void doc_text(struct out_doc *d, const char *name, const char *text)
{
	name = lead(d, name);
	if (!d->xml)
		out_putc(d->sink, '"');
	put_escaped(d, text);
	if (d->xml)
		out_format(d->sink, "</%s>", name);
	else
		out_putc(d->sink, '"');
}

void doc_float(struct out_doc *d, const char *name, double v)
{
	char text[32];

	snprintf(text, sizeof(text), "%.17g", v);
	if (!isfinite(v)) {
		doc_text(d, name, text);
		return;
	}
	name = lead(d, name);
	out_puts(d->sink, text);
	if (d->xml)
		out_format(d->sink, "</%s>", name);
}
