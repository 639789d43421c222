/* The channels, with agents played by this process. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/agent.h"
#include "base/strbuf.h"
#include "target/agent.h"
#include "target/target.h"

static struct agents *agents;
static struct strbuf heard;

static void hear(void *ctx, const struct agents_event *e)
{
	static const char *const names[] = { "ready", "off", "state", "lost", "gone" };

	(void)ctx;
	assert_int_equal(e->pid, getpid());
	strbuf_printf(&heard, "%s %x %x %x %s\n", names[e->what], e->python, e->can, e->supplied, e->why);
	if (e->what == AGENTS_READY)
		agents_leave(agents, e->pid, 0x80);
}

static int start(void **state)
{
	(void)state;
	return agents_new(&agents, "/proc/self/exe", hear, NULL, NULL);
}

static int finish(void **state)
{
	(void)state;
	agents_free(agents);
	strbuf_fini(&heard);
	memset(&heard, 0, sizeof(heard));
	return 0;
}

/* As an agent does, by what it finds in its environment. */
static int connect_agent(void)
{
	const char *env = agents_preload(agents)->environ[0];
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(strncmp(env, "DTAP_AGENT=", 11), 0);
	strcpy(addr.sun_path + 1, env + 11);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(env + 11))), 0);
	return fd;
}

static void say(int fd, const struct abi_agent_msg *m)
{
	assert_int_equal(send(fd, m, sizeof(*m), MSG_NOSIGNAL), sizeof(*m));
}

static int hello(uint32_t phase, const char *why)
{
	struct abi_agent_msg m = {
		.version = ABI_AGENT_VERSION, .kind = ABI_AGENT_HELLO, .phase = phase, .python = 0x030d0000, .can = 0xff,
	};
	int fd = connect_agent();

	strcpy(m.why, why);
	say(fd, &m);
	return fd;
}

/* Take the LOOK that was sent, answer it with @supplied; what it told to leave. */
static uint32_t answer(int fd, uint32_t supplied)
{
	struct abi_agent_msg m, a = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_STATE, .supplied = supplied };

	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	assert_int_equal(m.kind, ABI_AGENT_LOOK);
	a.seq = m.seq;
	say(fd, &a);
	return m.leave;
}

static void expect(const char *what)
{
	assert_string_equal(strbuf_str(&heard), what);
	strbuf_clear(&heard);
}

static void an_agent_comes_works_and_goes(void **state)
{
	struct pollfd p = { .fd = agents_fd(agents), .events = POLLIN };
	int fd;

	(void)state;
	assert_int_equal(poll(&p, 1, 0), 0);
	fd = hello(ABI_AGENT_READY, "");
	assert_int_equal(poll(&p, 1, 0), 1);
	agents_turn(agents);
	assert_int_equal(agents_wait(agents, getpid(), 1000, NULL), 0);
	expect("ready 30d0000 ff 0 \n");
	assert_int_equal(answer(fd, 3), 0x80);
	assert_int_equal(agents_look(agents, 0), -ETIMEDOUT);
	assert_int_equal(answer(fd, 7), 0x80);
	agents_turn(agents);
	expect("state 30d0000 ff 3 \nstate 30d0000 ff 7 \n");
	close(fd);
	agents_turn(agents);
	expect("gone 30d0000 ff 0 \n");
	assert_int_equal(agents_wait(agents, getpid(), 1000, NULL), -ESRCH);
	assert_int_equal(agents_look(agents, 1000), 0);
}

static void an_agent_that_cannot_work_says_why(void **state)
{
	struct strbuf why = { 0 };
	int fd = hello(ABI_AGENT_OFF, "no\nroom");

	(void)state;
	agents_turn(agents);
	assert_int_equal(agents_wait(agents, getpid(), 1000, &why), -ENOTSUP);
	assert_non_null(strstr(why.s, "no?room"));
	expect("off 30d0000 ff 0 no?room\n");
	assert_int_equal(agents_look(agents, 1000), 0);
	close(fd);
	strbuf_fini(&why);
}

static void a_silent_agent_is_not_waited_for_for_ever(void **state)
{
	int fd = connect_agent();

	(void)state;
	agents_turn(agents);
	assert_int_equal(agents_wait(agents, getpid(), 10, NULL), -ETIMEDOUT);
	close(fd);
}

static void an_agent_that_goes_is_not_waited_for(void **state)
{
	int fd = hello(ABI_AGENT_READY, "");

	(void)state;
	agents_turn(agents);
	close(fd);
	assert_int_equal(agents_look(agents, 5000), 0);
	expect("ready 30d0000 ff 0 \ngone 30d0000 ff 0 \n");
}

static void another_version_is_lost(void **state)
{
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION + 1, .kind = ABI_AGENT_HELLO };
	int fd = connect_agent();

	(void)state;
	say(fd, &m);
	agents_turn(agents);
	agents_turn(agents);
	assert_non_null(strstr(strbuf_str(&heard), "lost 0 0 0 the agent"));
	assert_non_null(strstr(strbuf_str(&heard), "\ngone 0 0 0 "));
	close(fd);
}

static void junk_is_lost(void **state)
{
	int fd = connect_agent();

	(void)state;
	assert_int_equal(send(fd, "junk", 4, MSG_NOSIGNAL), 4);
	agents_turn(agents);
	agents_turn(agents);
	assert_non_null(strstr(strbuf_str(&heard), "lost"));
	assert_int_equal(agents_wait(agents, getpid(), 0, NULL), -ESRCH);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_agent_comes_works_and_goes, start, finish),
		cmocka_unit_test_setup_teardown(an_agent_that_cannot_work_says_why, start, finish),
		cmocka_unit_test_setup_teardown(a_silent_agent_is_not_waited_for_for_ever, start, finish),
		cmocka_unit_test_setup_teardown(an_agent_that_goes_is_not_waited_for, start, finish),
		cmocka_unit_test_setup_teardown(another_version_is_lost, start, finish),
		cmocka_unit_test_setup_teardown(junk_is_lost, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
