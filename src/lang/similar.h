/*
 * How alike two names are: what somebody may have meant.
 */
#ifndef DTAP_LANG_SIMILAR_H
#define DTAP_LANG_SIMILAR_H

/* How many letters to change, add or remove to make one of the other (Levenshtein); names over 63 bytes are cut. */
unsigned int similar_distance(const char *a, const char *b);

#endif
