#include "cmd/serve/http.h"

#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strbuf.h"

/*
 * libmicrohttpd brings GnuTLS with it, whose loading takes 5 ms: dtap, whose other commands start in 7 ms, is not linked
 * with it, and this file loads it when a server starts.
 */
#define OBJECT "libmicrohttpd.so.12"	/* the ABI of 0.9 */
#ifdef DTAP_STATIC
#define NO_OBJECT "the static program has no HTTP server: install dtap from a package, or build it"
#else
#define NO_OBJECT "the library " OBJECT " is not there (Debian: libmicrohttpd12)"
#endif

#define FUNCTIONS(X) \
	X(MHD_start_daemon) X(MHD_stop_daemon) X(MHD_create_response_from_buffer) X(MHD_add_response_header) \
	X(MHD_queue_response) X(MHD_destroy_response) X(MHD_lookup_connection_value)

struct functions {
#define MEMBER(name) __typeof__(&name) name;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

enum { CONNECTIONS = 64, TIMEOUT_S = 30, MEMORY = 32 * 1024, BACKLOG = 64 };

struct http {
	struct http_conf conf;
	void *object;
	struct functions mhd;
	struct MHD_Daemon *daemon;
	unsigned int port;
};

/* --- answers ------------------------------------------------------------------------------------------- */

/* Send @text; takes it over. */
static enum MHD_Result reply(const struct http *h, struct MHD_Connection *c, unsigned int status, const char *type,
			     struct strbuf *text, const char *header, const char *value)
{
	struct MHD_Response *r = h->mhd.MHD_create_response_from_buffer(text->len, (void *)(uintptr_t)strbuf_str(text),
									MHD_RESPMEM_MUST_COPY);
	enum MHD_Result done;

	strbuf_fini(text);
	if (!r)
		return MHD_NO;
	h->mhd.MHD_add_response_header(r, "Content-Type", type);
	h->mhd.MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	if (header)
		h->mhd.MHD_add_response_header(r, header, value);
	done = h->mhd.MHD_queue_response(c, status, r);
	h->mhd.MHD_destroy_response(r);
	return done;
}

static enum MHD_Result say(const struct http *h, struct MHD_Connection *c, unsigned int status, const char *words,
			   const char *header, const char *value)
{
	struct strbuf text = { 0 };

	strbuf_puts(&text, words);
	return reply(h, c, status, "text/plain; charset=utf-8", &text, header, value);
}

/* Are they equal?  Takes as long whatever differs, but for the length. */
static bool same_secret(const char *a, const char *b)
{
	size_t len = strlen(a);
	volatile unsigned char differ = 0;

	if (strlen(b) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}

/* RFC 6750, section 2.1. */
static bool is_allowed(const struct http *h, struct MHD_Connection *c)
{
	static const char bearer[] = "Bearer ";
	const char *given = h->mhd.MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");

	return !h->conf.token || (given && !strncasecmp(given, bearer, strlen(bearer)) &&
				  same_secret(h->conf.token, given + strlen(bearer)));
}

static enum MHD_Result metrics(const struct http *h, struct MHD_Connection *c)
{
	const char *accept = h->mhd.MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Accept");
	enum prom_format format = accept && strstr(accept, "application/openmetrics-text") ? PROM_OPENMETRICS : PROM_TEXT;
	struct strbuf text = { 0 };

	h->conf.metrics(h->conf.ctx, format, &text);
	return reply(h, c, MHD_HTTP_OK, prom_content_type(format), &text, NULL, NULL);
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *c, const char *url, const char *method, const char *version,
			      const char *data, size_t *size, void **state)
{
	const struct http *h = ctx;

	(void)version;
	(void)data;
	(void)size;
	(void)state;
	if (!is_allowed(h, c))
		return say(h, c, MHD_HTTP_UNAUTHORIZED, "a token is needed\n", "WWW-Authenticate", "Bearer");
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return say(h, c, MHD_HTTP_METHOD_NOT_ALLOWED, "it is GET /metrics\n", "Allow", "GET, HEAD");
	if (!strcmp(url, "/metrics"))
		return metrics(h, c);
	return say(h, c, !strcmp(url, "/") ? MHD_HTTP_OK : MHD_HTTP_NOT_FOUND, "dtap serve: see /metrics\n", NULL, NULL);
}

/* --- the server ---------------------------------------------------------------------------------------- */

static int fail(const struct http_conf *conf, int e, const char *why, struct strbuf *err)
{
	strbuf_printf(err, "cannot listen on %s, port %s: %s", conf->host, conf->port, why);
	return e;
}

/* A listening socket, or a negative errno. */
static int listen_on(const struct http_conf *conf, struct strbuf *err)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int e = getaddrinfo(conf->host, conf->port, &hints, &found), fd, on = 1;

	if (e)
		return fail(conf, -EINVAL, gai_strerror(e), err);
	fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, BACKLOG)) {
		e = -errno;
		if (fd >= 0)
			close(fd);
		fd = fail(conf, e, strerror(-e), err);
	}
	freeaddrinfo(found);
	return fd;
}

static unsigned int port_of(int fd)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);

	if (getsockname(fd, (struct sockaddr *)&addr, &len))
		return 0;
	return ntohs(addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port :
						  ((struct sockaddr_in *)&addr)->sin_port);
}

/* 0, or -ENOENT: the object is not there. */
static int load(struct http *h, struct strbuf *err)
{
	h->object = dlopen(OBJECT, RTLD_NOW | RTLD_LOCAL);
	if (!h->object)
		return fail(&h->conf, -ENOENT, NO_OBJECT, err);
#define LOAD(name) \
	h->mhd.name = (__typeof__(&name))(uintptr_t)dlsym(h->object, #name); \
	if (!h->mhd.name) \
		return fail(&h->conf, -ENOENT, OBJECT " has no " #name, err);
	FUNCTIONS(LOAD)
#undef LOAD
	return 0;
}

/* @fd becomes the daemon's, which closes it also if it does not start. */
static int start_daemon(struct http *h, int fd, struct strbuf *err)
{
	const struct http_conf *conf = &h->conf;
	unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | (conf->certificate ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)conf->certificate },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)conf->key },
		{ MHD_OPTION_END, 0, NULL },
	};

	h->port = port_of(fd);
	h->daemon = h->mhd.MHD_start_daemon(flags, 0, NULL, NULL, answer, h, MHD_OPTION_LISTEN_SOCKET, fd,
					    MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS,
					    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)TIMEOUT_S,
					    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
					    MHD_OPTION_ARRAY, conf->certificate ? tls : &tls[2], MHD_OPTION_END);
	if (h->daemon)
		return 0;
	return fail(conf, -EINVAL, conf->certificate ? "the certificate or the key is not usable" :
						       "the server does not start", err);
}

int http_start(const struct http_conf *conf, struct http **ret, struct strbuf *err)
{
	struct http *h = calloc(1, sizeof(*h));
	int e, fd;

	if (!h)
		return fail(conf, -ENOMEM, "out of memory", err);
	h->conf = *conf;
	e = load(h, err);
	fd = e ? e : listen_on(conf, err);
	e = fd < 0 ? fd : start_daemon(h, fd, err);
	if (e)
		http_stop(h);
	else
		*ret = h;
	return e;
}

void http_stop(struct http *h)
{
	if (!h)
		return;
	if (h->daemon)
		h->mhd.MHD_stop_daemon(h->daemon);
	/* The object stays: GnuTLS is not made to be unloaded. */
	free(h);
}

unsigned int http_port(const struct http *h)
{
	return h->port;
}
