/*
 * One printed field: digits or bytes, with flags, width and precision as in printf(3).  Used for both languages'
 * formats.
 */
#ifndef DTAP_OUT_FIELD_H
#define DTAP_OUT_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out_sink;

struct out_spec {
	uint8_t flags;		/* enum fmt_flag: FMT_LEFT FMT_PLUS FMT_SPACE FMT_ALT FMT_ZERO */
	int width;		/* 0: none */
	int prec;		/* -1: none */
	bool always;		/* FMT_ALT also gives zero a prefix (SystemTap) */
};

/* A signed integer in base 10. */
void out_field_signed(struct out_sink *s, const struct out_spec *spec, int64_t v);

/* An unsigned integer in base 8, 10 or 16; FMT_ALT puts 0 or 0x in front.  @upper: digits and x in upper case. */
void out_field_unsigned(struct out_sink *s, const struct out_spec *spec, uint64_t v, unsigned int base,
			bool upper);

/* The float or double, of @width bytes, with these bits. */
double out_float(uint64_t bits, unsigned int width);

/* At most @prec of the @len bytes, which have a NUL behind them if there are several; the width counts characters of UTF-8. */
void out_field_bytes(struct out_sink *s, const struct out_spec *spec, const char *p, size_t len);

/* A string; at most its first @prec bytes are read. */
void out_field_string(struct out_sink *s, const struct out_spec *spec, const char *p);

/* How unprintable characters are written: a backslash and a letter, or three octal digits. */
struct out_escapes {
	const char *plain, *names;	/* the characters, "\n", and their letters, "n" */
	bool nul;			/* NUL is \0, not \000 */
};

/* The @len bytes with escapes; width and precision count what is printed. */
void out_field_escaped(struct out_sink *s, const struct out_spec *spec, const struct out_escapes *esc,
		       const char *p, size_t len);

/* The character of code point @c, as UTF-8. */
void out_field_rune(struct out_sink *s, const struct out_spec *spec, uint32_t c);

#endif
