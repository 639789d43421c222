/*
 * Suggestions for an unknown name: the existing names nearest to it.
 *
 *	struct similar s = similar_to("strlenn");
 *	similar_add(&s, "strlen");			for each existing name
 *	similar_print(&s, &text);			"strlen, ..."
 */
#ifndef DTAP_LANG_SIMILAR_H
#define DTAP_LANG_SIMILAR_H

enum { SIMILAR_MAX = 5 };

struct strbuf;

struct similar {
	const char *name;
	const char *best[SIMILAR_MAX];	/* the nearest first; equally near ones in the order in which they were added */
	unsigned int far[SIMILAR_MAX];
	unsigned int n;
};

/* The Levenshtein distance of @a and @b; names over 63 bytes are truncated. */
unsigned int similar_distance(const char *a, const char *b);

struct similar similar_to(const char *name);

/* Add a name.  @candidate is not copied; duplicates are ignored. */
void similar_add(struct similar *s, const char *candidate);

/* Append "a, b, c" to @out. */
void similar_print(const struct similar *s, struct strbuf *out);

#endif
