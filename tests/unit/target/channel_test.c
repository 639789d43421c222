/* The channels, with agents played by this process. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
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
	static const char *const names[] = { "ready", "off", "late", "another", "state", "lost", "refused", "gone", "wait" };

	(void)ctx;
	assert_int_equal(e->pid, e->what == AGENTS_WAIT ? 0 : getpid());
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

/* The address that an agent finds in its environment: a name, and behind a colon the word. */
static const char *address(void)
{
	const char *env = agents_preload(agents)->environ[0];

	assert_int_equal(strncmp(env, "DTAP_AGENT=", 11), 0);
	return env + 11;
}

/* Anybody can. */
static int connect_stranger(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	size_t len = strcspn(address(), ":");

	memcpy(addr.sun_path + 1, address(), len);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)), 0);
	return fd;
}

static void say(int fd, const struct abi_agent_msg *m)
{
	assert_int_equal(send(fd, m, sizeof(*m), MSG_NOSIGNAL), sizeof(*m));
}

/* The word, in a message of @version. */
static void prove(int fd, uint16_t version)
{
	struct abi_agent_msg m = { .version = version, .kind = ABI_AGENT_PROOF };

	strcpy(m.why, strchr(address(), ':') + 1);
	say(fd, &m);
}

/* As an agent does. */
static int connect_agent(void)
{
	int fd = connect_stranger();

	prove(fd, ABI_AGENT_VERSION);
	agents_turn(agents);
	return fd;
}

/* The number that the tracer asks with. */
static uint64_t asked(int fd)
{
	struct abi_agent_msg m;

	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	assert_int_equal(m.kind, ABI_AGENT_ASK);
	assert_int_not_equal(m.proof, 0);
	return m.proof;
}

static void say_hello(int fd, uint32_t phase, uint64_t proof, const char *why)
{
	struct abi_agent_msg m = {
		.version = ABI_AGENT_VERSION, .kind = ABI_AGENT_HELLO, .phase = phase, .python = 0x030d0000, .can = 0xff,
		.proof = proof,
	};

	strcpy(m.why, why);
	say(fd, &m);
}

static int hello(uint32_t phase, const char *why)
{
	int fd = connect_agent();

	say_hello(fd, phase, asked(fd), why);
	return fd;
}

/* What agents_wait() and agents_said() make of this process together. */
static int wait_for(int timeout_ms, struct strbuf *why)
{
	static const int errs[] = { -ETIMEDOUT, 0, -ENOTSUP, -ESRCH };
	pid_t pid = getpid();
	int err = agents_wait(agents, &pid, 1, timeout_ms);
	enum agents_said said = agents_said(agents, pid, why);

	assert_int_equal(err, said == AGENTS_SAID_NOTHING ? -ETIMEDOUT : 0);
	return errs[said];
}

/* Has the tracer closed its end? */
static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
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
	assert_int_equal(wait_for(1000, NULL), 0);
	expect("ready 30d0000 ff 0 \n");
	assert_int_equal(answer(fd, 3), 0x80);
	assert_int_equal(agents_look(agents, 0), -ETIMEDOUT);
	assert_int_equal(answer(fd, 7), 0x80);
	agents_turn(agents);
	expect("state 30d0000 ff 3 \nstate 30d0000 ff 7 \n");
	close(fd);
	agents_turn(agents);
	expect("gone 30d0000 ff 0 \n");
	assert_int_equal(wait_for(1000, NULL), -ESRCH);
	assert_int_equal(agents_look(agents, 1000), 0);
}

static void an_agent_that_cannot_work_says_why(void **state)
{
	struct strbuf why = { 0 };
	int fd = hello(ABI_AGENT_OFF, "no\nroom");

	(void)state;
	agents_turn(agents);
	assert_int_equal(wait_for(1000, &why), -ENOTSUP);
	assert_non_null(strstr(why.s, "no?room"));
	expect("off 30d0000 ff 0 no?room\n");
	assert_int_equal(agents_look(agents, 1000), 0);
	close(fd);
	strbuf_fini(&why);
}

/* Closing with something unread resets the connection: the kernel tells that before what was sent until then. */
static void an_agent_is_heard_that_goes_before_it_has_read_all(void **state)
{
	int fd = connect_agent();

	(void)state;
	say_hello(fd, ABI_AGENT_OFF, 0, "no room");
	close(fd);
	agents_turn(agents);
	expect("off 30d0000 ff 0 no room\ngone 30d0000 ff 0 no room\n");
}

static void a_silent_agent_is_not_waited_for_for_ever(void **state)
{
	int fd = connect_agent();

	(void)state;
	agents_turn(agents);
	assert_int_equal(wait_for(10, NULL), -ETIMEDOUT);
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

static void an_agent_that_went_on_says_so(void **state)
{
	struct abi_agent_msg m, a = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_STATE, .phase = ABI_AGENT_LATE, .supplied = 1 };
	int fd = hello(ABI_AGENT_READY, "");

	(void)state;
	agents_turn(agents);
	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	a.seq = m.seq;
	say(fd, &a);
	agents_turn(agents);
	expect("ready 30d0000 ff 0 \nlate 30d0000 ff 1 \nstate 30d0000 ff 1 \n");
	close(fd);
	agents_turn(agents);
	expect("gone 30d0000 ff 0 \n");
}

static void count_silent(void *ctx, pid_t pid)
{
	assert_int_equal(pid, getpid());
	++*(int *)ctx;
}

struct late { int fd; struct abi_agent_msg m; };

static void *answer_later(void *ctx)
{
	struct late *late = ctx;

	usleep(50000);
	send(late->fd, &late->m, sizeof(late->m), MSG_NOSIGNAL);
	return NULL;
}

/* A session that ends before the first answer waits for it, and says who gives none. */
static void the_end_waits_for_first_answers(void **state)
{
	struct late late = { .m = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_STATE, .phase = ABI_AGENT_LATE, .supplied = 1 } };
	int fd = hello(ABI_AGENT_READY, ""), silent = 0;
	struct abi_agent_msg m;
	pthread_t thread;

	(void)state;
	agents_turn(agents);
	agents_end(agents, 10, count_silent, &silent);
	assert_int_equal(silent, 1);
	expect("ready 30d0000 ff 0 \n");
	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	late.fd = fd;
	late.m.seq = m.seq;
	assert_int_equal(pthread_create(&thread, NULL, answer_later, &late), 0);
	agents_end(agents, 60000, count_silent, &silent);
	pthread_join(thread, NULL);
	assert_int_equal(silent, 1);
	expect("late 30d0000 ff 1 \nstate 30d0000 ff 1 \n");
	agents_end(agents, 60000, count_silent, &silent);
	assert_int_equal(silent, 1);
	close(fd);
}

static void another_interpreter_is_told_once(void **state)
{
	struct abi_agent_msg m, a = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_STATE, .phase = ABI_AGENT_ANOTHER };
	int fd = hello(ABI_AGENT_READY, "");

	(void)state;
	agents_turn(agents);
	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	say(fd, &a);	/* before its hooks are there */
	agents_turn(agents);
	expect("ready 30d0000 ff 0 \n");
	a.phase = ABI_AGENT_READY;
	a.seq = m.seq;
	say(fd, &a);
	a.phase = ABI_AGENT_ANOTHER;
	say(fd, &a);
	say(fd, &a);
	agents_turn(agents);
	expect("state 30d0000 ff 0 \nanother 30d0000 ff 0 \n");
	close(fd);
	agents_turn(agents);
	expect("gone 30d0000 ff 0 \n");
}

static int offer(void *ctx, const struct domain *domain, int fds[3], struct strbuf *why)
{
	(void)ctx, (void)domain, (void)why;
	fds[0] = fds[1] = fds[2] = 0;
	return 1;
}

/* Hooks come with the answer to LOOK: to have taken a segment is no state, but for a reason why it cannot be used. */
static void an_agent_with_a_segment_is_not_yet_there(void **state)
{
	static const char *const reasons[] = { "", "no room" };
	struct abi_agent_msg m, a = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_STATE };

	(void)state;
	agents_offer(agents, offer, NULL);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
		int fd = hello(ABI_AGENT_READY, "");

		agents_turn(agents);
		expect("ready 30d0000 ff 0 \n");
		assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
		assert_int_equal(m.kind, ABI_AGENT_SEGMENT);
		a.seq = m.seq;
		strcpy(a.why, reasons[i]);
		say(fd, &a);
		agents_turn(agents);
		expect(i ? "state 30d0000 ff 0 no room\n" : "");
		answer(fd, 1);
		agents_turn(agents);
		expect("state 30d0000 ff 1 \n");
		close(fd);
		agents_turn(agents);
		expect("gone 30d0000 ff 0 \n");
	}
}

static void another_version_is_lost(void **state)
{
	int fd = connect_stranger();

	(void)state;
	prove(fd, ABI_AGENT_VERSION + 1);
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
	assert_int_equal(wait_for(0, NULL), -ESRCH);
	close(fd);
}

/* Who does not say the word is closed and not told of. */
static void a_stranger_gets_nothing(void **state)
{
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_HELLO, .phase = ABI_AGENT_READY };
	char large[sizeof(m) + 100];
	int fd;

	(void)state;
	fd = connect_stranger();
	say(fd, &m);
	agents_turn(agents);
	assert_true(is_closed(fd));
	close(fd);

	m.kind = ABI_AGENT_PROOF;
	memset(m.why, '0', ABI_AGENT_WORD);
	fd = connect_stranger();
	say(fd, &m);
	agents_turn(agents);
	assert_true(is_closed(fd));
	close(fd);

	strcpy(m.why, strchr(address(), ':') + 1);
	m.why[ABI_AGENT_WORD - 1] ^= 1;
	fd = connect_stranger();
	say(fd, &m);
	agents_turn(agents);
	assert_true(is_closed(fd));
	close(fd);

	m.why[ABI_AGENT_WORD - 1] ^= 1;
	memset(large, 0, sizeof(large));
	memcpy(large, &m, sizeof(m));
	fd = connect_stranger();
	assert_int_equal(send(fd, large, sizeof(large), MSG_NOSIGNAL), sizeof(large));
	agents_turn(agents);
	assert_true(is_closed(fd));
	close(fd);
	assert_false(agents_have(agents, getpid()));
	expect("");
}

/* A silent one has a second, and of many the first go. */
static void silent_strangers_are_few(void **state)
{
	enum { MANY = 40, OF_USER = 8 };
	int fds[MANY], closed = 0, i;
	struct pollfd p = { .fd = agents_fd(agents), .events = POLLIN };

	(void)state;
	for (i = 0; i < MANY; i++) {
		fds[i] = connect_stranger();
		agents_turn(agents);
	}
	for (i = 0; i < MANY; i++)
		closed += is_closed(fds[i]);
	assert_int_equal(closed, MANY - OF_USER);
	for (i = 0; i < MANY && !is_closed(fds[MANY - 1]); i++) {
		assert_int_equal(poll(&p, 1, 10000), 1);
		agents_turn(agents);
	}
	assert_true(is_closed(fds[MANY - 1]));
	for (i = 0; i < MANY; i++)
		close(fds[i]);
	assert_int_equal(agents_look(agents, 0), 0);
	expect("");
}

/* Whoever it was that has given a descriptor back. */
static void they_are_taken_when_there_is_room_again(void **state)
{
	int fd = connect_stranger(), next = dup(fd);
	struct rlimit limit, none;
	struct abi_agent_msg m;
	ssize_t n = -1;

	(void)state;
	prove(fd, ABI_AGENT_VERSION);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ (rlim_t)next, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	agents_turn(agents);
	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), -1);
	expect("wait 0 0 0 Too many open files\n");
	agents_turn(agents);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int k = 0; k < 100 && n < 0; k++) {
		assert_int_equal(poll(&(struct pollfd){ .fd = agents_fd(agents), .events = POLLIN }, 1, 10000), 1);
		agents_turn(agents);
		n = recv(fd, &m, sizeof(m), MSG_DONTWAIT);
	}
	assert_int_equal(n, sizeof(m));
	assert_int_equal(m.kind, ABI_AGENT_ASK);
	expect("");		/* it is said once */
	close(fd);
}

/* A HELLO without the number is asked again, some times. */
static void the_number_has_to_be_right(void **state)
{
	int fd = connect_agent(), i;

	(void)state;
	for (i = 0; i < 3; i++) {
		say_hello(fd, ABI_AGENT_READY, asked(fd) + 1, "");
		agents_turn(agents);
	}
	expect("");
	say_hello(fd, ABI_AGENT_READY, asked(fd) + 1, "");
	agents_turn(agents);
	assert_true(is_closed(fd));
	expect("gone 0 0 0 \n");
	close(fd);
}

/* Who has the socket and the number is not the process that was asked. */
static void another_process_cannot_answer(void **state)
{
	int fd = connect_agent(), status;
	uint64_t number = asked(fd);
	pid_t child = fork();

	(void)state;
	if (!child) {
		say_hello(fd, ABI_AGENT_READY, number, "");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	agents_turn(agents);
	assert_true(is_closed(fd));
	expect("gone 0 0 0 \n");
	close(fd);
}

/* As by a thread that forks when a channel is closed. */
static void what_a_child_still_has_brings_no_events(void **state)
{
	int fd = connect_agent(), go[2], status;
	struct pollfd p = { .fd = agents_fd(agents), .events = POLLIN };
	pid_t child;

	(void)state;
	assert_int_equal(pipe(go), 0);
	child = fork();
	if (!child) {
		close(fd);
		close(go[1]);
		_exit(read(go[0], &status, 1) != 0);
	}
	shutdown(fd, SHUT_RDWR);
	close(fd);
	agents_turn(agents);
	expect("gone 0 0 0 \n");
	assert_int_equal(poll(&p, 1, 0), 0);
	close(go[0]);
	close(go[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void signals_end_a_wait(void **state)
{
	const struct timespec none = { 0 };
	pid_t pid = getpid();
	int fd = connect_agent();
	sigset_t set, old;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	kill(pid, SIGTERM);
	assert_int_equal(agents_wait(agents, &pid, 1, 60000), -EINTR);
	say_hello(fd, ABI_AGENT_READY, asked(fd), "");
	agents_turn(agents);
	assert_int_equal(agents_look(agents, 60000), -EINTR);
	agents_keep_signals(agents);
	assert_int_equal(agents_look(agents, 1), -ETIMEDOUT);
	assert_int_equal(sigtimedwait(&set, NULL, &none), SIGTERM);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_agent_comes_works_and_goes, start, finish),
		cmocka_unit_test_setup_teardown(an_agent_that_cannot_work_says_why, start, finish),
		cmocka_unit_test_setup_teardown(an_agent_is_heard_that_goes_before_it_has_read_all, start, finish),
		cmocka_unit_test_setup_teardown(a_silent_agent_is_not_waited_for_for_ever, start, finish),
		cmocka_unit_test_setup_teardown(an_agent_that_goes_is_not_waited_for, start, finish),
		cmocka_unit_test_setup_teardown(an_agent_that_went_on_says_so, start, finish),
		cmocka_unit_test_setup_teardown(the_end_waits_for_first_answers, start, finish),
		cmocka_unit_test_setup_teardown(another_interpreter_is_told_once, start, finish),
		cmocka_unit_test_setup_teardown(an_agent_with_a_segment_is_not_yet_there, start, finish),
		cmocka_unit_test_setup_teardown(another_version_is_lost, start, finish),
		cmocka_unit_test_setup_teardown(junk_is_lost, start, finish),
		cmocka_unit_test_setup_teardown(a_stranger_gets_nothing, start, finish),
		cmocka_unit_test_setup_teardown(silent_strangers_are_few, start, finish),
		cmocka_unit_test_setup_teardown(they_are_taken_when_there_is_room_again, start, finish),
		cmocka_unit_test_setup_teardown(the_number_has_to_be_right, start, finish),
		cmocka_unit_test_setup_teardown(another_process_cannot_answer, start, finish),
		cmocka_unit_test_setup_teardown(what_a_child_still_has_brings_no_events, start, finish),
		cmocka_unit_test_setup_teardown(signals_end_a_wait, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
