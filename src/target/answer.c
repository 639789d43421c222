/*
 * Pythons that start and ask (abi/ask.h).
 *
 * Nothing is read from who connects: the kernel's word on which process it was decides, and the channel is served only
 * if that process itself answers ASK and has not changed (listen.c).  Anybody may connect, so an answer tells a process only
 * what concerns itself: that this session wants it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/ask.h"
#include "base/now.h"
#include "target/agent_priv.h"

/*
 * To look at a process takes about a millisecond, so who connects often is not looked at: a Python asks once.  Those beyond that
 * get the agent later, as where it is not installed.
 */
enum { BACKLOG = 1024, TAKEN = 16, FILES = 2, OFTEN_MS = 1000, PROCESS_OFTEN = 8, USER_OFTEN = 256 };

int agents_answer(struct agents *a, agents_wanted_fn *fn, void *ctx, struct strbuf *why)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, err = -EADDRINUSE;
	unsigned int slot;
	size_t len;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on))) {
		err = -errno;
		goto fail;
	}
	for (slot = 0; err && slot < ABI_ASK_SLOTS; slot++) {
		len = (size_t)snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, ABI_ASK_NAME, (unsigned int)geteuid(), slot);
		err = bind(fd, (struct sockaddr *)&addr, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) ? -errno : 0;
	}
	if (!err && listen(fd, BACKLOG))
		err = -errno;
	if (!err)
		err = channel_watch(a, fd, &a->asked);
	if (err)
		goto fail;
	a->asked = fd;
	a->wanted = fn;
	a->wanted_ctx = ctx;
	return 0;
fail:
	if (fd >= 0)
		close(fd);
	return err == -EADDRINUSE ? target_fail(why, err, "all %d names by which starting Pythons ask are taken", ABI_ASK_SLOTS)
				  : target_fail_errno(why, err, "cannot listen for starting Pythons");
}

void answer_close(struct agents *a)
{
	if (a->asked)
		close(a->asked);
	a->asked = 0;
}

void answer_given(struct channel *c)
{
	if (c->asker)
		close(c->asker);
	c->asker = 0;
}

/* Send the object's files. */
static bool send_objects(const struct agents *a, int fd)
{
	const char *paths[FILES] = { a->object.path, a->musl.path };
	union { struct cmsghdr h; char room[CMSG_SPACE(FILES * sizeof(int))]; } control = { 0 };
	struct abi_answer answer = { 0 };
	struct iovec iov = { &answer, sizeof(answer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	int files[FILES], n = 0;
	ssize_t sent = -1;

	for (; n < FILES && paths[n]; n++) {
		files[n] = open(paths[n], O_RDONLY | O_CLOEXEC);
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
	*c = (struct channel){ .fd = fd, .state = CHANNEL_STRANGER, .uid = who->uid, .peer = { .pid = who->pid, .pidfd = -1 } };
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
