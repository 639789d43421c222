#include "lang/desc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"

bool desc_is_glob(const char *glob)
{
	return glob[strcspn(glob, "*?[\\")] != '\0';
}

bool desc_glob(const char *glob, const char *s)
{
	/* Nearly all names differ in the first character, and nearly all patterns begin with a plain one. */
	if (*glob != *s && *glob && !strchr("*?[\\", *glob))
		return false;
	return glob_match(glob, s);
}

const char *desc_digits(const char *prov)
{
	const char *digits = prov + strlen(prov);

	while (digits > prov && isdigit((unsigned char)digits[-1]))
		digits--;
	return digits;
}

uint32_t desc_pid(const char *prov)
{
	unsigned long long pid = strtoull(desc_digits(prov), NULL, 10);

	return pid > INT32_MAX ? 0 : (uint32_t)pid;
}

static bool same_text(const char *a, const char *b)
{
	return !a == !b && (!a || !strcmp(a, b));
}

bool probe_arg_same(const struct probe_arg *a, const struct probe_arg *b)
{
	return a->size == b->size && a->sign == b->sign && a->is_float == b->is_float && a->kernel == b->kernel &&
	       a->raw == b->raw && same_text(a->type, b->type) && same_text(a->xlate, b->xlate);
}
