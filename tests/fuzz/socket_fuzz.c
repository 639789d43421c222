/*
 * What the tracer reads from its socket and from channels, over real sockets: the input is what strangers and agents do, all
 * of them played by this process.  channel_fuzz.c plays more of it, and faster.  Commands, a byte each, with what they need
 * behind them:
 *
 *	0 connect	1 say the word		2 answer ASK with HELLO		3 a message of any kind and fields
 *	4 any bytes	5 another version's	6 a descriptor comes along	7 close
 *	8 the tracer's turn	9 LOOK		10 nothing, of no size		11 the word, of another length
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/agent.h"
#include "base/strbuf.h"
#include "target/agent.h"
#include "target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENDS = 4, COMMANDS = 12 };

struct input {
	const uint8_t *data;
	size_t size;
};

static struct agents *agents;
static int ends[ENDS], null;
static int refuse;		/* what the session says of segments */

static uint8_t byte(struct input *in)
{
	if (!in->size)
		return 0;
	in->size--;
	return *in->data++;
}

static void bytes(struct input *in, void *to, size_t n)
{
	size_t have = n < in->size ? n : in->size;

	memset(to, 0, n);
	memcpy(to, in->data, have);
	in->data += have;
	in->size -= have;
}

/* What is heard is printable text with an end, of this process. */
static void hear(void *ctx, const struct agents_event *e)
{
	(void)ctx;
	if (e->what != AGENTS_WAIT && (e->pid != getpid() || e->what > AGENTS_GONE))
		abort();
	for (const char *s = e->why; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127 || s - e->why > 1000)
			abort();
	if (e->what == AGENTS_READY)
		agents_leave(agents, e->pid, e->can);
}

static int segment(void *ctx, const struct domain *domain, int fds[3], struct strbuf *why)
{
	(void)ctx;
	(void)domain;
	fds[0] = fds[1] = fds[2] = null;
	if (refuse < 0)
		strbuf_puts(why, "not this one\n");
	return refuse;
}

static void start(void)
{
	if (agents)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || agents_new(&agents, "/proc/self/exe", hear, NULL, NULL))
		abort();
	agents_offer(agents, segment, NULL);
	agents_follow_forks(agents);
	memset(ends, -1, sizeof(ends));
}

static const char *address(void)
{
	return agents_preload(agents)->environ[0] + sizeof(ABI_AGENT_ENV);
}

static int connected(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t len = strcspn(address(), ":");

	memcpy(addr.sun_path + 1, address(), len);
	if (connect(fd, (struct sockaddr *)&addr, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void say(int fd, const void *m, size_t size)
{
	send(fd, m, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void prove(int fd, uint16_t version)
{
	struct abi_agent_msg m = { .version = version, .kind = ABI_AGENT_PROOF };

	memcpy(m.why, strchr(address(), ':') + 1, ABI_AGENT_WORD);
	say(fd, &m, sizeof(m));
}

/* The number of the last ASK that has come, or 0. */
static uint64_t asked(int fd)
{
	struct abi_agent_msg m;
	uint64_t proof = 0;

	while (recv(fd, &m, sizeof(m), MSG_DONTWAIT) == sizeof(m))
		if (m.kind == ABI_AGENT_ASK)
			proof = m.proof;
	return proof;
}

static void any_message(struct input *in, int fd, uint64_t proof)
{
	struct abi_agent_msg m;

	bytes(in, &m, sizeof(m));
	m.version = ABI_AGENT_VERSION;
	m.kind %= ABI_AGENT_ASK + 2;
	m.phase %= 4;
	if (proof)
		m.proof = proof;
	say(fd, &m, sizeof(m));
}

static void any_bytes(struct input *in, int fd)
{
	char b[512];
	size_t n = byte(in) * 2;

	bytes(in, b, n);
	say(fd, b, n);
}

static void with_descriptor(int fd)
{
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_STATE };
	struct iovec iov = { &m, sizeof(m) };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(3 * sizeof(int))];
	} control = { .space = { 0 } };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&hdr);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(3 * sizeof(int));
	memcpy(CMSG_DATA(h), (int[]){ null, null, null }, 3 * sizeof(int));
	sendmsg(fd, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void command(struct input *in)
{
	uint8_t what = byte(in);
	int *end = &ends[what / 16 % ENDS];

	switch (what % 16 % COMMANDS) {
	case 0:
		if (*end < 0)
			*end = connected();
		break;
	case 1:
		prove(*end, ABI_AGENT_VERSION);
		break;
	case 2:
		any_message(in, *end, asked(*end));
		break;
	case 3:
		any_message(in, *end, 0);
		break;
	case 4:
		any_bytes(in, *end);
		break;
	case 5:
		prove(*end, byte(in));
		break;
	case 6:
		with_descriptor(*end);
		break;
	case 7:
		if (*end >= 0)
			close(*end);
		*end = -1;
		break;
	case 8:
		agents_turn(agents);
		break;
	case 9:
		agents_look(agents, 0);
		break;
	case 10:
		say(*end, "", 0);
		break;
	case 11:
		say(*end, strchr(address(), ':') + 1, byte(in) % (ABI_AGENT_WORD + 1));
		break;
	}
}

/* Descriptors that somebody sent stay nowhere. */
static void count_descriptors(void)
{
	int fd = dup(null);

	if (fd > 200)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	pid_t self = getpid();

	start();
	refuse = byte(&in) % 3 - 1;
	while (in.size)
		command(&in);
	agents_turn(agents);
	agents_said(agents, self, NULL);
	for (int i = 0; i < ENDS; i++) {
		if (ends[i] >= 0)
			close(ends[i]);
		ends[i] = -1;
	}
	/* A turn takes some of what has come before the end. */
	for (int i = 0; i < 100 && agents_have(agents, self); i++)
		agents_turn(agents);
	if (agents_have(agents, self))
		abort();
	count_descriptors();
	return 0;
}
