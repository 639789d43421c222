#include "base/self.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For a program, dladdr() returns argv[0], which need not be a path: so only a library's name is used. */
static bool library_path(char path[PATH_MAX])
{
	Dl_info info;

	return dladdr((const void *)(size_t)self_dir, &info) && info.dli_fname && strstr(info.dli_fname, ".so") &&
	       realpath(info.dli_fname, path);
}

bool self_dir(char *buf, size_t size)
{
	char path[PATH_MAX], *slash;
	ssize_t n;

	if (!library_path(path)) {
		n = readlink("/proc/self/exe", path, sizeof(path) - 1);
		path[n < 0 ? 0 : n] = '\0';
	}
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash - path) + 2 > size)
		return false;
	slash[1] = '\0';
	memcpy(buf, path, strlen(path) + 1);
	return true;
}
