/*
 * SystemTap's conversions, as in its language reference ("printf") and its runtime.
 *
 * Integers have 64 bits, whatever the size prefix.  # also prefixes zero (0x0), %p is %#x, and %#c escapes
 * an unprintable character.  %b writes the value's bytes: as many as the precision or else the
 * width (1, 2, 4, 8), padded with NULs to the width.
 */
#include "out/printf.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lang/words.h"
#include "out/names.h"
#include "out/sink.h"

static const struct out_escapes stp_escapes = { "\a\b\f\n\r\t\v'\\", "abfnrtv'\\", false };

static int binary_size(int n)
{
	return n == 1 || n == 2 || n == 4 || n == 8 ? n : 0;
}

static void put_binary(struct out_sink *s, const struct out_spec *spec, int64_t v)
{
	const char *bytes = (const char *)&v;
	int size = binary_size(spec->prec), i, first, pad;

	if (!size)
		size = spec->width && binary_size(spec->width) ? spec->width : 8;
	first = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 8 - size : 0;
	pad = spec->width > size ? spec->width - size : 0;
	if (!(spec->flags & FMT_LEFT))
		out_pad(s, '\0', (size_t)pad);
	for (i = 0; i < size; i++)
		out_putc(s, bytes[first + i]);
	if (spec->flags & FMT_LEFT)
		out_pad(s, '\0', (size_t)pad);
}

static void put_char(struct out_sink *s, const struct out_spec *spec, int64_t v)
{
	struct out_spec whole = { .flags = spec->flags, .width = spec->width, .prec = -1 };
	char c = (char)v;

	if (spec->flags & FMT_ALT)
		out_field_escaped(s, &whole, &stp_escapes, &c, 1);
	else
		out_field_bytes(s, &whole, &c, 1);
}

/* How many bytes @c takes with its escape. */
static size_t quoted_size(unsigned char c)
{
	if (c == '"' || c == '\\' || (c >= '\a' && c <= '\r'))
		return 2;
	return c >= 32 && c < 127 ? 1 : 4;
}

static void put_quoted_byte(struct out_sink *s, unsigned char c)
{
	size_t n = quoted_size(c);

	if (n > 1)
		out_putc(s, '\\');
	if (n == 4)
		out_format(s, "%03o", c);
	else
		out_putc(s, c >= '\a' && c <= '\r' ? "abtnvfr"[c - '\a'] : (char)c);
}

/* As bpf/rt/put.c's rt_escape() makes it: at most @limit bytes with both quotes and the three dots after what was cut. */
static void put_quoted(struct out_sink *s, const char *text, size_t limit)
{
	size_t end = (limit < 5 ? 5 : limit) - 1, pos = 1, whole = 0, n, i;
	const unsigned char *t = (const unsigned char *)text;
	bool cut = false;

	for (i = 0; t[i] && !cut; i++) {
		n = quoted_size(t[i]);
		cut = pos + n > end;
		if (cut)
			break;
		pos += n;
		if (pos + 3 <= end)
			whole = i + 1;
	}
	out_putc(s, '"');
	for (size_t k = 0; k < (cut ? whole : i); k++)
		put_quoted_byte(s, t[k]);
	out_put(s, "\"...", cut ? 4 : 1);
}

/* Print names of addresses and numbers, which are looked up only now. */
static void put_shown(struct out_sink *s, const struct out_spec *spec, enum ir_show show, uint64_t number)
{
	char words[WORDS_MAX];
	struct out_sink text;

	if (show == IR_SHOW_INSTEAD) {
		if (number != (uint64_t)IR_READABLE)
			out_format(s, "0x%" PRIx64, number);
		return;
	}
	if (show >= IR_SHOW_WORDS) {
		out_field_string(s, spec, words_text(show - IR_SHOW_WORDS, number, words));
		return;
	}
	out_open_mem(&text);
	if (s->names)
		names_put_shown(s->names, &text, show, number);
	out_field_string(s, spec, out_text(&text));
	out_close(&text);
}

/* The mark at @text (ir.h, IR_MARK): its end, or NULL if it is none.  *show is changed by a mark alone. */
static const char *read_mark(const char *text, enum ir_show *show, uint64_t *number)
{
	unsigned int how;
	char *end;

	if (*text != *IR_MARK || !isxdigit((unsigned char)text[1]))
		return NULL;
	how = (unsigned int)strtoul(text + 1, &end, 16);
	if (*end != ',' || !isxdigit((unsigned char)end[1]) || how < IR_SHOW_FRAMES_FULL || how > IR_SHOW_SOURCE_LINE)
		return NULL;
	*number = strtoull(end + 1, &end, 16);
	if (*end != *IR_MARK_END)
		return NULL;
	*show = (enum ir_show)how;
	return end + 1;
}

/* Print a string with the texts that its marks stand for. */
static void put_marked(struct out_sink *s, const struct out_spec *spec, const char *text)
{
	struct out_sink all;

	out_open_mem(&all);
	while (*text) {
		enum ir_show show = IR_SHOW_NUMBER, as = IR_SHOW_NUMBER;
		const char *at = text, *end;
		uint64_t number;
		char *behind;

		while (*at == *IR_MARK_AS) {	/* the first one counts: sprint_usyms() of what sprint_usyms() gave */
			unsigned int how = (unsigned int)strtoul(at + 1, &behind, 16);

			if (*behind != *IR_MARK_AS || how < IR_SHOW_FRAMES_FULL || how > IR_SHOW_SOURCE_LINE)
				break;
			as = as ? as : (enum ir_show)how;
			at = behind + 1;
		}
		end = read_mark(at, &show, &number);
		if (end && s->names && names_knows(s->names, number)) {
			names_put_shown(s->names, &all, as ? as : show, number);
			text = end;
		} else {	/* also what only looks like one: a string of the traced process */
			out_putc(&all, *text++);
		}
	}
	out_field_string(s, spec, out_text(&all));
	out_close(&all);
}

int out_conv_stp(struct out_sink *s, const struct fmt_conv *c, const struct out_spec *spec,
		 const struct ir_value *v, const struct ir_slot *slot)
{
	struct out_spec marked = *spec;

	marked.always = true;
	/* SystemTap's runtime prints at least one digit, even with precision 0. */
	if (c->kind != FMT_STRING && !marked.prec)
		marked.prec = -1;
	if (slot->show && c->kind == FMT_STRING && v->type == IR_INT) {
		put_shown(s, spec, (enum ir_show)slot->show, (uint64_t)v->i);
		return 0;
	}
	if (v->type != (c->kind == FMT_STRING ? IR_STR : IR_INT))
		return -EINVAL;
	if (slot->show == IR_SHOW_QUOTED) {
		if (v[-1].i == IR_READABLE)	/* ir.h: an IR_SHOW_INSTEAD is before it */
			put_quoted(s, v->s, spec->prec < 0 ? SIZE_MAX : (size_t)spec->prec);
		return 0;
	}
	switch (c->letter) {
	case 's':
		if (strchr(v->s, *IR_MARK))
			put_marked(s, spec, v->s);
		else
			out_field_string(s, spec, v->s);
		return 0;
	case 'd':
	case 'i':
		out_field_signed(s, &marked, v->i);
		return 0;
	case 'u':
		out_field_unsigned(s, &marked, (uint64_t)v->i, 10, false);
		return 0;
	case 'o':
		out_field_unsigned(s, &marked, (uint64_t)v->i, 8, false);
		return 0;
	case 'p':
		marked.flags |= FMT_ALT;
		/* fall through */
	case 'x':
	case 'X':
		out_field_unsigned(s, &marked, (uint64_t)v->i, 16, c->letter == 'X');
		return 0;
	case 'c':
		put_char(s, spec, v->i);
		return 0;
	case 'b':
		put_binary(s, spec, v->i);
		return 0;
	default:
		return -EINVAL;	/* m, M: the memory is not in the record */
	}
}
