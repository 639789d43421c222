/*
 * Error messages about processes.
 */
#include <stdarg.h>
#include <string.h>

#include "target/priv.h"

int target_fail(struct strbuf *why, int err, const char *fmt, ...)
{
	va_list ap;

	if (!why)
		return err;
	va_start(ap, fmt);
	strbuf_vprintf(why, fmt, ap);
	va_end(ap);
	return err;
}

int target_fail_errno(struct strbuf *why, int err, const char *fmt, ...)
{
	va_list ap;

	if (!why)
		return err;
	va_start(ap, fmt);
	strbuf_vprintf(why, fmt, ap);
	va_end(ap);
	strbuf_printf(why, ": %s", strerror(-err));
	return err;
}
