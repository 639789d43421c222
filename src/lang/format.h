/*
 * Format strings of printf and printa in both languages, parsed once when the script is compiled.
 *
 * The parser knows the grammar of a conversion (flags, width, precision, size, letter) and nothing about values:
 * the checkers compare each conversion with its argument, out/ prints.  The lexers handle escapes (\n).
 * Sources: DTrace guide, "Output Formatting" (printf, printa); SystemTap language reference, "printf".
 */
#ifndef DTAP_LANG_FORMAT_H
#define DTAP_LANG_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum fmt_lang { FMT_D, FMT_STP };

enum fmt_flag {
	FMT_LEFT = 1,		/* - */
	FMT_PLUS = 2,		/* + */
	FMT_SPACE = 4,		/* blank */
	FMT_ALT = 8,		/* # */
	FMT_ZERO = 16,		/* 0 */
	FMT_GROUP = 32,		/* ' */
	FMT_AGG = 64,		/* @: the aggregation's value (printa) */
};

/* The argument that a conversion takes, so that checkers need no switch over letters. */
enum fmt_kind {
	FMT_NONE,		/* no argument: %%, the text after the last conversion */
	FMT_INT,		/* integer: d i o u x X c, D's C P, stp's b */
	FMT_STRING,		/* string: s, S, D's I */
	FMT_ANY,		/* integer or string */
	FMT_FLOAT,		/* e E f g G: of D, the bits of a float or double; SystemTap has no such values */
	FMT_TIME,		/* D: Y T, an integer of ns */
	FMT_ADDR,		/* an address: p, D's a A */
	FMT_STACK,		/* D: k, a stack */
	FMT_BYTES,		/* stp: %m %M, memory */
	FMT_UNSUP,		/* the language has it, dtap does not: D's ls ws; the checkers refuse it */
};

/* Larger widths and precisions are refused; dynamic ones are reduced to this. */
enum { FMT_MAX_WIDTH = 16 << 20 };

struct fmt_conv {
	const char *lit;	/* the text before the conversion, with % for %% */
	size_t lit_len;
	enum fmt_kind kind;
	char letter;		/* 'd'; 0 for FMT_NONE */
	uint8_t flags;
	uint8_t size;		/* bytes by the prefix hh, h, l, ll (c: l, w); 0: no prefix, the argument's size */
	bool has_width, has_prec;
	bool dyn_width, dyn_prec;	/* *: an integer argument before the value, width first */
	int width, prec;
	size_t off;		/* of the % in the format string */
};

struct fmt {
	const char *text;	/* the whole format, NUL-terminated */
	struct fmt_conv *convs;	/* the last one is FMT_NONE with the text after all conversions, maybe empty */
	size_t n;
};

/*
 * Parse the @len bytes at @s into @a.  NULL for an invalid format: *err, in @a, says why ("format conversion #1
 * is undefined: %q"), *off where in @s.  An empty format is valid here; D's checker refuses it.
 */
struct fmt *fmt_parse(struct arena *a, enum fmt_lang lang, const char *s, size_t len, const char **err,
		      size_t *off);

/* How many arguments the format takes, with dynamic widths and precisions, without FMT_AGG conversions. */
size_t fmt_nargs(const struct fmt *f);

/*
 * In the format of IR_ACT_PRINT, around a conversion: SHOWN_VALUE, the number that decides whether the line is left out,
 * and then SHOWN_AS_IT_IS if the number is printed, or SHOWN_OTHERWISE if what follows is printed in its place.
 */
enum { SHOWN_VALUE = 1, SHOWN_AS_IT_IS = 2, SHOWN_OTHERWISE = 3 };

#endif
