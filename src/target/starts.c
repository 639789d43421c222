#include "target/starts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/remote.h"
#include "target/maps.h"
#include "target/priv.h"
#include "target/starts_priv.h"

/* DESCRIPTORS: the holder's need at most, with room (HELD and EVENTS there). */
enum { KNOWN = 256, TAKEN = 16, DESCRIPTORS = 64 };

struct starts {
	struct starts_bring bring;
	starts_wanted_fn *wanted;
	void *ctx;
	pid_t holder;
	int sock;
	struct { uint64_t dev, ino; } known[KNOWN];	/* a ring, so that the holder is not told of each process again */
	size_t nknown;
};

/* Without a descriptor for its event the kernel refuses an exec: then nobody is held. */
static bool has_room(void)
{
	struct rlimit files;

	return !getrlimit(RLIMIT_NOFILE, &files) && files.rlim_max >= DESCRIPTORS;
}

static void take_room(void)
{
	struct rlimit files;

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
		_exit(0);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(fan);
	close(ends[1]);
	if (err)
		close(ends[0]);
	else
		s->sock = ends[0];
	return err;
}

int starts_open(const struct target_preload *preload, starts_wanted_fn *wanted, void *ctx, struct starts **ret)
{
	const char *value = preload->environ && *preload->environ ? strchr(*preload->environ, '=') : NULL;
	struct starts *s;
	int err;

	if (!arch_remote() || !arch_remote()->set_sp || !preload->path || !value || !has_room())
		return -ENOTSUP;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->sock = -1;
	s->wanted = wanted;
	s->ctx = ctx;
	snprintf(s->bring.path, sizeof(s->bring.path), "%s", preload->path);
	snprintf(s->bring.address, sizeof(s->bring.address), "%s", value + 1);
	err = fork_holder(s);
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
	if (s->sock >= 0)
		close(s->sock);
	if (s->holder > 0) {
		kill(s->holder, SIGKILL);	/* it owns nothing that the kernel does not let go */
		while (waitpid(s->holder, NULL, 0) < 0 && errno == EINTR)
			;
	}
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
	if (sendmsg(s->sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(m))
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

/*
 * Can the program load our object?  It is linked to glibc's loader, sees the object at its path, does not run with the rights
 * of its file (ld.so(8), secure-execution mode), and no filter would kill it at one of the agent's system calls.
 */
static bool can_bring(const struct starts *s, pid_t pid)
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
	return s->sock;
}

void starts_turn(struct starts *s)
{
	struct starts_msg m;

	for (int n = 0; n < TAKEN && recv(s->sock, &m, sizeof(m), MSG_DONTWAIT) == sizeof(m); n++) {
		if (m.kind != STARTS_ASK)
			continue;
		m.kind = STARTS_ANSWER;
		m.wanted = can_bring(s, m.pid) && s->wanted(s->ctx, m.pid);
		send(s->sock, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}
