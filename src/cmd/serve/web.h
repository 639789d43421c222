/*
 * HTTP requests, by libcurl, which is loaded when the first is made: dtap is not linked with it (http.c says why).
 *
 * A request goes to the address that the configuration names and nowhere else: no redirection is followed, and the
 * environment's proxies are not asked.
 */
#ifndef DTAP_CMD_SERVE_WEB_H
#define DTAP_CMD_SERVE_WEB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct strbuf;

struct web;

struct web_conf {
	const char *ca;			/* a file with the certificates that are trusted; NULL: the system's */
	const char *const *headers;	/* "Name: value", ends with NULL */
	unsigned int timeout_s;
	const atomic_ullong *until_ms;	/* not 0: a request that lasts longer than until then (now_ms()) is given up */
};

/* All that @conf points to must outlive it.  0, or a negative errno with a line in @err. */
int web_open(const struct web_conf *conf, struct web **ret, struct strbuf *err);
void web_close(struct web *w);		/* accepts NULL */

/*
 * Post @len bytes to the address @url.  The status of the answer, with the beginning of its text in @answer; or a negative errno, and @answer
 * says why there is none.
 */
int web_post(struct web *w, const char *url, const char *data, size_t len, struct strbuf *answer);

#endif
