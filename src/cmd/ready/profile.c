/*
 * Call trees as profiles for pprof (profile.proto, compressed by gzip) and callgrind.
 *
 * pprof: a sample for each stack that has calls or self time.  Callgrind: a function's cost for each node of the tree;
 * readers sum them up.  Line numbers are not known, since stacks that differ only in lines are merged.
 */
#include "cmd/ready/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytemap.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "cmd/ready/proto.h"

/* Processes and the root are nodes, too, but no functions. */
static bool is_function(const struct ready_tree *t, const struct ready_node *n)
{
	return n->parent && n->parent != t->nodes[0];
}

/* The number of the pair of texts, counted from 1; *is_new: it is a new one.  0: out of memory. */
static uint64_t number_of(struct bytemap *m, uint64_t *last, const char *a, const char *b, bool *is_new)
{
	struct strbuf key = { 0 };
	uint64_t number;

	strbuf_puts(&key, a);
	strbuf_putc(&key, '\0');
	strbuf_puts(&key, b);
	number = (uint64_t)(uintptr_t)bytemap_get(m, key.s, key.len);
	*is_new = !number;
	if (!number && !bytemap_set(m, key.s, key.len, (void *)(uintptr_t)(*last + 1)))
		number = ++*last;
	strbuf_fini(&key);
	return number;
}

/* --- pprof --------------------------------------------------------------------------------------------- */

/* Fields of profile.proto. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_STRINGS,
       PROFILE_TIME = 9, PROFILE_DURATION, PROFILE_COMMENT = 13 };
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR, LABEL_NUM };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

struct pprof {
	const struct ready_tree *t;
	struct strbuf out, strings, message, inner;
	struct bytemap functions, texts;
	uint64_t nfunctions, ntexts;
	bool failed;
};

/* The index of a text in the string table, whose first entry is "". */
static uint64_t text_of(struct pprof *p, const char *s)
{
	bool is_new;
	uint64_t n;

	if (!*s)
		return 0;
	n = number_of(&p->texts, &p->ntexts, s, "", &is_new);
	if (n && is_new)
		proto_text(&p->strings, PROFILE_STRINGS, s);
	p->failed = p->failed || !n;
	return n;
}

/* The id of the node's function; its location has the same id. */
static uint64_t location_of(struct pprof *p, const struct ready_node *n)
{
	bool is_new;
	uint64_t id = number_of(&p->functions, &p->nfunctions, n->file, n->function, &is_new);

	p->failed = p->failed || !id;
	if (!id || !is_new)
		return id;
	proto_number(&p->message, FUNCTION_ID, id);
	proto_number(&p->message, FUNCTION_NAME, text_of(p, n->function));
	proto_number(&p->message, FUNCTION_SYSTEM_NAME, text_of(p, n->function));
	proto_number(&p->message, FUNCTION_FILE, text_of(p, n->file));
	proto_message(&p->out, PROFILE_FUNCTION, &p->message);
	proto_number(&p->inner, LINE_FUNCTION, id);
	proto_number(&p->message, LOCATION_ID, id);
	proto_message(&p->message, LOCATION_LINE, &p->inner);
	proto_message(&p->out, PROFILE_LOCATION, &p->message);
	return id;
}

static void put_type(struct pprof *p, const char *type, const char *unit)
{
	proto_number(&p->message, TYPE_TYPE, text_of(p, type));
	proto_number(&p->message, TYPE_UNIT, text_of(p, unit));
	proto_message(&p->out, PROFILE_SAMPLE_TYPE, &p->message);
}

static int put_sample(struct pprof *p, const struct ready_node *n)
{
	const struct ready_tree *t = p->t;
	uint64_t values[3], *stack;
	size_t depth = 0, nvalues = 0;

	for (const struct ready_node *m = n; is_function(t, m); m = m->parent)
		depth++;
	stack = calloc(depth + 1, sizeof(*stack));
	if (!stack)
		return -ENOMEM;
	depth = 0;
	for (const struct ready_node *m = n; is_function(t, m); m = m->parent)
		stack[depth++] = location_of(p, m);
	if (t->has_calls)
		values[nvalues++] = (uint64_t)(n->calls > 0 ? n->calls : 0);
	values[nvalues++] = (uint64_t)(n->self > 0 ? n->self : 0);
	if (t->has_cpu)
		values[nvalues++] = (uint64_t)(n->cpu_self > 0 ? n->cpu_self : 0);
	proto_packed(&p->message, SAMPLE_LOCATION, stack, depth);
	proto_packed(&p->message, SAMPLE_VALUE, values, nvalues);
	if (n->pid) {
		proto_number(&p->inner, LABEL_KEY, text_of(p, "pid"));
		proto_number(&p->inner, LABEL_NUM, n->pid);
		proto_message(&p->message, SAMPLE_LABEL, &p->inner);
	}
	proto_message(&p->out, PROFILE_SAMPLE, &p->message);
	free(stack);
	return 0;
}

/* Append @b compressed by gzip. */
static int put_compressed(const struct strbuf *b, struct strbuf *out)
{
	enum { GZIP = 15 + 16, MEMORY = 8 };
	z_stream z = { .next_in = (unsigned char *)b->s, .avail_in = (uInt)b->len };
	unsigned char piece[16384];
	int e = Z_OK;

	if (b->len > UINT32_MAX)
		return -EFBIG;
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	while (e == Z_OK) {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		e = deflate(&z, Z_FINISH);
		strbuf_add(out, (const char *)piece, sizeof(piece) - z.avail_out);
	}
	deflateEnd(&z);
	return e == Z_STREAM_END ? 0 : -EIO;
}

/* When it was, and what is known of it. */
static void put_about(struct pprof *p, const struct ready_pprof *about)
{
	proto_number(&p->out, PROFILE_TIME, about->time_ns);
	if (about->duration_ns)
		proto_number(&p->out, PROFILE_DURATION, about->duration_ns);
	for (size_t i = 0; i < about->ncomments; i++)
		proto_number(&p->out, PROFILE_COMMENT, text_of(p, about->comments[i]));
}

int ready_pprof_write(const struct ready_tree *t, const struct ready_pprof *about, struct strbuf *out)
{
	struct pprof p = { .t = t };
	int e = 0;

	proto_text(&p.strings, PROFILE_STRINGS, "");
	if (t->has_calls)
		put_type(&p, "calls", "count");
	if (about->type)
		put_type(&p, about->type, about->unit);
	else
		put_type(&p, t->is_samples ? "samples" : "wall", t->is_samples ? "count" : "nanoseconds");
	if (t->has_cpu)
		put_type(&p, "cpu", "nanoseconds");
	for (size_t i = 1; i < t->n && !e; i++)
		if (is_function(t, t->nodes[i]) && (t->nodes[i]->self > 0 || t->nodes[i]->calls > 0))
			e = put_sample(&p, t->nodes[i]);
	put_about(&p, about);
	strbuf_add(&p.out, strbuf_str(&p.strings), p.strings.len);
	if (!e && p.failed)
		e = -ENOMEM;
	if (!e)
		e = put_compressed(&p.out, out);
	strbuf_fini(&p.out);
	strbuf_fini(&p.strings);
	strbuf_fini(&p.message);
	strbuf_fini(&p.inner);
	bytemap_fini(&p.functions);
	bytemap_fini(&p.texts);
	return e;
}

int ready_tree_pprof(const struct ready_tree *t, struct ready_run *r)
{
	const struct ready_pprof about = { .time_ns = now_wall_ns() };
	struct strbuf out = { 0 };
	int e = ready_pprof_write(t, &about, &out);

	if (!e)
		fwrite(strbuf_str(&out), 1, out.len, r->out);
	strbuf_fini(&out);
	return e;
}

/* --- callgrind ----------------------------------------------------------------------------------------- */

struct callgrind {
	FILE *out;
	struct bytemap names[2];	/* files, functions */
	uint64_t last[2];
	bool failed, has_cpu;
};

/* "fn=(3) name"; the name is only written the first time. */
static void put_name(struct callgrind *c, const char *what, bool is_function_name, const char *name)
{
	bool is_new;
	uint64_t n = number_of(&c->names[is_function_name], &c->last[is_function_name], name, "", &is_new);

	c->failed = c->failed || !n;
	fprintf(c->out, "%s=(%" PRIu64 ")", what, n);
	if (is_new)
		fputc(' ', c->out);
	for (; is_new && *name; name++)
		fputc((unsigned char)*name < ' ' ? '?' : *name, c->out);
	fputc('\n', c->out);
}

/* A line of costs, one for each of the file's events. */
static void put_values(const struct callgrind *c, int64_t time, int64_t cpu)
{
	fprintf(c->out, "0 %" PRId64, time > 0 ? time : 0);
	if (c->has_cpu)
		fprintf(c->out, " %" PRId64, cpu > 0 ? cpu : 0);
	fputc('\n', c->out);
}

/* Write the node's own cost, and that of its calls. */
static void put_costs(struct callgrind *c, const struct ready_node *n)
{
	put_name(c, "fl", false, *n->file ? n->file : "???");
	put_name(c, "fn", true, n->function);
	put_values(c, n->self, n->cpu_self);
	for (const struct ready_node *k = n->child; k; k = k->next) {
		put_name(c, "cfl", false, *k->file ? k->file : "???");
		put_name(c, "cfn", true, k->function);
		fprintf(c->out, "calls=%" PRId64 " 0\n", k->calls);
		put_values(c, k->total, k->cpu_total);
	}
	fputc('\n', c->out);
}

int ready_tree_callgrind(const struct ready_tree *t, struct ready_run *r)
{
	struct callgrind c = { .out = r->out, .has_cpu = t->has_cpu };

	fprintf(r->out, "# callgrind format\nversion: 1\ncreator: dtap-%s\n", dtap_version());
	if (r->req->command)
		fprintf(r->out, "cmd: %.*s\n", (int)strcspn(r->req->command, "\n"), r->req->command);
	fprintf(r->out, "positions: line\nevents: %s%s\n\n", t->is_samples ? "Samples" : "Nanoseconds",
		t->has_cpu ? " CPU_nanoseconds" : "");
	for (size_t i = 1; i < t->n; i++)
		if (is_function(t, t->nodes[i]))
			put_costs(&c, t->nodes[i]);
	bytemap_fini(&c.names[0]);
	bytemap_fini(&c.names[1]);
	return c.failed ? -ENOMEM : 0;
}
