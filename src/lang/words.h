/*
 * Names of numbers: flags and enumerations, by their names in the headers.
 *
 * When they are printed, the tracer looks them up; a program that needs the text builds it from the same table.
 */
#ifndef DTAP_LANG_WORDS_H
#define DTAP_LANG_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
#define WORDS(NAME, ...) WORDS_##NAME,
#include "lang/words.def"
#undef WORDS
	WORDS_NR
};

struct word {
	const char *text;
	uint64_t number;	/* only the significant bytes */
};

/* A row of words.def. */
struct words {
	const char *name;
	bool bits, result;	/* BITS, RETURN, else CHOICE */
	bool decimal;		/* base of numbers without a word */
	uint8_t width;		/* significant bytes */
	const struct word *v;
	size_t n;
};

/* Row @id, which is below WORDS_NR. */
const struct words *words_row(unsigned int id);

/* The word for 0, or NULL: it is printed as a number. */
const char *words_of_none(const struct words *w);

enum { WORDS_MAX = 1024 };	/* bytes of the longest text */

/* The text of @number by row @id, in @buf of WORDS_MAX bytes. */
const char *words_text(unsigned int id, uint64_t number, char *buf);

#endif
