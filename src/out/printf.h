/*
 * printf of both languages: a parsed format (lang/format.h) and the values of a record.
 *
 * How a conversion prints its value depends on the language (dialect.h): printf_d.c and printf_stp.c.
 */
#ifndef DTAP_OUT_PRINTF_H
#define DTAP_OUT_PRINTF_H

#include <stddef.h>
#include <stdint.h>

#include "ir/layout.h"
#include "lang/format.h"
#include "out/field.h"

struct dialect;
struct out_sink;

/*
 * Print @f with the @n values @v of types @slots; there may be more than it takes.  0, or -EINVAL when a
 * value is missing or of the wrong kind for its conversion: the checkers refuse that, so it is a bug or a
 * corrupt record.  What precedes it is printed.
 */
int out_printf(struct out_sink *s, const struct fmt *f, const struct ir_value *v, const struct ir_slot *slots,
	       size_t n);

/* --- for printa, which mixes keys with aggregated values ---------------------------------------------- */

/* Values that conversions consume in order. */
struct out_args {
	const struct ir_value *v;
	const struct ir_slot *slots;
	size_t n, next;
};

/* @c's flags, width and precision, dynamic ones taken from @a.  0 or -EINVAL. */
int out_spec_of(const struct dialect *d, const struct fmt_conv *c, struct out_args *a, struct out_spec *spec);

int out_conv_d(struct out_sink *s, const struct fmt_conv *c, const struct out_spec *spec,
	       const struct ir_value *v, const struct ir_slot *slot);
int out_conv_stp(struct out_sink *s, const struct fmt_conv *c, const struct out_spec *spec,
		 const struct ir_value *v, const struct ir_slot *slot);

#endif
