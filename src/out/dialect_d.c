/*
 * D's output: DTrace guide, "Output Formatting"; libdtrace's messages are in error.c.
 */
#include "out/dialect.h"

#include "out/error.h"
#include "out/printf.h"

static void lost(struct out_sink *s, const char *command, unsigned int kind, uint64_t n, bool tags)
{
	out_drops(s, command, kind, n, -1, tags);
}

const struct dialect dialect_d = {
	.conv = out_conv_d,
	.zero_is_none = true,	/* libdtrace omits it from the format for C's printf */
	.fault = out_fault,
	.lost = lost,
	.titles = true,
	.stands_apart = true,
};
