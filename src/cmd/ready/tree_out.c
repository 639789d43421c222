/*
 * Call trees in the formats of other programs, and as pictures.
 *
 * Folded: the input of flamegraph.pl.  Speedscope: its file format, a profile of type "sampled" whose samples are the
 * nodes with self time.  In pictures a node's width is its total time or number of samples.
 */
#include "cmd/ready/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/ready/cell.h"
#include "cmd/ready/find.h"

static bool is_process(const struct ready_tree *t, const struct ready_node *n)
{
	return n->parent == t->nodes[0];
}

/* A node's name in a picture.  With several processes the outermost nodes are the processes. */
static void put_name(const struct ready_tree *t, const struct ready_node *n, struct strbuf *out)
{
	if (t->is_difference && is_process(t, n))
		strbuf_puts(out, "all");
	else if (is_process(t, n))
		strbuf_printf(out, "process %" PRIu64, n->pid);
	else
		strbuf_puts(out, n->function);
}

/* The node at the bottom of a picture: the only process, or the root of several. */
static const struct ready_node *base_of(const struct ready_tree *t)
{
	return t->processes == 1 ? t->nodes[0]->child : t->nodes[0];
}

/* --- folded -------------------------------------------------------------------------------------------- */

static void put_path(const struct ready_tree *t, const struct ready_node *n, struct strbuf *out)
{
	struct strbuf name = { 0 };

	if (n->parent && n != base_of(t)) {
		put_path(t, n->parent, out);
		strbuf_puts(out, out->len ? ";" : "");
		put_name(t, n, &name);
		for (const char *s = strbuf_str(&name); *s; s++)
			strbuf_putc(out, *s == ';' || *s == '\n' ? '_' : *s);
	}
	strbuf_fini(&name);
}

int ready_tree_folded(const struct ready_tree *t, struct ready_run *r)
{
	struct strbuf b = { 0 };

	for (size_t i = 1; i < t->n; i++) {
		if (t->nodes[i]->self <= 0)
			continue;
		strbuf_clear(&b);
		put_path(t, t->nodes[i], &b);
		fprintf(r->out, "%s %" PRId64 "\n", b.len ? strbuf_str(&b) : "(outside)", t->nodes[i]->self);
	}
	strbuf_fini(&b);
	return 0;
}

/* --- speedscope ---------------------------------------------------------------------------------------- */

static void put_stack(const struct ready_tree *t, const struct ready_node *n, struct strbuf *out)
{
	if (!n->parent || n == base_of(t))
		return;
	put_stack(t, n->parent, out);
	strbuf_printf(out, "%s%zu", out->len ? "," : "", (size_t)n->calls);
}

/* A profile of the nodes' own time or samples, or of their CPU time; node->calls is the number of the node's frame. */
static void put_profile(const struct ready_tree *t, struct ready_run *r, bool cpu)
{
	struct strbuf samples = { 0 }, weights = { 0 }, one = { 0 };
	const char *sep = "";

	for (size_t i = 1; i < t->n; i++) {
		int64_t self = cpu ? t->nodes[i]->cpu_self : t->nodes[i]->self;

		if (self <= 0)
			continue;
		strbuf_clear(&one);
		put_stack(t, t->nodes[i], &one);
		strbuf_printf(&samples, "%s[%s]", sep, strbuf_str(&one));
		strbuf_printf(&weights, "%s%" PRId64, sep, self);
		sep = ",";
	}
	fprintf(r->out, "{\"type\":\"sampled\",\"name\":\"dtap %s%s\",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRId64
		",\"samples\":[%s],\"weights\":[%s]}", r->req->head.name, cpu ? ", CPU time" : "",
		t->is_samples ? "none" : "nanoseconds", cpu ? t->nodes[0]->cpu_total : t->nodes[0]->total, strbuf_str(&samples),
		strbuf_str(&weights));
	strbuf_fini(&samples);
	strbuf_fini(&weights);
	strbuf_fini(&one);
}

int ready_tree_speedscope(const struct ready_tree *t, struct ready_run *r)
{
	struct strbuf frames = { 0 }, name = { 0 };

	/* Each node has its own frame; the frame's number replaces node->calls, which is no longer needed. */
	for (size_t i = 0; i < t->n; i++) {
		strbuf_clear(&name);
		put_name(t, t->nodes[i], &name);
		strbuf_puts(&frames, i ? ",{\"name\":" : "{\"name\":");
		ready_json_text(strbuf_str(&name), &frames);
		if (*t->nodes[i]->file) {
			strbuf_puts(&frames, ",\"file\":");
			ready_json_text(t->nodes[i]->file, &frames);
		}
		strbuf_putc(&frames, '}');
		t->nodes[i]->calls = (int64_t)i;
	}
	fprintf(r->out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"dtap %s\","
		"\"name\":\"dtap %s\",\"activeProfileIndex\":0,\"shared\":{\"frames\":[%s]},\"profiles\":[",
		dtap_version(), r->req->head.name, strbuf_str(&frames));
	put_profile(t, r, false);
	if (t->has_cpu) {
		fputc(',', r->out);
		put_profile(t, r, true);
	}
	fputs("]}\n", r->out);
	strbuf_fini(&frames);
	strbuf_fini(&name);
	return 0;
}

/* --- HTML ---------------------------------------------------------------------------------------------- */

/* JSON inside HTML: "<", ">" and "&" are escaped, so that a browser cannot see the end of the script in it. */
static void put_html_text(const char *s, struct strbuf *out)
{
	struct strbuf b = { 0 };

	ready_json_text(s, &b);
	for (const char *at = strbuf_str(&b); *at; at++) {
		if (*at == '<' || *at == '>' || *at == '&')
			strbuf_printf(out, "\\u%04x", (unsigned char)*at);
		else
			strbuf_putc(out, *at);
	}
	strbuf_fini(&b);
}

/* The end of a node: of differences what its numbers were before, else its CPU time if that is known. */
static void end_node(const struct ready_tree *t, const struct ready_node *n, FILE *out)
{
	fputc(']', out);
	if (t->is_difference)
		fprintf(out, ",%" PRId64 ",%" PRId64 ",%" PRId64, n->was.calls, n->was.self, n->was.total);
	else if (t->has_cpu)
		fprintf(out, ",%" PRId64 ",%" PRId64, n->cpu_self, n->cpu_total);
	fputc(']', out);
}

/* [name, file, calls, self, total, [children ...]].  No recursion, since call trees can be deep. */
static void put_nodes(const struct ready_tree *t, FILE *out)
{
	const struct ready_node *base = base_of(t), *n = base;
	struct strbuf b = { 0 }, name = { 0 };

	while (n) {
		strbuf_clear(&b);
		strbuf_clear(&name);
		if (n == t->nodes[0])
			strbuf_puts(&name, "all processes");
		else
			put_name(t, n, &name);
		strbuf_putc(&b, '[');
		put_html_text(strbuf_str(&name), &b);
		strbuf_putc(&b, ',');
		put_html_text(n->file, &b);
		strbuf_printf(&b, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",[", n->calls, n->self, n->total);
		fputs(strbuf_str(&b), out);
		if (n->child) {
			n = n->child;
			continue;
		}
		end_node(t, n, out);
		while (n != base && !n->next) {
			n = n->parent;
			end_node(t, n, out);
		}
		if (n == base)
			break;
		fputc(',', out);
		n = n->next;
	}
	strbuf_fini(&b);
	strbuf_fini(&name);
}

static void put_title(const struct ready_run *r, struct strbuf *out)
{
	strbuf_printf(out, "dtap %s", r->req->head.name);
	if (r->title)
		strbuf_printf(out, ": %s", r->title);
	else if (r->req->command)
		strbuf_printf(out, ": %s", r->req->command);
	else if (r->req->npids)
		strbuf_printf(out, ": process %d", (int)r->req->pids[0]);
}

/* Read the page without its data; empty if it cannot be read. */
static void read_page(const struct ready_run *r, struct strbuf *page)
{
	const char *path = ready_share(r->req->arena, "flame.html");
	FILE *f = path ? fopen(path, "re") : NULL;
	char piece[4096];

	for (size_t n = 1; f && n; ) {
		n = fread(piece, 1, sizeof(piece), f);
		strbuf_add(page, piece, n);
	}
	if (f)
		fclose(f);
}

int ready_tree_html(const struct ready_tree *t, struct ready_run *r)
{
	static const char here[] = "/*DATA*/";
	struct strbuf page = { 0 }, title = { 0 }, text = { 0 };
	const char *mark;

	read_page(r, &page);
	mark = strstr(strbuf_str(&page), here);
	if (mark) {
		put_title(r, &title);
		put_html_text(strbuf_str(&title), &text);
		fwrite(page.s, 1, (size_t)(mark - page.s), r->out);
		fprintf(r->out, "const hasCalls = %s, hasCpu = %s, isSamples = %s, isDifference = %s, title = %s;\nconst data = ",
			t->has_calls ? "true" : "false", t->has_cpu ? "true" : "false", t->is_samples ? "true" : "false", t->is_difference ? "true" : "false",
			strbuf_str(&text));
		put_nodes(t, r->out);
		fprintf(r->out, ";\n%s", mark + strlen(here));
	}
	strbuf_fini(&page);
	strbuf_fini(&title);
	strbuf_fini(&text);
	return mark ? 0 : -ENOENT;
}

/* --- SVG ----------------------------------------------------------------------------------------------- */

enum { PICTURE_WIDTH = 1200, LINE = 17, MARGIN = 10, HEAD = 30, LETTER = 7 };

static void put_xml(const char *s, size_t max, FILE *out)
{
	for (size_t n = 0; *s && n < max; s++) {
		n += ((unsigned char)s[1] & 0xc0) != 0x80;
		if (*s == '<')
			fputs("&lt;", out);
		else if (*s == '>')
			fputs("&gt;", out);
		else if (*s == '&')
			fputs("&amp;", out);
		else if ((unsigned char)*s >= 0x20)
			fputc(*s, out);
	}
}

/* The largest change of a node's own time, or samples; at least 1. */
static int64_t largest_change(const struct ready_tree *t)
{
	int64_t most = 1;

	for (size_t i = 0; i < t->n; i++) {
		int64_t change = t->nodes[i]->self - t->nodes[i]->was.self;

		most = change > most ? change : -change > most ? -change : most;
	}
	return most;
}

/* Red where more time is spent in the function itself, blue where less. */
static void put_change(const struct ready_node *n, int64_t most, FILE *out)
{
	int64_t change = n->self - n->was.self;
	double part = (double)(change < 0 ? -change : change) / (double)most;

	fprintf(out, "hsl(%d,%d%%,%.0f%%)", change < 0 ? 215 : 5, change ? 85 : 0, change ? 92 - 36 * part : 90);
}

static uint32_t hash_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (const char *s = text; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h ^ h >> 15;
}

/* A warm colour that depends on the function's file, and of it a shade that depends on the function; as share/flame.html has it. */
static void put_colour(const struct ready_node *n, FILE *out)
{
	uint32_t file = hash_of(n->file), function = hash_of(n->function);

	fprintf(out, "hsl(%u,%u%%,%u%%)", file % 44 + 5 + function / 64 % 8, 74 + file / 64 % 16, 58 + function % 20);
}

struct drawing {
	const struct ready_tree *t;
	FILE *out;
	double scale;		/* pixels for a nanosecond or sample */
	size_t depth;		/* of the picture */
	int64_t most;		/* of differences: largest_change() */
};

static void put_amount(const struct ready_tree *t, int64_t value, struct strbuf *out)
{
	if (t->is_samples)
		strbuf_printf(out, "%" PRId64 " samples", value);
	else
		ready_time(value, out);
}

static void draw(const struct drawing *d, const struct ready_node *n, double x, size_t depth)
{
	double width = (double)n->total * d->scale;
	size_t y = HEAD + (d->depth - depth) * LINE;
	struct strbuf name = { 0 }, about = { 0 };

	if (n->parent)
		put_name(d->t, n, &name);
	else
		strbuf_puts(&name, "all processes");
	put_amount(d->t, n->total, &about);
	if (d->t->has_calls)
		strbuf_printf(&about, ", %" PRId64 " calls", n->calls);
	if (d->t->has_cpu) {
		strbuf_puts(&about, ", on a CPU ");
		put_amount(d->t, n->cpu_total, &about);
	}
	if (d->t->is_difference) {
		strbuf_puts(&about, "; before ");
		put_amount(d->t, n->was.total, &about);
	}
	fputs("<g><title>", d->out);
	put_xml(strbuf_str(&name), SIZE_MAX, d->out);
	fputs(*n->file ? " (" : "", d->out);
	put_xml(n->file, SIZE_MAX, d->out);
	fprintf(d->out, "%s: %s</title><rect x=\"%.1f\" y=\"%zu\" width=\"%.1f\" height=\"%d\" fill=\"", *n->file ? ")" : "",
		strbuf_str(&about), x, y, width, LINE - 1);
	if (d->t->is_difference)
		put_change(n, d->most, d->out);
	else
		put_colour(n, d->out);
	fputs("\"/>", d->out);
	if (width > 3 * LETTER) {
		fprintf(d->out, "<text x=\"%.1f\" y=\"%zu\">", x + 3, y + LINE - 5);
		put_xml(strbuf_str(&name), (size_t)(width - 6) / LETTER, d->out);
		fputs("</text>", d->out);
	}
	fputs("</g>\n", d->out);
	strbuf_fini(&name);
	strbuf_fini(&about);
}

/* Nodes that are too narrow to be visible are left out, together with their children. */
int ready_tree_svg(const struct ready_tree *t, struct ready_run *r)
{
	const struct ready_node *base = base_of(t), *n;
	struct drawing d = { .t = t, .out = r->out, .scale = base && base->total > 0 ?
			     (double)(PICTURE_WIDTH - 2 * MARGIN) / (double)base->total : 0, .most = largest_change(t) };
	struct strbuf title = { 0 };
	double *x;
	size_t depth = 0;

	for (size_t i = 0; i < t->n; i++) {
		size_t deep = 0;

		for (n = t->nodes[i]; (double)t->nodes[i]->total * d.scale >= 0.2 && n && n != base; n = n->parent)
			deep++;
		d.depth = deep > d.depth && n ? deep : d.depth;
	}
	x = calloc(d.depth + 2, sizeof(*x));
	if (!x)
		return -ENOMEM;
	put_title(r, &title);
	fprintf(r->out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" font-family=\"monospace\" "
		"font-size=\"11\">\n<text x=\"%d\" y=\"20\" font-size=\"14\">", PICTURE_WIDTH, HEAD + (d.depth + 1) * LINE + MARGIN,
		MARGIN);
	put_xml(strbuf_str(&title), 140, r->out);
	fputs("</text>\n", r->out);
	x[0] = MARGIN;
	for (n = base; n && d.scale > 0; ) {
		bool seen = (double)n->total * d.scale >= 0.2;

		if (seen)
			draw(&d, n, x[depth], depth);
		if (seen && n->child) {
			x[depth + 1] = x[depth];
			depth++;
			n = n->child;
			continue;
		}
		while (n != base && !n->next) {
			n = n->parent;
			depth--;
		}
		if (n == base)
			break;
		x[depth] += (double)n->total * d.scale;
		n = n->next;
	}
	fputs("</svg>\n", r->out);
	strbuf_fini(&title);
	free(x);
	return 0;
}
