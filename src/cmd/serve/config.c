#include "cmd/serve/config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/ends.h"
#include "base/file.h"
#include "base/library.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "cmd/ready/find.h"
#include "cmd/ready/request.h"
#include "cmd/serve/item.h"
#include "cmd/user.h"
#include "dtap.h"

enum {
	CONFIG_MAX = 1 << 20,
	FILE_MAX = 1 << 20,	/* a script, a certificate */
	TOKEN_MIN = 16,
	FILE_SIZE = 100 << 20, FILE_COUNT = 5, BATCH = 10000, INTERVAL_MS = 1000, LOCAL_INTERVAL_MS = 100, PROFILE_MS = 15000, TIMEOUT_S = 30,
	SERIES = 1000, SERIES_MAX = 1000000,
	INTERVAL_S = 15, WATCHDOG_S = 300,
};

#define YAML(X) \
	X(yaml_document_delete, document_delete) X(yaml_document_get_node, document_get_node) \
	X(yaml_document_get_root_node, document_get_root_node) X(yaml_parser_delete, parser_delete) \
	X(yaml_parser_initialize, parser_initialize) X(yaml_parser_load, parser_load) \
	X(yaml_parser_set_input_string, parser_set_input_string)
LIBRARY_DECLARE(yaml, YAML)
LIBRARY_DEFINE(yaml, YAML, "libyaml-0.so.2", "libyaml-0-2")

/* The state while a file is read. */
struct reader {
	struct serve_config *c;
	yaml_document_t doc;
	const char *text;
	size_t len;
	FILE *err;
	unsigned int mistakes;
	const yaml_node_t *listen, *outputs, *scripts;
};

/* A key of a mapping, and the member of the mapping's structure that @read fills in. */
struct key {
	const char *name;
	size_t member;
	void (*read)(struct reader *r, const yaml_node_t *node, void *member);
};

static void __attribute__((format(printf, 3, 4)))
mistake(struct reader *r, const yaml_node_t *node, const char *fmt, ...)
{
	va_list ap;

	r->mistakes++;
	fprintf(r->err, "%s:%zu:%zu: ", r->c->path, node ? node->start_mark.line + 1 : 1, node ? node->start_mark.column + 1 : 1);
	va_start(ap, fmt);
	vfprintf(r->err, fmt, ap);
	va_end(ap);
	fputc('\n', r->err);
}

/* --- YAML ---------------------------------------------------------------------------------------------- */

static const yaml_node_t *node_of(struct reader *r, int number)
{
	return yaml.document_get_node(&r->doc, number);
}

/* The text of a scalar; NULL after a message. */
static const char *text_of(struct reader *r, const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;

	if (node->type != YAML_SCALAR_NODE)
		mistake(r, node, "a single value belongs here, not a list or a mapping");
	else if (strlen(text) != node->data.scalar.length)
		mistake(r, node, "there is a NUL character in it");
	else
		return arena_strdup(r->c->arena, text);
	return NULL;
}

static void add_text(struct reader *r, struct serve_texts *to, const char *text)
{
	if (!text)
		return;
	to->v = arena_grow(r->c->arena, to->v, &to->cap, to->n, sizeof(*to->v));
	to->v[to->n++] = text;
}

/* Texts: a list of them, or one. */
static void read_texts(struct reader *r, const yaml_node_t *node, void *into)
{
	if (node->type != YAML_SEQUENCE_NODE) {
		add_text(r, into, text_of(r, node));
		return;
	}
	for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++)
		add_text(r, into, text_of(r, node_of(r, *i)));
}

static void read_text(struct reader *r, const yaml_node_t *node, void *into)
{
	*(const char **)into = text_of(r, node);
}

/* Call @each for each key and value of a mapping; keys are texts, and no two are equal. */
static void each_pair(struct reader *r, const yaml_node_t *node, const char *what, void *ctx,
		      void (*each)(struct reader *r, const yaml_node_t *key, const char *name, const yaml_node_t *value, void *ctx))
{
	const yaml_node_pair_t *first = node->data.mapping.pairs.start;

	if (node->type != YAML_MAPPING_NODE) {
		mistake(r, node, "%s: keys with values belong here", what);
		return;
	}
	for (const yaml_node_pair_t *p = first; p < node->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = node_of(r, p->key);
		const char *name = text_of(r, key);
		bool again = false;

		for (const yaml_node_pair_t *q = first; name && q < p; q++) {
			const yaml_node_t *other = node_of(r, q->key);

			again |= other->type == YAML_SCALAR_NODE && !strcmp((const char *)other->data.scalar.value, name);
		}
		if (again)
			mistake(r, key, "%s: '%s' is there twice", what, name);
		else if (name)
			each(r, key, name, node_of(r, p->value), ctx);
	}
}

struct keyed {
	const char *what;
	const struct key *keys;
	void *into;
};

static void read_key(struct reader *r, const yaml_node_t *key, const char *name, const yaml_node_t *value, void *ctx)
{
	const struct keyed *k = ctx;
	struct strbuf known = { 0 };
	const struct key *i;

	for (i = k->keys; i->name && strcmp(i->name, name); i++)
		;
	if (i->name) {
		i->read(r, value, (char *)k->into + i->member);
		return;
	}
	for (i = k->keys; i->name; i++)
		strbuf_printf(&known, "%s%s", i == k->keys ? "" : ", ", i->name);
	mistake(r, key, "%s has no '%s', but %s", k->what, name, strbuf_str(&known));
	strbuf_fini(&known);
}

/* @keys ends with a row without a name. */
static void read_keys(struct reader *r, const yaml_node_t *node, const char *what, const struct key *keys, void *into)
{
	struct keyed k = { what, keys, into };

	each_pair(r, node, what, &k, read_key);
}

static void add_pair(struct reader *r, const yaml_node_t *key, const char *name, const yaml_node_t *value, void *ctx)
{
	struct serve_pairs *to = ctx;
	const char *text = text_of(r, value);

	(void)key;
	if (!text)
		return;
	to->v = arena_grow(r->c->arena, to->v, &to->cap, to->n, sizeof(*to->v));
	to->v[to->n++] = (struct serve_pair){ name, text };
}

static bool read_number(struct reader *r, const yaml_node_t *node, double least, double most, double *number)
{
	const char *text = text_of(r, node);
	char *end;

	if (!text)
		return false;
	*number = strtod(text, &end);
	if (end != text && !*end && isfinite(*number) && *number >= least && *number <= most)
		return true;
	mistake(r, node, "'%s' is no number from %g to %g", text, least, most);
	return false;
}

static void read_series(struct reader *r, const yaml_node_t *node, void *into)
{
	double n;

	if (read_number(r, node, 1, SERIES_MAX, &n))
		*(size_t *)into = (size_t)n;
}

/* Letters, digits and '_', as of metrics' names. */
static bool is_name(const char *s, bool colons)
{
	if (!*s || isdigit((unsigned char)*s))
		return false;
	for (; *s; s++)
		if (!isascii(*s) || (!isalnum((unsigned char)*s) && *s != '_' && !(colons && *s == ':')))
			return false;
	return true;
}

/* What a service of root's, or another user's, does is not for others to say. */
#define OTHERS "%s is refused: others than root and this user own %s, or can write to it"

/* --- files --------------------------------------------------------------------------------------------- */

/* The content of the file that @node names; NULL after a message. */
static const char *content_of(struct reader *r, const yaml_node_t *node, bool is_secret)
{
	const char *path = text_of(r, node), *content = NULL;
	struct strbuf text = { 0 }, why = { 0 };
	struct file *f = NULL;
	int e;

	if (!path)
		return NULL;
	e = file_open(path, &f, &why);
	if (e) {
		mistake(r, node, "%s", strbuf_str(&why));
		goto out;
	}
	e = file_text(f, FILE_MAX, &text);
	if (e)
		mistake(r, node, "cannot read %s: %s", path, strerror(-e));
	else if (file_is_others(f, &why))
		mistake(r, node, OTHERS, path, strbuf_str(&why));
	else if (is_secret && (f->st.st_mode & S_IROTH))
		mistake(r, node, "%s is a secret that everybody can read: chmod o-r %s", path, path);
	else if (strlen(strbuf_str(&text)) != text.len)
		mistake(r, node, "%s has NUL characters", path);
	else
		content = arena_strdup(r->c->arena, strbuf_str(&text));
out:
	file_close(f);
	strbuf_fini(&text);
	strbuf_fini(&why);
	return content;
}

static void read_certificate(struct reader *r, const yaml_node_t *node, void *into)
{
	*(const char **)into = content_of(r, node, false);
}

static void read_secret(struct reader *r, const yaml_node_t *node, void *into)
{
	*(const char **)into = content_of(r, node, true);
}

static void read_token(struct reader *r, const yaml_node_t *node, void *into)
{
	const char *text = content_of(r, node, true);
	size_t len;

	if (!text)
		return;
	len = strcspn(text, "\r\n");
	for (size_t i = 0; i < len; i++) {
		if (isgraph((unsigned char)text[i]))
			continue;
		mistake(r, node, "a token has printable characters and no blanks");
		return;
	}
	if (len < TOKEN_MIN)
		mistake(r, node, "the token has %zu characters, %d are the least: head -c 32 /dev/urandom | base64", len, TOKEN_MIN);
	else
		*(const char **)into = arena_strndup(r->c->arena, text, len);
}

/* --- where it is shown --------------------------------------------------------------------------------- */

static bool is_loopback(const char *host)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (!strcmp(host, "localhost"))
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* ADDRESS:PORT, [ADDRESS]:PORT or "none". */
static void read_listen(struct reader *r, const yaml_node_t *node, void *into)
{
	const char *text = text_of(r, node), *colon = text ? strrchr(text, ':') : NULL;
	struct serve_config *c = into;
	char *end = NULL;
	long port;

	r->listen = node;
	c->host = c->port = NULL;
	if (!text || !strcmp(text, "none"))
		return;
	port = colon ? strtol(colon + 1, &end, 10) : -1;
	if (!colon || colon == text || !isdigit((unsigned char)colon[1]) || *end || port < 0 || port > 65535) {
		mistake(r, node, "'%s' is no ADDRESS:PORT, such as 127.0.0.1:9464; \"none\" for no HTTP", text);
		return;
	}
	c->port = arena_strdup(c->arena, colon + 1);
	if (*text == '[' && colon[-1] == ']')
		c->host = arena_strndup(c->arena, text + 1, (size_t)(colon - text) - 2);
	else
		c->host = arena_strndup(c->arena, text, (size_t)(colon - text));
	c->listens_elsewhere = !is_loopback(c->host);
}

static const struct key tls_keys[] = {
	{ "certificate", offsetof(struct serve_config, certificate), read_certificate },
	{ "key", offsetof(struct serve_config, key), read_secret },
	{ 0 },
};

static void read_tls(struct reader *r, const yaml_node_t *node, void *into)
{
	struct serve_config *c = into;
	unsigned int before = r->mistakes;

	read_keys(r, node, "tls", tls_keys, c);
	if (r->mistakes == before && (!c->certificate || !c->key))
		mistake(r, node, "tls: name both the certificate and the key");
}

static void read_interval(struct reader *r, const yaml_node_t *node, void *into)
{
	double s;

	if (read_number(r, node, 1, 86400, &s))
		*(unsigned int *)into = (unsigned int)s;
}

static void read_watchdog(struct reader *r, const yaml_node_t *node, void *into)
{
	double s;

	if (read_number(r, node, 0, 86400, &s))
		*(unsigned int *)into = (unsigned int)s;
}

static void read_budget(struct reader *r, const yaml_node_t *node, void *into)
{
	const char *text = text_of(r, node);
	struct dtap_budget *b = NULL;

	if (text && dtap_budget_new(text, &b) == -EINVAL)
		mistake(r, node, "'%s' is no budget: a part of a process's CPU time such as 1%%, from 0.01%% to 50%%, or none", text);
	else
		*(const char **)into = text;
	dtap_budget_free(b);
}

static const struct key textfile_keys[] = {
	{ "path", offsetof(struct serve_config, textfile), read_text },
	{ "interval", offsetof(struct serve_config, interval_s), read_interval },
	{ 0 },
};

static void read_textfile(struct reader *r, const yaml_node_t *node, void *into)
{
	struct serve_config *c = into;
	size_t len;

	read_keys(r, node, "textfile", textfile_keys, c);
	len = c->textfile ? strlen(c->textfile) : 0;
	if (len < 6 || strcmp(c->textfile + len - 5, ".prom"))
		mistake(r, node, "textfile: its path ends in .prom, which node_exporter looks for");
}

/* --- outputs ------------------------------------------------------------------------------------------- */

#define OUTPUT_KINDS "file, pipe, http, clickhouse, pprof and folder"

/* Bytes: a number with K, M or G, of 1024. */
static void read_size(struct reader *r, const yaml_node_t *node, void *into)
{
	static const char units[] = "KMG";
	const char *text = text_of(r, node), *unit;
	unsigned long long n;
	unsigned int shift;
	char *end;

	if (!text)
		return;
	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	shift = unit ? 10 * (unsigned int)(unit - units + 1) : 0;
	if (!isdigit((unsigned char)*text) || errno || (*end && (!unit || end[1])) || n << shift >> shift != n || n << shift < 4096)
		mistake(r, node, "'%s' is no size, such as 100M: at least 4K", text);
	else
		*(uint64_t *)into = n << shift;
}

static void read_count(struct reader *r, const yaml_node_t *node, void *into)
{
	double n;

	if (read_number(r, node, 0, 1000, &n))
		*(unsigned int *)into = (unsigned int)n;
}

static void read_batch(struct reader *r, const yaml_node_t *node, void *into)
{
	double n;

	if (read_number(r, node, 1, 1000000, &n))
		*(uint64_t *)into = (uint64_t)n;
}

static void read_seconds(struct reader *r, const yaml_node_t *node, void *into)
{
	double s;

	if (read_number(r, node, 0.01, 3600, &s))
		*(uint64_t *)into = (uint64_t)(s * 1000);
}

static void read_timeout(struct reader *r, const yaml_node_t *node, void *into)
{
	double s;

	if (read_number(r, node, 1, 600, &s))
		*(unsigned int *)into = (unsigned int)s;
}

/* The first line of a file that not everybody can read. */
static void read_password(struct reader *r, const yaml_node_t *node, void *into)
{
	const char *text = content_of(r, node, true);

	if (text)
		*(const char **)into = arena_strndup(r->c->arena, text, strcspn(text, "\r\n"));
}

/* A name that needs no quotes in a query. */
static void read_identifier(struct reader *r, const yaml_node_t *node, void *into)
{
	const char *text = text_of(r, node);

	if (text && !is_name(text, false))
		mistake(r, node, "'%s' is no name of letters, digits and '_'", text);
	else if (text)
		*(const char **)into = text;
}

static void read_target(struct reader *r, const yaml_node_t *node, struct serve_output *o, enum serve_output_kind kind)
{
	const char *text = text_of(r, node);

	if (o->target)
		mistake(r, node, "an output is one of " OUTPUT_KINDS);
	o->kind = kind;
	o->target = text;
}

static void read_output_file(struct reader *r, const yaml_node_t *node, void *into)
{
	read_target(r, node, into, SERVE_FILE);
}

static void read_output_pipe(struct reader *r, const yaml_node_t *node, void *into)
{
	read_target(r, node, into, SERVE_PIPE);
}

static void read_address(struct reader *r, const yaml_node_t *node, void *into, enum serve_output_kind kind)
{
	struct serve_output *o = into;

	read_target(r, node, o, kind);
	if (o->target && strncmp(o->target, "http://", 7) && strncmp(o->target, "https://", 8))
		mistake(r, node, "'%s' is no address: http://... or https://...", o->target);
	else if (o->target && (strpbrk(o->target, " \t\r\n#@") || (kind == SERVE_CLICKHOUSE && strchr(o->target, '?'))))
		mistake(r, node, "'%s': an address without blanks, user or fragment belongs here", o->target);
}

static void read_output_http(struct reader *r, const yaml_node_t *node, void *into)
{
	read_address(r, node, into, SERVE_HTTP);
}

static void read_output_clickhouse(struct reader *r, const yaml_node_t *node, void *into)
{
	read_address(r, node, into, SERVE_CLICKHOUSE);
}

static void read_output_pprof(struct reader *r, const yaml_node_t *node, void *into)
{
	read_address(r, node, into, SERVE_PPROF);
}

static void read_output_folder(struct reader *r, const yaml_node_t *node, void *into)
{
	read_target(r, node, into, SERVE_FOLDER);
}

static const struct key output_keys[] = {
	{ "file", 0, read_output_file },
	{ "pipe", 0, read_output_pipe },
	{ "http", 0, read_output_http },
	{ "clickhouse", 0, read_output_clickhouse },
	{ "pprof", 0, read_output_pprof },
	{ "folder", 0, read_output_folder },
	{ "size", offsetof(struct serve_output, size), read_size },
	{ "count", offsetof(struct serve_output, count), read_count },
	{ "database", offsetof(struct serve_output, database), read_identifier },
	{ "table", offsetof(struct serve_output, table), read_identifier },
	{ "user", offsetof(struct serve_output, user), read_text },
	{ "password_file", offsetof(struct serve_output, password), read_password },
	{ "token_file", offsetof(struct serve_output, token), read_token },
	{ "ca", offsetof(struct serve_output, ca), read_text },
	{ "spool", offsetof(struct serve_output, spool), read_text },
	{ "spool_size", offsetof(struct serve_output, spool_size), read_size },
	{ "batch", offsetof(struct serve_output, batch), read_batch },
	{ "interval", offsetof(struct serve_output, interval_ms), read_seconds },
	{ "timeout", offsetof(struct serve_output, timeout_s), read_timeout },
	{ 0 },
};

#define ADDRESSES (1 << SERVE_HTTP | 1 << SERVE_CLICKHOUSE | 1 << SERVE_PPROF)
#define PROFILES (1 << SERVE_PPROF | 1 << SERVE_FOLDER)
#define PATHS (1 << SERVE_FILE | 1 << SERVE_PIPE | 1 << SERVE_FOLDER)

/* Which kinds have a key, as bits; those of every kind are not here. */
static const struct { const char *key; unsigned int kinds; } keys_of_kinds[] = {
	{ "size", 1 << SERVE_FILE | 1 << SERVE_FOLDER }, { "count", 1 << SERVE_FILE },
	{ "database", 1 << SERVE_CLICKHOUSE }, { "table", 1 << SERVE_CLICKHOUSE },
	{ "user", 1 << SERVE_CLICKHOUSE }, { "password_file", 1 << SERVE_CLICKHOUSE },
	{ "token_file", 1 << SERVE_HTTP | 1 << SERVE_PPROF },
	{ "ca", ADDRESSES }, { "spool", ADDRESSES }, { "spool_size", ADDRESSES }, { "timeout", ADDRESSES },
	{ "batch", ~(unsigned int)PROFILES },
};

static void check_kind(struct reader *r, const yaml_node_t *node, const struct serve_output *o)
{
	static const char *const names[] = { "file", "pipe", "http", "clickhouse", "pprof", "folder" };

	for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = node_of(r, p->key);

		for (size_t i = 0; i < sizeof(keys_of_kinds) / sizeof(keys_of_kinds[0]); i++)
			if (!strcmp(keys_of_kinds[i].key, (const char *)key->data.scalar.value) &&
			    !(keys_of_kinds[i].kinds & 1U << o->kind))
				mistake(r, key, "'%s' is not for the output %s, a %s", keys_of_kinds[i].key, o->name, names[o->kind]);
	}
}

static bool has_kind(const struct serve_output *o, unsigned int kinds)
{
	return kinds & 1U << o->kind;
}

static bool is_private(const struct serve_output *o)
{
	const char *host = o->target + strlen("http://");
	char *name = strndup(host, *host == '[' ? strcspn(host, "]") : strcspn(host, ":/?"));
	bool yes = name && is_loopback(*name == '[' ? name + 1 : name);

	free(name);
	return yes || !strncmp(o->target, "https://", 8);
}

static void add_output(struct reader *r, const yaml_node_t *key, const char *name, const yaml_node_t *value, void *ctx)
{
	struct serve_config *c = ctx;
	struct serve_output o = { .name = name, .line = key->start_mark.line + 1, .column = key->start_mark.column + 1,
				  .size = FILE_SIZE, .count = FILE_COUNT, .database = "dtap", .table = "events",
				  .spool_size = UINT64_C(1) << 30, .batch = BATCH, .timeout_s = TIMEOUT_S };
	unsigned int before = r->mistakes;
	char *why = NULL;

	read_keys(r, value, "an output", output_keys, &o);
	if (r->mistakes != before)
		return;
	if (!o.target) {
		mistake(r, key, "%s: name one of " OUTPUT_KINDS, name);
		return;
	}
	check_kind(r, value, &o);
	if ((o.token || o.password) && !is_private(&o))
		mistake(r, key, "%s: the secret would go through the network for all to read: use https", name);
	if (has_kind(&o, PATHS) && *o.target != '/')
		mistake(r, key, "%s: %s is no absolute path", name, o.target);
	if (o.spool && *o.spool != '/')
		mistake(r, key, "%s: %s is no absolute path", name, o.spool);
	for (size_t i = 0; i < c->noutputs; i++) {
		if (o.spool && c->outputs[i].spool && !strcmp(o.spool, c->outputs[i].spool))
			mistake(r, key, "%s: the output %s has the same spool", name, c->outputs[i].name);
		if (has_kind(&o, 1 << SERVE_FILE | 1 << SERVE_FOLDER) && c->outputs[i].kind == o.kind &&
		    !strcmp(o.target, c->outputs[i].target))
			mistake(r, key, "%s: the output %s has the same %s", name, c->outputs[i].name,
				o.kind == SERVE_FILE ? "file" : "folder");
	}
	if (o.kind == SERVE_PPROF && (why = item_mistake(o.target, &c->labels)))
		mistake(r, key, "%s: %s", name, why);
	free(why);
	o.has_profiles = has_kind(&o, PROFILES);
	if (o.has_profiles)
		o.batch = 1;
	if (!o.interval_ms)
		o.interval_ms = o.has_profiles ? PROFILE_MS : has_kind(&o, PATHS) ? LOCAL_INTERVAL_MS : INTERVAL_MS;
	o.identity = arena_printf(c->arena, "%d\n%s\n%" PRIu64 " %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n%s\n%s\n%s\n%s\n%s\n%s\n%s",
				  o.kind, o.target, o.size, o.count, o.spool_size, o.batch, o.interval_ms, o.timeout_s, o.database,
				  o.table, o.user ? o.user : "", o.password ? o.password : "", o.token ? o.token : "",
				  o.ca ? o.ca : "", o.spool ? o.spool : "");
	c->outputs = arena_grow(c->arena, c->outputs, &c->outputs_cap, c->noutputs, sizeof(*c->outputs));
	c->outputs[c->noutputs++] = o;
}

/* --- rules --------------------------------------------------------------------------------------------- */

static void read_users(struct reader *r, const yaml_node_t *node, void *into)
{
	struct serve_rule *rule = into;
	struct serve_texts names = { 0 };

	read_texts(r, node, &names);
	for (size_t i = 0; i < names.n; i++) {
		uid_t user;

		if (!user_of(names.v[i], &user)) {
			mistake(r, node, "there is no user '%s'", names.v[i]);
			continue;
		}
		rule->users = arena_grow(r->c->arena, rule->users, &rule->users_cap, rule->nusers, sizeof(*rule->users));
		rule->users[rule->nusers++] = user;
	}
}

static void add_label(struct reader *r, const yaml_node_t *key, const char *name, const yaml_node_t *value, void *ctx)
{
	if (!is_name(name, false) || !strncmp(name, "__", 2) || !strcmp(name, "le") || !strcmp(name, "quantile"))
		mistake(r, key, "'%s' is no label's name: letters, digits and '_', but not le, quantile or __...", name);
	else
		add_pair(r, key, name, value, ctx);
}

static void read_label_pairs(struct reader *r, const yaml_node_t *node, void *into)
{
	each_pair(r, node, "labels", into, add_label);
}

static void read_pairs(struct reader *r, const yaml_node_t *node, void *into)
{
	each_pair(r, node, "a mapping", into, add_pair);
}

static const struct key rule_keys[] = {
	{ "user", 0, read_users },
	{ "unit", offsetof(struct serve_rule, units), read_texts },
	{ "cgroup", offsetof(struct serve_rule, cgroups), read_texts },
	{ "command", offsetof(struct serve_rule, commands), read_texts },
	{ "environment", offsetof(struct serve_rule, environment), read_pairs },
	{ 0 },
};

static void add_rule(struct reader *r, const yaml_node_t *key, const char *name, const yaml_node_t *value, void *ctx)
{
	struct serve_config *c = ctx;
	struct serve_rule rule = { .name = name };

	(void)key;
	read_keys(r, value, "a rule", rule_keys, &rule);
	c->rules = arena_grow(c->arena, c->rules, &c->rules_cap, c->nrules, sizeof(*c->rules));
	c->rules[c->nrules++] = rule;
}

static void read_rules(struct reader *r, const yaml_node_t *node, void *into)
{
	each_pair(r, node, "rules", into, add_rule);
}

/* --- metrics ------------------------------------------------------------------------------------------- */

static void read_name(struct reader *r, const yaml_node_t *node, void *into)
{
	const char *name = text_of(r, node);

	if (name && !is_name(name, true))
		mistake(r, node, "'%s' is no metric's name: letters, digits, '_' and ':'", name);
	else
		*(const char **)into = name;
}

static void read_labels(struct reader *r, const yaml_node_t *node, void *into)
{
	struct serve_metric *m = into;

	m->has_labels = true;
	read_texts(r, node, &m->labels);
	for (size_t i = 0; i < m->labels.n; i++) {
		const char *name = m->labels.v[i];

		if (!strcmp(name, "-"))
			continue;
		if (!is_name(name, false) || !strncmp(name, "__", 2) || !strcmp(name, "le") || !strcmp(name, "quantile"))
			mistake(r, node, "'%s' is no label's name: letters, digits and '_', but not le, quantile or __...; "
				"\"-\" leaves the key out", name);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(m->labels.v[k], name))
				mistake(r, node, "the label '%s' is there twice", name);
	}
}

static void read_scale(struct reader *r, const yaml_node_t *node, void *into)
{
	read_number(r, node, 1e-18, 1e18, into);
}

static void read_type(struct reader *r, const yaml_node_t *node, void *into)
{
	const char *text = text_of(r, node);
	bool counter = text && !strcmp(text, "counter");

	if (text && !counter && strcmp(text, "gauge"))
		mistake(r, node, "type is counter or gauge, of a count() or sum(); the others say themselves what they are");
	else
		*(enum serve_type *)into = counter ? SERVE_COUNTER : SERVE_GAUGE;
}

static const struct key metric_keys[] = {
	{ "name", offsetof(struct serve_metric, name), read_name },
	{ "help", offsetof(struct serve_metric, help), read_text },
	{ "labels", 0, read_labels },
	{ "scale", offsetof(struct serve_metric, scale), read_scale },
	{ "type", offsetof(struct serve_metric, type), read_type },
	{ "unit", offsetof(struct serve_metric, unit), read_text },
	{ 0 },
};

static void add_metric(struct reader *r, const yaml_node_t *key, const char *name, const yaml_node_t *value, void *ctx)
{
	struct serve_script *s = ctx;
	struct serve_metric m = { .aggregation = *name == '@' ? name + 1 : name };

	(void)key;
	read_keys(r, value, "a metric", metric_keys, &m);
	s->metrics = arena_grow(r->c->arena, s->metrics, &s->metrics_cap, s->nmetrics, sizeof(*s->metrics));
	s->metrics[s->nmetrics++] = m;
}

static void read_metrics(struct reader *r, const yaml_node_t *node, void *into)
{
	each_pair(r, node, "metrics", into, add_metric);
}

/* --- scripts ------------------------------------------------------------------------------------------- */

static void read_rule_name(struct reader *r, const yaml_node_t *node, void *into)
{
	const char *name = text_of(r, node);

	for (size_t i = 0; name && i < r->c->nrules; i++) {
		if (!strcmp(r->c->rules[i].name, name)) {
			*(const struct serve_rule **)into = &r->c->rules[i];
			return;
		}
	}
	if (name)
		mistake(r, node, "there is no rule '%s' under \"rules\"", name);
}

static void read_file(struct reader *r, const yaml_node_t *node, void *into)
{
	struct serve_script *s = into;
	const char *path = text_of(r, node);

	if (path && ends_with(path, ".stp"))
		s->language = DTAP_STAP;
	s->file = path;
	s->program = path ? content_of(r, node, false) : NULL;
}

static void read_program(struct reader *r, const yaml_node_t *node, void *into)
{
	struct serve_script *s = into;
	const char *text = text_of(r, node);
	size_t above = node->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ? node->start_mark.line + 1 : 0;

	if (!text)
		return;
	if (s->program) {
		mistake(r, node, "a script is one of script, program and stap");
		return;
	}
	/* Empty lines in front, so that the compiler's messages have the line of this file. */
	s->program = memset(arena_alloc(r->c->arena, above + strlen(text) + 1), '\n', above);
	strcpy((char *)s->program + above, text);
}

/* SystemTap's text; that of a file is told by its name. */
static void read_stap(struct reader *r, const yaml_node_t *node, void *into)
{
	struct serve_script *s = into;

	read_program(r, node, s);
	s->language = DTAP_STAP;
}

/* The output of that name; NULL after a message. */
static const struct serve_output *named_output(struct reader *r, const yaml_node_t *node, bool profiles)
{
	const char *name = text_of(r, node);
	const struct serve_output *o = NULL;

	for (size_t i = 0; name && i < r->c->noutputs; i++)
		if (!strcmp(r->c->outputs[i].name, name))
			o = &r->c->outputs[i];
	if (!name)
		return NULL;
	if (!o)
		mistake(r, node, "there is no output '%s' under \"outputs\"", name);
	else if (o->has_profiles != profiles)
		mistake(r, node, "the output %s is for %s", name, profiles ? "events: profiles go to one of pprof and folder" : "profiles");
	return o;
}

static void read_event_output(struct reader *r, const yaml_node_t *node, void *into)
{
	*(const struct serve_output **)into = named_output(r, node, false);
}

static void read_profile_output(struct reader *r, const yaml_node_t *node, void *into)
{
	*(const struct serve_output **)into = named_output(r, node, true);
}

/* The words of a ready-made command: a list, or a text with blanks between them. */
static void read_command_words(struct reader *r, const yaml_node_t *node, struct serve_texts *words)
{
	const char *text;
	char *rest, *word;

	if (node->type == YAML_SEQUENCE_NODE) {
		read_texts(r, node, words);
		return;
	}
	text = text_of(r, node);
	word = text ? strtok_r(arena_strdup(r->c->arena, text), " \t\n", &rest) : NULL;
	for (; word; word = strtok_r(NULL, " \t\n", &rest))
		add_text(r, words, word);
}

/* Which option is not for a service; NULL: none. */
static const char *unfit(const struct ready_request *q)
{
	if (q->npids || q->command || q->by_user)
		return "-p, -c and -u are not for a service: write a rule";
	if (q->output || q->json || q->rows || q->interval_ns || q->duration_ns)
		return "-o, -j, -n, -i and -d are not for a service";
	if (q->head.reads)
		return "it reads stacks from outside, which is not for a service, and may not have the kernel's probes";
	return q->help || q->script ? "-h and -s are not for a service" : NULL;
}

static void read_command(struct reader *r, const yaml_node_t *node, void *into)
{
	struct serve_script *s = into;
	struct ready_request *q = arena_new_of(r->c->arena, struct ready_request);
	struct serve_texts words = { 0 };
	char **argv;
	int argc = 0;

	read_command_words(r, node, &words);
	if (!words.n) {
		mistake(r, node, "name a ready-made command; dtap --help lists them");
		return;
	}
	q->arena = r->c->arena;
	if (!ready_find(q->arena, words.v[0])) {
		mistake(r, node, "there is no such ready-made command; dtap --help lists them");
		return;
	}
	argv = arena_alloc(q->arena, (words.n + 2) * sizeof(*argv));
	argv[argc++] = arena_strdup(q->arena, words.v[0]);
	argv[argc++] = arena_strdup(q->arena, "--all");
	for (size_t i = 1; i < words.n; i++)
		argv[argc++] = arena_strdup(q->arena, words.v[i]);
	if (ready_request_read(q, argc, argv))
		mistake(r, node, "%s is not to be run like that", words.v[0]);
	else if (unfit(q))
		mistake(r, node, "%s", unfit(q));
	else
		s->command = q;
}

static const struct key script_keys[] = {
	{ "rule", offsetof(struct serve_script, rule), read_rule_name },
	{ "script", 0, read_file },
	{ "program", 0, read_program },
	{ "stap", 0, read_stap },
	{ "command", 0, read_command },
	{ "options", offsetof(struct serve_script, options), read_pairs },
	{ "arguments", offsetof(struct serve_script, arguments), read_texts },
	{ "metrics", 0, read_metrics },
	{ "series", offsetof(struct serve_script, series), read_series },
	{ "events", offsetof(struct serve_script, output), read_event_output },
	{ "profiles", offsetof(struct serve_script, profiles), read_profile_output },
	{ "fields", offsetof(struct serve_script, fields), read_texts },
	{ 0 },
};

static void put_texts(struct strbuf *b, const char *what, const struct serve_texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		strbuf_printf(b, "%s %zu:%s\n", what, strlen(t->v[i]), t->v[i]);
}

static void put_pairs(struct strbuf *b, const char *what, const struct serve_pairs *p)
{
	for (size_t i = 0; i < p->n; i++)
		strbuf_printf(b, "%s %zu:%s %zu:%s\n", what, strlen(p->v[i].name), p->v[i].name, strlen(p->v[i].value),
			      p->v[i].value);
}

/* All that decides what a run does, not how its result is shown. */
static const char *identity_of(struct arena *a, const struct serve_script *s)
{
	const struct serve_rule *rule = s->rule;
	const struct ready_request *q = s->command;
	struct strbuf b = { 0 };
	const char *text;

	for (size_t i = 0; rule && i < rule->nusers; i++)
		strbuf_printf(&b, "user %u\n", rule->users[i]);
	if (rule) {
		put_texts(&b, "unit", &rule->units);
		put_texts(&b, "cgroup", &rule->cgroups);
		put_texts(&b, "command", &rule->commands);
		put_pairs(&b, "environment", &rule->environment);
	}
	put_pairs(&b, "option", &s->options);
	put_texts(&b, "argument", &s->arguments);
	for (size_t i = 0; q && i < q->head.noptions; i++)
		strbuf_printf(&b, "own %s\n", ready_value(&q->head.options[i]));
	for (size_t i = 0; q && i < q->nfunctions; i++)
		strbuf_printf(&b, "function %s\n", q->functions[i]);
	strbuf_printf(&b, "events %d rule %d language %d file %s\n%s", s->output != NULL, rule != NULL, s->language, s->file ? s->file : "",
		      q ? q->head.text : s->program + strspn(s->program, "\n"));
	text = arena_strdup(a, strbuf_str(&b));
	strbuf_fini(&b);
	return text;
}

/* What sha256sum(1) says of the script's file. */
static const char *hash_of(struct arena *a, const struct serve_script *s)
{
	const char *text = s->command ? s->command->head.text : s->program + (s->file ? 0 : strspn(s->program, "\n"));
	char hash[SHA256_TEXT];

	sha256_text(text, strlen(text), hash);
	return arena_strdup(a, hash);
}

/* The metrics of a ready-made command are its columns. */
static void check_metrics(struct reader *r, const yaml_node_t *node, const struct serve_script *s)
{
	for (size_t i = 0; s->command && i < s->nmetrics; i++) {
		const struct serve_metric *m = &s->metrics[i];
		const struct ready_column *c = ready_column(&s->command->head, m->aggregation);

		if (!c || c->is_key || !c->of || c->by)
			mistake(r, node, "%s has no value '%s'", s->command->head.name, m->aggregation);
		for (size_t k = 0; k < m->labels.n; k++) {
			if (!strcmp(m->labels.v[k], "process"))
				continue;
			c = ready_column(&s->command->head, m->labels.v[k]);
			if (!c || !c->is_key)
				mistake(r, node, "%s has no key '%s' for a label", s->command->head.name, m->labels.v[k]);
		}
	}
}

/* Stacks are profiles, and profiles are of stacks. */
static void check_profiles(struct reader *r, const yaml_node_t *node, const struct serve_script *s)
{
	const struct ready_head *h = s->command ? &s->command->head : NULL;
	bool is_tree = h && (h->form == READY_TREE || h->form == READY_FUNCTION_TABLE);

	if (is_tree && !s->profiles)
		mistake(r, node, "%s: %s counts stacks: name an output for them (profiles)", s->name, h->name);
	else if (h && s->profiles && !is_tree)
		mistake(r, node, "%s: %s counts no stacks, which profiles are made of", s->name, h->name);
	else if (s->profiles && s->language == DTAP_STAP)
		mistake(r, node, "%s: profiles are of D's aggregations: SystemTap's stacks are texts", s->name);
	else if (!h && s->profiles && !strstr(s->program, "stack("))
		mistake(r, node, "%s: profiles are of aggregations with a stack as a key, such as @[pystack()] = count()", s->name);
}

static void add_script(struct reader *r, const yaml_node_t *key, const char *name, const yaml_node_t *value, void *ctx)
{
	struct serve_config *c = ctx;
	struct serve_script s = { .name = name, .line = key->start_mark.line + 1, .column = key->start_mark.column + 1 };
	unsigned int before = r->mistakes;

	if (!is_name(name, false))
		mistake(r, key, "'%s' becomes part of metrics' names: letters, digits and '_'", name);
	read_keys(r, value, "a script", script_keys, &s);
	if (r->mistakes != before)
		return;
	if ((s.program != NULL) + (s.command != NULL) != 1)
		mistake(r, key, "%s: name one of script (a file), program or stap (its text) and command (a ready-made one)", name);
	else if (s.command && (s.arguments.n || s.options.n))
		mistake(r, key, "%s: options and arguments are for scripts; a command has its own", name);
	else if (s.command && s.command->head.needs_kernel && s.rule)
		mistake(r, key, "%s: the probes of %s are in the kernel, where a rule does not reach: leave it out", name,
			s.command->head.name);
	if (s.command && s.command->head.form == READY_EVENTS && !s.output)
		mistake(r, key, "%s: %s prints events: name an output for them (events)", name, s.command->head.name);
	else if (s.fields.n && (s.command || !s.output))
		mistake(r, key, "%s: fields are the names of a script's values in its events", name);
	for (size_t i = 0; s.rule && i < s.options.n; i++)
		if (!strcmp(s.options.v[i].name, "place"))
			mistake(r, key, "%s: a rule selects processes in the target place alone: leave out the rule, or the option",
				name);
	check_metrics(r, key, &s);
	check_profiles(r, key, &s);
	if (r->mistakes != before)
		return;
	s.identity = identity_of(c->arena, &s);
	s.hash = hash_of(c->arena, &s);
	c->scripts = arena_grow(c->arena, c->scripts, &c->scripts_cap, c->nscripts, sizeof(*c->scripts));
	c->scripts[c->nscripts++] = s;
}

/* Scripts name rules and outputs, so they are read when these are known; what an output's name is, too. */
static void note_outputs(struct reader *r, const yaml_node_t *node, void *into)
{
	(void)into;
	r->outputs = node;
}

static void note_scripts(struct reader *r, const yaml_node_t *node, void *into)
{
	(void)into;
	r->scripts = node;
}

/* --- the file ------------------------------------------------------------------------------------------ */

static const struct key top_keys[] = {
	{ "listen", 0, read_listen },
	{ "tls", 0, read_tls },
	{ "token_file", offsetof(struct serve_config, token), read_token },
	{ "textfile", 0, read_textfile },
	{ "series", offsetof(struct serve_config, series), read_series },
	{ "watchdog", offsetof(struct serve_config, watchdog_s), read_watchdog },
	{ "budget", offsetof(struct serve_config, budget), read_budget },
	{ "host", offsetof(struct serve_config, machine), read_text },
	{ "labels", offsetof(struct serve_config, labels), read_label_pairs },
	{ "outputs", 0, note_outputs },
	{ "rules", 0, read_rules },
	{ "scripts", 0, note_scripts },
	{ 0 },
};

/* Two aggregations may not have one name. */
static void check_names(struct reader *r)
{
	struct serve_config *c = r->c;
	struct serve_texts names = { 0 };

	for (size_t i = 0; i < c->nscripts; i++) {
		for (size_t k = 0; k < c->scripts[i].nmetrics; k++) {
			const char *name = c->scripts[i].metrics[k].name;

			for (size_t n = 0; name && n < names.n; n++)
				if (!strcmp(names.v[n], name))
					mistake(r, r->scripts, "two metrics are named %s", name);
			add_text(r, &names, name);
		}
	}
}

static void check(struct reader *r)
{
	struct serve_config *c = r->c;

	if (c->host && c->listens_elsewhere && (!c->certificate || !c->token))
		mistake(r, r->listen, "%s is not on loopback, so that strangers can connect: give tls (certificate, key) and "
			"token_file, or listen on 127.0.0.1", c->host);
	if (!c->host && !c->textfile && !c->noutputs)
		mistake(r, r->listen, "with \"listen: none\" there has to be a textfile or an output");
	if (!c->nscripts && !r->mistakes)
		mistake(r, r->scripts, "there is nothing to run: name scripts");
	check_names(r);
}

static void read_top(struct reader *r)
{
	const yaml_node_t *root = yaml.document_get_root_node(&r->doc);
	struct serve_config *c = r->c;

	if (!root) {
		mistake(r, NULL, "it is empty; dtap-serve(1) has an example");
		return;
	}
	r->scripts = r->listen = root;
	read_keys(r, root, "the configuration", top_keys, c);
	if (r->outputs)
		each_pair(r, r->outputs, "outputs", c, add_output);
	if (r->scripts != root)
		each_pair(r, r->scripts, "scripts", c, add_script);
	for (size_t i = 0; i < c->nscripts; i++)
		if (!c->scripts[i].series)
			c->scripts[i].series = c->series;
	check(r);
}

static void parse(struct reader *r)
{
	const char *why = yaml_load();
	yaml_parser_t parser;

	if (why) {
		mistake(r, NULL, "%s", why);
		return;
	}
	if (!yaml.parser_initialize(&parser)) {
		mistake(r, NULL, "out of memory");
		return;
	}
	yaml.parser_set_input_string(&parser, (const unsigned char *)r->text, r->len);
	if (yaml.parser_load(&parser, &r->doc)) {
		read_top(r);
		yaml.document_delete(&r->doc);
	} else {
		r->mistakes++;
		fprintf(r->err, "%s:%zu:%zu: %s%s%s\n", r->c->path, parser.problem_mark.line + 1, parser.problem_mark.column + 1,
			parser.problem ? parser.problem : "this is not YAML", parser.context ? ", " : "",
			parser.context ? parser.context : "");
	}
	yaml.parser_delete(&parser);
}

struct serve_config *serve_config_read(const char *path, FILE *err)
{
	struct strbuf why = { 0 }, text = { 0 };
	struct serve_config *c = NULL;
	struct file *f = NULL;
	int e = file_open(path, &f, &why);

	if (e)
		fprintf(err, "dtap serve: %s\n", strbuf_str(&why));
	else if ((e = file_text(f, CONFIG_MAX, &text)))
		fprintf(err, "dtap serve: cannot read %s: %s\n", path, strerror(-e));
	else if (file_is_others(f, &why))
		fprintf(err, "dtap serve: " OTHERS "\n", path, strbuf_str(&why));
	else
		c = serve_config_parse(path, strbuf_str(&text), text.len, err);
	file_close(f);
	strbuf_fini(&text);
	strbuf_fini(&why);
	return c;
}

struct serve_config *serve_config_parse(const char *path, const char *text, size_t len, FILE *err)
{
	struct arena *a = arena_new();
	struct reader r = { .c = arena_new_of(a, struct serve_config), .text = text, .len = len, .err = err };
	struct serve_config *c = r.c;
	char machine[256] = "";

	gethostname(machine, sizeof(machine) - 1);
	*c = (struct serve_config){ .machine = arena_strdup(a, machine), .arena = a, .users = 1, .path = arena_strdup(a, path), .host = "127.0.0.1", .port = "9464",
				    .watchdog_s = WATCHDOG_S, .interval_s = INTERVAL_S, .series = SERIES, .budget = "none" };
	parse(&r);
	if (!r.mistakes)
		return c;
	serve_config_drop(c);
	return NULL;
}

struct serve_config *serve_config_use(struct serve_config *c)
{
	atomic_fetch_add(&c->users, 1);
	return c;
}

void serve_config_drop(struct serve_config *c)
{
	if (c && atomic_fetch_sub(&c->users, 1) == 1)
		arena_free(c->arena);
}

const struct serve_metric *serve_metric(const struct serve_script *s, const char *name)
{
	for (size_t i = 0; i < s->nmetrics; i++)
		if (!strcmp(s->metrics[i].aggregation, name))
			return &s->metrics[i];
	return NULL;
}
