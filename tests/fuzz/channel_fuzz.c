/*
 * What the tracer reads from its socket and from channels: the input is what strangers, agents and their processes do, in a
 * kernel that is played (kernel_fake.c).  Commands, a byte each, of which the upper half says on which connection, with what
 * they need behind them; see the table at the end.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/agent.h"
#include "base/strbuf.h"
#include "kernel_fake.h"
#include "target/agent_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SLOTS = 16, COMMANDS = 24, PIDS = KERNEL_PROCESSES };

struct input {
	const uint8_t *data;
	size_t size;
};

static struct agents *agents;
static int slots[SLOTS];	/* connections; -1: none */
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

/* What is heard is printable text with an end, of one of the processes. */
static void hear(void *ctx, const struct agents_event *e)
{
	unsigned int of = 0;

	(void)ctx;
	while (of < PIDS && kernel_pid(of) != e->pid)
		of++;
	if (e->what != AGENTS_WAIT && (of == PIDS || e->what > AGENTS_GONE))
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
	if (memchr(domain->label, 0, sizeof(domain->label)) == NULL)
		abort();
	fds[0] = fds[1] = fds[2] = 0;
	if (refuse < 0)
		strbuf_puts(why, "not this one\n");
	return refuse;
}

static void start(void)
{
	if (agents)
		return;
	if (agents_new(&agents, "/proc/self/exe", hear, NULL, NULL))
		abort();
	agents_offer(agents, segment, NULL);
	agents_follow_forks(agents);
}

/* --- what they do ----------------------------------------------------------------------------------------- */

/* Its own process as a rule, or any one. */
static unsigned int sender(int c, uint8_t how)
{
	return how < 192 ? kernel_owner(c) : how % PIDS;
}

/* One for the slot, which says the word or does not; seldom some more beside it: many strangers, many that know the word. */
static void connects(struct input *in, int *slot)
{
	uint8_t how = byte(in), kind = how / PIDS;

	for (int n = kind == 19 ? 9 : kind == 20 ? 5 : 0; n; n--)
		kernel_connect(how, kind == 20);
	if (*slot < 0)
		*slot = kernel_connect(how, kind < 12);
}

static void is_introduced(struct input *in, int *slot)
{
	uint8_t process = byte(in);
	struct target t = { .pid = kernel_pid(process) };
	int fd;

	if (*slot >= 0)
		return;
	*slot = kernel_introduce(process, &fd);
	if (*slot < 0)
		return;
	t.pidfd = target_pidfd(t.pid);
	if (channels_add(agents, fd, &t))
		*slot = -1;
	if (t.pidfd >= 0)
		close(t.pidfd);
}

static void says_word(struct input *in, int *slot)
{
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_PROOF };
	uint8_t how = byte(in);

	memcpy(m.why, agents->word, ABI_AGENT_WORD);
	if (how & 1)
		m.version = byte(in);
	if (how & 2)
		m.why[byte(in) % ABI_AGENT_WHY] ^= (char)byte(in);
	if (how & 4)
		m.kind = byte(in) % 8;
	kernel_send(*slot, sender(*slot, how), &m, sizeof(m), how & 8 ? 3 : 0);
}

/* With text of any bytes, which may have no end. */
static void says_something(struct input *in, int *slot)
{
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION };
	uint8_t who = byte(in), how = byte(in), n = byte(in);

	m.kind = how % 8;
	m.phase = how / 8 % 4;
	m.seq = how & 32 ? kernel_looked(*slot) : byte(in);
	m.proof = how & 64 ? kernel_asked(*slot) : byte(in);
	m.pid = m.python = m.can = m.supplied = (uint32_t)n * 0x01010101;
	if (how & 128)
		m.version = byte(in);
	memset(m.why, n > ABI_AGENT_WHY ? 'x' : 0, sizeof(m.why));
	bytes(in, m.why, n % 16 * (n % 13));
	kernel_send(*slot, sender(*slot, who), &m, sizeof(m), 0);
}

/* What an agent answers when all is well, or it cannot work. */
static void answers(struct input *in, int *slot)
{
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_HELLO, .phase = ABI_AGENT_READY, .can = 0xff,
				   .python = 0x030d00f0, .proof = kernel_asked(*slot) };
	uint8_t how = byte(in);

	if (how & 1)
		m.phase = ABI_AGENT_OFF;
	if (how & 2)
		memcpy(m.why, "no room", 8);
	if (how & 4) {
		m.kind = ABI_AGENT_STATE;
		m.seq = kernel_looked(*slot);
	}
	kernel_send(*slot, sender(*slot, how), &m, sizeof(m), 0);
}

static void says_bytes(struct input *in, int *slot)
{
	uint8_t b[512], n = byte(in);

	memset(b, n, sizeof(b));
	bytes(in, b, n % 64);
	kernel_send(*slot, sender(*slot, n), b, n == 64 ? sizeof(struct abi_agent_msg) : (size_t)n * 2, n % 4);
}

/* All that an agent says where nothing goes wrong. */
static void is_well(struct input *in, int *slot)
{
	static const uint8_t hello, state = 4;

	if (*slot < 0)
		*slot = kernel_connect(byte(in), true);
	if (*slot < 0)
		return;
	agents_turn(agents);
	answers(&(struct input){ &hello, 1 }, slot);
	agents_turn(agents);
	answers(&(struct input){ &state, 1 }, slot);
}

static void hangs_up(struct input *in, int *slot)
{
	(void)in;
	kernel_hang_up(*slot);
	*slot = -1;
}

static void is_deaf(struct input *in, int *slot)
{
	kernel_deaf(*slot, byte(in) & 1);
}

static void something_happens(struct input *in, int *slot)
{
	uint8_t what = byte(in);

	(void)slot;
	kernel_happens(what, what / PIDS % KERNEL_FATES);
}

/* --- what the tracer does --------------------------------------------------------------------------------- */

static void turns(struct input *in, int *slot)
{
	(void)in;
	(void)slot;
	agents_turn(agents);
}

static void looks(struct input *in, int *slot)
{
	uint8_t ms = byte(in);
	pid_t pids[] = { kernel_pid(ms), kernel_pid(ms / 16u) };

	(void)slot;
	if (ms & 1)
		agents_look(agents, ms);
	else
		agents_wait(agents, pids, 2, ms);
}

static void count(void *ctx, pid_t pid)
{
	unsigned int *n = ctx;

	*n += pid > 0;
}

static void asks(struct input *in, int *slot)
{
	struct strbuf why = { 0 };
	unsigned int n = 0;

	(void)slot;
	agents_said(agents, kernel_pid(byte(in)), &why);
	agents_each(agents, count, &n);
	agents_each_asked(agents, count, &n);
	strbuf_fini(&why);
}

static void time_passes(struct input *in, int *slot)
{
	(void)slot;
	kernel_pass((uint64_t)byte(in) * 8);
}

static void lacks_something(struct input *in, int *slot)
{
	uint8_t what = byte(in);

	(void)slot;
	kernel_full(what & 1);
	kernel_signal(what & 2);
	kernel_unwatched(what & 4);
	refuse = what / 8 % 3 - 1;
}

static const struct {
	void (*fn)(struct input *in, int *slot);
	bool of_one;			/* the slot has to have a connection */
} commands[16] = {
	{ connects, false }, { says_word, true }, { answers, true }, { says_something, true },
	{ turns, false }, { says_bytes, true }, { is_introduced, false }, { hangs_up, true },
	{ something_happens, false }, { looks, false }, { asks, false }, { time_passes, false },
	{ lacks_something, false }, { is_deaf, true }, { is_well, false }, { turns, false },
};

static void command(struct input *in)
{
	uint8_t what = byte(in);
	int *slot = &slots[what / 16];

	if (*slot >= 0 || !commands[what % 16].of_one)
		commands[what % 16].fn(in, slot);
}

/* Everybody goes; what they had goes with them, and what the tracer lacked is there again. */
static void end(void)
{
	kernel_full(false);
	kernel_unwatched(false);
	kernel_signal(false);
	kernel_pass(2000);
	agents_turn(agents);
	agents_turn(agents);
	kernel_hang_up_all();
	for (int i = 0; i < 100 && !kernel_is_quiet(); i++)
		agents_turn(agents);
	if (agents->channels || agents->strangers || agents->nstrangers || agents->ended || !kernel_is_quiet())
		abort();
	kernel_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t how;
	bool texts;

	start();
	how = byte(&in);
	/* One input in sixty-four reads /proc. */
	texts = how >= 252;
	refuse = texts ? how % 2 : how / 4 % 3 - 1;
	memset(slots, -1, sizeof(slots));
	kernel_begin(how % 4 | (texts ? KERNEL_TEXTS : 0), agents->word);
	agents->seq = 0;
	for (int i = 0; i < COMMANDS && in.size; i++)
		command(&in);
	end();
	return 0;
}
