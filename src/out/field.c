#include "out/field.h"

#include <string.h>

#include "base/utf8.h"
#include "lang/format.h"
#include "out/sink.h"

/*
 * | spaces | prefix | zeros | digits | spaces |, where zeros fill up to the precision, or under FMT_ZERO without a
 * precision to the width.
 */
static void number(struct out_sink *s, const struct out_spec *spec, const char *prefix, size_t nprefix,
		   const char *digits, size_t ndigits)
{
	size_t width = (size_t)spec->width, zeros = 0, n;

	if (!spec->width && spec->prec < 0) {
		out_put(s, prefix, nprefix);
		out_put(s, digits, ndigits);
		return;
	}
	if (spec->prec >= 0 && (size_t)spec->prec > ndigits)
		zeros = (size_t)spec->prec - ndigits;
	n = nprefix + zeros + ndigits;
	if (n < width && !(spec->flags & FMT_LEFT)) {
		if ((spec->flags & FMT_ZERO) && spec->prec < 0)
			zeros += width - n;
		else
			out_pad(s, ' ', width - n);
	}
	out_put(s, prefix, nprefix);
	out_pad(s, '0', zeros);
	out_put(s, digits, ndigits);
	if (n < width && (spec->flags & FMT_LEFT))
		out_pad(s, ' ', width - n);
}

/* Write the digits of @v, ending before @end; returns their start.  None for 0. */
static char *put_digits(char *end, uint64_t v, unsigned int base, bool upper)
{
	const char *set = upper ? "0123456789ABCDEF" : "0123456789abcdef";

	/* Compilers turn a division by a constant into a multiplication. */
	if (base == 10) {
		for (; v; v /= 10)
			*--end = (char)('0' + v % 10);
	} else if (base == 16) {
		for (; v; v /= 16)
			*--end = set[v % 16];
	} else {
		for (; v; v /= 8)
			*--end = set[v % 8];
	}
	return end;
}

void out_field_signed(struct out_sink *s, const struct out_spec *spec, int64_t v)
{
	uint64_t mag = v < 0 ? -(uint64_t)v : (uint64_t)v;
	char buf[24], *end = buf + sizeof(buf), *p = put_digits(end, mag, 10, false);
	const char *prefix = v < 0			? "-"
			     : spec->flags & FMT_PLUS	? "+"
			     : spec->flags & FMT_SPACE	? " "
							: "";

	if (!v && spec->prec)
		*--p = '0';
	number(s, spec, prefix, strlen(prefix), p, (size_t)(end - p));
}

void out_field_unsigned(struct out_sink *s, const struct out_spec *spec, uint64_t v, unsigned int base,
			bool upper)
{
	char buf[72], *end = buf + sizeof(buf), *p = put_digits(end, v, base, upper);
	const char *prefix = "";

	if (!v && spec->prec)
		*--p = '0';
	if (spec->flags & FMT_ALT) {
		if (base == 16 && (v || spec->always))
			prefix = upper ? "0X" : "0x";
		else if (base == 8 && spec->always)
			prefix = "0";
		else if (base == 8 && (p == end || *p != '0') && (int)(end - p) >= spec->prec)
			*--p = '0';
	}
	number(s, spec, prefix, strlen(prefix), p, (size_t)(end - p));
}

double out_float(uint64_t bits, unsigned int width)
{
	double d;
	float f;

	if (width == sizeof(f)) {
		memcpy(&f, &bits, sizeof(f));
		return (double)f;
	}
	memcpy(&d, &bits, sizeof(d));
	return d;
}

/* The characters in @len bytes at @p, which have a NUL behind them if there are several. */
static size_t characters(const char *p, size_t len)
{
	const char *end = p + len;
	size_t n = 0;

	if (len == 1)
		return 1;
	for (; p < end; n++) {
		unsigned int bytes = utf8_bytes(p);

		p += bytes ? bytes : 1;
	}
	return n;
}

void out_field_bytes(struct out_sink *s, const struct out_spec *spec, const char *p, size_t len)
{
	size_t width = (size_t)spec->width, n;

	if (!spec->width && spec->prec < 0) {
		out_put(s, p, len);
		return;
	}
	if (spec->prec >= 0 && (size_t)spec->prec < len)
		len = (size_t)spec->prec;
	n = width ? characters(p, len) : 0;
	if (n < width && !(spec->flags & FMT_LEFT))
		out_pad(s, ' ', width - n);
	out_put(s, p, len);
	if (n < width && (spec->flags & FMT_LEFT))
		out_pad(s, ' ', width - n);
}

void out_field_string(struct out_sink *s, const struct out_spec *spec, const char *p)
{
	out_field_bytes(s, spec, p, spec->prec >= 0 ? strnlen(p, (size_t)spec->prec) : strlen(p));
}

/* Write the text of @c under @esc; returns its length. */
static size_t escape(const struct out_escapes *esc, unsigned char c, char text[4])
{
	const char *at = c ? strchr(esc->plain, c) : NULL;

	text[0] = '\\';
	if (at || (!c && esc->nul)) {
		text[1] = at ? esc->names[at - esc->plain] : '0';
		return 2;
	}
	if (c < ' ' || c > '~') {
		text[1] = (char)('0' + (c >> 6));
		text[2] = (char)('0' + (c >> 3 & 7));
		text[3] = (char)('0' + (c & 7));
		return 4;
	}
	text[0] = (char)c;
	return 1;
}

void out_field_escaped(struct out_sink *s, const struct out_spec *spec, const struct out_escapes *esc,
		       const char *p, size_t len)
{
	size_t limit = spec->prec >= 0 ? (size_t)spec->prec : SIZE_MAX;
	size_t i, j, n, total = 0, pad;
	char text[4];

	for (i = 0; i < len && total < limit; i++)
		total += escape(esc, (unsigned char)p[i], text);
	if (total > limit)
		total = limit;
	pad = (size_t)spec->width > total ? (size_t)spec->width - total : 0;
	if (!(spec->flags & FMT_LEFT))
		out_pad(s, ' ', pad);
	for (i = 0; total; i++) {
		n = escape(esc, (unsigned char)p[i], text);
		for (j = 0; j < n && total; j++, total--)
			out_putc(s, text[j]);
	}
	if (spec->flags & FMT_LEFT)
		out_pad(s, ' ', pad);
}

void out_field_rune(struct out_sink *s, const struct out_spec *spec, uint32_t c)
{
	struct out_spec whole = { .flags = spec->flags, .width = spec->width, .prec = -1 };
	char u[5] = "";
	size_t n = 0;

	if (c < 0x80) {
		u[n++] = (char)c;
	} else if (c < 0x800) {
		u[n++] = (char)(0xc0 | c >> 6);
		u[n++] = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		u[n++] = (char)(0xe0 | c >> 12);
		u[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		u[n++] = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x110000) {
		u[n++] = (char)(0xf0 | c >> 18);
		u[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		u[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		u[n++] = (char)(0x80 | (c & 0x3f));
	} else {
		u[n++] = '?';
	}
	out_field_bytes(s, &whole, u, n);
}
