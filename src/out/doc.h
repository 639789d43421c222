/*
 * A streaming writer for documents of objects, lists and values: JSON (RFC 8259) or XML 1.0.
 *
 * In XML an object or value is an element with its name, and a list is one element with the list's name per item.
 * Bytes that are not UTF-8, and in XML control characters that it does not allow, are replaced by U+FFFD.
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
		bool list, any;		/* @any: it is not empty */
	} levels[DOC_DEPTH];
};

/* Begin the document, and end it with a newline. */
void doc_begin(struct out_doc *d, struct out_sink *sink, bool xml);
void doc_end(struct out_doc *d);

/* Open the object or list @name in an object, or an object as the next item of a list. */
void doc_object(struct out_doc *d, const char *name);
void doc_list(struct out_doc *d, const char *name);
void doc_item(struct out_doc *d);

/* Close the innermost object or list. */
void doc_close(struct out_doc *d);

/* A value: named @name in an object; or the next item of a list, where @name is ignored. */
void doc_signed(struct out_doc *d, const char *name, int64_t v);
void doc_unsigned(struct out_doc *d, const char *name, uint64_t v);
void doc_float(struct out_doc *d, const char *name, double v);	/* infinities and NaN are text */
void doc_text(struct out_doc *d, const char *name, const char *text);

#endif
