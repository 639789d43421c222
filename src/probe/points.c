#include "probe/points.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/oom.h"
#include "base/paths.h"
#include "base/strbuf.h"
#include "elf/debug.h"
#include "elf/obj.h"
#include "probe/exec.h"
#include "probe/points_priv.h"
#include "probe/pygil.h"
#include "probe/python.h"
#include "target/words.h"

/* --- files -------------------------------------------------------------------------------------------- */

struct points *points_new(struct arena *a, struct probe_set *set, const struct points_conf *conf)
{
	struct points *p = arena_new_of(a, struct points);

	p->arena = a;
	p->set = set;
	p->conf = *conf;
	return p;
}

void points_free(struct points *p)
{
	for (struct points_file *f = p ? p->files : NULL; f; f = f->next)
		obj_close(f->obj);
}

struct points_file *points_open(struct points *p, const char *path)
{
	const struct obj_marker *markers = NULL;
	struct strbuf why = { 0 };
	struct points_file *f;
	const struct arch *arch;

	for (f = p->files; f; f = f->next)
		if (!strcmp(f->path, path))
			return f;
	f = arena_new_of(p->arena, struct points_file);
	f->path = arena_strdup(p->arena, path);
	f->next = p->files;
	p->files = f;
	f->err = obj_open(f->path, &f->obj, &why);
	if (!f->err) {
		arch = arch_find(obj_info(f->obj)->machine);
		f->err = arch && arch != arch_host() ? -ENOEXEC : obj_markers(f->obj, &markers, &f->nmarkers, &why);
	}
	if (!f->err) {
		struct python_facts facts;

		python_facts(f->obj, &facts);
		f->python = facts.is_agent ? 0 : facts.version;
		f->nmarkers = pygil_markers(f->obj, f->python, p->arena, &markers, f->nmarkers);
	}
	f->markers = markers;
	if (f->err)
		f->why = arena_strdup(p->arena, strbuf_str(&why));
	strbuf_fini(&why);
	return f;
}

/* --- what was found ----------------------------------------------------------------------------------- */

void points_add(struct points_search *s, const struct stp_point *point, struct probe *probe)
{
	struct points *p = s->p;

	p->found = arena_grow(p->arena, p->found, &p->found_cap, p->nfound, sizeof(*p->found));
	p->found[p->nfound++] = (struct points_found){ point, probe };
	s->v = arena_grow(p->arena, s->v, &s->cap, s->n, sizeof(*s->v));
	s->v[s->n++] = point;
}

static const struct points_found *find_found(const struct points *p, const struct stp_point *point)
{
	for (size_t i = p->nfound; i--;)
		if (p->found[i].point == point)
			return &p->found[i];
	return NULL;
}

struct probe *points_probe(const struct points *p, const struct stp_point *found)
{
	const struct points_found *f = find_found(p, found);

	return f ? f->probe : NULL;
}

struct probe *points_probe_at(const struct points *p, const struct stp_point *found, size_t i)
{
	const struct points_found *f = find_found(p, found);

	if (f && f->probes)
		return i < f->nprobes ? f->probes[i] : NULL;
	return f && !i ? f->probe : NULL;
}

/* A copy of the point, with components whose arguments can be set. */
struct stp_point *points_copy(struct points *p, const struct stp_point *point)
{
	struct stp_point *copy = arena_new_of(p->arena, struct stp_point);

	*copy = *point;
	copy->cap = copy->n;
	copy->comps = arena_alloc(p->arena, copy->n * sizeof(*copy->comps));
	memcpy(copy->comps, point->comps, copy->n * sizeof(*copy->comps));
	return copy;
}

/* Set the argument of component @name of @point to @text. */
void points_set(struct points *p, struct stp_point *point, const char *name, const char *text)
{
	for (size_t i = 0; i < point->n; i++) {
		struct stp_node *arg;

		if (strcmp(point->comps[i].name, name))
			continue;
		arg = arena_new_of(p->arena, struct stp_node);
		arg->kind = STP_STR;
		arg->pos = point->comps[i].pos;
		arg->str = arena_strdup(p->arena, text);
		arg->str_len = strlen(text);
		point->comps[i].arg = arg;
	}
}

const struct stp_comp *points_comp(const struct stp_point *point, const char *name)
{
	for (size_t i = 0; i < point->n; i++)
		if (!strcmp(point->comps[i].name, name))
			return &point->comps[i];
	return NULL;
}

/* The text argument of component @name, or NULL. */
const char *points_text(const struct stp_point *point, const char *name)
{
	const struct stp_comp *c = points_comp(point, name);

	return c && c->arg && c->arg->kind == STP_STR ? c->arg->str : NULL;
}

/* The set's probe for @point, which fires like @key. */
struct probe *points_make_as(struct points *p, const struct stp_point *point, struct probe *key, const char *prov)
{
	struct strbuf name = { 0 };
	struct stp_point plain = *point;
	struct probe *probe;
	bool made;

	plain.optional = plain.sufficient = false;
	plain.cond = NULL;
	stp_dump_point(&name, &plain);
	key->prov = prov;
	key->mod = key->mod ? key->mod : "";
	key->func = key->func ? key->func : "";
	key->name = strbuf_str(&name);
	probe = set_probe(p->set, key, &made);
	strbuf_fini(&name);
	return probe;
}

struct probe *points_make(struct points *p, const struct stp_point *point, struct probe *key)
{
	return points_make_as(p, point, key, "stap");
}

/* --- which file --------------------------------------------------------------------------------------- */

/* The first word of the command, if it needs no shell. */
static const char *command_word(struct points *p)
{
	const char *s = p->conf.command + strspn(p->conf.command, " \t\n");

	return arena_strndup(p->arena, s, strcspn(s, " \t\n"));
}

static const char *pid_program(struct points_search *s, uint32_t pid, bool unspecified)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", pid);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0) {
		s->why = arena_printf(s->p->arena, "cannot probe pid %" PRIu32 ": %s%s", pid,
				      errno == ENOENT ? "No such process" : strerror(errno),
				      unspecified ? " (invalid -x pid for unspecified process probe [man stapprobes])"
						  : "");
		return NULL;
	}
	path[n] = '\0';
	/* Under another root the path may name another file. */
	return file_same_path(path, link) ? arena_strdup(s->p->arena, path) : arena_strdup(s->p->arena, link);
}

/* A script means its interpreter (stapprobes: "PATH names ... scripts"). */
static void one_executable(struct points_search *s, const char *path)
{
	const char *program = exec_interpreter(s->p->arena, path, s->p->conf.sysroot);
	size_t before = s->n;

	if (program)
		s->file(s, program);
	else
		s->why = "there is no such interpreter";
	if (program != path && s->n == before)
		s->why = arena_printf(s->p->arena, "%s is a script, run by %s: %s; if the script starts the program that you "
				      "mean, name that by its path", path, program ? program : "an interpreter",
				      s->why ? s->why : "no match");
}

/* The HOWTO's scripts use "python", which is not the name of Debian's interpreter. */
static const char *other_python(struct points_search *s, const char *name)
{
	bool other = !strcmp(name, "python") && exec_find(s->p->arena, "python3", s->p->conf.sysroot);

	return other ? "; there is a python3" : "";
}

/*
 * Find the file for a name without a slash: in PATH, else in the current folder, else the command of -c.  Man page
 * stapprobes(3stap), "process".
 */
const char *points_find_program(struct points *p, const char *name)
{
	const char *path = exec_find(p->arena, name, p->conf.sysroot), *slash;

	if (path || strchr(name, '/'))
		return path;
	path = exec_find(p->arena, arena_printf(p->arena, "./%s", name), p->conf.sysroot);
	if (path || !p->conf.command)
		return path;
	path = exec_find(p->arena, command_word(p), NULL);
	slash = path ? strrchr(path, '/') : NULL;
	return slash && !strcmp(slash + 1, name) ? path : NULL;
}

static void each_program(struct points_search *s, const char *pattern)
{
	enum { NO_MATCH = 3 };		/* GLOB_NOMATCH, which the original tells */
	const char *path, **found;
	size_t n;

	if (!strpbrk(pattern, "*?[")) {
		path = points_find_program(s->p, pattern);
		if (path)
			one_executable(s, path);
		else if (!strchr(pattern, '/'))
			s->why = arena_printf(s->p->arena, "cannot find executable '%s'%s", pattern, other_python(s, pattern));
		else
			s->why = "no match";
		return;
	}
	path = arena_printf(s->p->arena, "%s%s", s->p->conf.sysroot ? s->p->conf.sysroot : "", pattern);
	shortage_take();
	n = paths_matching(s->p->arena, path, true, &found);
	if (!n) {
		int err = shortage_take();

		s->why = err ? arena_printf(s->p->arena, "glob %s: %s", pattern, strerror(-err)) :
			       arena_printf(s->p->arena, "glob %s error (%d)", pattern, NO_MATCH);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		char real[PATH_MAX];
		bool again = false;

		if (!realpath(found[i], real))
			continue;
		for (size_t k = 0; k < i && !again; k++) {	/* a link to a file that was found by another name */
			char other[PATH_MAX];

			again = realpath(found[k], other) && !strcmp(real, other);
		}
		if (again)
			continue;
		if (s->p->conf.expanded)
			s->p->conf.expanded(s->p->conf.ctx, pattern, real);
		one_executable(s, arena_strdup(s->p->arena, real));
	}
}

/* Does @pattern name the library, by its path or its name? */
static bool is_library(const char *pattern, const char *path)
{
	const char *slash = strrchr(path, '/');

	return !fnmatch(pattern, path, 0) || (!strchr(pattern, '/') && slash && !fnmatch(pattern, slash + 1, 0));
}

/* Call s->file for each library of the program that matches the pattern. */
static void each_library(struct points_search *s, const char *program, const char *pattern)
{
	struct points_file *f = points_open(s->p, program);
	const char **libs, **there;
	char real[PATH_MAX];
	unsigned int n = 0;
	size_t i, nlibs, nthere;

	s->program = program;
	if (f->err) {
		s->why = f->why;
		return;
	}
	nlibs = exec_libraries(s->p->arena, f->obj, s->p->conf.sysroot, &libs);
	for (i = 0; i < nlibs; i++) {
		if (!is_library(pattern, libs[i]))
			continue;
		s->file(s, libs[i]);
		n++;
	}
	/* From the working folder; a link's name: libpython3.so for libpython3.11.so.1.0; or what the program loads itself. */
	if (!n && strchr(pattern, '/')) {
		nthere = paths_matching(s->p->arena, pattern, false, &there);
		for (i = 0; i < nthere; i++)
			if (realpath(there[i], real)) {
				s->file(s, arena_strdup(s->p->arena, real));
				n++;
			}
	}
	if (!n && !s->why)
		s->why = arena_printf(s->p->arena, "%s is linked to no library '%s'", program, pattern);
}

static void one_program(struct points_search *s, const char *path)
{
	const char *library = points_text(s->point, "library");
	void (*file)(struct points_search *s, const char *path) = s->file;

	if (!library) {
		s->program = path;
		s->file = s->in_file;
		s->in_file(s, path);
	} else {
		s->file = s->in_file;
		each_library(s, path, library);
	}
	s->file = file;
}

const char *points_linked_python(struct points *p, struct points_file *f)
{
	const char **libs;
	size_t n = exec_libraries(p->arena, f->obj, p->conf.sysroot, &libs);

	for (size_t i = 0; i < n; i++) {
		struct points_file *lib = strstr(libs[i], "python") ? points_open(p, libs[i]) : NULL;

		if (lib && !lib->err && lib->python)
			return libs[i];
	}
	return NULL;
}

/*
 * Is it the program for a point with a mark?  It is if it has marks, or is a Python, which may get them from dtap's
 * agent.  Then the mark's name is wrong, or other points of the script match this program.
 */
static bool is_marked(struct points_search *s, const char *path)
{
	struct points_file *f = points_open(s->p, path);

	return points_comp(s->point, "mark") && !f->err &&
	       (f->nmarkers || f->python || points_linked_python(s->p, f));
}

/*
 * A command such as "chroot ROOT python3 x.py" or "env python3" becomes the traced program only at its last exec: if
 * nothing is found, wait for the next program.
 */
static void each_image(struct points_search *s)
{
	struct points *p = s->p;
	size_t before = s->n;
	const char *path, *why = NULL;

	s->pid = p->conf.held;
	do {
		path = pid_program(s, p->conf.held, false);
		if (path)
			one_program(s, path);
		if (!why || path)
			why = s->why;
	} while (s->n == before && !(path && is_marked(s, path)) && p->conf.next_image(p->conf.ctx));
	s->why = why;
}

void points_each_file(struct points_search *s)
{
	const struct stp_node *arg = s->point->comps[0].arg;
	struct points *p = s->p;
	const char *path;

	s->file = one_program;
	if (arg && arg->kind == STP_STR) {
		each_program(s, arg->str);
		return;
	}
	if (arg) {
		s->pid = (uint32_t)arg->value;
		path = pid_program(s, s->pid, false);
	} else if (p->conf.pid) {
		s->pid = p->conf.pid;
		path = pid_program(s, p->conf.pid, true);
	} else if (p->conf.command && words_flaw(p->conf.command)) {
		s->why = arena_printf(p->arena, "invalid -c command for unspecified process probe, it %s",
				      words_flaw(p->conf.command));
		return;
	} else if (p->conf.held) {
		each_image(s);
		return;
	} else if (p->conf.command) {
		path = exec_find(p->arena, command_word(p), NULL);
		path = path ? exec_interpreter(p->arena, path, NULL) : NULL;
		if (!path)
			s->why = "no match";
	} else {
		s->why = "unspecified process probe is invalid without a -c COMMAND or -x PID [man stapprobes]";
		return;
	}
	if (path)
		one_program(s, path);
}

/* The point in @path, with full paths, as it is shown. */
struct stp_point *points_in_file(struct points_search *s, const char *path)
{
	struct stp_point *found = points_copy(s->p, s->point);

	points_set(s->p, found, "process", s->program);
	if (points_comp(found, "library"))
		points_set(s->p, found, "library", path);
	return found;
}

/* --- the resolver ------------------------------------------------------------------------------------- */

static void find_tracer(struct points_search *s, enum probe_kind kind)
{
	struct probe key = { .kind = kind, .mod = arena_printf(s->p->arena, "%zu", s->p->nfound) };

	/* Each is a separate probe: they run one after the other, by their numbers. */
	points_add(s, s->point, points_make(s->p, s->point, &key));
}

struct probe *points_own(struct points *p, enum stp_point_kind kind)
{
	struct probe key = {
		.prov = "stap", .mod = "", .func = "",
		.kind = kind == STP_P_BEGIN ? PROBE_BEGIN : kind == STP_P_END ? PROBE_END :
			kind == STP_P_READ ? PROBE_READ : PROBE_FAILED,
		.name = kind == STP_P_BEGIN ? "begin" : kind == STP_P_END ? "end" : kind == STP_P_READ ? "read" : "error",
	};
	bool made;

	return set_probe(p->set, &key, &made);
}

static void find_timer(struct points_search *s, enum stp_point_kind kind)
{
	const struct {
		enum stp_point_kind kind;
		uint64_t ns;
	} units[] = {
		{ STP_P_TIMER_S, 1000000000 }, { STP_P_TIMER_MS, 1000000 }, { STP_P_TIMER_US, 1000 },
		{ STP_P_TIMER_NS, 1 }, { STP_P_TIMER_JIFFIES, 1000000000 / (uint64_t)s->p->conf.hz },
	};
	struct probe key = { .kind = PROBE_TICK, .mod = arena_printf(s->p->arena, "%zu", s->p->nfound) };
	const struct stp_comp *random = points_comp(s->point, "randomize");
	uint64_t n = s->point->n > 1 && s->point->comps[1].arg ? (uint64_t)s->point->comps[1].arg->value : 1;

	if (kind == STP_P_TIMER_PROFILE) {
		key.kind = PROBE_PROFILE;
		/* timer.profile.tick is the kernel's tick; timer.profile, where kernels have no hook for that, a ms of the clock. */
		key.period_ns = points_comp(s->point, "tick") ? 1000000000 / (uint64_t)s->p->conf.hz : 1000000;
	} else if (kind == STP_P_TIMER_HZ) {
		key.period_ns = 1000000000 / n;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].kind != kind)
			continue;
		key.period_ns = n * units[i].ns;
		if (random && random->arg)
			key.random_ns = (uint64_t)random->arg->value * units[i].ns;
	}
	points_add(s, s->point, points_make(s->p, s->point, &key));
}

static const char *const refusals[STP_P_PROCFS + 1] = {
	[STP_P_KERNEL] = "dtap has no probes in the kernel's functions: it traces processes",
	[STP_P_PROCFS] = "procfs probes need a kernel module: print from a timer probe",
};

static size_t find(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
		   const struct stp_point ***found, const char **why)
{
	struct points_search s = { .p = ctx, .point = point };

	switch (kind) {
	case STP_P_BEGIN:
		find_tracer(&s, PROBE_BEGIN);
		break;
	case STP_P_END:
		find_tracer(&s, PROBE_END);
		break;
	case STP_P_ERROR:
		find_tracer(&s, PROBE_FAILED);
		break;
	case STP_P_INPUT:
		find_tracer(&s, PROBE_INPUT);
		break;
	case STP_P_NEVER:
		points_add(&s, point, NULL);
		break;
	case STP_P_TIMER_S:
	case STP_P_TIMER_MS:
	case STP_P_TIMER_US:
	case STP_P_TIMER_NS:
	case STP_P_TIMER_HZ:
	case STP_P_TIMER_JIFFIES:
	case STP_P_TIMER_PROFILE:
		find_timer(&s, kind);
		break;
	case STP_P_MARK:
		points_find_marks(&s);
		break;
	case STP_P_FUNCTION:
	case STP_P_INLINE:
	case STP_P_RETURN:
		if (points_comp(point, "callee"))
			points_find_callees(&s);
		else
			points_find_funcs(&s, kind == STP_P_RETURN);
		break;
	case STP_P_CALLEE:
		points_find_callees(&s);
		break;
	case STP_P_STATEMENT:
		if (points_comp(point, "function"))
			points_find_funcs(&s, false);
		else
			points_find_statements(&s);
		break;
	case STP_P_PLT:
	case STP_P_PLT_RETURN:
		points_find_plt(&s, kind == STP_P_PLT_RETURN);
		break;
	case STP_P_PYTHON_CALL:
	case STP_P_PYTHON_RETURN:
		points_find_pyfuncs(&s, kind == STP_P_PYTHON_RETURN);
		break;
	case STP_P_PROCESS_BEGIN:
		points_find_begin(&s);
		break;
	case STP_P_PROCESS_END:
	case STP_P_THREAD_END:
		points_find_end(&s, kind == STP_P_THREAD_END);
		break;
	case STP_P_THREAD_BEGIN:
		points_find_thread(&s);
		break;
	case STP_P_SYSCALL_ENTRY:
	case STP_P_SYSCALL_RETURN:
		points_find_syscall(&s, kind == STP_P_SYSCALL_RETURN);
		break;
	case STP_P_TRACEPOINT:
		points_find_trace(&s);
		break;
	case STP_P_PERF:
		points_find_perf(&s);
		break;
	case STP_P_DATA:
		points_find_data(&s);
		break;
	default:
		s.why = refusals[kind];
		break;
	}
	*found = s.v;
	*why = s.n ? NULL : s.why;
	return s.n;
}

static bool find_target(struct points *p, const struct stp_point *point, enum stp_point_kind kind,
			const struct stp_node *target, struct stp_source *source, const char **why)
{
	bool of_code = kind == STP_P_FUNCTION || kind == STP_P_INLINE || kind == STP_P_RETURN || kind == STP_P_STATEMENT;

	if (target->is_var && target->module && *target->module && !of_code)
		return points_debug_elsewhere(p, find_found(p, point), target, source, why);
	if (kind == STP_P_MARK)
		return points_mark_target(p, find_found(p, point), target, source, why);
	if (kind == STP_P_PLT || kind == STP_P_PLT_RETURN)
		return points_plt_target(point, kind == STP_P_PLT_RETURN, target, source, why);
	if (of_code)
		return points_func_target(p, find_found(p, point), kind == STP_P_RETURN, target, source, why);
	if (kind == STP_P_SYSCALL_ENTRY || kind == STP_P_SYSCALL_RETURN)
		return points_syscall_target(p, point, kind == STP_P_SYSCALL_RETURN, target, source, why);
	if (kind == STP_P_TRACEPOINT)
		return points_trace_target(p, find_found(p, point), target, source, why);
	if (kind == STP_P_PYTHON_CALL || kind == STP_P_PYTHON_RETURN)
		return points_pyfunc_target(p, kind == STP_P_PYTHON_RETURN, target, source, why);
	if (kind == STP_P_INPUT && !strcmp(target->name, "$value") && !target->nparts) {
		*source = (struct stp_source){ .kind = STP_SRC_ARG, .type = STP_LONG, .arg = 0 };
		return true;
	}
	*why = "this probe point has no context variables";
	return false;
}

static bool target(void *ctx, const struct stp_point *point, enum stp_point_kind kind, const struct stp_node *target,
		   struct stp_source *source, const char **why)
{
	struct points *p = ctx;

	if (find_target(p, point, kind, target, source, why))
		return true;
	if (!p->conf.skip_badvars || target->name[1] == '$')
		return false;
	/* An argument that the probe lacks is 0. */
	*source = (struct stp_source){ .kind = STP_SRC_ARG, .type = STP_LONG, .arg = PROBE_MAX_ARGS - 1 };
	return true;
}

static bool cast(void *ctx, const struct stp_point *point, const struct stp_node *node, struct stp_source *source,
		 const char **why)
{
	if (node->kind == STP_DEREF)
		return points_deref(ctx, node, source, why);
	return points_cast(ctx, point ? find_found(ctx, point) : NULL, node, source, why);
}

struct stp_resolver points_resolver(struct points *p)
{
	return (struct stp_resolver){ .ctx = p, .find = find, .target = target, .cast = cast };
}

void points_vars(const struct points *p, const struct stp_point *found, struct strbuf *out)
{
	const struct points_found *f = find_found(p, found);

	for (unsigned int i = 0; f && f->mark && i < f->probe->sig.nargs; i++)
		strbuf_printf(out, " $arg%u:long", i + 1);
	if (f && f->listed)
		points_pyfunc_vars(f, out);
	if (f && f->file)
		points_debug_vars(f, out);
	if (f && points_comp(found, "trace"))
		points_trace_vars(p, f, out);
	if (f && f->probe && f->probe->nsites && f->probe->sites[0]->ret && !(f->file && obj_debug(f->file->obj)))
		strbuf_puts(out, " $return:long");
}
