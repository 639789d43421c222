#include "cmd/serve/web.h"

#define CURL_DISABLE_TYPECHECK		/* its macros want functions of these names, not pointers */
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "base/strbuf.h"

/* Which TLS library it is built with does not matter. */
static const char *const objects[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4" };

#ifdef DTAP_STATIC
#define NO_OBJECT "the static program makes no HTTP requests: install dtap from a package, or build it"
#else
#define NO_OBJECT "the library libcurl.so.4 is not there (Debian: libcurl4)"
#endif

#define FUNCTIONS(X) \
	X(curl_global_init) X(curl_easy_init) X(curl_easy_setopt) X(curl_easy_perform) X(curl_easy_getinfo) \
	X(curl_easy_cleanup) X(curl_easy_strerror) X(curl_slist_append) X(curl_slist_free_all)

struct functions {
#define MEMBER(name) __typeof__(&name) p_##name;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

enum { ANSWER_MAX = 1024, CONNECT_S = 5 };

struct web {
	struct web_conf conf;
	struct functions f;
	CURL *curl;
	struct curl_slist *headers;
	struct strbuf *answer;		/* of the request that is made */
	char why[CURL_ERROR_SIZE];
};

static int load(struct functions *f, struct strbuf *err)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;	/* of curl_global_init() */
	void *object = NULL;
	int e = 0;

	for (size_t i = 0; !object && i < sizeof(objects) / sizeof(objects[0]); i++)
		object = dlopen(objects[i], RTLD_NOW | RTLD_LOCAL);
	if (!object) {
		strbuf_puts(err, NO_OBJECT);
		return -ENOENT;
	}
#define LOAD(name) \
	f->p_##name = (__typeof__(&name))(uintptr_t)dlsym(object, #name); \
	if (!f->p_##name) { \
		strbuf_puts(err, "libcurl has no " #name); \
		return -ENOENT; \
	}
	FUNCTIONS(LOAD)
#undef LOAD
	pthread_mutex_lock(&once);
	if (f->p_curl_global_init(CURL_GLOBAL_ALL)) {
		strbuf_puts(err, "libcurl does not start");
		e = -EIO;
	}
	pthread_mutex_unlock(&once);
	return e;
}

static size_t take(char *data, size_t size, size_t n, void *ctx)
{
	struct web *w = ctx;
	size_t room = w->answer->len < ANSWER_MAX ? ANSWER_MAX - w->answer->len : 0, len = size * n;

	strbuf_add(w->answer, data, len < room ? len : room);
	return len;
}

/* Not 0: the request is given up. */
static int progress(void *ctx, curl_off_t total, curl_off_t now, curl_off_t utotal, curl_off_t unow)
{
	const struct web *w = ctx;
	unsigned long long until = w->conf.until_ms ? atomic_load(w->conf.until_ms) : 0;

	(void)total;
	(void)now;
	(void)utotal;
	(void)unow;
	return until && now_ms() >= until;
}

static bool set(struct web *w)
{
	const struct functions *f = &w->f;
	CURL *c = w->curl;
	bool bad = false;

#define SET(option, value) (bad |= f->p_curl_easy_setopt(c, option, value) != CURLE_OK)
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	SET(CURLOPT_TIMEOUT, (long)w->conf.timeout_s);
	SET(CURLOPT_HTTPHEADER, w->headers);
	SET(CURLOPT_USERAGENT, "dtap serve");
	SET(CURLOPT_ERRORBUFFER, w->why);
	SET(CURLOPT_WRITEFUNCTION, take);
	SET(CURLOPT_WRITEDATA, w);
	SET(CURLOPT_NOPROGRESS, 0L);
	SET(CURLOPT_XFERINFOFUNCTION, progress);
	SET(CURLOPT_XFERINFODATA, w);
	if (w->conf.ca)
		SET(CURLOPT_CAINFO, w->conf.ca);
#undef SET
	return !bad;
}

int web_open(const struct web_conf *conf, struct web **ret, struct strbuf *err)
{
	struct web *w = calloc(1, sizeof(*w));
	int e = w ? load(&w->f, err) : -ENOMEM;

	if (e) {
		free(w);
		return e;
	}
	w->conf = *conf;
	w->curl = w->f.p_curl_easy_init();
	w->headers = w->f.p_curl_slist_append(NULL, "Expect:");	/* no "100-continue" */
	for (size_t i = 0; conf->headers[i]; i++) {
		struct curl_slist *more = w->f.p_curl_slist_append(w->headers, conf->headers[i]);

		w->headers = more ? more : w->headers;
	}
	if (!w->curl || !w->headers || !set(w)) {
		strbuf_puts(err, "libcurl does not take the options that requests need");
		web_close(w);
		return -EINVAL;
	}
	*ret = w;
	return 0;
}

void web_close(struct web *w)
{
	if (!w)
		return;
	if (w->curl)
		w->f.p_curl_easy_cleanup(w->curl);
	w->f.p_curl_slist_free_all(w->headers);
	/* The object stays: its TLS library is not made to be unloaded. */
	free(w);
}

int web_post(struct web *w, const char *url, const char *data, size_t len, struct strbuf *answer)
{
	CURLcode code;
	long status = 0;

	w->answer = answer;
	*w->why = 0;
	if (w->f.p_curl_easy_setopt(w->curl, CURLOPT_URL, url) != CURLE_OK)
		return -ENOMEM;
	w->f.p_curl_easy_setopt(w->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	w->f.p_curl_easy_setopt(w->curl, CURLOPT_POSTFIELDS, data);
	code = w->f.p_curl_easy_perform(w->curl);
	if (code == CURLE_OK) {
		w->f.p_curl_easy_getinfo(w->curl, CURLINFO_RESPONSE_CODE, &status);
		return (int)status;
	}
	strbuf_clear(answer);
	strbuf_puts(answer, *w->why ? w->why : w->f.p_curl_easy_strerror(code));
	return -EIO;
}
