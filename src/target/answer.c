/*
 * Pythons that start and ask (abi/ask.h).
 *
 * Nothing is read from who connects: the kernel's word on which process it was decides, and the channel is served only
 * if that process itself answers ASK and has not changed (listen.c).  Anybody may connect, so an answer tells a process only
 * what concerns itself: that this session wants it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "abi/ask.h"
#include "base/now.h"
#include "target/agent_priv.h"
#include "target/askfolder.h"

/*
 * To look at a process takes about a millisecond, so who connects often is not looked at: a Python asks once.  Those beyond that
 * get the agent later, as where it is not installed.
 */
enum { BACKLOG = 1024, TAKEN = 16, FILES = 2, OFTEN_MS = 1000, PROCESS_OFTEN = 8, USER_OFTEN = 256 };

/* Of this age and refusing, such a name is a dead tracer's, too. */
enum { NEW_S = 60 };

/* Remove the sockets of tracers that were killed. */
static void clean(const struct guarded *folder, const char *path)
{
	int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(dir))) {
		bool is_new = !strncmp(e->d_name, ASKFOLDER_NEW, sizeof(ASKFOLDER_NEW) - 1);

		if (!is_new && strncmp(e->d_name, ABI_ASK_NAME, sizeof(ABI_ASK_NAME) - 1))
			continue;
		if (fstatat(folder->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode) ||
		    (is_new && time(NULL) - st.st_mtime < NEW_S))
			continue;
		if (askfolder_is_dead(path, e->d_name))
			unlinkat(folder->fd, e->d_name, 0);
	}
	closedir(dir);
}

/* Bind @fd in the folder @path, and listen.  @digits: of the tracer's address (abi/ask.h). */
static int bind_in(int fd, const struct guarded *folder, const char *path, const char *digits, char name[ASK_NAME])
{
	struct sockaddr_un at;
	char fresh[ASK_NAME];
	socklen_t len;
	int err = 0;

	snprintf(fresh, sizeof(fresh), ASKFOLDER_NEW "%.*s", ABI_ASK_DIGITS, digits);
	snprintf(name, ASK_NAME, ABI_ASK_NAME "%.*s", ABI_ASK_DIGITS, digits);
	len = askfolder_address(&at, path, fresh);
	if (bind(fd, (struct sockaddr *)&at, len))
		return -errno;
	if (fchmodat(folder->fd, fresh, geteuid() ? 0600 : 0666, 0) || listen(fd, BACKLOG) ||
	    renameat(folder->fd, fresh, folder->fd, name))
		err = -errno;
	if (err)
		unlinkat(folder->fd, fresh, 0);
	return err;
}

int agents_answer(struct agents *a, agents_wanted_fn *fn, void *ctx, struct strbuf *why)
{
	struct guarded folder = { .fd = -1 };
	char path[ABI_ASK_PATH];
	int fd = -1, err = -ENOENT, on = 1;

	askfolder_path(path);
	for (int tries = 0; err == -ENOENT && tries < 3; tries++) {
		guarded_close(&folder);
		if (fd >= 0)
			close(fd);
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		/* Accepted sockets inherit it: each packet then says who has sent it. */
		err = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ? -errno : askfolder_open(&folder);
		if (!err) {
			clean(&folder, path);
			err = bind_in(fd, &folder, path, a->word - 1 - ABI_ASK_DIGITS, a->asked_name);
		}
	}
	if (!err) {
		a->asked_folder = folder;
		a->asked = fd;
		a->wanted = fn;
		a->wanted_ctx = ctx;
		err = channel_watch(a, fd, &a->asked);
		if (!err)
			return 0;
		answer_close(a);
	} else {
		guarded_close(&folder);
		if (fd >= 0)
			close(fd);
	}
	if (err == -EPERM || err == -ENOTDIR)
		return target_fail(why, err, "%s, where starting Pythons ask, or a folder above it can be written by others than its user "
				   "and root, or is no folder", path);
	return target_fail_errno(why, err, "cannot listen for starting Pythons in %s", path);
}

void answer_close(struct agents *a)
{
	if (!a->asked)
		return;
	unlinkat(a->asked_folder.fd, a->asked_name, 0);
	guarded_close(&a->asked_folder);
	askfolder_remove();
	close(a->asked);
	a->asked = 0;
}

void answer_given(struct channel *c)
{
	if (c->asker)
		close(c->asker);
	c->asker = 0;
}

/* The file @f for reading, if it is still the one in which probes are armed.  -1: it is not. */
static int open_same(const struct agents_file *f)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || st.st_dev != f->dev || st.st_ino != f->ino)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Send the object's files. */
static bool send_objects(const struct agents *a, int fd)
{
	const struct agents_file *objects[FILES] = { &a->object, &a->musl };
	union { struct cmsghdr h; char room[CMSG_SPACE(FILES * sizeof(int))]; } control = { 0 };
	struct abi_answer answer = { 0 };
	struct iovec iov = { &answer, sizeof(answer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	int files[FILES], n = 0;
	ssize_t sent = -1;

	for (; n < FILES && objects[n]->path; n++) {
		files[n] = open_same(objects[n]);
		if (files[n] < 0)
			break;
	}
	if (n) {
		msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		control.h.cmsg_level = SOL_SOCKET;
		control.h.cmsg_type = SCM_RIGHTS;
		control.h.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(&control.h), files, (size_t)n * sizeof(int));
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	while (n--)
		close(files[n]);
	return sent == sizeof(answer);
}

/* Make @fd of process @pid a channel.  False: close it. */
static bool serve(struct agents *a, int fd, const struct ucred *who)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (!c)
		return false;
	*c = (struct channel){ .fd = fd, .state = CHANNEL_STRANGER, .asks = true, .uid = who->uid, .peer = { .pid = who->pid, .pidfd = -1 } };
	if (!send_objects(a, fd) || !listen_ask(a, c) || channel_watch(a, fd, c)) {
		peer_fini(&c->peer);
		free(c);
		return false;
	}
	c->state = CHANNEL_NEW;
	c->next = a->channels;
	a->channels = c;
	return true;
}

/* Has @id asked more than @max times within OFTEN_MS?  Rows are shared. */
static bool asks_too_often(struct asked_often *row, uint32_t id, uint32_t max)
{
	uint64_t now = now_ms();

	if (row->id != id || now - row->since_ms >= OFTEN_MS)
		*row = (struct asked_often){ .id = id, .since_ms = now };
	return row->n++ >= max;
}

/* False: close @fd. */
static bool answer(struct agents *a, int fd)
{
	struct channel *c;
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) || who.pid <= 0)
		return false;
	if (geteuid() && who.uid != geteuid())
		return false;
	if (asks_too_often(&a->by_process[(uint32_t)who.pid % ASKED_PROCESSES], (uint32_t)who.pid, PROCESS_OFTEN) ||
	    asks_too_often(&a->by_user[who.uid % ASKED_USERS], who.uid, USER_OFTEN))
		return false;
	c = channel_of(a, who.pid);
	if (!c)
		return a->wanted(a->wanted_ctx, who.pid, false) && serve(a, fd, &who);
	a->wanted(a->wanted_ctx, who.pid, true);
	if (c->has_looked || c->state == CHANNEL_OFF || c->asker)
		return false;
	c->asker = fd;
	return true;
}

void answer_take(struct agents *a)
{
	int fd, n;

	for (n = 0; n < TAKEN; n++) {
		fd = accept4(a->asked, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && errno == ECONNABORTED)
			continue;
		if (fd < 0)
			break;
		if (!answer(a, fd))
			close(fd);
	}
	/* Out of descriptors: until a channel ends (listen_again).  Who asks meanwhile waits in vain, as long as abi/ask.h says. */
	if (n < TAKEN && (errno == EMFILE || errno == ENFILE))
		a->is_asked_full = !epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->asked, NULL);
}
