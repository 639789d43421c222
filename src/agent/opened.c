/* SPDX-License-Identifier: MIT */
#include "agent/opened.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/modules.h"
#include "agent/object.h"
#include "vm/calls.h"
#include "vm/memory.h"

enum { BASES = 8, LEAST = 128, IO_BYTES = 128 };

static struct opened_state *const at = &agent.opened;

/* --- measuring ---------------------------------------------------------------------------------------- */

/* The offset of the address @part in @whole, or 0. */
static uint32_t find_part(struct pyobj *whole, struct pyobj *part)
{
	uint32_t bytes = object_bytes(whole);

	for (uint32_t off = object_body(); off + 8 <= bytes && off + 8 <= IO_BYTES; off += 8)
		if (!memcmp((const char *)whole + off, &part, sizeof(part)))
			return off;
	return 0;
}

static uint32_t find_fd(struct pyobj *file, int fd)
{
	uint32_t off = object_body();

	return object_bytes(file) >= off + 8 && !memcmp((const char *)file + off, &fd, sizeof(fd)) ? off : 0;
}

void opened_measure(void)
{
	struct pyobj *io, *file = NULL, *buffered = NULL, *text = NULL;
	int fd;

	*at = (struct opened_state){ 0 };
	if (!calls_may(ABI_CALLS_OPENED))
		return;
	fd = (int)syscall(SYS_memfd_create, "dtap", 1u /* MFD_CLOEXEC */);
	io = modules_get("_io");
	if (io && fd >= 0)
		file = agent.py.PyObject_CallMethod(io, "FileIO", "isi", fd, "rb", 0);
	if (file)
		buffered = agent.py.PyObject_CallMethod(io, "BufferedReader", "O", file);
	if (buffered)
		text = agent.py.PyObject_CallMethod(io, "TextIOWrapper", "Os", buffered, "utf-8");
	if (text) {
		at->file_fd = find_fd(file, fd);
		at->buffered_raw = find_part(buffered, file);
		at->text_buffer = find_part(text, buffered);
	}
	agent.py.PyErr_Clear();
	agent_release(text);
	agent_release(buffered);
	agent_release(file);
	agent_release(io);
	if (fd >= 0)
		syscall(SYS_close, fd);
	agent.py.PyErr_Clear();
}

/* --- text --------------------------------------------------------------------------------------------- */

struct text {
	char *dst;
	uint32_t used, size;
};

static void put(struct text *t, const char *s)
{
	while (*s && t->used + 1 < t->size)
		t->dst[t->used++] = *s++;
	t->dst[t->used] = '\0';
}

static void put_number(struct text *t, uint64_t n)
{
	char digits[24], *p = digits + sizeof(digits) - 1;

	*p = '\0';
	do
		*--p = (char)('0' + n % 10);
	while (n /= 10);
	put(t, p);
}

static void put_hex(struct text *t, unsigned n)
{
	char digits[8], *p = digits + sizeof(digits) - 1;

	*p = '\0';
	do
		*--p = "0123456789abcdef"[n & 15];
	while (n >>= 4);
	put(t, p);
}

/* All eight groups: short forms are for those who write addresses. */
static void put_inet6(struct text *t, const struct sockaddr_in6 *a)
{
	put(t, "[");
	for (unsigned k = 0; k < 16; k += 2) {
		put(t, k ? ":" : "");
		put_hex(t, (unsigned)a->sin6_addr.s6_addr[k] << 8 | a->sin6_addr.s6_addr[k + 1]);
	}
	put(t, "]:");
	put_number(t, __builtin_bswap16(a->sin6_port));
}

static void put_inet(struct text *t, const struct sockaddr_in *a)
{
	const unsigned char *bytes = (const unsigned char *)&a->sin_addr;

	for (unsigned k = 0; k < 4; k++) {
		put(t, k ? "." : "");
		put_number(t, bytes[k]);
	}
	put(t, ":");
	put_number(t, __builtin_bswap16(a->sin_port));
}

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

static void put_address(struct text *t, const union address *a, unsigned len)
{
	bool named = len > sizeof(sa_family_t);

	if (a->any.sa_family == AF_INET)
		put_inet(t, &a->in);
	else if (a->any.sa_family == AF_INET6)
		put_inet6(t, &a->in6);
	else if (a->any.sa_family == AF_UNIX)
		put(t, !named ? "unix" : a->un.sun_path[0] ? a->un.sun_path : "unix abstract");
	else
		put(t, "?");
}

/* --- descriptors -------------------------------------------------------------------------------------- */

static bool is_option(int fd, int option, int value)
{
	int got = -1;
	unsigned len = sizeof(got);

	return !syscall(SYS_getsockopt, fd, SOL_SOCKET, option, &got, &len) && got == value;
}

/*
 * A socket has its descriptor first, before its family, type and protocol (0: the usual one): those of the descriptor must
 * be the same, so that nothing else is taken for one.
 */
static void put_socket(struct text *t, const struct object *o)
{
	int v[4];
	union address a;
	unsigned len = sizeof(a) - 1;	/* so that a path ends */

	if (!object_read(o, v, sizeof(v), object_body()) || v[0] < 0 || !is_option(v[0], SO_DOMAIN, v[1]) ||
	    !is_option(v[0], SO_TYPE, v[2]) || (v[3] && !is_option(v[0], SO_PROTOCOL, v[3])))
		return;
	memset(&a, 0, sizeof(a));
	if (syscall(SYS_getsockname, v[0], &a, &len))
		return;
	put_address(t, &a, len);
	memset(&a, 0, sizeof(a));
	len = sizeof(a) - 1;
	if (!syscall(SYS_getpeername, v[0], &a, &len)) {
		put(t, " -> ");
		put_address(t, &a, len);
	}
}

static void put_file(struct text *t, const struct object *o)
{
	char name[40], path[256];
	struct text n = { name, 0, sizeof(name) };
	long len;
	int fd;

	if (!at->file_fd || !object_read(o, &fd, sizeof(fd), at->file_fd) || fd < 0)
		return;
	put(&n, "/proc/self/fd/");
	put_number(&n, (uint64_t)fd);
	len = syscall(SYS_readlinkat, -100 /* AT_FDCWD */, name, path, sizeof(path) - 1);
	if (len <= 0)
		return;
	path[len] = '\0';
	put(t, "'");
	put(t, path);
	put(t, "'");
}

/* --- objects ------------------------------------------------------------------------------------------ */

enum kind { NONE, SOCKET, FILE_RAW, FILE_BUFFERED, FILE_TEXT };

static enum kind kind_of(const struct object *o)
{
	static const struct { const char *name; enum kind kind; } kinds[] = {
		{ "_socket.socket", SOCKET }, { "_io.FileIO", FILE_RAW }, { "_io.BufferedReader", FILE_BUFFERED },
		{ "_io.BufferedWriter", FILE_BUFFERED }, { "_io.BufferedRandom", FILE_BUFFERED }, { "_io.TextIOWrapper", FILE_TEXT },
	};
	uint64_t type = o->type, at_name;
	char name[40];

	for (unsigned n = 0; type && n < BASES && object_at->type_base; n++) {
		if (memory_read(o->run, &at_name, sizeof(at_name), type + object_at->type_name) ||
		    memory_read_string(o->run, name, sizeof(name), at_name) < 1)
			return NONE;
		for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			if (!strcmp(name, kinds[k].name))
				return kinds[k].kind;
		if (memory_read(o->run, &type, sizeof(type), type + object_at->type_base))
			return NONE;
	}
	return NONE;
}

uint32_t opened_text(const struct object *o, char *text, uint32_t size)
{
	struct text t = { text, 0, size };
	struct object part = *o;
	enum kind kind = kind_of(o);

	*text = '\0';
	if (size < LEAST || !calls_may(ABI_CALLS_OPENED))
		return 0;
	for (unsigned n = 0; n < 2 && (kind == FILE_TEXT || kind == FILE_BUFFERED); n++) {
		uint32_t off = kind == FILE_TEXT ? at->text_buffer : at->buffered_raw;
		uint64_t inner = off ? object_word(&part, off) : 0;

		if (!inner || object_open(o->run, inner, &part))
			return 0;
		kind = kind_of(&part);
	}
	if (kind == SOCKET)
		put_socket(&t, &part);
	else if (kind == FILE_RAW)
		put_file(&t, &part);
	return t.used;
}
