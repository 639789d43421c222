#include "cmd/cmd.h"

#include <libgen.h>
#include <limits.h>
#include <unistd.h>

#include "base/arena.h"

const char *cmd_share(struct arena *a, const char *what)
{
	static const char *const places[] = { "../share/dtap", "../share" };
	const char *dir, *path;
	char exe[PATH_MAX];
	ssize_t n;

	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return NULL;
	exe[n] = '\0';
	dir = dirname(exe);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		path = arena_printf(a, "%s/%s/%s", dir, places[i], what);
		if (!access(path, R_OK))
			return path;
	}
	return NULL;
}
