/*
 * D programs: from scripts to IR, and loading the agent into the processes that their descriptions name.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "d/attr.h"
#include "d/cpp.h"
#include "d/d.h"
#include "d/lib.h"
#include "ir/ir.h"
#include "lib/d_list.h"
#include "lib/d_msg.h"
#include "lib/lib.h"
#include "lib/topology.h"
#include "out/dialect.h"
#include "probe/probe.h"
#include "probe/procs.h"
#include "probe/python.h"
#include "session/launch.h"
#include "session/supply.h"
#include "target/target.h"

struct d_run {
	struct d *d;
	struct d_libs *libs;		/* NULL: none */
};

static struct d_run *state_of(const struct dtap *t)
{
	return t->state;
}

static int init(struct dtap *t)
{
	t->state = arena_new_of(t->arena, struct d_run);
	return 0;
}

static void fini(struct dtap *t)
{
	(void)t;	/* all of it is in the arena */
}

/* --- sources ------------------------------------------------------------------------------------------ */

static enum d_spec spec_of(enum dtap_script_kind kind)
{
	switch (kind) {
	case DTAP_FILE:
	case DTAP_TEXT:
	case DTAP_MORE_TEXT:
		return D_SPEC_FILE;
	case DTAP_PROVIDER:
		return D_SPEC_PROV;
	case DTAP_MODULE:
		return D_SPEC_MOD;
	case DTAP_FUNCTION:
		return D_SPEC_FUNC;
	case DTAP_NAME:
	case DTAP_ID:	/* a number is parsed as a description, too */
		break;
	}
	return D_SPEC_NAME;
}

/* The preprocessor's arguments, with a NULL at the end. */
static const char *const *cpp_words(struct dtap *t)
{
	if (*t->set.text[OPT_stdc] == 's')
		lib_add_text(t, &t->cpp, "-traditional-cpp");
	lib_add_text(t, &t->cpp, "");
	t->cpp.v[--t->cpp.n] = NULL;
	return t->cpp.v;
}

static int read_script(struct dtap *t, struct lib_script *s)
{
	struct source *src = NULL;
	const char *why = NULL;
	int e;

	if (s->kind != DTAP_FILE) {
		s->src = source_text(t->arena, s->kind == DTAP_TEXT ? "<script>" : s->text, s->text, strlen(s->text));
		return 0;
	}
	e = source_read(t->arena, s->text, &src);
	if (e) {
		lib_error(t, "failed to open %s: %s", s->text,
			  e == -EFBIG ? "it is larger than 16 MiB, which no script is" : strerror(-e));
		return e;
	}
	if (t->set.v[OPT_cpp]) {
		e = d_cpp(t->arena, src, t->set.text[OPT_cpppath], cpp_words(t), &src, &why);
		if (e) {
			lib_error(t, "failed to compile script %s: %s", s->text, why);
			return e;
		}
		if (why)
			lib_message(t, DTAP_DUMP, why);
	}
	s->src = src;
	return 0;
}

static int read_scripts(struct dtap *t)
{
	int e = 0;

	for (size_t i = 0; i < t->nscripts && !e; i++)
		e = read_script(t, &t->scripts[i]);
	return e;
}

/* Does a script use the location of the CPU (socket, memory node)?  The caller's libraries are assumed to. */
static bool wants_topology(const struct dtap *t)
{
	static const char *const words[] = { "cpuinfo", "curcpu", "chip", "lgrp", "pset", "ipl" };	/* all of sched.d */

	for (size_t i = 0; i < t->nscripts; i++)
		for (size_t k = 0; t->scripts[i].src && k < sizeof(words) / sizeof(words[0]); k++)
			if (strstr(t->scripts[i].src->text, words[k]))
				return true;
	return t->libraries.n || *t->set.text[OPT_libdir];
}

/* dtap's own libraries, and the caller's, which take precedence. */
static void find_libraries(struct dtap *t)
{
	const char *dir = *t->set.text[OPT_syslibdir] ? t->set.text[OPT_syslibdir] : lib_share(t, "dlib");
	struct d_run *r = state_of(t);

	r->libs = d_libs_new(t->arena);
	if (dir && !t->set.v[OPT_nolibs])
		d_libs_dir(r->libs, dir, false);
	if (wants_topology(t))
		d_libs_text(r->libs, "topology.d", lib_topology(t));
	if (*t->set.text[OPT_libdir])
		d_libs_dir(r->libs, t->set.text[OPT_libdir], true);
	for (size_t i = 0; i < t->libraries.n; i++)
		d_libs_dir(r->libs, t->libraries.v[i], true);
}

static int set_script_options(struct dtap *t)
{
	const struct d_pragma *p;
	struct strbuf err = { 0 };

	for (size_t i = 0; (p = d_option(state_of(t)->d, i)); i++) {
		strbuf_clear(&err);
		if (options_set(&t->set, p->name, p->value, OPTION_SCRIPT, &err))
			diag_error(&t->diag, p->pos, "D_PRAGMA_OPTSET", "%s", strbuf_str(&err));
	}
	strbuf_fini(&err);
	return d_msg_report(t, &t->diag) ? -EINVAL : 0;
}

/* $0, the first script's name as in DTrace, and $1 ... */
static const char *const *macro_args(struct dtap *t, struct arena *a)
{
	const char **v = arena_alloc(a, (t->args.n + 1) * sizeof(*v));

	v[0] = "dtrace";
	for (size_t i = t->nscripts; i--; )
		if (t->scripts[i].kind == DTAP_FILE)
			v[0] = t->scripts[i].text;
	if (t->args.n)
		memcpy(v + 1, t->args.v, t->args.n * sizeof(*v));
	return v;
}

/* Parse all scripts, with @target as $target. */
static void tell_libraries(struct dtap *t, const struct d *d)
{
	struct strbuf text = { 0 };
	size_t n = 0, i;

	while (d_libs_used(d_tree(d), n))
		n++;
	for (i = n; i--;)
		strbuf_printf(&text, "dtrace: loaded the library %s (%zu/%zu)\n", d_libs_used(d_tree(d), i), i + 1, n);
	lib_message(t, DTAP_NOTE, strbuf_str(&text));
	strbuf_fini(&text);
}

static struct d *parse_for(struct dtap *t, struct arena *a, struct diag *diag, int32_t target)
{
	struct d_macros macros;
	struct d *d;

	d_macros_init(&macros);
	macros.argv = macro_args(t, a);
	macros.argc = (unsigned int)t->args.n + 1;
	macros.target = target;
	macros.defaultargs = t->set.v[OPT_defaultargs];
	macros.argref = t->set.v[OPT_argref];
	diag_init(diag, a);
	d = d_new(a, diag, &macros);
	d_use(d, probe_types(t->probes, a), state_of(t)->libs);
	for (size_t i = 0; i < t->nscripts; i++)
		d_add(d, t->scripts[i].src, spec_of(t->scripts[i].kind));
	d_end(d);
	return d;
}

/* --- Python's markers ---------------------------------------------------------------------------------- */

static enum python_mode mode_of(const char *agent)
{
	return !strcmp(agent, "always") ? PYTHON_ALWAYS : !strcmp(agent, "never") ? PYTHON_NEVER : PYTHON_AUTO;
}

/* Tell the user if the agent's object is not installed; otherwise Python's probes would silently never fire. */
static void say_missing(struct dtap *t, const struct probe_desc *descs, size_t n)
{
	const char *missing = supply_missing(t->supply);

	for (size_t i = 0; *missing && i < n; i++) {
		if (strncmp(descs[i].prov, PYTHON_PROVIDER, strlen(PYTHON_PROVIDER)))
			continue;
		lib_note(t, "%s", missing);
		return;
	}
}

/* "-x family": select the target processes and their descendants.  Without a target the option has no effect. */
static int select_family(struct dtap *t)
{
	if (!t->set.v[OPT_family] || (!t->command && !t->npids) || t->select != DTAP_SELECT_ALL)
		return 0;
	if (!strcmp(t->set.text[OPT_place], "kernel")) {
		lib_error(t, "option family is for the target place: a probe in the kernel fires for every process; "
			  "leave place=kernel out, or family, and write a predicate: /progenyof($target)/");
		return -EINVAL;
	}
	dtap_select(t, DTAP_SELECT_FAMILIES, 0);
	return 0;
}

/* May it run in the target, if that changes only the cost? */
static bool prefers_target(const struct dtap *t)
{
	return t->purpose == DTAP_TO_RUN && !strcmp(t->set.text[OPT_place], "auto") &&
	       !strcmp(t->set.text[OPT_agent], "auto") && t->set.v[OPT_cpu] < 0;
}

/*
 * Whether the command needs the agent must be known before it is started, so the programs are parsed a first time
 * before $target exists.  Their mistakes are reported by the second parse.
 */
static int foresee(struct dtap *t, const struct target_preload **preload)
{
	struct supply_conf conf = { .probes = t->probes, .message = lib_agent_message, .process = lib_agent_process,
				    .ctx = t, .keep_signals = t->conf.keep_signals };
	struct arena *a = arena_new();
	struct strbuf err = { 0 };
	const struct probe_desc *descs;
	const struct d_pragma *p;
	struct diag diag;
	struct d *d;
	size_t n, i;
	int e;

	*preload = NULL;
	d = parse_for(t, a, &diag, INT32_MAX);
	for (i = 0; (p = d_option(d, i)); i++)
		options_set(&t->set, p->name, p->value, OPTION_SCRIPT, &err);
	strbuf_clear(&err);
	e = select_family(t);
	if (e) {
		arena_free(a);
		return e;
	}
	conf.selects = lib_is_selected;
	conf.few = t->command || t->npids || t->select == DTAP_SELECT_FAMILIES || t->select == DTAP_SELECT_USER;
	conf.mode = session_in_target(&t->set) ? PYTHON_ALWAYS : mode_of(t->set.text[OPT_agent]);
	e = supply_new(&conf, &t->supply, &err);
	if (e == -ENOENT && !strcmp(t->set.text[OPT_place], "auto") && strcmp(t->set.text[OPT_agent], "always")) {
		/* The target place was not requested: the script may work without the agent. */
		strbuf_clear(&err);
		conf.mode = mode_of(t->set.text[OPT_agent]);
		e = supply_new(&conf, &t->supply, &err);
	}
	descs = d_descs(d, &n);
	if (!e)
		say_missing(t, descs, n);
	if (!e && prefers_target(t))
		supply_prefer(t->supply, descs, n);
	if (!e && t->command)
		e = supply_foresee(t->supply, descs, n, t->command, preload, &err);
	arena_free(a);
	if (e)
		return lib_fail(t, e, &err);
	strbuf_fini(&err);
	return 0;
}

static bool is_target(void *ctx, uint32_t pid)
{
	const struct dtap *t = ctx;

	for (size_t i = 0; i < t->ntargets; i++)
		if ((uint32_t)target_pid(t->targets[i]) == pid)
			return true;
	return false;
}

static bool is_followed(void *ctx, uint32_t pid)
{
	const struct dtap *t = ctx;
	size_t n;
	const struct probe_desc *descs = d_descs(state_of(t)->d, &n);

	return is_target(ctx, pid) || supply_names(t->supply, descs, n, pid);
}

/* The process that the description names, if it can need the agent and is no target; 0: none. */
static uint32_t named_by(struct dtap *t, const struct probe_desc *desc)
{
	uint32_t pid = desc_pid(desc->prov);

	return pid && !is_target(t, pid) && supply_names(t->supply, desc, 1, pid) ? pid : 0;
}

static void each_followed(void *ctx, void (*fn)(void *fn_ctx, uint32_t pid), void *fn_ctx)
{
	struct dtap *t = ctx;
	size_t n;
	const struct probe_desc *descs = d_descs(state_of(t)->d, &n);

	for (size_t i = 0; i < t->ntargets; i++)
		fn(fn_ctx, (uint32_t)target_pid(t->targets[i]));
	for (size_t i = 0; i < n; i++) {
		uint32_t pid = named_by(t, &descs[i]);

		if (pid)
			fn(fn_ctx, pid);
	}
}

/* Load the agent into running processes that the script names. */
static int attach_named(struct dtap *t, const struct probe_desc *descs, size_t n, struct strbuf *err)
{
	int e = 0;

	for (size_t i = 0; i < n && !e; i++) {
		uint32_t pid = named_by(t, &descs[i]);
		struct target *named = NULL;

		/* Of one that is not there, or not this user's, the compiler tells. */
		if (pid && !target_attach((pid_t)pid, &named, NULL))
			e = supply_attach(t->supply, &descs[i], 1, named, err);
		target_free(named);
	}
	return e;
}

/*
 * Follow the processes that get the agent when they execute a program later: all, if a description is of whatever
 * processes there are, else the targets.  A command that loads the agent itself also passes it on to its children.
 */
static int follow(struct dtap *t, const struct probe_desc *descs, size_t n, struct strbuf *err)
{
	bool all = supply_is_of_any(t->supply, descs, n), some = t->npids || (t->command && !target_passes_on(t->targets[0]));

	for (size_t i = 0; i < n; i++)
		some |= named_by(t, &descs[i]) != 0;
	if (!all)
		supply_limit(t->supply, is_followed, each_followed, t);
	return all || some ? supply_follow(t->supply, descs, n, err) : 0;
}

/* Load the agent into the processes that need it and are already running, or could not load it at their start. */
static int attach_agents(struct dtap *t)
{
	const struct probe_desc *descs;
	struct strbuf err = { 0 }, why = { 0 };
	size_t n, i;
	unsigned int missed = 0;
	int e = 0;

	descs = d_descs(state_of(t)->d, &n);
	for (i = 0; i < t->ntargets && !e; i++)
		e = target_state(t->targets[i]) == TARGET_RUNNING ?
			    supply_attach(t->supply, descs, n, t->targets[i], &err) :
			    supply_settle(t->supply, descs, n, t->targets[i], &err);
	if (!e)
		e = follow(t, descs, n, &err);
	if (!e)
		e = attach_named(t, descs, n, &err);
	if (!e)
		e = supply_attach_all(t->supply, descs, n);
	if (!e)
		e = supply_await(t->supply, &missed, &why, &err);
	if (!e && !t->set.v[OPT_quiet])
		lib_say_missed(t, missed, "running Python", "running Pythons", strbuf_str(&why));
	strbuf_fini(&why);
	return lib_done(t, e, &err);
}

static int compile(struct dtap *t)
{
	struct resolver resolver = probe_resolver(t->probes);
	const int64_t *v = t->set.v;
	struct d_opts opts = { .strsize = (uint32_t)v[OPT_strsize], .zdefs = v[OPT_zdefs], .nspec = (uint32_t)v[OPT_nspec],
			       .destructive = v[OPT_destructive], .stackframes = (uint32_t)v[OPT_stackframes],
			       .ustackframes = (uint32_t)v[OPT_ustackframes],
			       .jstackframes = (uint32_t)v[OPT_jstackframes] };
	struct strbuf text = { 0 };
	struct d_attr amin;

	attr_parse(t->set.text[OPT_amin], &amin);
	opts.amin = &amin;
	probe_hold(t->probes, true);
	t->prog = d_compile(state_of(t)->d, &resolver, &opts);
	if (d_msg_report(t, &t->diag) || !t->prog)
		return -EINVAL;
	if (v[OPT_ir]) {
		ir_print(t->prog, &text);
		lib_message(t, DTAP_DUMP, strbuf_str(&text));
		strbuf_fini(&text);
	}
	return 0;
}

/* A script without clauses: mistakes in its declarations are reported first. */
static int empty(struct dtap *t)
{
	const struct source *src = t->nscripts ? t->scripts[t->nscripts - 1].src : NULL;
	struct src_pos end = { src, 1, 1 };
	int e = compile(t);

	if (e)
		return e;
	for (size_t i = 0; src && i < src->len; i++)
		end.line += src->text[i] == '\n';
	if (src && src->len && src->text[src->len - 1] == '\n')
		end.line -= end.line > 1;
	diag_error(&t->diag, end, "D_EMPTY", "empty D program translation unit: no probes specified");
	d_msg_report(t, &t->diag);
	return -EINVAL;
}

/* --- the steps ----------------------------------------------------------------------------------------- */

static int parse(struct dtap *t)
{
	const struct target_preload *preload;
	uint32_t target;
	int e;

	e = read_scripts(t);
	find_libraries(t);
	if (!e)
		e = foresee(t, &preload);
	if (!e)
		e = lib_open_targets(t, preload);
	if (e)
		return e;
	target = t->ntargets ? (uint32_t)target_pid(t->targets[0]) : 0;
	probe_set_target(t->probes, target);
	state_of(t)->d = parse_for(t, t->arena, &t->diag, (int32_t)target);
	if (t->set.v[OPT_debug])
		tell_libraries(t, state_of(t)->d);
	if (d_msg_report(t, &t->diag))
		return -EINVAL;
	e = set_script_options(t);
	if (!e && t->purpose != DTAP_TO_LIST && !d_nclauses(state_of(t)->d) && !t->set.v[OPT_empty]) {
		e = empty(t);
	}
	return e;
}

/* Run the command until it has executed the program that has the probes. */
static int launch(struct dtap *t)
{
	const struct probe_desc *descs;
	struct strbuf err = { 0 };
	size_t n;
	int e;

	if (!t->command)
		return 0;
	descs = d_descs(state_of(t)->d, &n);
	e = launch_find(t->targets[0], t->probes, descs, n, t->set.v[OPT_zdefs], &err);
	/* -ESRCH: the command ended too early; descriptions that match nothing are reported.  -EINTR: Ctrl-C. */
	if (e && e != -ESRCH && e != -EINTR)
		return lib_fail(t, e, &err);
	strbuf_fini(&err);
	return e == -EINTR ? e : 0;
}

static int check(struct dtap *t)
{
	int e = launch(t);

	if (!e && t->purpose == DTAP_TO_RUN)
		e = attach_agents(t);
	return e ? e : compile(t);
}

static int translate(struct dtap *t)
{
	(void)t;	/* compile() has done it */
	return 0;
}

static int enable(struct dtap *t, struct session_conf *conf)
{
	conf->print_aggs = t->print_aggregations;
	return 0;
}

static const char *what_is(const struct lib_script *s)
{
	return lib_is_script(s) ? "script" : "description";
}

/* How much of its text names it: of a program of the command line the probe descriptions. */
static int name_length(const struct lib_script *s)
{
	return (int)(lib_is_script(s) ? strlen(s->text) : strcspn(s->text, "{/;"));
}

/* Report what the agent supplies, and "dtrace: script 'x.d' matched 3 probes" for each script, unless quiet. */
static void armed(struct dtap *t)
{
	struct strbuf b = { 0 };
	const struct probe_desc *descs;
	size_t n;

	descs = d_descs(state_of(t)->d, &n);
	for (size_t i = 0; i < n; i++)
		if (!strncmp(descs[i].name, "profile-", 8))
			t->sampler = arena_strdup(t->arena, descs[i].name);
	if (t->set.v[OPT_quiet])
		return;
	supply_say(t->supply, &b);
	if (b.len)
		lib_note(t, "dtap's agent supplies %s", strbuf_str(&b));
	for (size_t i = 0; i < t->nscripts; i++) {
		const struct lib_script *s = &t->scripts[i];
		unsigned int matched = session_matched(t->session, s->src);

		strbuf_clear(&b);
		strbuf_printf(&b, "dtrace: %s '%.*s' matched %u probe%s\n", what_is(s), name_length(s), s->text, matched,
			      matched == 1 ? "" : "s");
		lib_message(t, DTAP_NOTE, strbuf_str(&b));
	}
	if (t->set.v[OPT_destructive])
		lib_message(t, DTAP_NOTE, "dtrace: allowing destructive actions\n");
	strbuf_fini(&b);
}

/* --- queries -------------------------------------------------------------------------------------------- */

static void put_attributes(struct strbuf *out, const char *what, struct d_attr a)
{
	strbuf_printf(out, "\n\tMinimum %s Attributes\n", what);
	attr_put(out, a);
}

/* DTrace guide, "Stability", "Computing Stability". */
static void put_stability(const struct dtap *t, struct strbuf *out)
{
	for (size_t i = 0; i < t->nscripts; i++) {
		const struct lib_script *s = &t->scripts[i];
		struct d_attrs a = attr_of(d_tree(state_of(t)->d), s->src);

		strbuf_printf(out, "\nStability attributes for %s %.*s:\n", what_is(s), name_length(s), s->text);
		put_attributes(out, "Probe Description", a.descs);
		put_attributes(out, "Statement", a.stmts);
		strbuf_putc(out, '\n');
	}
}

static int text(struct dtap *t, enum dtap_what what, struct strbuf *out)
{
	if (what == DTAP_STABILITY && t->step >= LIB_CHECKED) {
		put_stability(t, out);
		return 0;
	}
	if (what == DTAP_CODE && t->prog) {
		ir_print(t->prog, out);
		return 0;
	}
	return -EINVAL;
}

static size_t count(const struct dtap *t, enum dtap_count what)
{
	if (what == DTAP_WARNINGS)
		return t->diag.warnings;
	return what == DTAP_CLAUSES && state_of(t)->d ? d_nclauses(state_of(t)->d) : 0;
}

static size_t list(struct dtap *t, bool verbose, struct strbuf *out)
{
	static const struct probe_desc all = { .prov = "", .mod = "", .func = "", .name = "" };
	const struct probe_desc *descs = &all;
	size_t n = 1;

	if (launch(t))
		return 1;
	if (t->nscripts)
		descs = d_descs(state_of(t)->d, &n);
	return d_list(t, descs, n, verbose, out);
}

static void bad_option(struct dtap *t, const char *name, const char *value, int e, const char *why)
{
	lib_error(t, "failed to set -x %s%s%s: %s%s", name, value ? "=" : "", value ? value : "", why,
		  e == -ENOENT ? "; dtrace --help lists them" : "");
}

static void bad_command(struct dtap *t, const char *why)
{
	lib_error(t, "failed to execute %s: %s", t->command, why);
}

static bool is_talking(const struct dtap *t)
{
	return !t->set.v[OPT_quiet];
}

static void ended(struct dtap *t, const struct target *of, int status, struct strbuf *out)
{
	bool quiet = t->set.v[OPT_quiet] || session_exited(t->session);
	int pid = (int)target_pid(of);

	if (WIFSIGNALED(status))
		strbuf_printf(out, "dtrace: pid %d terminated by signal %d (%s)\n", pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (!quiet && WEXITSTATUS(status))
		strbuf_printf(out, "dtrace: pid %d exited with status %d\n", pid, WEXITSTATUS(status));
	else if (!quiet)
		strbuf_printf(out, "dtrace: pid %d has exited\n", pid);
}

const struct lib_language lib_d = {
	.command = "dtrace", .version = "1.13", .prefix = "dtrace: ", .note = "# dtrace: ", .grabs = true,
	.bad_option = bad_option, .bad_command = bad_command, .is_talking = is_talking, .ended = ended,
	.dialect = &dialect_d, .init = init, .fini = fini, .parse = parse, .check = check, .translate = translate, .enable = enable, .armed = armed, .text = text, .count = count, .list = list,
};
