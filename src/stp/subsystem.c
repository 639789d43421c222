#include "stp/subsystem.h"

#include <fnmatch.h>
#include <string.h>

static const struct {
	struct stp_subsystem is;
	const char *points, *functions;
} rows[] = {
#define STP_SUBSYSTEM(what, points, functions, instead) { { what, instead }, points, functions },
#define STP_NEVER(what, points) { { what, NULL }, points, "" },
#include "stp/subsystems.def"
#undef STP_SUBSYSTEM
#undef STP_NEVER
};

/* Does @name match one of the patterns @s, which are separated by blanks? */
static bool is_among(const char *s, const char *name)
{
	char pattern[64];

	for (size_t len; *s; s += len + strspn(s + len, " ")) {
		len = strcspn(s, " ");
		if (len >= sizeof(pattern))
			continue;
		memcpy(pattern, s, len);
		pattern[len] = '\0';
		if (!fnmatch(pattern, name, 0))
			return true;
	}
	return false;
}

const struct stp_subsystem *stp_subsystem_of(const char *name, bool function)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (is_among(function ? rows[i].functions : rows[i].points, name))
			return &rows[i].is;
	return NULL;
}
