#include "lang/desc.h"

#include <fnmatch.h>
#include <string.h>

bool desc_is_glob(const char *glob)
{
	return glob[strcspn(glob, "*?[\\")] != '\0';
}

bool desc_glob(const char *glob, const char *s)
{
	return !*glob || !fnmatch(glob, s, 0);
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
