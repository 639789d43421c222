/*
 * The service's HTTP server, on libmicrohttpd, in a thread of that library: GET and HEAD of /metrics.
 *
 * With a token every request must have it ("Authorization: Bearer TOKEN"); who has none learns nothing, not even which
 * paths there are.
 */
#ifndef DTAP_CMD_SERVE_HTTP_H
#define DTAP_CMD_SERVE_HTTP_H

#include "cmd/serve/prom.h"

struct strbuf;

struct http;

struct http_conf {
	const char *host, *port;
	const char *certificate, *key;	/* PEM; NULL: without TLS */
	const char *token;		/* NULL: for everybody who can connect */
	/* Append all metrics to @out.  Called in the server's thread. */
	void (*metrics)(void *ctx, enum prom_format format, struct strbuf *out);
	void *ctx;
};

/* All that @conf points to must outlive it.  0, or a negative errno with a line in @err. */
int http_start(const struct http_conf *conf, struct http **ret, struct strbuf *err);
void http_stop(struct http *h);		/* accepts NULL */

/* The port, also if port 0, any, was asked for. */
unsigned int http_port(const struct http *h);

#endif
