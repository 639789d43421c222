#include "cmd/ready/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/ready/find.h"
#include "dtap.h"

static int read_head(struct ready_request *q, const char *name, const char *path)
{
	struct strbuf err = { 0 };
	int e = path ? ready_head_read(q->arena, name, path, &q->head, &err) : -ENOENT;

	if (e)
		fprintf(stderr, "dtap %s: %s\n", name, path ? strbuf_str(&err) : "there is no such command");
	strbuf_fini(&err);
	return e ? CMD_ERROR : 0;
}

/* The script @name of those that belong to the command, or NULL after a message. */
static const char *part(const struct ready_request *q, const char *name)
{
	const char *path = ready_find_variant(q->arena, q->head.path, name);

	if (!path)
		fprintf(stderr, "dtap %s: it has no script '%s' in the folder %.*s\n", q->head.name, name,
			(int)(strlen(q->head.path) - strlen(".d")), q->head.path);
	return path;
}

/* Another script is the command, with options of its own beside the variants'. */
static int become_variant(struct ready_request *q, const char *name, int argc, char **argv)
{
	struct ready_request v = { .arena = q->arena };
	const char *path = part(q, name);
	int e;

	if (!path)
		return CMD_ERROR;
	e = read_head(&v, q->head.name, path);
	for (size_t i = 0; !e && i < q->head.noptions; i++)
		if (q->head.options[i].is_variant)
			ready_head_inherit(q->arena, &v.head, &q->head.options[i]);
	if (!e)
		e = ready_opts_parse(&v, argc, argv);
	*q = v;
	return e;
}

/* Put the additions behind the script. */
static int add_parts(struct ready_request *q)
{
	struct strbuf err = { 0 };
	size_t n = q->head.noptions;	/* an addition has none */
	const char *path;
	int e = 0;

	for (size_t i = 0; i < n && !e; i++) {
		if (!q->head.options[i].is_addition || !q->head.options[i].value)
			continue;
		path = part(q, q->head.options[i].name);
		e = path ? ready_head_extend(q->arena, path, &q->head, &err) : CMD_ERROR;
	}
	if (err.len)
		fprintf(stderr, "dtap %s: %s\n", q->head.name, strbuf_str(&err));
	strbuf_fini(&err);
	return e ? CMD_ERROR : 0;
}

/* Who may not have the kernel's probes gets the script for that, if there is one. */
static bool is_otherwise(const struct ready_request *q)
{
	return q->head.needs_kernel && q->head.otherwise && dtap_kernel(NULL, 0);
}

int ready_request_read(struct ready_request *q, int argc, char **argv)
{
	int e = read_head(q, argv[0], ready_find(q->arena, argv[0]));

	if (!e)
		e = ready_opts_parse(q, argc, argv);
	if (!e && q->variant)
		e = become_variant(q, q->variant->name, argc, argv);
	if (!e && is_otherwise(q))
		e = become_variant(q, q->head.otherwise, argc, argv);
	return e ? e : add_parts(q);
}
