#include "cmd/lsp/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytemap.h"
#include "base/ends.h"
#include "base/oom.h"
#include "cmd/lsp/frame.h"
#include "cmd/lsp/guard.h"
#include "dtap.h"

/* JSON-RPC 2.0, "Error object"; LSP, ErrorCodes. */
enum rpc_error {
	RPC_PARSE = -32700, RPC_REQUEST = -32600, RPC_METHOD = -32601, RPC_PARAMS = -32602, RPC_INTERNAL = -32603,
	RPC_NOT_INITIALIZED = -32002, RPC_FAILED = -32803,
};

enum state { STATE_NEW, STATE_RUNNING, STATE_SHUTDOWN, STATE_END };

typedef json_t *answer_fn(struct lsp *s, const struct lsp_doc *doc, size_t off);

struct server {
	struct lsp *lsp;
	struct frame frame;
	struct bytemap docs;		/* by URI */
	size_t ndocs, bytes;		/* of all their texts */
	enum state state;
	bool was_shut_down;
};

/* A request: its response is sent once. */
struct request {
	json_t *id;			/* NULL: a notification */
	answer_fn *answer;
	bool done;
};

/* --- responses ---------------------------------------------------------------------------------------- */

static void send_json(struct server *v, json_t *message)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

	if (!text)
		oom();
	frame_write(&v->frame, text, strlen(text));
	free(text);
	json_decref(message);
}

static void fail(struct server *v, struct request *r, enum rpc_error code, const char *text)
{
	if (r->done)
		return;
	r->done = true;
	send_json(v, json_pack("{s:s,s:O?,s:{s:i,s:o}}", "jsonrpc", "2.0", "id", r->id, "error", "code", (int)code, "message",
			       lsp_string(text)));
}

static void respond(struct server *v, struct request *r, json_t *result)
{
	r->done = true;
	send_json(v, json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", r->id, "result", result));
}

/* The same with a result that is text. */
static void respond_text(struct server *v, struct request *r, const struct strbuf *result)
{
	char *id = json_dumps(r->id, JSON_COMPACT | JSON_ENCODE_ANY);
	struct strbuf b = { 0 };

	if (!id)
		oom();
	r->done = true;
	strbuf_printf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}", id, strbuf_str(result));
	frame_write(&v->frame, b.s, b.len);
	strbuf_fini(&b);
	free(id);
}

/* --- documents ---------------------------------------------------------------------------------------- */

static void doc_free(struct lsp_doc *doc)
{
	free(doc->uri);
	free((char *)doc->path);
	free(doc->text);
	free(doc);
}

static void *needed(void *p)
{
	if (!p)
		oom();
	return p;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The path of a file's URI; others as they are. */
static char *path_of(const char *uri)
{
	static const char scheme[] = "file://";
	char *path = needed(strdup(uri)), *to = path;

	if (strncmp(uri, scheme, strlen(scheme)))
		return path;
	for (uri += strlen(scheme); *uri; uri++) {
		int high = *uri == '%' ? hex(uri[1]) : -1, low = high < 0 ? -1 : hex(uri[2]);

		if (low >= 0 && (high || low)) {
			*to++ = (char)(high << 4 | low);
			uri += 2;
		} else {
			*to++ = *uri;
		}
	}
	*to = '\0';
	return path;
}

static enum dtap_language language_of(const char *path, const char *id)
{
	if (ends_with(path, ".stp") || ends_with(path, ".stpm"))
		return DTAP_STAP;
	if (ends_with(path, ".d"))
		return DTAP_D;
	return strstr(id, "stap") || strstr(id, "stp") || strstr(id, "systemtap") ? DTAP_STAP : DTAP_D;
}

/* The string @name of @o with its length, or NULL. */
static const char *text_in(json_t *o, const char *name, size_t *len)
{
	json_t *j = json_object_get(o, name);

	*len = json_string_length(j);
	return json_string_value(j);
}

/* The document that params.textDocument names, or NULL. */
static struct lsp_doc *doc_of(struct server *v, json_t *params)
{
	size_t len;
	const char *uri = text_in(json_object_get(params, "textDocument"), "uri", &len);

	return uri ? bytemap_get(&v->docs, uri, strlen(uri)) : NULL;
}

/* Replace the bytes @at by the @len bytes at @s.  A text that becomes too long is dropped. */
static void splice(struct server *v, struct lsp_doc *doc, struct text_span at, const char *s, size_t len)
{
	size_t rest = doc->len - at.to, total = at.from + len + rest;
	char *text;

	v->bytes -= doc->len;
	doc->dirty = true;
	if (total > LSP_MAX_TEXT || v->bytes + total > LSP_MAX_TEXTS) {
		doc->too_long = true;
		at.from = len = rest = total = 0;
	}
	text = needed(malloc(total + 1));
	memcpy(text, doc->text, at.from);
	memcpy(text + at.from, s, len);
	memcpy(text + at.from + len, doc->text + at.to, rest);
	text[total] = '\0';
	free(doc->text);
	doc->text = text;
	doc->len = total;
	v->bytes += total;
}

static void set_text(struct server *v, struct lsp_doc *doc, const char *s, size_t len)
{
	doc->too_long = false;
	splice(v, doc, (struct text_span){ 0, doc->len }, s, len);
}

static bool position_in(const struct lsp_doc *doc, json_t *pos, size_t *off)
{
	json_int_t line, unit;

	if (json_unpack(pos, "{s:I,s:I}", "line", &line, "character", &unit) || line < 0 || unit < 0)
		return false;
	*off = text_offset(lsp_text(doc), (struct text_pos){ (size_t)line, (size_t)unit });
	return true;
}

/* --- handlers ----------------------------------------------------------------------------------------- */

static void do_nothing(struct server *v, struct request *r, json_t *params)
{
	(void)v;
	(void)r;
	(void)params;
}

static bool shows_markdown(json_t *params)
{
	json_t *formats = NULL, *format;
	size_t i;

	json_unpack(params, "{s:{s:{s:{s:o}}}}", "capabilities", "textDocument", "hover", "contentFormat", &formats);
	json_array_foreach(formats, i, format)
		if (json_is_string(format) && !strcmp(json_string_value(format), "markdown"))
			return true;
	return false;
}

static void do_initialize(struct server *v, struct request *r, json_t *params)
{
	if (v->state != STATE_NEW) {
		fail(v, r, RPC_REQUEST, "the server is initialized");
		return;
	}
	v->lsp->markdown = shows_markdown(params);
	v->state = STATE_RUNNING;
	respond(v, r, json_pack("{s:{s:s,s:{s:b,s:i,s:b},s:{s:[s,s,s,s]},s:b,s:b},s:{s:s,s:s}}",
				"capabilities",
				"positionEncoding", "utf-16",
				"textDocumentSync", "openClose", 1, "change", 2, "save", 1,
				"completionProvider", "triggerCharacters", ":", ".", "@", ">",
				"hoverProvider", 1,
				"definitionProvider", 1,
				"serverInfo", "name", "dtap lsp", "version", dtap_version()));
}

static void do_shutdown(struct server *v, struct request *r, json_t *params)
{
	(void)params;
	v->state = STATE_SHUTDOWN;
	v->was_shut_down = true;
	respond(v, r, json_null());
}

static void do_exit(struct server *v, struct request *r, json_t *params)
{
	(void)r;
	(void)params;
	v->state = STATE_END;
}

static void do_open(struct server *v, struct request *r, json_t *params)
{
	json_t *item = json_object_get(params, "textDocument");
	size_t uri_len, text_len, id_len;
	const char *uri = text_in(item, "uri", &uri_len), *text = text_in(item, "text", &text_len);
	const char *id = text_in(item, "languageId", &id_len);
	struct lsp_doc *doc;

	(void)r;
	if (!uri || !text || strlen(uri) != uri_len)
		return;
	doc = bytemap_get(&v->docs, uri, uri_len);
	if (!doc) {
		if (v->ndocs == LSP_MAX_DOCS) {
			fprintf(stderr, "dtap lsp: more than %d documents are open: %s is not looked at\n", LSP_MAX_DOCS, uri);
			return;
		}
		doc = needed(calloc(1, sizeof(*doc)));
		doc->uri = needed(strdup(uri));
		doc->path = path_of(uri);
		doc->text = needed(strdup(""));
		if (bytemap_set(&v->docs, uri, uri_len, doc))
			oom();
		v->ndocs++;
	}
	doc->language = language_of(doc->path, id ? id : "");
	doc->version = json_integer_value(json_object_get(item, "version"));
	set_text(v, doc, text, text_len);
}

static void do_change(struct server *v, struct request *r, json_t *params)
{
	json_t *changes = json_object_get(params, "contentChanges"), *change;
	struct lsp_doc *doc = doc_of(v, params);
	size_t i;

	(void)r;
	if (!doc)
		return;
	doc->version = json_integer_value(json_object_get(json_object_get(params, "textDocument"), "version"));
	json_array_foreach(changes, i, change) {
		json_t *range = json_object_get(change, "range");
		size_t len;
		const char *text = text_in(change, "text", &len);
		struct text_span at;

		if (!text)
			continue;
		if (!range)
			set_text(v, doc, text, len);
		else if (position_in(doc, json_object_get(range, "start"), &at.from) &&
			 position_in(doc, json_object_get(range, "end"), &at.to) && at.from <= at.to && !doc->too_long)
			splice(v, doc, at, text, len);
	}
}

/* A library may have been saved: its declarations are read again, and what uses it is checked again. */
static void do_save(struct server *v, struct request *r, json_t *params)
{
	struct lsp_doc *doc;
	size_t pos = 0;

	(void)r;
	(void)params;
	for (size_t i = 0; i < sizeof(v->lsp->libraries) / sizeof(v->lsp->libraries[0]); i++)
		v->lsp->libraries[i].is_stale = true;
	while ((doc = bytemap_next(&v->docs, &pos)))
		doc->dirty = true;
}

static void do_close(struct server *v, struct request *r, json_t *params)
{
	struct lsp_doc *doc = doc_of(v, params);

	(void)r;
	if (!doc)
		return;
	bytemap_del(&v->docs, doc->uri, strlen(doc->uri));
	v->ndocs--;
	v->bytes -= doc->len;
	send_json(v, json_pack("{s:s,s:s,s:{s:s,s:[]}}", "jsonrpc", "2.0", "method", "textDocument/publishDiagnostics", "params",
			       "uri", doc->uri, "diagnostics"));
	doc_free(doc);
}

/* What a child computes. */
struct job {
	struct lsp *lsp;
	const struct lsp_doc *doc;
	answer_fn *answer;		/* NULL: diagnostics */
	size_t off;
};

static json_t *compute(void *ctx)
{
	struct job *j = ctx;

	return j->answer ? j->answer(j->lsp, j->doc, j->off) : lsp_diagnostics(j->lsp, j->doc);
}

static int run_job(struct server *v, struct job *j, struct strbuf *out, struct strbuf *why)
{
	lsp_library(v->lsp, j->doc->language);	/* so that the server has it for later children */
	return guard_run(compute, j, v->lsp->seconds, out, why);
}

static void do_ask(struct server *v, struct request *r, json_t *params)
{
	struct job j = { .lsp = v->lsp, .doc = doc_of(v, params), .answer = r->answer };
	struct strbuf out = { 0 }, why = { 0 };

	if (!j.doc)
		fail(v, r, RPC_PARAMS, "there is no such document open");
	else if (!position_in(j.doc, json_object_get(params, "position"), &j.off))
		fail(v, r, RPC_PARAMS, "there is no position");
	else if (run_job(v, &j, &out, &why))
		fail(v, r, RPC_FAILED, strbuf_str(&why));
	else
		respond_text(v, r, &out);
	strbuf_fini(&out);
	strbuf_fini(&why);
}

/* --- messages ----------------------------------------------------------------------------------------- */

enum method_kind { REQUEST, NOTIFICATION };

static const struct method {
	const char *name;
	enum method_kind kind;
	void (*run)(struct server *v, struct request *r, json_t *params);
	answer_fn *answer;
} methods[] = {
#define lsp_none NULL
#define METHOD(name, kind, handler, answer) { name, kind, do_##handler, lsp_##answer },
#include "cmd/lsp/methods.def"
#undef METHOD
#undef lsp_none
};

static const struct method *find(const char *name)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
}

/* A message with a method: @r->id is NULL for a notification. */
static void call(struct server *v, struct request *r, const char *name, json_t *params)
{
	const struct method *m = find(name);

	if (r->id ? !m || m->kind != REQUEST : !m || m->kind != NOTIFICATION) {
		if (r->id)
			fail(v, r, RPC_METHOD, "there is no such request");
		return;
	}
	if (r->id && v->state == STATE_NEW && m->run != do_initialize) {
		fail(v, r, RPC_NOT_INITIALIZED, "initialize comes first");
		return;
	}
	if (r->id && v->state == STATE_SHUTDOWN) {
		fail(v, r, RPC_REQUEST, "the server is shut down");
		return;
	}
	if (!r->id && v->state != STATE_RUNNING && m->run != do_exit)
		return;
	r->answer = m->answer;
	m->run(v, r, params);
}

static void handle(struct server *v, const struct strbuf *msg)
{
	json_t *message = json_loadb(strbuf_str(msg), msg->len, JSON_ALLOW_NUL, NULL);
	json_t *id = json_object_get(message, "id");
	const char *name = json_string_value(json_object_get(message, "method"));
	struct request r = { .id = json_is_string(id) || json_is_integer(id) ? id : NULL };

	if (!message)
		fail(v, &r, RPC_PARSE, "this is no JSON");
	else if (!json_is_object(message) || (id && !r.id) || (!name && !json_object_get(message, "result") &&
							      !json_object_get(message, "error")))
		fail(v, &r, RPC_REQUEST, "this is no request");
	else if (name)
		call(v, &r, name, json_object_get(message, "params"));
	json_decref(message);
}

/* --- diagnostics -------------------------------------------------------------------------------------- */

static struct lsp_doc *dirty_doc(const struct server *v)
{
	struct lsp_doc *doc;
	size_t pos = 0;

	while ((doc = bytemap_next(&v->docs, &pos)))
		if (doc->dirty)
			return doc;
	return NULL;
}

/* One diagnostic that says why there are no others. */
static void put_failure(const struct lsp_doc *doc, const struct strbuf *why, struct strbuf *out)
{
	struct strbuf text = { 0 };
	json_t *params;
	char *s;

	strbuf_printf(&text, "This script is not checked: %s.", strbuf_str(why));
	params = json_pack("{s:s,s:I,s:[{s:{s:{s:i,s:i},s:{s:i,s:i}},s:i,s:s,s:o}]}", "uri", doc->uri, "version", doc->version,
			   "diagnostics", "range", "start", "line", 0, "character", 0, "end", "line", 0, "character", 0,
			   "severity", 3, "source", "dtap", "message", lsp_string(strbuf_str(&text)));
	s = needed(params ? json_dumps(params, JSON_COMPACT) : NULL);
	strbuf_puts(out, s);
	free(s);
	json_decref(params);
	strbuf_fini(&text);
}

static void tell_diagnostics(struct server *v, struct lsp_doc *doc)
{
	struct job j = { .lsp = v->lsp, .doc = doc };
	struct strbuf out = { 0 }, why = { 0 };

	doc->dirty = false;
	strbuf_puts(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/publishDiagnostics\",\"params\":");
	if (run_job(v, &j, &out, &why))
		put_failure(doc, &why, &out);
	strbuf_putc(&out, '}');
	frame_write(&v->frame, out.s, out.len);
	strbuf_fini(&out);
	strbuf_fini(&why);
}

int server_run(struct lsp *s, int in, int out)
{
	struct server v = { .lsp = s, .frame = { .in = in, .out = out } };
	struct strbuf msg = { 0 };
	struct lsp_doc *doc;
	size_t pos = 0;
	int e = 1;

	while (e > 0 && v.state != STATE_END && !v.frame.failed) {
		doc = frame_is_waiting(&v.frame) ? NULL : dirty_doc(&v);
		if (doc) {
			tell_diagnostics(&v, doc);
			continue;
		}
		e = frame_read(&v.frame, LSP_MAX_MESSAGE, &msg);
		if (e > 0)
			handle(&v, &msg);
	}
	if (e < 0)
		fprintf(stderr, "dtap lsp: %s\n", e == -EPROTO ? "what was read is no message of the protocol: Content-Length is missing" :
			e == -EMSGSIZE ? "a message has more than 32 MiB" : strerror(-e));
	while ((doc = bytemap_next(&v.docs, &pos)))
		doc_free(doc);
	bytemap_fini(&v.docs);
	strbuf_fini(&msg);
	frame_fini(&v.frame);
	return v.was_shut_down && v.state == STATE_END ? 0 : 1;
}
