#include "base/self.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

bool self_is_others(const struct stat *st)
{
	return (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid && st->st_gid != st->st_uid);
}

bool self_is_writable(const char *path, char *buf, size_t size)
{
	struct stat st;
	char *slash;

	if (strlen(path) >= size)
		return false;
	strcpy(buf, path);
	if (stat(buf, &st))
		return false;
	if (self_is_others(&st))
		return true;
	slash = strrchr(buf, '/');
	if (!slash)
		return false;
	slash[slash == buf] = '\0';
	return !stat(buf, &st) && self_is_others(&st) && !(st.st_mode & S_ISVTX);
}
