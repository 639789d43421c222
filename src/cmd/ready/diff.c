#include "cmd/ready/diff.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cmd/ready/flat.h"
#include "cmd/ready/rows.h"

enum { DEEPEST = 4096 };		/* functions in a stack */

static const int64_t SUM_MAX = INT64_MAX / 4;	/* so that no sum or difference of two sides overflows */

/* The state while a file is read. */
struct reading {
	struct ready_difference *d;
	enum ready_side side;
	const char *path;
	size_t line;
	struct ready_node *stack[DEEPEST + 1];	/* stack[0]: the process */
	size_t depth;				/* JSON: nodes in use of @stack */
	struct strbuf *why;
};

static int __attribute__((format(printf, 2, 3))) refuse(struct reading *r, const char *fmt, ...)
{
	va_list ap;

	strbuf_printf(r->why, "%s:%zu: ", r->path, r->line);
	va_start(ap, fmt);
	strbuf_vprintf(r->why, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Add to the side's own numbers of a node. */
static int add(struct reading *r, struct ready_node *n, int64_t calls, int64_t self)
{
	int64_t *sum = &r->d->sums[r->side], *all_calls = &r->d->calls[r->side];

	if (calls < 0 || self < 0)
		return refuse(r, "calls and times are not negative");
	if (self > SUM_MAX - *sum || calls > SUM_MAX - *all_calls)
		return refuse(r, "the sum of the numbers is too large");
	*sum += self;
	*all_calls += calls;
	if (r->side == READY_BEFORE) {
		n->was.calls += calls;
		n->was.self += self;
	} else {
		n->calls += calls;
		n->self += self;
	}
	return 0;
}

static struct ready_node *child(struct reading *r, size_t depth, const char *function, const char *file)
{
	struct ready_tree *t = &r->d->tree;

	r->stack[depth + 1] = ready_tree_child(t, r->stack[depth], function, file, 0);
	return r->stack[depth + 1];
}

/* --- folded stacks: "outer;inner 12" -------------------------------------------------------------------- */

/* dtap's own outermost frame in a run of several processes. */
static bool is_process(const char *frame)
{
	static const char word[] = "process ";
	size_t n = strlen(word);

	return !strncmp(frame, word, n) && frame[n] && frame[n + strspn(frame + n, "0123456789")] == '\0';
}

static int take_folded(struct reading *r, char *line)
{
	char *number = strrchr(line, ' '), *end, *rest = line, *frame;
	size_t depth = 0;
	int64_t self;

	if (!number || !isdigit((unsigned char)number[1]))
		return refuse(r, "a line is a stack, functions with ';' between them, a blank and a number");
	errno = 0;
	self = strtoll(number + 1, &end, 10);
	if (errno || *end)
		return refuse(r, "the number at its end is no integer of 64 bits");
	*number = '\0';
	while ((frame = strsep(&rest, ";"))) {
		if (!depth && is_process(frame))
			continue;
		if (depth == DEEPEST)
			return refuse(r, "the stack has more than %d functions", DEEPEST);
		if (!child(r, depth++, frame, ""))
			return -ENOMEM;
	}
	return add(r, r->stack[depth], 0, self);
}

/* --- JSON lines of a tree: each node with its depth, in the order of the tree --------------------------- */

struct json_node {
	struct strbuf function, file;
	int64_t calls, self, depth;
	bool has_function, has_depth, has_calls, has_time, has_samples;
};

static void take_member(void *ctx, const char *name, const char *text, int64_t number)
{
	struct json_node *n = ctx;

	if (text && !strcmp(name, "function")) {
		strbuf_clear(&n->function);
		strbuf_puts(&n->function, text);
		n->has_function = true;
	} else if (text && !strcmp(name, "file")) {
		strbuf_clear(&n->file);
		strbuf_puts(&n->file, text);
	} else if (text) {
		return;
	} else if (!strcmp(name, "calls")) {
		n->calls = number;
		n->has_calls = true;
	} else if (!strcmp(name, "depth")) {
		n->depth = number;
		n->has_depth = true;
	} else if (!strcmp(name, "self_ns")) {
		n->self = number;
		n->has_time = true;
	} else if (!strcmp(name, "self")) {
		n->self = number;
		n->has_samples = true;
	}
}

static int put_node(struct reading *r, const struct json_node *n)
{
	struct ready_difference *d = r->d;
	struct ready_node *node;

	if (!n->has_function || !n->has_depth || n->has_time == n->has_samples)
		return refuse(r, "it is no node of a tree, as dtap record and dtap sample write them: "
				 "function, depth, and self_ns or self");
	if (n->depth < 0 || (size_t)n->depth > r->depth || n->depth >= DEEPEST)
		return refuse(r, "depth %" PRId64 " without the function around it, or deeper than %d", n->depth, DEEPEST);
	node = child(r, (size_t)n->depth, strbuf_str(&n->function), strbuf_str(&n->file));
	if (!node)
		return -ENOMEM;
	r->depth = (size_t)n->depth + 1;
	d->is_time[r->side] |= n->has_time;
	d->is_number[r->side] |= n->has_samples;
	d->tree.has_calls |= n->has_calls;
	return add(r, node, n->calls, n->self);
}

static int take_json(struct reading *r, const char *line)
{
	struct json_node n = { .calls = 0 };
	struct strbuf why = { 0 };
	int e = flat_read(line, take_member, &n, &why);

	e = e ? refuse(r, "%s", strbuf_str(&why)) : put_node(r, &n);
	strbuf_fini(&n.function);
	strbuf_fini(&n.file);
	strbuf_fini(&why);
	return e;
}

/* --- files ---------------------------------------------------------------------------------------------- */

static int take_line(struct reading *r, char *line, size_t len, bool *is_json)
{
	if (strlen(line) != len)
		return refuse(r, "it has a byte 0, so it is no text");
	line[strcspn(line, "\r\n")] = '\0';
	if (!line[strspn(line, " \t")])
		return 0;
	if (r->line == 1)
		*is_json = *line == '{';
	return *is_json ? take_json(r, line) : take_folded(r, line);
}

static int read_lines(struct reading *r, FILE *f)
{
	bool is_json = false;
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;
	int e = 0;

	while (!e && (len = getline(&line, &cap, f)) >= 0) {
		r->line++;
		e = take_line(r, line, (size_t)len, &is_json);
	}
	free(line);
	if (!e && ferror(f)) {
		e = errno ? -errno : -EIO;
		strbuf_printf(r->why, "cannot read %s: %s", r->path, strerror(-e));
	}
	return e;
}

int ready_difference_read(struct ready_difference *d, enum ready_side side, const char *path, struct strbuf *why)
{
	struct reading *r = calloc(1, sizeof(*r));
	FILE *f = fopen(path, "re");
	size_t before = why->len;
	int e = f ? 0 : -errno;

	if (!f)
		strbuf_printf(why, "cannot read %s: %s", path, strerror(-e));
	else if (!r || (!d->tree.n && ready_tree_begin(&d->tree)))
		e = -ENOMEM;
	if (!e) {
		*r = (struct reading){ .d = d, .side = side, .path = path, .why = why };
		r->stack[0] = ready_tree_child(&d->tree, d->tree.nodes[0], "", "", 0);
		e = r->stack[0] ? read_lines(r, f) : -ENOMEM;
	}
	if (!e && !d->sums[side]) {
		strbuf_printf(why, "%s: there is no stack with time or samples", path);
		e = -EINVAL;
	}
	if (e && why->len == before)
		strbuf_printf(why, "%s: %s", path, strerror(-e));
	if (f)
		fclose(f);
	free(r);
	return e;
}

/* --- the difference ------------------------------------------------------------------------------------- */

static void scale(struct ready_difference *d)
{
	double factor = (double)d->sums[READY_AFTER] / (double)d->sums[READY_BEFORE];

	for (size_t i = 0; i < d->tree.n; i++)
		d->tree.nodes[i]->was.self = (int64_t)((double)d->tree.nodes[i]->was.self * factor + 0.5);
}

int ready_difference_end(struct ready_difference *d, bool folded_is_time, bool shares, struct strbuf *why)
{
	bool is_time = d->is_time[0] || d->is_time[1], is_number = d->is_number[0] || d->is_number[1];

	if (is_time && is_number) {
		strbuf_puts(why, "one of the files has times, the other samples");
		return -EINVAL;
	}
	d->tree.is_samples = !is_time && (is_number || !folded_is_time);
	d->tree.is_difference = true;
	if (shares)
		scale(d);
	return ready_tree_end(&d->tree);
}

void ready_difference_fini(struct ready_difference *d)
{
	ready_tree_fini(&d->tree);
}

/* --- rows: a function each ------------------------------------------------------------------------------ */

static size_t columns_of(const struct ready_tree *t, struct ready_column v[static 8])
{
	enum ready_kind kind = t->is_samples ? READY_COUNT : READY_TIME, change = t->is_samples ? READY_MORE : READY_CHANGE;
	size_t n = 0;

	v[n++] = (struct ready_column){ .name = "change", .title = "CHANGE", .kind = change };
	v[n++] = (struct ready_column){ .name = "before", .title = "BEFORE", .kind = kind };
	v[n++] = (struct ready_column){ .name = "after", .title = "AFTER", .kind = kind };
	v[n++] = (struct ready_column){ .name = "total_change", .title = "TOTAL", .kind = change };
	if (t->has_calls)
		v[n++] = (struct ready_column){ .name = "calls_change", .title = "CALLS", .kind = READY_MORE };
	v[n++] = (struct ready_column){ .name = "function", .title = "FUNCTION", .kind = READY_TEXT };
	v[n++] = (struct ready_column){ .name = "file", .title = "FILE", .kind = READY_PATH };
	return n;
}

static int add_row(const struct ready_tree *t, const struct ready_function *f, struct ready_rows *rows)
{
	int64_t values[] = { f->v[1] - f->before[1], f->before[1], f->v[1], f->v[2] - f->before[2], f->v[0] - f->before[0] };
	struct dtap_value cells[8];
	size_t n = 0;

	if (!values[0] && !values[3] && !values[4])
		return 0;
	for (size_t i = 0; i < 4 + (size_t)t->has_calls; i++)
		cells[n++] = (struct dtap_value){ .type = DTAP_INT, .i = values[i] };
	cells[n++] = (struct dtap_value){ .type = DTAP_STRING, .s = f->node->function };
	cells[n++] = (struct dtap_value){ .type = DTAP_STRING, .s = f->node->file };
	return ready_rows_add(rows, cells);
}

/* Of sorted rows those that -n leaves: so many from each end. */
static int ends_of(const struct ready_rows *all, size_t limit, struct ready_rows *ret)
{
	int e = 0;

	for (size_t i = 0; i < all->n && !e; i++)
		if (!limit || i < limit || i >= all->n - limit)
			e = ready_rows_add(ret, all->cells + i * all->ncolumns);
	return e;
}

static int print_rows(const struct ready_tree *t, struct ready_run *r)
{
	struct ready_column columns[8];
	struct ready_rows all = { .columns = columns, .ncolumns = columns_of(t, columns) }, rows = all;
	struct bytemap functions = { 0 };
	struct ready_function *f;
	size_t pos = 0;
	int e = ready_functions_sum(&functions, t);

	while (!e && (f = bytemap_next(&functions, &pos)))
		e = add_row(t, f, &all);
	if (!e) {
		ready_rows_sort(&all, 0);
		e = ends_of(&all, r->req->rows, &rows);
	}
	if (!e)
		ready_rows_print(&rows, r, 0);
	ready_rows_fini(&all);
	ready_rows_fini(&rows);
	ready_functions_fini(&functions);
	return e;
}

int ready_difference_print(const struct ready_difference *d, struct ready_run *r)
{
	switch (r->format) {
	case READY_AS_HTML:
		return ready_tree_html(&d->tree, r);
	case READY_AS_SVG:
		return ready_tree_svg(&d->tree, r);
	default:
		return print_rows(&d->tree, r);
	}
}
