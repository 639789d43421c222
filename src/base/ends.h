/*
 * Does a text end in another?  The empty text ends every one.
 */
#ifndef DTAP_BASE_ENDS_H
#define DTAP_BASE_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The @len bytes at @s. */
static inline bool ends_in(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(s + len - n, end, n);
}

static inline bool ends_with(const char *s, const char *end)
{
	return ends_in(s, strlen(s), end);
}

#endif
