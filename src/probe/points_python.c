/*
 * Which of Python's markers dtap's agent supplies for SystemTap's points: those that an interpreter lacks, or fires
 * wrongly (probe/python.def).  A point that names a file applies to every process that runs it; with a target, only
 * the target gets the agent.
 */
#include "probe/points_priv.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "lang/desc.h"
#include "probe/exec.h"
#include "probe/pyfunc.h"
#include "probe/python.h"
#include "target/agent.h"

static bool has_marker(const struct points_file *f, const char *name)
{
	for (size_t i = 0; i < f->nmarkers; i++)
		if (!strcmp(f->markers[i].name, name) && !strcmp(f->markers[i].prov, PYTHON_PROVIDER))
			return true;
	return false;
}

/* Linked to musl: by its dynamic loader, /lib/ld-musl-MACHINE.so.1, or the library's name, which is not libc.so.6. */
static bool is_on_musl(const struct points_file *f)
{
	const struct obj_info *info = obj_info(f->obj);
	const struct obj_links *links = obj_links(f->obj);

	if (info->interp && strstr(info->interp, "/ld-musl-"))
		return true;
	for (unsigned int i = 0; i < links->nneeded; i++)
		if (!strcmp(links->needed[i], "libc.so") || !strncmp(links->needed[i], "libc.musl-", strlen("libc.musl-")))
			return true;
	return false;
}

struct points_file *points_agent_for(struct points *p, const struct points_file *f)
{
	struct strbuf path = { 0 };
	struct points_file *agent = NULL;

	if (!f->python || !p->conf.agent)
		return NULL;
	if (!is_on_musl(f))
		agent = points_open(p, p->conf.agent);
	else if (agents_object_musl(p->conf.agent, &path))
		agent = points_open(p, arena_strdup(p->arena, strbuf_str(&path)));
	strbuf_fini(&path);
	return agent;
}

struct points_file *points_python_file(struct points *p, struct points_file *f, const char *name)
{
	struct points_file *agent = points_agent_for(p, f);

	if (agent && (agent->err || !has_marker(agent, name)))
		agent = NULL;
	if (has_marker(f, name) && !(agent && (p->conf.agent_always || python_unsound(f->python, name))))
		return f;
	return agent;
}

uint8_t points_agent_marker(const char *name)
{
	return (uint8_t)(marker_number(name) + 1);
}

struct descs {
	struct points *p;
	struct probe_desc *v;
	size_t n, cap;
};

/* Add a description unless it is there. */
static void add_desc(struct descs *d, const char *prov, const char *mark)
{
	char *name = arena_strdup(d->p->arena, mark);

	marker_dash(mark, name);
	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->v[i].prov, prov) && !strcmp(d->v[i].name, name))
			return;
	d->v = arena_grow(d->p->arena, d->v, &d->cap, d->n, sizeof(*d->v));
	d->v[d->n++] = (struct probe_desc){ .prov = arena_strdup(d->p->arena, prov), .mod = "", .func = "", .name = name };
}

size_t points_supplied(const struct points *p, uint32_t pid, const struct probe_desc **ret)
{
	struct descs d = { .p = (struct points *)(uintptr_t)p };
	char prov[32] = PYTHON_PROVIDER "*";

	if (pid)
		snprintf(prov, sizeof(prov), PYTHON_PROVIDER "%" PRIu32, pid);
	for (size_t i = 0; i < p->nfound; i++)
		if (p->found[i].supplied)
			add_desc(&d, prov, p->found[i].mark);
	if (points_found_pyfunc(p))
		add_desc(&d, pyfunc_provider(pid, prov), "entry");
	*ret = d.v;
	return d.n;
}

/* The program of process @pid, and its /proc link.  False: it cannot be read. */
static bool find_exe(uint32_t pid, char link[static 64], char path[static PATH_MAX])
{
	ssize_t len;

	snprintf(link, 64, "/proc/%" PRIu32 "/exe", pid);
	len = readlink(link, path, PATH_MAX - 1);
	if (len < 0)
		return false;
	path[len] = '\0';
	return true;
}

bool points_is_supplied_program(const struct points *p, uint32_t pid)
{
	char link[64], path[PATH_MAX];

	/* Any Python; the caller checks that it is one. */
	if (points_found_pyfunc(p))
		return true;
	if (!find_exe(pid, link, path))
		return false;
	for (size_t i = 0; i < p->nfound; i++) {
		const char *program = p->found[i].program;

		if (program && (!strcmp(program, path) || !strcmp(program, link)))
			return true;
	}
	return false;
}

bool points_is_supplied(struct points *p, uint32_t pid)
{
	char link[64], path[PATH_MAX];
	struct points_file *f;
	const char **libs;
	size_t nlibs = 0;

	if (!points_found_pyfunc(p) && points_is_supplied_program(p, pid))
		return true;
	if (!find_exe(pid, link, path))
		return false;
	f = points_open(p, file_same_path(path, link) ? path : link);
	if (points_found_pyfunc(p) && !f->err && (f->python || points_linked_python(p, f)))
		return true;
	if (!f->err && !f->python)
		nlibs = exec_libraries(p->arena, f->obj, p->conf.sysroot, &libs);
	for (size_t i = 0; i < p->nfound; i++) {
		const char *file = p->found[i].supplied;

		for (size_t k = 0; file && !p->found[i].program && k < nlibs; k++)
			if (!strcmp(file, libs[k]))
				return true;
	}
	return false;
}

struct probe *points_in_process(struct points *p, const struct stp_point *found, uint32_t pid)
{
	struct probe *all = points_probe(p, found), *one;
	struct probe key;
	bool made, supplied = false;

	for (size_t i = 0; i < p->nfound; i++)
		supplied |= p->found[i].point == found && p->found[i].supplied;
	if (!supplied || all->pid)
		return NULL;
	key = (struct probe){ .prov = all->prov, .mod = all->mod, .func = all->func, .name = all->name,
			      .kind = all->kind, .pid = pid, .sig = all->sig, .agent_marker = all->agent_marker };
	one = set_probe(p->set, &key, &made);
	for (unsigned int i = 0; made && i < all->nsites; i++)
		probe_add_site(p->set, one, all->sites[i]);
	return one;
}

/* --- before the command is started ---------------------------------------------------------------------- */

/* Would the agent supply a marker that matches @pattern in program @path? */
static bool needs_agent(struct points *p, const char *path, const char *library, const char *pattern)
{
	struct points_file *f = path ? points_open(p, path) : NULL, *agent;
	const char **libs;
	size_t n;

	if (!f || f->err)
		return false;
	agent = points_agent_for(p, f);
	for (size_t i = 0; agent && !agent->err && i < agent->nmarkers; i++)
		if (desc_glob(pattern, agent->markers[i].name) &&
		    points_python_file(p, f, agent->markers[i].name) == agent)
			return true;
	if (!library)
		return false;
	n = exec_libraries(p->arena, f->obj, p->conf.sysroot, &libs);
	for (size_t i = 0; i < n; i++)
		if (strstr(libs[i], "python") && needs_agent(p, libs[i], NULL, pattern))
			return true;
	return false;
}

static void foresee_point(struct descs *d, const struct stp_point *point)
{
	const char *mark = points_text(point, "mark"), *path;

	if (points_is_pyfunc(point)) {
		add_desc(d, d->p->conf.command ? PYFUNC_ANY : "py*", "entry");
		return;
	}
	if (!mark || strcmp(point->comps[0].name, "process"))
		return;
	path = points_text(point, "process");
	if (!point->comps[0].arg) {
		add_desc(d, PYTHON_PROVIDER "2147483647", mark);
	} else if (path && !strpbrk(path, "*?[")) {
		path = exec_find(d->p->arena, path, d->p->conf.sysroot);
		path = path ? exec_interpreter(d->p->arena, path, d->p->conf.sysroot) : NULL;
		if (needs_agent(d->p, path, points_text(point, "library"), mark))
			add_desc(d, PYTHON_PROVIDER "*", mark);
	}
}

size_t points_foresee(struct points *p, const struct stp_prog *prog, const struct probe_desc **ret)
{
	struct descs d = { .p = p };

	for (const struct stp_probe *probe = prog->probes; probe && p->conf.agent; probe = probe->next)
		for (size_t i = 0; i < probe->points.n; i++)
			foresee_point(&d, probe->points.v[i]);
	*ret = d.v;
	return d.n;
}

bool points_found_python(const struct points *p)
{
	return p->python;
}

void points_say_supplied(const struct points *p, struct strbuf *out)
{
	if (points_found_pyfunc(p))
		strbuf_puts(out, "functions by name");
	for (size_t i = 0; i < p->nfound; i++) {
		const struct points_found *f = &p->found[i];
		bool again = false;

		for (size_t k = 0; k < i && !again; k++)
			again = p->found[k].supplied && f->supplied && !strcmp(p->found[k].mark, f->mark) &&
				!strcmp(p->found[k].supplied, f->supplied);
		if (f->supplied && !again)
			strbuf_printf(out, "%s%s of %s", out->len ? ", " : "", f->mark, f->supplied);
	}
}
