/*
 * A document of objects, lists and values, written as it comes: JSON (RFC 8259) or XML 1.0.
 *
 * In XML an object and a value are elements of their name, and a list is as many elements of its name as it has items.
 * Bytes that are no UTF-8, and in XML the control characters that it cannot have, are replaced by U+FFFD.
 */
#ifndef DTAP_OUT_DOC_H
#define DTAP_OUT_DOC_H

#include <stdbool.h>
#include <stdint.h>

struct out_sink;

enum { DOC_DEPTH = 12 };

struct out_doc {
	struct out_sink *sink;
	bool xml;
	unsigned int depth;
	struct doc_level {
		const char *name;	/* of the list or object; outlives it */
		bool list, any;		/* @any: something is in it already */
	} levels[DOC_DEPTH];
};

/* Begin the document, and end it with a newline. */
void doc_begin(struct out_doc *d, struct out_sink *sink, bool xml);
void doc_end(struct out_doc *d);

/* Open the object or list @name in an object, or an object that is the next item of the list it is in. */
void doc_object(struct out_doc *d, const char *name);
void doc_list(struct out_doc *d, const char *name);
void doc_item(struct out_doc *d);

/* Close what was opened last. */
void doc_close(struct out_doc *d);

/* A value: of that name in an object, or (@name is not looked at) the next item of a list. */
void doc_signed(struct out_doc *d, const char *name, int64_t v);
void doc_unsigned(struct out_doc *d, const char *name, uint64_t v);
void doc_float(struct out_doc *d, const char *name, double v);	/* JSON has no infinities: they are text */
void doc_text(struct out_doc *d, const char *name, const char *text);

#endif
