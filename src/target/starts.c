#include "target/starts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch/remote.h"
#include "base/now.h"
#include "target/askfolder.h"
#include "target/maps.h"
#include "target/peer.h"
#include "target/priv.h"
#include "target/starts_priv.h"

/* DESCRIPTORS: the holder's need at most, with room (HELD, EVENTS and TRACERS there). */
enum { KNOWN = 256, TAKEN = 16, DESCRIPTORS = 128, READY_MS = 1000, AGAIN_MS = 1000 };

struct starts {
	struct starts_conf conf;
	struct starts_bring bring;
	pid_t holder;			/* a child of this process; 0: it is another tracer's */
	int sock, epoll;		/* @epoll has @sock, and stays when the holder is another one */
	uint64_t since_ms;		/* when it was found */
	struct { uint64_t dev, ino; } known[KNOWN];	/* a ring, so that the holder is not told of each process again */
	size_t nknown;
};

/* Without a descriptor for its event the kernel refuses an exec: then nobody is held. */
static bool has_room(void)
{
	struct rlimit files;

	return !getrlimit(RLIMIT_NOFILE, &files) && files.rlim_max >= DESCRIPTORS;
}

/* Descriptors, and the right to the priority that the holder's threads take. */
static void take_room(void)
{
	const struct rlimit priority = { 1, 1 };
	struct rlimit files, now;

	if (!getrlimit(RLIMIT_RTPRIO, &now) && now.rlim_cur < priority.rlim_cur)
		setrlimit(RLIMIT_RTPRIO, &priority);

	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < DESCRIPTORS) {
		files.rlim_cur = DESCRIPTORS;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

/* The holder keeps nothing of the tracer's: probes and files of a tracer that has ended would remain. */
static void close_others(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;
	long max = sysconf(_SC_OPEN_MAX);

	if (!syscall(SYS_close_range, high + 1, ~0u, 0))
		max = high;
	for (int fd = 0; fd < max; fd++)
		if (fd != low && fd != high)
			close(fd);
}

/* Wait for a packet, or the end of the connection.  False: nothing came. */
static bool await(int sock, int ms)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

static bool await_ready(int sock)
{
	struct starts_msg m;

	return await(sock, READY_MS) && recv(sock, &m, sizeof(m), MSG_DONTWAIT) == sizeof(m) && m.kind == STARTS_READY;
}

static int fork_holder(struct starts *s)
{
	int fan = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_TID, O_RDONLY | O_CLOEXEC | O_LARGEFILE);
	int ends[2], err;
	sigset_t all, old;

	if (fan < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends)) {
		err = -errno;
		close(fan);
		return err;
	}
	/* Signals are the tracer's: Ctrl-C and Ctrl-Z go to its group, of which the holder is none. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	s->holder = fork();
	err = s->holder < 0 ? -errno : 0;
	if (!s->holder) {
		setsid();
		prctl(PR_SET_NAME, "dtap-hold");
		close_others(fan, ends[1]);
		take_room();
		starts_hold(fan, ends[1], &s->bring);
		_exit(1);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(fan);
	close(ends[1]);
	/* It holds also if it cannot be found, and if it is not ready yet; but it may have ended. */
	if (!err && !await_ready(ends[0]) && waitpid(s->holder, NULL, WNOHANG) == s->holder) {
		s->holder = 0;
		err = -EAGAIN;
	}
	if (err)
		close(ends[0]);
	else
		s->sock = ends[0];
	return err;
}

bool starts_is_tracer(pid_t pid)
{
	enum { SYS_PTRACE = 19, EFFECTIVE = 2, SPACES = 2 };	/* capabilities(7); user and pid, of struct domain */
	struct domain own, d;

	return pid > 0 && !domain_of(getpid(), &own) && !domain_of(pid, &d) && !d.own_pid && !d.uids[1] &&
	       d.caps[EFFECTIVE] >> SYS_PTRACE & 1 && !memcmp(d.spaces, own.spaces, SPACES * sizeof(*d.spaces));
}

/* The socket of the machine's holder, if there is one; a negative errno. */
static int connect_holder(void)
{
	struct guarded folder;
	struct ucred who;
	struct sockaddr_un to;
	char path[ABI_ASK_PATH];
	socklen_t len = sizeof(who);
	int fd, err = 0;

	askfolder_path(path);
	err = guarded_open(path, geteuid(), &folder);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, askfolder_address(&to, path, STARTS_NAME)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len))
		err = -errno;
	else if (!starts_is_tracer(who.pid))
		err = -EPERM;
	guarded_close(&folder);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static int join_holder(struct starts *s)
{
	struct starts_join m = { .head = { .kind = STARTS_JOIN }, .bring = s->bring };
	int fd = connect_holder();

	if (fd < 0)
		return fd;
	if (send(fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(m) || !await_ready(fd)) {
		close(fd);
		return -EAGAIN;
	}
	s->sock = fd;
	s->holder = 0;
	return 0;
}

static int find_holder(struct starts *s)
{
	struct epoll_event e = { .events = EPOLLIN };
	int err = join_holder(s) ? fork_holder(s) : 0;

	s->since_ms = now_ms();
	s->nknown = 0;
	if (!err && epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->sock, &e))
		err = -errno;
	return err;
}

/* The holder says whether it goes on for other tracers; a child that does not is waited for. */
static void leave_holder(struct starts *s)
{
	struct starts_msg m = { 0 };
	bool stays = false;

	if (s->sock >= 0) {
		shutdown(s->sock, SHUT_WR);
		while (await(s->sock, STARTS_MS) && recv(s->sock, &m, sizeof(m), MSG_DONTWAIT) == sizeof(m))
			stays = stays || m.kind == STARTS_LEFT;
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->sock, NULL);	/* a child that was just forked may have it, too */
		close(s->sock);
		s->sock = -1;
	}
	for (int n = 0; s->holder > 0 && !stays && n < STARTS_MS && !waitpid(s->holder, NULL, WNOHANG); n++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	s->holder = 0;
}

int starts_open(const struct starts_conf *conf, struct starts **ret)
{
	const struct target_preload *preload = conf->preload;
	const char *value = preload->environ && *preload->environ ? strchr(*preload->environ, '=') : NULL;
	struct starts *s;
	int err;

	if (!arch_remote() || !arch_remote()->set_sp || !preload->path || !value || !has_room())
		return -ENOTSUP;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->conf = *conf;
	s->sock = -1;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	snprintf(s->bring.path, sizeof(s->bring.path), "%s", preload->path);
	snprintf(s->bring.address, sizeof(s->bring.address), "%s", value + 1);
	err = s->epoll < 0 ? -errno : find_holder(s);
	if (err)
		starts_close(s);
	else
		*ret = s;
	return err;
}

void starts_close(struct starts *s)
{
	if (!s)
		return;
	leave_holder(s);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s);
}

static void know(struct starts *s, int fd)
{
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct starts_msg m = { .kind = STARTS_KNOW };
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	for (size_t i = 0; i < KNOWN && i < s->nknown; i++)
		if (s->known[i].dev == st.st_dev && s->known[i].ino == st.st_ino)
			return;
	control.h.cmsg_level = SOL_SOCKET;
	control.h.cmsg_type = SCM_RIGHTS;
	control.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
	if (s->sock < 0 || sendmsg(s->sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(m))
		return;
	s->known[s->nknown % KNOWN].dev = st.st_dev;
	s->known[s->nknown++ % KNOWN].ino = st.st_ino;
}

void starts_know_file(struct starts *s, const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return;
	know(s, fd);
	close(fd);
}

void starts_know(struct starts *s, pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	starts_know_file(s, path);
}

bool starts_can_bring(const struct starts *s, pid_t pid)
{
	struct target_maps maps = { 0 };
	struct strbuf status = { 0 };
	struct target *t = NULL;
	const char *seccomp;
	bool ret = false;

	if (target_attach(pid, &t, NULL) || target_maps(t, &maps, NULL) || proc_read(pid, "status", &status))
		goto out;
	for (size_t i = 0; i < maps.n && !ret; i++) {
		const char *base = strrchr(maps.v[i].path, '/');

		ret = base && (!strncmp(base, "/ld-linux", 9) || !strncmp(base, "/ld-2.", 6));
	}
	seccomp = proc_status_field(strbuf_str(&status), "Seccomp");
	ret = ret && seccomp && *seccomp == '0' && !target_auxv(t, AT_SECURE) && preload_loads(t, s->bring.path);
out:
	strbuf_fini(&status);
	target_maps_fini(&maps);
	target_free(t);
	return ret;
}

int starts_fd(const struct starts *s)
{
	return s->epoll;
}

/* The holder has ended.  Find another one, unless that was only just done. */
static void find_again(struct starts *s)
{
	bool soon = now_ms() - s->since_ms < AGAIN_MS;

	leave_holder(s);
	if (!soon && !find_holder(s))
		s->conf.again(s->conf.ctx);
}

void starts_turn(struct starts *s)
{
	struct starts_msg m;
	ssize_t got = 0;

	for (int n = 0; s->sock >= 0 && n < TAKEN && (got = recv(s->sock, &m, sizeof(m), MSG_DONTWAIT)) == sizeof(m); n++) {
		if (m.kind != STARTS_ASK)
			continue;
		m.kind = STARTS_ANSWER;
		m.wanted = m.pid && s->conf.wanted(s->conf.ctx, m.pid);
		send(s->sock, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	if (s->sock >= 0 && (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)))
		find_again(s);
}
