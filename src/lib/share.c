#include <limits.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/self.h"
#include "lib/lib.h"

/* @dir/@what, or NULL if it cannot be read. */
static const char *in(struct dtap *t, const char *dir, const char *what)
{
	const char *path = arena_printf(t->arena, "%s/%s", dir, what);

	return access(path, R_OK) ? NULL : path;
}

const char *lib_share(struct dtap *t, const char *what)
{
	static const char *const places[] = { "../share/dtap", "../share", "../../share" };
	const char *path = NULL;
	char dir[PATH_MAX];

	if (t->conf.share)
		return in(t, t->conf.share, what);
	if (self_dir(dir, sizeof(dir)))
		for (size_t i = 0; !path && i < sizeof(places) / sizeof(places[0]); i++)
			path = in(t, arena_printf(t->arena, "%s%s", dir, places[i]), what);
	return path ? path : in(t, DTAP_SHAREDIR, what);
}
