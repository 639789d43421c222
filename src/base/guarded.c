#include "base/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FOLDER = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* An access list that lets others write shows as the group's right. */
bool guarded_is(const struct stat *st, uint32_t owner)
{
	return (st->st_uid == 0 || st->st_uid == owner) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Is the folder @fd guarded?  0, or -errno. */
static int check(int fd, uint32_t owner)
{
	struct stat st;

	if (syscall(SYS_fstat, fd, &st))
		return -errno;
	return guarded_is(&st, owner) ? 0 : -EPERM;
}

static int open_in(int folder, const char *name)
{
	long fd = syscall(SYS_openat, folder, name, FOLDER, 0);

	return fd < 0 ? -errno : (int)fd;
}

/* The folder @name of length @len in @*fd, which it replaces. */
static int enter(int *fd, const char *name, size_t len, uint32_t owner)
{
	char part[256];
	int err, next;

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, name, len);
	part[len] = '\0';
	next = open_in(*fd, part);
	if (next < 0)
		return next;
	syscall(SYS_close, *fd);
	*fd = next;
	err = check(*fd, owner);
	return err;
}

static int walk(const char *path, uint32_t owner, int *fd)
{
	int err = check(*fd, owner);

	while (!err && *path) {
		size_t len = strcspn(path, "/");

		if (len)
			err = enter(fd, path, len, owner);
		path += len + (path[len] == '/');
	}
	return err;
}

int guarded_open(const char *path, uint32_t owner, struct guarded *ret)
{
	int saved = errno, fd = open_in(AT_FDCWD, path), err = fd;

	ret->fd = -1;
	ret->owner = owner;
	if (fd >= 0) {
		syscall(SYS_close, fd);
		err = fd = open_in(AT_FDCWD, "/");
	}
	if (fd >= 0) {
		err = walk(path, owner, &fd);
		if (err)
			syscall(SYS_close, fd);
		else
			ret->fd = fd;
	}
	errno = saved;
	return err;
}

void guarded_close(struct guarded *g)
{
	int saved = errno;

	if (g->fd >= 0)
		syscall(SYS_close, g->fd);
	g->fd = -1;
	errno = saved;
}
