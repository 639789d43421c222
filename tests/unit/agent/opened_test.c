/*
 * What files and sockets are open on: real descriptors, in objects that are laid out here.  Nothing but the types' names and the
 * descriptor's own properties says that an object is one, so what is not certain has no text.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/object.h"
#include "agent/opened.h"

struct type { uint64_t refs, type, flags; const char *name; uint64_t base; };
struct socket { uint64_t refs, type; int fd, family, kind, protocol; };
struct file { uint64_t refs, type; int fd, pad; };
struct layer { uint64_t refs, type, pad, inner; };

static struct type type_type, none_type, socket_type, own_type, file_type, buffered_type, text_type;
static uint64_t none[2];

static uint64_t at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static uint32_t opened(const void *o, char *text, uint32_t size)
{
	struct object object;

	assert_int_equal(object_open(object_reader(), at(o), &object), 0);
	return opened_text(&object, text, size);
}

static void is(const void *o, const char *want)
{
	char text[256];
	uint32_t n = opened(o, text, sizeof(text));

	assert_string_equal(text, want);
	assert_int_equal(n, strlen(want));
}

static struct socket socket_of(int fd, int family, int kind)
{
	return (struct socket){ 1, at(&socket_type), fd, family, kind, 0 };
}

/* --- sockets ------------------------------------------------------------------------------------------ */

static void inet(int family, const char *host)
{
	struct sockaddr_in six_four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr *a = family == AF_INET ? (struct sockaddr *)&six_four : (struct sockaddr *)&six;
	socklen_t size = family == AF_INET ? sizeof(six_four) : sizeof(six), own = sizeof(six);
	int listens = socket(family, SOCK_STREAM, 0), fd = socket(family, SOCK_STREAM, 0);
	struct socket o = socket_of(listens, family, SOCK_STREAM);
	struct sockaddr_in6 client;
	char want[128];

	if (listens < 0 || bind(listens, a, size)) {
		assert_true(family == AF_INET6);	/* a machine without it */
		close(listens);
		close(fd);
		return;
	}
	assert_int_equal(getsockname(listens, a, &size), 0);
	snprintf(want, sizeof(want), "%s:%u", host, ntohs(six_four.sin_port ? six_four.sin_port : six.sin6_port));
	is(&o, want);
	assert_int_equal(listen(listens, 1), 0);
	assert_int_equal(connect(fd, a, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&client, &own), 0);
	snprintf(want, sizeof(want), "%s:%u -> %s:%u", host, ntohs(client.sin6_port), host,
		 ntohs(six_four.sin_port ? six_four.sin_port : six.sin6_port));
	o.fd = fd;
	is(&o, want);
	/* Another kind of socket, or none: the number was reused. */
	o.kind = SOCK_DGRAM;
	is(&o, "");
	o.kind = SOCK_STREAM;
	o.protocol = IPPROTO_TCP;
	is(&o, want);
	o.protocol = IPPROTO_UDP;
	is(&o, "");
	o = socket_of(0, family, SOCK_STREAM);
	is(&o, "");
	o.fd = -1;
	is(&o, "");
	close(fd);
	close(listens);
}

static void inet4(void **state)
{
	(void)state;
	inet(AF_INET, "127.0.0.1");
}

static void inet6(void **state)
{
	(void)state;
	inet(AF_INET6, "[0:0:0:0:0:0:0:1]");
}

static void local(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char path[sizeof(a.sun_path) + 1];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
	struct socket o = socket_of(fd, AF_UNIX, SOCK_STREAM);

	(void)state;
	is(&o, "unix");
	/* A path may fill its room, without an end. */
	memset(path, 'x', sizeof(path) - 1);
	path[snprintf(path, sizeof(path), "/tmp/dtap-opened-%d", (int)getpid())] = 'x';
	path[sizeof(path) - 1] = '\0';
	memcpy(a.sun_path, path, sizeof(a.sun_path));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	is(&o, path);
	unlink(path);
	close(fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	o = socket_of(pair[0], AF_UNIX, SOCK_DGRAM);
	is(&o, "unix -> unix");
	close(pair[0]);
	close(pair[1]);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	memset(&a, 0, sizeof(a));
	a.sun_family = AF_UNIX;
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(sa_family_t)), 0);	/* the kernel chooses a name */
	o = socket_of(fd, AF_UNIX, SOCK_STREAM);
	is(&o, "unix abstract");
	/* Of a class that the program has derived. */
	o.type = at(&own_type);
	is(&o, "unix abstract");
	close(fd);
}

/* --- files -------------------------------------------------------------------------------------------- */

static void files(void **state)
{
	char path[320], want[400], text[128];
	struct file raw = { 1, at(&file_type), -1, 0 };
	struct layer buffered = { 1, at(&buffered_type), 0, at(&raw) }, whole = { 1, at(&text_type), 0, at(&buffered) };

	(void)state;
	memset(path, 0, sizeof(path));
	snprintf(path, sizeof(path), "/tmp/dtap-opened-%d-", (int)getpid());
	memset(path + strlen(path), 'y', 180);
	raw.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(raw.fd >= 0);
	snprintf(want, sizeof(want), "'%s'", path);
	is(&raw, want);
	is(&buffered, want);
	is(&whole, want);
	/* Cut to what there is room for. */
	assert_int_equal(opened(&whole, text, sizeof(text)), sizeof(text) - 1);
	assert_memory_equal(text, want, sizeof(text) - 1);
	assert_int_equal(opened(&whole, text, 64), 0);
	/* A layer of the wrong kind, in itself, of nothing. */
	buffered.inner = at(&buffered);
	is(&whole, "");
	buffered.inner = 0;
	is(&whole, "");
	buffered.inner = 64;
	is(&whole, "");
	close(raw.fd);
	is(&raw, "");
	raw.fd = -1;
	is(&raw, "");
	unlink(path);
	agent.opened.file_fd = 0;
	raw.fd = 1;
	is(&raw, "");
	agent.opened.file_fd = offsetof(struct file, fd);
	is(none, "");
}

static int set_up(void **state)
{
	static const struct { struct type *type; const char *name; } rows[] = {
		{ &type_type, "type" }, { &none_type, "NoneType" }, { &socket_type, "_socket.socket" }, { &own_type, "mine" },
		{ &file_type, "_io.FileIO" }, { &buffered_type, "_io.BufferedReader" }, { &text_type, "_io.TextIOWrapper" },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof(rows) / sizeof(*rows); k++)
		*rows[k].type = (struct type){ 1, at(&type_type), k ? 0 : TYPE_TYPE, rows[k].name, 0 };
	own_type.base = at(&socket_type);
	none[1] = at(&none_type);
	agent.py.none = (struct pyobj *)(void *)none;
	agent.py.type_slot = 1;
	agent.objects = (struct object_state){
		.asked = true, .type_flags = offsetof(struct type, flags), .type_name = offsetof(struct type, name),
		.type_base = offsetof(struct type, base),
	};
	agent.opened = (struct opened_state){ offsetof(struct file, fd), offsetof(struct layer, inner), offsetof(struct layer, inner) };
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inet4),
		cmocka_unit_test(inet6),
		cmocka_unit_test(local),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
