#include "kernel_fake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "abi/agent.h"
#include "target/agent_priv.h"
#include "target/priv.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { SOCKETS = 1 << 20, PIDFDS = SOCKETS + KERNEL_CONNECTIONS, NPIDFDS = 256, PACKETS = 8, PACKET = 512, FIRST_PID = 1000,
       STATUS = 512, LINE = 160, POLLS_MAX = 100000 };

struct process {
	pid_t pid;
	uint32_t uid, gid;
	uint64_t caps, space, start;
	unsigned int label;
	bool exits, dead, hides, outside;
	uint8_t strange;
	bool is_touched;		/* by this input */
	uint32_t generation;		/* one more when another process has its number */
	bool has_files;			/* they are as they would be read */
	char status[STATUS], stat[LINE];
};

/* Its trust domain, as target/peer.h has it. */
struct rights {
	uint64_t own;			/* not 0: all of its own, since something cannot be read */
	uint64_t ids[5];
};

struct packet {
	size_t size;
	pid_t sender;
	unsigned int nfds;
	uint8_t bytes[PACKET];
};

struct connection {
	unsigned int process;
	pid_t pid;			/* as it was when it connected */
	uint32_t uid, generation;
	bool taken, closed, hung_up;	/* by the tracer; the other end */
	bool deaf, watched;
	void *ptr;			/* epoll's */
	unsigned int first, n;
	uint64_t asked;
	uint32_t looked;
	/* What the tracer must have seen before it gives anything. */
	bool said_word, proved, introduced;
	struct rights rights;		/* when it was asked */
	struct packet packets[PACKETS];
};

static struct {
	bool is_on;
	unsigned int how;
	const char *word;		/* of the address */
	uint64_t now_ns, timer_ns, random;
	bool timer_done, has_signal, is_full, unwatched;
	int epoll, listener, timer;	/* the real ones */
	void *timer_ptr;
	bool listens;
	unsigned int next;		/* epoll tells of this connection first */
	unsigned int polls;
	struct process processes[KERNEL_PROCESSES];
	unsigned int nconnections;
	struct connection connections[KERNEL_CONNECTIONS];
	struct { bool open; unsigned int process; uint32_t generation; } pidfds[NPIDFDS];
	unsigned int npidfds;		/* all behind are free */
} k = { .epoll = -1, .listener = -1, .timer = -1 };

/* --- what the driver does --------------------------------------------------------------------------------- */

void kernel_begin(unsigned int how, const char *word)
{
	k.word = word;
	k.is_on = true;
	k.how = how;
	k.now_ns = 1000000000;
	k.timer_ns = 0;
	k.random = 0;
	k.has_signal = k.is_full = k.unwatched = false;
	k.timer_done = true;
	k.next = k.polls = k.nconnections = 0;
	for (unsigned int i = 0; i < KERNEL_PROCESSES; i++) {
		struct process *p = &k.processes[i];

		if (p->pid && !p->is_touched)
			continue;
		*p = (struct process){ .pid = FIRST_PID + (pid_t)i, .uid = i < 2 ? 0 : 1000 + i / 2, .gid = 100, .caps = i < 2 ? 255 : 0,
				       .space = 7, .start = 50 + i };
	}
}

void kernel_end(void)
{
	for (unsigned int i = 0; i < k.nconnections; i++)
		if (k.connections[i].taken && !k.connections[i].closed)
			abort();
	for (unsigned int i = 0; i < k.npidfds; i++)
		if (k.pidfds[i].open)
			abort();
	k.npidfds = 0;
	k.is_on = false;
}

static struct rights rights_of(const struct process *p)
{
	if (p->hides || p->exits || p->strange % 4 > 1 || p->label % 4 == 3)
		return (struct rights){ .own = p->start };
	return (struct rights){ .ids = { p->uid << p->strange % 2, p->gid, p->caps, p->space, p->label } };
}

static struct connection *new_connection(unsigned int process)
{
	struct process *p = &k.processes[process % KERNEL_PROCESSES];
	struct connection *c = &k.connections[k.nconnections];

	if (k.nconnections == KERNEL_CONNECTIONS || p->dead)
		return NULL;
	k.nconnections++;
	memset(c, 0, offsetof(struct connection, packets));
	c->process = process % KERNEL_PROCESSES;
	c->pid = p->outside ? 0 : p->pid;
	c->uid = p->uid;
	c->generation = p->generation;
	c->rights = rights_of(p);
	return c;
}

int kernel_connect(unsigned int process, bool word)
{
	struct connection *c = new_connection(process);
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_PROOF };

	if (!c)
		return -1;
	if (word) {
		memcpy(m.why, k.word, ABI_AGENT_WORD);
		kernel_send((int)(c - k.connections), process, &m, sizeof(m), 0);
	}
	return (int)(c - k.connections);
}

int kernel_introduce(unsigned int process, int *fd)
{
	struct connection *c = new_connection(process);

	if (!c)
		return -1;
	c->taken = c->introduced = c->said_word = c->proved = true;
	*fd = SOCKETS + (int)(c - k.connections);
	return (int)(c - k.connections);
}

void kernel_hang_up(int c)
{
	k.connections[c].hung_up = true;
}

void kernel_hang_up_all(void)
{
	for (unsigned int i = 0; i < k.nconnections; i++)
		k.connections[i].hung_up = true;
}

bool kernel_is_quiet(void)
{
	for (unsigned int i = 0; i < k.nconnections; i++)
		if (!k.connections[i].closed)
			return false;
	return true;
}

unsigned int kernel_owner(int c)
{
	return k.connections[c].process;
}

/* The very process that was asked, with the number. */
static bool is_answer(const struct connection *c, unsigned int process, const struct abi_agent_msg *m)
{
	return process == c->process && k.processes[process].generation == c->generation && c->asked && m->kind == ABI_AGENT_HELLO &&
	       m->phase == ABI_AGENT_READY && m->proof == c->asked;
}

void kernel_send(int number, unsigned int process, const void *bytes, size_t size, unsigned int nfds)
{
	struct connection *c = &k.connections[number];
	const struct process *p = &k.processes[process % KERNEL_PROCESSES];
	struct packet *to;
	struct abi_agent_msg m;

	if (c->closed || c->hung_up || c->n == PACKETS || size > PACKET || p->dead)
		return;
	to = &c->packets[(c->first + c->n++) % PACKETS];
	to->size = size;
	to->sender = p->outside ? 0 : p->pid;
	to->nfds = nfds;
	memcpy(to->bytes, bytes, size);
	if (size != sizeof(m))
		return;
	memcpy(&m, bytes, sizeof(m));
	c->proved |= is_answer(c, process % KERNEL_PROCESSES, &m);
	c->said_word |= m.kind == ABI_AGENT_PROOF && !memcmp(m.why, k.word, ABI_AGENT_WORD);
}

uint64_t kernel_asked(int c)
{
	return k.connections[c].asked;
}

uint32_t kernel_looked(int c)
{
	return k.connections[c].looked;
}

void kernel_happens(unsigned int process, enum kernel_fate fate)
{
	struct process *p = &k.processes[process % KERNEL_PROCESSES];

	p->is_touched = true;
	p->has_files = false;
	switch (fate) {
	case KERNEL_EXITS:
		p->exits = true;
		break;
	case KERNEL_DIES:
		p->dead = true;
		break;
	case KERNEL_SETUID:
		p->uid++;
		break;
	case KERNEL_SETGID:
		p->gid++;
		break;
	case KERNEL_CAPS:
		p->caps ^= 1;
		break;
	case KERNEL_LABEL:
		p->label++;
		break;
	case KERNEL_MOVES:
		p->space++;
		break;
	case KERNEL_HIDES:
		p->hides = !p->hides;
		break;
	case KERNEL_STRANGE:
		p->strange++;
		break;
	case KERNEL_REPLACED:
		p->generation++;
		p->start += 100;
		p->dead = p->exits = false;
		break;
	default:
		p->outside = true;
	}
}

pid_t kernel_pid(unsigned int process)
{
	return k.processes[process % KERNEL_PROCESSES].pid;
}

void kernel_pass(uint64_t ms)
{
	k.now_ns += ms * 1000000;
}

void kernel_signal(bool pending)
{
	k.has_signal = pending;
}

void kernel_full(bool full)
{
	k.is_full = full;
}

void kernel_unwatched(bool fails)
{
	k.unwatched = fails;
}

void kernel_deaf(int c, bool deaf)
{
	k.connections[c].deaf = deaf;
}

/* --- descriptors ------------------------------------------------------------------------------------------ */

#define REAL(RETURN, NAME, ...) RETURN __real_##NAME(__VA_ARGS__); RETURN __wrap_##NAME(__VA_ARGS__)

REAL(int, accept4, int, struct sockaddr *, socklen_t *, int);
REAL(int, close, int);
REAL(int, clock_gettime, clockid_t, struct timespec *);
REAL(int, epoll_ctl, int, int, int, struct epoll_event *);
REAL(int, epoll_wait, int, struct epoll_event *, int, int);
REAL(int, fcntl64, int, int, ...);
REAL(uid_t, geteuid, void);
REAL(ssize_t, getrandom, void *, size_t, unsigned int);
REAL(int, getsockopt, int, int, int, void *, socklen_t *);
REAL(bool, permit_memory, struct permits *, pid_t);
REAL(void, peer_fini, struct peer *);
REAL(bool, peer_is_ending, const struct peer *);
REAL(bool, peer_is_same, const struct peer *);
REAL(bool, peer_lives, const struct peer *);
REAL(int, peer_prove, pid_t, int, struct peer *, struct strbuf *);
REAL(int, poll, struct pollfd *, nfds_t, int);
REAL(int, proc_read, pid_t, const char *, struct strbuf *);
REAL(ssize_t, read, int, void *, size_t);
REAL(ssize_t, recvmsg, int, struct msghdr *, int);
REAL(ssize_t, send, int, const void *, size_t, int);
REAL(ssize_t, sendmsg, int, const struct msghdr *, int);
REAL(int, setsockopt, int, int, int, const void *, socklen_t);
REAL(int, stat64, const char *, struct stat *);
REAL(bool, target_other_pids, pid_t);
REAL(int, target_pidfd, pid_t);
REAL(int, timerfd_settime, int, int, const struct itimerspec *, struct itimerspec *);

static int fail(int error)
{
	errno = error;
	return -1;
}

static struct process *find_process(pid_t pid)
{
	unsigned int i = (unsigned int)(pid - FIRST_PID);

	return i < KERNEL_PROCESSES && !k.processes[i].dead ? &k.processes[i] : NULL;
}

/* The tracer's end, which is to be open. */
static struct connection *socket_of(int fd)
{
	struct connection *c = &k.connections[fd - SOCKETS];

	if (fd < SOCKETS || fd >= SOCKETS + (int)k.nconnections || !c->taken || c->closed)
		abort();
	return c;
}

static int new_pidfd(unsigned int process, uint32_t generation)
{
	for (unsigned int i = 0; i < NPIDFDS && !k.is_full; i++) {
		if (k.pidfds[i].open)
			continue;
		k.pidfds[i].open = true;
		k.pidfds[i].process = process;
		k.pidfds[i].generation = generation;
		if (i >= k.npidfds)
			k.npidfds = i + 1;
		return PIDFDS + (int)i;
	}
	return fail(EMFILE);
}

static bool has_ended(int fd)
{
	const struct process *p;

	if (fd < PIDFDS || fd >= PIDFDS + NPIDFDS || !k.pidfds[fd - PIDFDS].open)
		abort();
	p = &k.processes[k.pidfds[fd - PIDFDS].process];
	return p->dead || p->generation != k.pidfds[fd - PIDFDS].generation;
}

int __wrap_target_pidfd(pid_t pid)
{
	const struct process *p;

	if (!k.is_on)
		return __real_target_pidfd(pid);
	p = find_process(pid);
	return p ? new_pidfd((unsigned int)(p - k.processes), p->generation) : fail(ESRCH);
}

int __wrap_fcntl64(int fd, int command, ...)
{
	va_list ap;
	long arg;

	va_start(ap, command);
	arg = va_arg(ap, long);
	va_end(ap);
	if (!k.is_on || fd < PIDFDS)
		return __real_fcntl64(fd, command, arg);
	has_ended(fd);
	return new_pidfd(k.pidfds[fd - PIDFDS].process, k.pidfds[fd - PIDFDS].generation);
}

int __wrap_close(int fd)
{
	if (!k.is_on || fd < SOCKETS)
		return __real_close(fd);
	if (fd >= PIDFDS) {
		has_ended(fd);
		k.pidfds[fd - PIDFDS].open = false;
	} else {
		socket_of(fd)->closed = true;
	}
	return 0;
}

/* --- sockets ---------------------------------------------------------------------------------------------- */

static bool waits(const struct connection *c)
{
	return !c->taken;
}

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	if (!k.is_on)
		return __real_accept4(fd, addr, len, flags);
	if (k.is_full)
		return fail(EMFILE);
	for (unsigned int i = 0; i < k.nconnections; i++)
		if (waits(&k.connections[i])) {
			k.connections[i].taken = true;
			return SOCKETS + (int)i;
		}
	return fail(EAGAIN);
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	const struct connection *c;
	const struct process *p;
	int pidfd;

	if (!k.is_on)
		return __real_getsockopt(fd, level, name, value, len);
	c = socket_of(fd);
	if (name == SO_PEERCRED) {
		memcpy(value, &(struct ucred){ .pid = c->pid, .uid = c->uid, .gid = 100 }, sizeof(struct ucred));
		return 0;
	}
	p = &k.processes[c->process];
	if (name != SO_PEERPIDFD || k.how & KERNEL_OLD)
		return fail(ENOPROTOOPT);
	if (p->dead || p->generation != c->generation)
		return fail(ESRCH);
	pidfd = new_pidfd(c->process, c->generation);
	memcpy(value, &pidfd, sizeof(pidfd));
	return pidfd < 0 ? -1 : 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (!k.is_on)
		return __real_setsockopt(fd, level, name, value, len);
	socket_of(fd);
	return 0;
}

/* The sender stands first; for descriptors the tracer has no room. */
static void put_sender(struct msghdr *hdr, const struct packet *p)
{
	struct ucred who = { .pid = p->sender };
	struct cmsghdr *h = hdr->msg_control;

	if (hdr->msg_controllen != CMSG_SPACE(sizeof(who)))
		abort();
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_CREDENTIALS;
	h->cmsg_len = CMSG_LEN(sizeof(who));
	memcpy(CMSG_DATA(h), &who, sizeof(who));
	hdr->msg_flags |= p->nfds ? MSG_CTRUNC : 0;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *hdr, int flags)
{
	struct connection *c;
	const struct packet *p;
	size_t n;

	if (!k.is_on)
		return __real_recvmsg(fd, hdr, flags);
	c = socket_of(fd);
	hdr->msg_flags = 0;
	if (!(flags & MSG_DONTWAIT))
		abort();
	if (!c->n) {
		hdr->msg_controllen = 0;
		return c->hung_up ? 0 : fail(EAGAIN);
	}
	p = &c->packets[c->first];
	n = p->size < hdr->msg_iov->iov_len ? p->size : hdr->msg_iov->iov_len;
	memcpy(hdr->msg_iov->iov_base, p->bytes, n);
	hdr->msg_flags |= n < p->size ? MSG_TRUNC : 0;
	put_sender(hdr, p);
	c->first = (c->first + 1) % PACKETS;
	c->n--;
	return (ssize_t)n;
}

static int take_what_is_sent(struct connection *c, const void *bytes, size_t size)
{
	struct abi_agent_msg m;

	if (size != sizeof(m))
		abort();
	memcpy(&m, bytes, size);
	if (c->hung_up)
		return fail(EPIPE);
	if (c->deaf)
		return fail(EAGAIN);
	if (m.kind == ABI_AGENT_ASK) {
		c->asked = m.proof;
		c->rights = rights_of(&k.processes[c->process]);
		c->generation = k.processes[c->process].generation;
		c->proved = false;
	} else if (m.kind == ABI_AGENT_LOOK) {
		c->looked = m.seq;
	}
	return 0;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
	if (!k.is_on)
		return __real_send(fd, bytes, size, flags);
	if (!(flags & MSG_DONTWAIT))
		abort();
	return take_what_is_sent(socket_of(fd), bytes, size) ? -1 : (ssize_t)size;
}

/* A segment: only for a process that has proved itself and is as it was then. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *hdr, int flags)
{
	struct connection *c;
	const struct process *p;
	struct rights now;

	if (!k.is_on)
		return __real_sendmsg(fd, hdr, flags);
	c = socket_of(fd);
	p = &k.processes[c->process];
	now = rights_of(p);
	if (!c->said_word || !c->proved || p->dead || p->generation != c->generation || memcmp(&now, &c->rights, sizeof(now)))
		abort();
	return take_what_is_sent(c, hdr->msg_iov->iov_base, hdr->msg_iov->iov_len) ? -1 : (ssize_t)hdr->msg_iov->iov_len;
}

/* --- waiting ---------------------------------------------------------------------------------------------- */

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *e)
{
	if (fd < SOCKETS && op == EPOLL_CTL_ADD) {
		/* The tracer's own, when it is made or has room again. */
		k.epoll = epoll;
		if (e->data.ptr)
			k.timer = fd;
		else
			k.listener = fd;
		if (e->data.ptr)
			k.timer_ptr = e->data.ptr;
		else
			k.listens = true;
	} else if (fd < SOCKETS) {
		k.listens = false;
	} else if (op == EPOLL_CTL_DEL) {
		socket_of(fd)->watched = false;
	} else if (k.unwatched) {
		return fail(ENOSPC);
	} else {
		socket_of(fd)->watched = true;
		socket_of(fd)->ptr = e->data.ptr;
	}
	return k.is_on ? 0 : __real_epoll_ctl(epoll, op, fd, e);
}

static bool timer_is_due(void)
{
	return !k.timer_done && k.timer_ns <= k.now_ns;
}

static bool anybody_waits(void)
{
	for (unsigned int i = 0; i < k.nconnections; i++)
		if (waits(&k.connections[i]))
			return true;
	return false;
}

static int ready(struct epoll_event *events, int max)
{
	int n = 0;

	if (n < max && timer_is_due())
		events[n++].data.ptr = k.timer_ptr;
	if (n < max && k.listens && anybody_waits())
		events[n++].data.ptr = NULL;
	for (unsigned int i = 0; i < k.nconnections && n < max; i++) {
		const struct connection *c = &k.connections[(k.next + i) % k.nconnections];

		if (c->taken && !c->closed && c->watched && (c->n || c->hung_up)) {
			events[n++].data.ptr = c->ptr;
			k.next += n == max ? i : 0;
		}
	}
	return n;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	if (!k.is_on)
		return __real_epoll_wait(epoll, events, max, timeout_ms);
	if (timeout_ms)
		abort();
	return ready(events, max);
}

/* A pidfd, or epoll and the signals. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct epoll_event one;
	int found = 0;

	if (!k.is_on)
		return __real_poll(fds, n, timeout_ms);
	if (k.polls++ > POLLS_MAX)
		abort();
	for (nfds_t i = 0; i < n; i++) {
		bool is_ready = fds[i].fd >= PIDFDS ? has_ended(fds[i].fd) : fds[i].fd == k.epoll ? ready(&one, 1) > 0 : k.has_signal;

		fds[i].revents = is_ready ? POLLIN : 0;
		found += is_ready;
	}
	if (!found && timeout_ms > 0)
		kernel_pass((uint64_t)timeout_ms);
	return found;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before)
{
	if (!k.is_on)
		return __real_timerfd_settime(fd, flags, at, before);
	k.timer_ns = (uint64_t)at->it_value.tv_sec * 1000000000 + (uint64_t)at->it_value.tv_nsec;
	k.timer_done = !k.timer_ns;
	return 0;
}

ssize_t __wrap_read(int fd, void *to, size_t size)
{
	if (!k.is_on)
		return __real_read(fd, to, size);
	if (!timer_is_due())
		return fail(EAGAIN);
	k.timer_done = true;
	memcpy(to, &(uint64_t){ 1 }, sizeof(uint64_t));
	return sizeof(uint64_t);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (!k.is_on || clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ret);
	*ret = (struct timespec){ (time_t)(k.now_ns / 1000000000), (long)(k.now_ns % 1000000000) };
	return 0;
}

/* --- processes -------------------------------------------------------------------------------------------- */

/* Every second way in which it can be strange leaves something out. */
static void write_files(struct process *p)
{
	unsigned long long c = p->caps;

	p->has_files = true;
	snprintf(p->status, sizeof(p->status), "Name:\tpy\\nUid:\t0\t0\nUmask:\t0022\n%s\t%u\t%u\t%u\t%u\n"
		 "Gid:\t%u\t%u\t%u\t%u\nCapInh:\t%016llx\nCapPrm:\t%016llx\nCapEff:\t%016llx\nCapBnd:\t%016llx\n%s",
		 p->strange % 2 ? "Uid:\t0" : "Uid:", p->uid, p->uid, p->uid, p->uid, p->gid, p->gid, p->gid, p->gid, c, c, c, c,
		 p->strange % 4 > 1 ? "" : "CapAmb:\t0\n");
	snprintf(p->stat, sizeof(p->stat), "%d (a) 7 (b) S 1 1 1 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0 0\n", (int)p->pid,
		 p->exits ? 0x404 : 0x400, (unsigned long long)p->start);
}

static int read_label(const struct process *p, struct strbuf *out)
{
	if (!p->label)
		return -EINVAL;
	for (unsigned int i = 0; i < p->label % 4 * 100; i++)
		strbuf_puts(out, "x");
	strbuf_printf(out, "%u", p->label);
	return 0;
}

int __wrap_proc_read(pid_t pid, const char *file, struct strbuf *out)
{
	struct process *p;

	if (!k.is_on)
		return __real_proc_read(pid, file, out);
	p = find_process(pid);
	if (!p)
		return -ESRCH;
	if (!p->has_files)
		write_files(p);
	if (*file == 'a')
		return read_label(p, out);
	strbuf_puts(out, strcmp(file, "stat") ? p->status : p->stat);
	return 0;
}

int __wrap_stat64(const char *path, struct stat *ret)
{
	const struct process *p;
	int pid;

	if (!k.is_on)
		return __real_stat64(path, ret);
	if (strncmp(path, "/proc/", 6))
		abort();
	pid = (int)strtol(path + 6, NULL, 10);
	p = find_process(pid);
	if (!p || p->hides || p->exits)
		return fail(p ? EACCES : ENOENT);
	memset(ret, 0, sizeof(*ret));
	ret->st_dev = 4;
	ret->st_ino = p->space;
	return 0;
}

/* --- peers ------------------------------------------------------------------------------------------------ */

/* What src/target/peer.c makes of all that, without the reading of texts; it is called itself where that is asked for. */
static bool is_short(void)
{
	return k.is_on && !(k.how & KERNEL_TEXTS);
}

static struct domain domain_now(const struct process *p)
{
	struct rights now = rights_of(p);
	struct domain d = { .own_pid = now.own ? (uint64_t)p->pid : 0, .own_start = now.own };

	if (!now.own) {
		d.uids[1] = (uint32_t)now.ids[0];
		d.gids[1] = (uint32_t)now.ids[1];
		d.caps[0] = now.ids[2];
		d.spaces[0].ino = now.ids[3];
		d.label[0] = (char)('0' + now.ids[4] % 64);
	}
	return d;
}

int __wrap_peer_prove(pid_t pid, int pidfd, struct peer *ret, struct strbuf *why)
{
	const struct process *p = find_process(pid);
	int fd;

	if (!is_short())
		return __real_peer_prove(pid, pidfd, ret, why);
	fd = pidfd < 0 ? __wrap_target_pidfd(pid) : new_pidfd(k.pidfds[pidfd - PIDFDS].process, k.pidfds[pidfd - PIDFDS].generation);
	if (fd < 0)
		return -errno;
	if (!p || has_ended(fd)) {
		__wrap_close(fd);
		return -ESRCH;
	}
	*ret = (struct peer){ .pid = pid, .pidfd = fd, .start = p->start, .domain = domain_now(p) };
	return 0;
}

void __wrap_peer_fini(struct peer *p)
{
	if (!is_short()) {
		__real_peer_fini(p);
		return;
	}
	if (p->pid && p->pidfd >= 0)
		__wrap_close(p->pidfd);
	*p = (struct peer){ .pid = 0 };
}

bool __wrap_peer_lives(const struct peer *p)
{
	return is_short() ? !has_ended(p->pidfd) : __real_peer_lives(p);
}

bool __wrap_peer_is_ending(const struct peer *p)
{
	const struct process *now = find_process(p->pid);

	return is_short() ? !now || now->exits || has_ended(p->pidfd) : __real_peer_is_ending(p);
}

bool __wrap_peer_is_same(const struct peer *p)
{
	const struct process *now = find_process(p->pid);
	struct domain d;

	if (!is_short())
		return __real_peer_is_same(p);
	if (!now || has_ended(p->pidfd))
		return false;
	d = domain_now(now);
	return !memcmp(&d, &p->domain, sizeof(d));
}

bool __wrap_target_other_pids(pid_t pid)
{
	const struct process *p;

	if (!k.is_on)
		return __real_target_other_pids(pid);
	p = find_process(pid);
	return p && p->space % 2;
}

bool __wrap_permit_memory(struct permits *permits, pid_t pid)
{
	return k.is_on ? pid % 2 : __real_permit_memory(permits, pid);
}

uid_t __wrap_geteuid(void)
{
	return k.is_on ? (k.how & KERNEL_USER ? 1001 : 0) : __real_geteuid();
}

ssize_t __wrap_getrandom(void *to, size_t size, unsigned int flags)
{
	if (!k.is_on)
		return __real_getrandom(to, size, flags);
	k.random += 0x9e3779b97f4a7c15;
	memcpy(to, &k.random, size < sizeof(k.random) ? size : sizeof(k.random));
	return (ssize_t)size;
}
