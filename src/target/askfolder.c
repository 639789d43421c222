#include "target/askfolder.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void askfolder_path(char path[ABI_ASK_PATH])
{
	if (geteuid())
		snprintf(path, ABI_ASK_PATH, ABI_ASK_USER, (unsigned int)geteuid());
	else
		snprintf(path, ABI_ASK_PATH, "%s", ABI_ASK_ROOT);
}

socklen_t askfolder_address(struct sockaddr_un *to, const char *path, const char *name)
{
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(to->sun_path, sizeof(to->sun_path), "%s/%.60s", path, name);
	return sizeof(*to);
}

bool askfolder_is_dead(const char *path, const char *name)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un to;
	bool dead;

	if (fd < 0)
		return false;
	dead = connect(fd, (struct sockaddr *)&to, askfolder_address(&to, path, name)) && errno == ECONNREFUSED;
	close(fd);
	return dead;
}

/* Another tracer that ends may remove it meanwhile. */
int askfolder_open(struct guarded *folder)
{
	char path[ABI_ASK_PATH];
	int err = -ENOENT;

	folder->fd = -1;
	askfolder_path(path);
	for (int tries = 0; err == -ENOENT && tries < 3; tries++) {
		mode_t mode = geteuid() ? 0700 : 0755;
		bool made = !mkdir(path, mode);

		if (!made && errno != EEXIST)
			return -errno;
		err = guarded_open(path, geteuid(), folder);
		/* Whatever the mask of modes is. */
		if (!err && made && chmod(path, mode))
			err = -errno;
		if (err && err != -ENOENT && made)
			rmdir(path);
		if (err)
			guarded_close(folder);
	}
	return err;
}

void askfolder_remove(void)
{
	char path[ABI_ASK_PATH];

	askfolder_path(path);
	rmdir(path);
}
