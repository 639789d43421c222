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
