#include "cmd/ready/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cmd/ready/cell.h"
#include "cmd/ready/rows.h"

enum { DEEPEST = 120 };		/* the most frames that pystack() records, by the scripts' option ustackframes */

/* --- nodes --------------------------------------------------------------------------------------------- */

static void free_node(struct ready_node *n)
{
	if (!n)
		return;
	free(n->function);
	free(n->file);
	free(n);
}

static struct ready_node *new_node(struct ready_tree *t, struct ready_node *parent, const char *function, const char *file,
				   uint64_t pid)
{
	struct ready_node *n = calloc(1, sizeof(*n));
	size_t cap = t->cap ? 2 * t->cap : 256;
	struct ready_node **more;

	if (n && t->n == t->cap) {
		more = realloc(t->nodes, cap * sizeof(*more));
		if (!more) {
			free(n);
			return NULL;
		}
		t->nodes = more;
		t->cap = cap;
	}
	if (!n)
		return NULL;
	*n = (struct ready_node){ .parent = parent, .function = strdup(function), .file = strdup(file), .pid = pid };
	if (!n->function || !n->file) {
		free_node(n);
		return NULL;
	}
	if (parent) {
		n->next = parent->child;
		parent->child = n;
	}
	t->nodes[t->n++] = n;
	return n;
}

struct ready_node *ready_tree_child(struct ready_tree *t, struct ready_node *parent, const char *function, const char *file,
				    uint64_t pid)
{
	struct strbuf key = { 0 };
	struct ready_node *n;

	strbuf_add(&key, (const char *)&parent, sizeof(parent));
	strbuf_add(&key, (const char *)&pid, sizeof(pid));
	strbuf_add(&key, file, strlen(file) + 1);
	strbuf_puts(&key, function);
	n = bytemap_get(&t->by_name, key.s, key.len);
	if (!n) {
		n = new_node(t, parent, function, file, pid);
		if (n && bytemap_set(&t->by_name, key.s, key.len, n))
			n = NULL;	/* the tree still owns it */
	}
	strbuf_fini(&key);
	return n;
}

int ready_tree_begin(struct ready_tree *t)
{
	return new_node(t, NULL, "", "", 0) ? 0 : -ENOMEM;
}

/* --- frames -------------------------------------------------------------------------------------------- */

/* Split a Python frame "[ FILE:LINE (FUNCTION) ]"; any other frame is a function without a file. */
static void split(char *frame, const char **function, const char **file)
{
	char *open, *colon;
	size_t len;

	while (*frame == ' ')
		frame++;
	len = strlen(frame);
	*function = frame;
	*file = "";
	if (len < 6 || strncmp(frame, "[ ", 2) || strcmp(frame + len - 3, ") ]"))
		return;
	open = strstr(frame, " (");
	/* A folder's name may contain " (", a function's cannot. */
	for (char *later; open && (later = strstr(open + 1, " (")); )
		open = later;
	if (!open)
		return;
	frame[len - 3] = '\0';
	*open = '\0';
	colon = strrchr(frame, ':');
	if (colon)
		*colon = '\0';
	*function = open + 2;
	*file = frame + 2;
}

/* The node of the stack; *caller: the node of its caller. */
static struct ready_node *node_of(struct ready_tree *t, const struct dtap_value *stack, uint64_t pid,
				  struct ready_node **caller)
{
	struct ready_node *n = ready_tree_child(t, t->nodes[0], "", "", pid);

	*caller = n;
	/* The outer frames of a truncated stack are unknown. */
	if (n && stack->stack.n >= DEEPEST)
		*caller = n = ready_tree_child(t, n, "(in deeper stacks)", "", pid);
	for (size_t i = stack->stack.n; n && i--; ) {
		char *frame = strdup(stack->stack.frames[i]);
		const char *function, *file;

		*caller = n;
		if (!frame)
			return NULL;
		split(frame, &function, &file);
		n = ready_tree_child(t, n, function, file, pid);
		free(frame);
	}
	return n;
}

/* --- reading ------------------------------------------------------------------------------------------- */

struct reading {
	struct ready_tree *t;
	const struct ready_head *h;
};

static const struct ready_column *value_column(const struct ready_head *h, const char *aggregation)
{
	for (size_t i = 0; i < h->ncolumns; i++)
		if (h->columns[i].of && !strcmp(h->columns[i].of, aggregation))
			return &h->columns[i];
	return NULL;
}

int ready_tree_add(struct ready_tree *t, enum ready_kind kind, const struct dtap_value *stack, uint64_t pid,
		   const struct dtap_row *row)
{
	struct ready_node *caller, *n = node_of(t, stack, pid, &caller);

	if (!n)
		return -ENOMEM;
	switch (kind) {
	case READY_CALLS:
	case READY_COUNT:
		n->calls += row->value.i;
		break;
	case READY_ENTRY:
		n->calls += (int64_t)row->count;
		caller->self += row->sum;
		break;
	case READY_CPU:
	case READY_CALLER_CPU:
		(kind == READY_CPU ? n : caller)->cpu_self += row->value.i;
		break;
	case READY_BUSY:
		n->self += row->value.i;
		n->cpu_self += row->value.i;
		break;
	default:
		n->self += row->value.i;
	}
	return 0;
}

static int take_row(void *ctx, const struct dtap_row *row)
{
	struct reading *r = ctx;
	const struct ready_column *c = value_column(r->h, row->aggregation);
	const struct dtap_value *stack = NULL;
	uint64_t pid = 0;

	for (size_t i = 0; i < row->nkeys; i++) {
		if (row->keys[i].type == DTAP_STACK)
			stack = &row->keys[i];
		else if (row->keys[i].type != DTAP_STRING)
			pid = row->keys[i].u;
	}
	return c && stack && !row->nbuckets ? ready_tree_add(r->t, c->kind, stack, pid, row) : 0;
}

static int by_total(const void *x, const void *y)
{
	const struct ready_node *a = *(struct ready_node *const *)x, *b = *(struct ready_node *const *)y;

	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return strcmp(a->function, b->function);
}

/* Sort the children of @n, largest total first. */
static int sort_children(struct ready_node *n)
{
	struct ready_node **v, *c;
	size_t count = 0, i = 0;

	for (c = n->child; c; c = c->next)
		count++;
	if (count < 2)
		return 0;
	v = malloc(count * sizeof(struct ready_node *));
	if (!v)
		return -ENOMEM;
	for (c = n->child; c; c = c->next)
		v[i++] = c;
	qsort(v, count, sizeof(struct ready_node *), by_total);
	for (i = 0; i < count; i++)
		v[i]->next = i + 1 < count ? v[i + 1] : NULL;
	n->child = v[0];
	free(v);
	return 0;
}

int ready_tree_end(struct ready_tree *t)
{
	int e = 0;

	for (size_t i = t->n; i--; ) {
		struct ready_node *n = t->nodes[i];

		n->total += n->self;
		n->cpu_total += n->cpu_self;
		n->was.total += n->was.self;
		if (i) {
			n->parent->total += n->total;
			n->parent->cpu_total += n->cpu_total;
			n->parent->was.total += n->was.total;
		}
	}
	for (size_t i = 0; i < t->n && !e; i++)
		e = sort_children(t->nodes[i]);
	for (const struct ready_node *p = t->nodes[0]->child; p; p = p->next)
		t->processes++;
	return e;
}

int ready_tree_use_cpu(struct ready_tree *t)
{
	int e = 0;

	for (size_t i = 0; i < t->n; i++) {
		t->nodes[i]->self = t->nodes[i]->cpu_self;
		t->nodes[i]->total = t->nodes[i]->cpu_total;
	}
	for (size_t i = 0; i < t->n && !e; i++)
		e = sort_children(t->nodes[i]);
	return e;
}

/* The kernel's probes fire in every process: leave out those without a function of Python. */
static void keep_pythons(struct ready_tree *t)
{
	struct ready_node **at = &t->nodes[0]->child;

	for (size_t i = 1; i < t->n; i++)
		if (t->nodes[i]->parent == t->nodes[0] && !t->nodes[i]->child)
			t->nodes[i]->self = t->nodes[i]->cpu_self = 0;
	while (*at) {
		if ((*at)->child)
			at = &(*at)->next;
		else
			*at = (*at)->next;
	}
}

void ready_tree_note(struct ready_tree *t, enum ready_kind kind)
{
	switch (kind) {
	case READY_CALLS:
	case READY_COUNT:
	case READY_ENTRY:
		t->has_calls = true;
		break;
	case READY_CPU:
	case READY_CALLER_CPU:
	case READY_BUSY:
		t->has_cpu = true;
		break;
	case READY_SAMPLES:
		t->is_samples = true;
		break;
	default:
		break;
	}
}

int ready_tree_read(struct ready_tree *t, struct ready_run *r)
{
	struct reading reading = { t, &r->req->head };
	int e = ready_tree_begin(t);

	for (size_t i = 0; i < reading.h->ncolumns; i++)
		ready_tree_note(t, reading.h->columns[i].kind);
	if (!e)
		e = ready_aggregations(r, take_row, &reading);
	if (!e && reading.h->needs_kernel)
		keep_pythons(t);
	return e ? e : ready_tree_end(t);
}

void ready_tree_fini(struct ready_tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		free_node(t->nodes[i]);
	free(t->nodes);
	bytemap_fini(&t->by_name);
	*t = (struct ready_tree){ 0 };
}

/* The root and the process are nodes, too, but do not count. */
size_t ready_node_depth(const struct ready_node *n)
{
	size_t depth = 0;

	for (; n->parent && n->parent->parent && n->parent->parent->parent; n = n->parent)
		depth++;
	return depth;
}

/* --- the form "tree" as rows --------------------------------------------------------------------------- */

enum { TREE_COLUMNS = 9 };

/* The columns for the values that the tree has. */
static size_t columns_of(const struct ready_tree *t, struct ready_column v[static TREE_COLUMNS], bool text)
{
	enum ready_kind kind = t->is_samples ? READY_COUNT : READY_TIME;
	size_t n = 0;

	if (t->has_calls)
		v[n++] = (struct ready_column){ .name = "calls", .title = "CALLS", .kind = READY_COUNT };
	v[n++] = (struct ready_column){ .name = "self", .title = "SELF", .kind = kind };
	v[n++] = (struct ready_column){ .name = "total", .title = "TOTAL", .kind = kind };
	if (t->has_cpu) {
		v[n++] = (struct ready_column){ .name = "cpu_self", .title = "CPU-SELF", .kind = kind };
		v[n++] = (struct ready_column){ .name = "cpu_total", .title = "CPU-TOTAL", .kind = kind };
	}
	if (!text || t->processes > 1)
		v[n++] = (struct ready_column){ .name = "pid", .title = "PID", .kind = READY_PID };
	if (!text)
		v[n++] = (struct ready_column){ .name = "depth", .title = "DEPTH", .kind = READY_INT };
	v[n++] = (struct ready_column){ .name = "function", .title = "FUNCTION", .kind = READY_TEXT };
	v[n++] = (struct ready_column){ .name = "file", .title = "FILE", .kind = READY_PATH };
	return n;
}

static size_t cells_of(const struct ready_tree *t, const struct ready_node *n, const char *function,
		       struct dtap_value v[static TREE_COLUMNS], bool text)
{
	size_t i = 0;

	if (t->has_calls)
		v[i++] = (struct dtap_value){ .type = DTAP_INT, .i = n->calls };
	v[i++] = (struct dtap_value){ .type = DTAP_INT, .i = n->self };
	v[i++] = (struct dtap_value){ .type = DTAP_INT, .i = n->total };
	if (t->has_cpu) {
		v[i++] = (struct dtap_value){ .type = DTAP_INT, .i = n->cpu_self };
		v[i++] = (struct dtap_value){ .type = DTAP_INT, .i = n->cpu_total };
	}
	if (!text || t->processes > 1)
		v[i++] = (struct dtap_value){ .type = DTAP_UINT, .u = n->pid };
	if (!text)
		v[i++] = (struct dtap_value){ .type = DTAP_UINT, .u = ready_node_depth(n) };
	v[i++] = (struct dtap_value){ .type = DTAP_STRING, .s = function };
	v[i++] = (struct dtap_value){ .type = DTAP_STRING, .s = n->file };
	return i;
}

/* The node after @n in the order of printing: depth first. */
static const struct ready_node *next_node(const struct ready_node *n)
{
	if (n->child)
		return n->child;
	while (n && !n->next)
		n = n->parent;
	return n ? n->next : NULL;
}

static int print_rows(const struct ready_tree *t, struct ready_run *r)
{
	struct ready_column columns[TREE_COLUMNS];
	struct dtap_value cells[TREE_COLUMNS];
	bool text = r->format == READY_AS_TEXT;
	struct ready_rows rows = { .columns = columns, .ncolumns = columns_of(t, columns, text) };
	struct strbuf name = { 0 };
	int e = 0;

	for (const struct ready_node *n = next_node(t->nodes[0]); n && !e; n = next_node(n)) {
		if (n->parent == t->nodes[0] && (!text || !n->self || !n->total))
			continue;
		strbuf_clear(&name);
		if (text)
			strbuf_printf(&name, "%*s", 2 * (int)ready_node_depth(n), "");
		strbuf_puts(&name, n->parent == t->nodes[0] ? "(outside of Python's functions)" : n->function);
		cells_of(t, n, strbuf_str(&name), cells, text);
		e = ready_rows_add(&rows, cells);
	}
	if (!e)
		ready_rows_print(&rows, r, r->req->rows);
	ready_rows_fini(&rows);
	strbuf_fini(&name);
	return e;
}

static int show_tree(struct ready_run *r, bool last)
{
	static int (*const printers[])(const struct ready_tree *t, struct ready_run *r) = {
		[READY_AS_TEXT] = print_rows, [READY_AS_JSON] = print_rows, [READY_AS_CSV] = print_rows,
		[READY_AS_SPEEDSCOPE] = ready_tree_speedscope, [READY_AS_FOLDED] = ready_tree_folded,
		[READY_AS_HTML] = ready_tree_html, [READY_AS_SVG] = ready_tree_svg,
		[READY_AS_PPROF] = ready_tree_pprof, [READY_AS_CALLGRIND] = ready_tree_callgrind,
		[READY_AS_CPU_FOLDED] = ready_tree_folded, [READY_AS_CPU_SVG] = ready_tree_svg,
	};
	struct ready_tree t = { 0 };
	int e = ready_tree_read(&t, r);

	(void)last;
	r->shown += t.n && t.nodes[0]->child ? t.n - 1 : 0;
	if (!e && (r->format == READY_AS_CPU_FOLDED || r->format == READY_AS_CPU_SVG))
		e = ready_tree_use_cpu(&t);
	if (!e)
		e = printers[r->format](&t, r);
	ready_tree_fini(&t);
	return e;
}

const struct ready_form_ops ready_tree_ops = { .show = show_tree };

/* --- the form "functions" ------------------------------------------------------------------------------ */

/* Is @n a recursive call, inside a node of the same function?  Then its total is part of that one's. */
static bool is_inner(const struct ready_node *n)
{
	for (const struct ready_node *p = n->parent; p; p = p->parent)
		if (p->pid == n->pid && !strcmp(p->function, n->function) && !strcmp(p->file, n->file) && p->parent)
			return true;
	return false;
}

static struct ready_function *function_of(struct bytemap *m, const struct ready_node *n)
{
	struct strbuf key = { 0 };
	struct ready_function *f;

	strbuf_add(&key, (const char *)&n->pid, sizeof(n->pid));
	strbuf_add(&key, n->file, strlen(n->file) + 1);
	strbuf_puts(&key, n->function);
	f = bytemap_get(m, key.s, key.len);
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f && bytemap_set(m, key.s, key.len, f)) {
			free(f);
			f = NULL;
		}
	}
	strbuf_fini(&key);
	return f;
}

int ready_functions_sum(struct bytemap *m, const struct ready_tree *t)
{
	struct ready_function *f;
	size_t pos = 0;

	while ((f = bytemap_next(m, &pos))) {
		memcpy(f->before, f->v, sizeof(f->v));
		memset(f->v, 0, sizeof(f->v));
		f->node = NULL;
	}
	for (size_t i = 1; i < t->n; i++) {
		const struct ready_node *n = t->nodes[i];

		if (n->parent == t->nodes[0])
			continue;
		f = function_of(m, n);
		if (!f)
			return -ENOMEM;
		f->node = n;
		f->v[0] += n->calls;
		f->v[1] += n->self;
		f->v[2] += is_inner(n) ? 0 : n->total;
		if (!t->is_difference)
			continue;
		f->before[0] += n->was.calls;
		f->before[1] += n->was.self;
		f->before[2] += is_inner(n) ? 0 : n->was.total;
	}
	return 0;
}

void ready_functions_fini(struct bytemap *m)
{
	size_t pos = 0;

	for (void *f; (f = bytemap_next(m, &pos)); )
		free(f);
	bytemap_fini(m);
}

static bool is_wanted(const struct ready_run *r, const struct ready_node *n)
{
	return !r->filter || strstr(n->function, r->filter) || strstr(n->file, r->filter);
}

static int add_functions(const struct bytemap *m, const struct ready_tree *t, struct ready_run *r, struct ready_rows *rows)
{
	struct dtap_value cells[TREE_COLUMNS];
	struct ready_function *f;
	size_t pos = 0;
	int e = 0;

	while (!e && (f = bytemap_next(m, &pos))) {
		struct ready_node n;

		if (!f->node || !memcmp(f->v, f->before, sizeof(f->v)) || !is_wanted(r, f->node))
			continue;
		n = *f->node;
		n.calls = f->v[0] - f->before[0];
		n.self = f->v[1] - f->before[1];
		n.total = f->v[2] - f->before[2];
		cells_of(t, &n, n.function, cells, true);
		e = ready_rows_add(rows, cells);
	}
	return e;
}

static int show_functions(struct ready_run *r, bool last)
{
	struct ready_tree t = { 0 };
	struct ready_column columns[TREE_COLUMNS];
	struct ready_rows rows = { .columns = columns };
	struct bytemap *m = r->state;
	size_t sort = 0;
	int e;

	(void)last;
	if (!m)
		m = r->state = calloc(1, sizeof(*m));
	e = m ? ready_tree_read(&t, r) : -ENOMEM;
	if (!e)
		e = ready_functions_sum(m, &t);
	if (r->format != READY_AS_TEXT)
		t.processes = 2;	/* formats for programs always have the pid */
	rows.ncolumns = columns_of(&t, columns, true);
	if (!e)
		e = add_functions(m, &t, r, &rows);
	if (!e) {
		while (sort < rows.ncolumns && strcmp(columns[sort].name, r->sort))
			sort++;
		ready_rows_sort(&rows, sort);
		ready_rows_print(&rows, r, r->req->rows);
	}
	ready_rows_fini(&rows);
	ready_tree_fini(&t);
	return e;
}

static void fini_functions(struct ready_run *r)
{
	if (r->state)
		ready_functions_fini(r->state);
	free(r->state);
	r->state = NULL;
}

const struct ready_form_ops ready_functions_ops = { .show = show_functions, .repeats = true, .fini = fini_functions };
