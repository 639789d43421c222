/*
 * What a name that is not there may have been meant to be: the names that are nearest to it.
 *
 *	struct similar s = similar_to("strlenn");
 *	similar_add(&s, "strlen");			each name there is
 *	similar_print(&s, &text);			"strlen, ..."
 */
#ifndef DTAP_LANG_SIMILAR_H
#define DTAP_LANG_SIMILAR_H

enum { SIMILAR_MAX = 5 };

struct strbuf;

struct similar {
	const char *name;
	const char *best[SIMILAR_MAX];	/* the nearest first, of equal ones what came first */
	unsigned int far[SIMILAR_MAX];
	unsigned int n;
};

/* How many letters to change, add or remove to make one of the other (Levenshtein); names over 63 bytes are cut. */
unsigned int similar_distance(const char *a, const char *b);

struct similar similar_to(const char *name);

/* @candidate, which must stay where it is; once is enough. */
void similar_add(struct similar *s, const char *candidate);

/* Add "a, b, c" to @out. */
void similar_print(const struct similar *s, struct strbuf *out);

#endif
