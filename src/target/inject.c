/*
 * The thread executes a chain of calls (chain.h): it creates a socket pair, of which we take one end by pidfd_getfd; it
 * loads the object, and calls the object's entry point with its own end.  It loads it by its path; if it cannot see that, by
 * our descriptor's in /proc, if it has our rights; else through a descriptor that we send over the pair.  The descriptor is of
 * the same file, so kernel probes on the file work then, too; these ways need /proc in the process's root.
 *
 * From the start the chain contains the calls that close the descriptors again; the other calls are filled in when
 * their arguments are known.  If the tracer dies, the rest of the chain leaves no trace, except between the return of
 * dlopen and the call of the entry point: then the object stays loaded and does nothing.
 */
#include "target/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/strbuf.h"

/* The calls of the chain; "at first": what the call does until the tracer has read the pair's descriptors. */
enum {
	PAIR,
	CLOSE_PEER,		/* at first: byte-swapped copy of both descriptors */
	NAME_TRACER,		/* only at the program's entry point */
	LOAD_PATH,		/* at first: copy one to the argument of LOAD_FD */
	RECEIVE,		/* at first: copy the other to the argument of CLOSE_OBJECT */
	LOAD_FD,		/* at first: close one end */
	CLOSE_OBJECT,		/* at first: close the other */
	LOADED,			/* a mark, if may_mark */
	ENTER,			/* or close the thread's end */
	CLOSE_OWN,		/* a mark first, if may_mark */
	PUT_ERRNO,
};

_Static_assert(PUT_ERRNO + 1 == INJECT_CALLS, "as many as are laid out");

enum {
	CALL_MS = 10000,
	PATH_ROOM = 400,
	ENV_ROOM = sizeof(ABI_AGENT_ENV) + ABI_AGENT_ADDRESS,
};

struct data {
	int pair[2];
	uint8_t swapped[8];
	uint8_t old_errno[8];
	char byte[8];
	struct iovec iov;
	struct msghdr msg;
	char env[ENV_ROOM];
	char path[PATH_ROOM];
};

_Static_assert(sizeof(struct data) <= CHAIN_DATA, "fits");

static uint64_t datum(const struct injection *j, size_t off)
{
	return j->c.data + off;
}

#define DATUM(j, field) datum(j, offsetof(struct data, field))

static void set(struct injection *j, unsigned int i, uint64_t fn, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const struct remote_call call = { .fn = fn, .arg = { a0, a1, a2 } };

	chain_set(&j->c, i, &call);
}

/* swab() swaps adjacent bytes while it copies; unlike memcpy it is not an IFUNC, so its address is known. */
static void set_copy(struct injection *j, unsigned int i, uint64_t from, uint64_t to, unsigned int len)
{
	set(j, i, j->g.swab, from, to, len);
}

/* Let the last call restore errno, if errno's address can be found. */
static void keep_errno(struct injection *j)
{
	uint8_t code[32], old[4], swapped[4];
	uint64_t at, indirect, off = 0;

	if (!j->g.errno_location || chain_read(&j->c, j->g.errno_location, code, sizeof(code)) ||
	    !arch_remote()->errno_at(code, sizeof(code), j->g.errno_location, j->c.at.tls, &at, &indirect) ||
	    (indirect && chain_read(&j->c, indirect, &off, sizeof(off))) || chain_read(&j->c, at + off, old, sizeof(old)))
		return;
	swapped[0] = old[1];
	swapped[1] = old[0];
	swapped[2] = old[3];
	swapped[3] = old[2];
	chain_put(&j->c, offsetof(struct data, old_errno), swapped, sizeof(swapped));
	set_copy(j, PUT_ERRNO, DATUM(j, old_errno), at + off, sizeof(old));
}

/* The chain that is safe without the tracer: create the pair, close both ends. */
static void write_chain(struct injection *j)
{
	const struct remote_call pair = { .fn = j->g.syscall, .arg = {
		SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, DATUM(j, pair) } };
	struct data d = { .pair = { -1, -1 } };

	chain_put(&j->c, 0, &d, sizeof(d));
	chain_set(&j->c, PAIR, &pair);
	set_copy(j, CLOSE_PEER, DATUM(j, pair), DATUM(j, swapped), 8);
	set_copy(j, LOAD_PATH, DATUM(j, swapped), chain_arg0(&j->c, LOAD_FD), 4);
	set_copy(j, RECEIVE, DATUM(j, swapped) + 4, chain_arg0(&j->c, CLOSE_OBJECT), 4);
	set(j, LOAD_FD, j->g.close, UINT32_MAX, 0, 0);
	set(j, CLOSE_OBJECT, j->g.close, UINT32_MAX, 0, 0);
	keep_errno(j);
}

/* Let the thread run to the end of call @i. */
static int run(struct injection *j, unsigned int i)
{
	int err = chain_run(&j->c, i, CALL_MS), pid = (int)j->t->pid;

	if (err == -ESRCH)
		return target_fail(j->why, err, "process %d has ended", pid);
	if (err == -ETIMEDOUT)
		return target_fail(j->why, err, "process %d does not come back from its dynamic loader; the agent may yet "
				   "get in, and will do nothing", pid);
	if (err)
		return target_fail(j->why, err, "loading the agent failed in process %d, which goes on without it", pid);
	return 0;
}

/* Send a descriptor of the object's file over our end of the pair. */
static int send_object(struct injection *j)
{
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)"", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	const char *path = agents_file_for(j->a, j->g.is_musl)->path;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return target_fail_errno(j->why, -errno, "dtap's agent %s", path);
	control.h.cmsg_level = SOL_SOCKET;
	control.h.cmsg_type = SCM_RIGHTS;
	control.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
	if (sendmsg(j->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		err = target_fail_errno(j->why, -errno, "cannot hand the agent to process %d", (int)j->t->pid);
	close(fd);
	return err;
}

/* Let the thread receive that descriptor; recvmsg() writes its number to the argument of CLOSE_OBJECT. */
static int set_receive(struct injection *j, int own)
{
	const struct arch_remote *arch = arch_remote();
	struct iovec iov = { (void *)(uintptr_t)DATUM(j, byte), 1 };
	struct msghdr msg = {
		.msg_iov = (void *)(uintptr_t)DATUM(j, iov), .msg_iovlen = 1,
		/* The control message's header overwrites the bytes before the argument, which are not used. */
		.msg_control = (void *)(uintptr_t)(chain_arg0(&j->c, CLOSE_OBJECT) - arch->arg0_before),
		.msg_controllen = CMSG_SPACE(sizeof(int)),
	};
	int err = send_object(j);

	if (!err)
		err = chain_write(&j->c, DATUM(j, iov), &iov, sizeof(iov));
	if (!err)
		err = chain_write(&j->c, DATUM(j, msg), &msg, sizeof(msg));
	set(j, RECEIVE, j->g.recvmsg, (uint64_t)own, DATUM(j, msg), MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	return err;
}

/* @path is absolute.  At the program's entry point, where nothing has begun, the object is as one that is preloaded. */
static int set_load(struct injection *j, unsigned int i, const char *path)
{
	enum { NOW = 2 };	/* RTLD_NOW, and RTLD_LOCAL, which is 0 */
	char name[PATH_ROOM];

	snprintf(name, sizeof(name), "%s%s", j->at_entry ? "/" : ABI_AGENT_BROUGHT, path + 1);
	set(j, i, j->g.dlopen, DATUM(j, path), NOW, 0);
	return chain_write(&j->c, DATUM(j, path), name, strlen(name) + 1);
}

/* The program may have been started without the variable. */
static int set_tracer(struct injection *j)
{
	size_t name = sizeof(ABI_AGENT_ENV);
	char env[ENV_ROOM];

	memcpy(env, j->a->env, sizeof(env));
	env[name - 1] = '\0';	/* for = */
	set(j, NAME_TRACER, j->g.setenv, DATUM(j, env), DATUM(j, env) + name, 1);
	return chain_write(&j->c, DATUM(j, env), env, sizeof(env));
}

static int store(struct injection *j, unsigned int from)
{
	int err = chain_store(&j->c, from);

	return err ? target_fail_errno(j->why, err, "cannot write to process %d", (int)j->t->pid) : 0;
}

/* The thread has created the pair: take our end, and rewrite the rest of the chain.  @path: by which the object is loaded, or NULL. */
static int take_pair(struct injection *j, int *own, const char *path)
{
	int pair[2], err = chain_read(&j->c, DATUM(j, pair), pair, sizeof(pair));
	unsigned int i;

	if (err || pair[0] < 0)
		return target_fail(j->why, -ENOTSUP, "process %d cannot make a socket pair: it has too many files open, or "
				   "must not", (int)j->t->pid);
	j->fd = (int)syscall(SYS_pidfd_getfd, j->t->pidfd, pair[1], 0);
	if (j->fd < 0)
		return target_fail_errno(j->why, -errno, "cannot take a descriptor from process %d", (int)j->t->pid);
	*own = pair[0];
	for (i = NAME_TRACER; i <= CLOSE_OWN; i++)
		chain_set(&j->c, i, NULL);
	set(j, CLOSE_PEER, j->g.close, (uint64_t)pair[1], 0, 0);
	set(j, CLOSE_OBJECT, j->g.close, UINT32_MAX, 0, 0);
	set(j, ENTER, j->g.close, (uint64_t)pair[0], 0, 0);
	if (j->may_mark && !j->g.entry)
		chain_mark(&j->c, LOADED);
	err = path ? set_load(j, LOAD_PATH, path) : 0;
	if (!err && j->at_entry && j->g.setenv)
		err = set_tracer(j);
	return err ? err : store(j, CLOSE_PEER);
}

/* Let the thread execute call @i, which loads the object. */
static int run_loader(struct injection *j, unsigned int i)
{
	return run(j, j->may_mark ? LOADED : i);
}

/* Load the object through a descriptor.  The thread is stopped before RECEIVE, or has @passed it without receiving anything. */
static int load_fd(struct injection *j, int own, bool passed)
{
	/* The loader names the object by this path from now on, so use a spelling that nobody else uses. */
	char path[64];
	int fd, err = set_receive(j, own);

	if (!err)
		err = store(j, RECEIVE);
	if (!err && passed)
		err = chain_again(&j->c, RECEIVE);
	if (!err)
		err = run(j, RECEIVE);
	if (err)
		return err;
	if (chain_read(&j->c, chain_arg0(&j->c, CLOSE_OBJECT), &fd, sizeof(fd)) || fd < 0)
		return target_fail(j->why, -ENOTSUP, "process %d cannot receive the agent: it has too many files open, or must "
				   "not", (int)j->t->pid);
	set(j, CLOSE_OBJECT, j->g.close, (uint64_t)fd, 0, 0);
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	err = set_load(j, LOAD_FD, path);
	if (!err)
		err = store(j, LOAD_FD);
	return err ? err : run_loader(j, LOAD_FD);
}

/* Let the thread load the object: *entry becomes the address of its entry point. */
static int load(struct injection *j, int own, bool by_path, uint64_t *entry)
{
	int err = 0;

	if (by_path)
		err = run_loader(j, LOAD_PATH);
	if (!err && by_path)
		*entry = guest_entry(j->a, j->t);
	if (!err && !*entry) {
		err = load_fd(j, own, by_path && j->may_mark);
		if (!err)
			*entry = guest_entry(j->a, j->t);
	}
	if (!err && !*entry)
		err = target_fail(j->why, -ENOTSUP, "process %d's dynamic loader refuses dtap's agent; is /proc mounted in its "
				  "root?", (int)j->t->pid);
	return err;
}

/* The inode number of the socket that is descriptor @fd of the process; 0: none. */
static uint64_t socket_of(const struct injection *j, int fd)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)j->t->pid, fd);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* Let the thread call the entry point, and close its end of the pair if the object has not taken it. */
static int enter(struct injection *j, int own, uint64_t entry)
{
	uint64_t socket = socket_of(j, own);
	bool is_refused;
	char byte;
	int err;

	set(j, ENTER, entry, (uint64_t)own, j->forbidden, 0);
	if (j->may_mark)
		chain_mark(&j->c, CLOSE_OWN);
	err = store(j, ENTER);
	if (!err)
		err = run(j, j->may_mark ? CLOSE_OWN : ENTER);
	if (err)
		return err;
	if (socket_of(j, own) == socket) {
		set(j, CLOSE_OWN, j->g.close, (uint64_t)own, 0, 0);
		err = store(j, CLOSE_OWN);
		if (!err && j->may_mark)
			err = chain_again(&j->c, CLOSE_OWN);
		is_refused = !err && recv(j->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
	} else {
		is_refused = recv(j->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
	}
	if (is_refused)	/* without a message that says why */
		err = target_fail(j->why, -EBUSY, "process %d takes no more tracers, or its Python does not run: "
				  "it is only just starting, about to end, or not begun", (int)j->t->pid);
	return err;
}

/* The path by which the process may see the object, or NULL.  Our descriptor's is tried: the process may have the rights to open it. */
static const char *path_there(const struct injection *j, char lent[PRELOAD_LENT_PATH])
{
	const char *path = agents_file_for(j->a, j->g.is_musl)->path;

	if (j->g.sees_object)
		return strlen(path) + sizeof(ABI_AGENT_BROUGHT) <= PATH_ROOM ? path : NULL;
	return !j->g.is_musl && preload_lent_path(&j->a->preload, j->t->pid, lent) ? lent : NULL;
}

int inject(struct injection *j)
{
	char lent[PRELOAD_LENT_PATH];
	uint64_t entry = j->g.entry;
	const char *path = entry ? NULL : path_there(j, lent);
	int own = -1, err;

	write_chain(j);
	err = chain_go(&j->c);
	if (err)
		return target_fail_errno(j->why, err, "cannot write to process %d", (int)j->t->pid);
	err = run(j, PAIR);
	if (!err)
		err = take_pair(j, &own, path);
	if (!err && !entry)
		err = load(j, own, path != NULL, &entry);
	seek_release(j);
	if (!err && !j->at_entry)
		err = enter(j, own, entry);
	/* Also after a fault the thread is returning to its original state. */
	if (err != -ESRCH && err != -ETIMEDOUT)
		chain_finish(&j->c, CALL_MS);
	return err == -ETIMEDOUT ? -EBUSY : err;
}
