/*
 * dtrace(1): options and messages around the library.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/dtrace_list.h"
#include "cmd/dtrace_msg.h"
#include "cmd/dtrace_opts.h"
#include "cmd/header.h"
#include "d/attr.h"
#include "d/cpp.h"
#include "d/d.h"
#include "d/lib.h"
#include "ir/ir.h"
#include "lang/diag.h"
#include "out/sink.h"
#include "probe/probe.h"
#include "probe/python.h"
#include "session/launch.h"
#include "session/options.h"
#include "session/session.h"
#include "session/supply.h"
#include "target/target.h"

/* One run of the command, from its options to its end. */
struct run {
	struct arena *arena;
	struct dtrace_opts o;
	struct options set;
	struct diag diag;
	const struct source **sources;	/* by program */
	struct d *d;
	struct d_libs *libs;		/* NULL: none */
	struct probe_set *probes;
	struct target **targets;
	size_t ntargets;
	struct supply *supply;
	struct ir_prog *prog;
	struct out_sink out;
	bool quiet;
};

static void message(void *ctx, const char *text)
{
	(void)ctx;
	fputs(text, stderr);
}

/* Print an error that was worded below, and release it. */
static int fail(struct strbuf *err)
{
	fprintf(stderr, "dtrace: %s\n", err->len ? strbuf_str(err) : "failed without saying why");
	strbuf_fini(err);
	return CMD_ERROR;
}

/* Print the diagnostics so far.  True when there are errors. */
static bool report(const struct run *r)
{
	return dtrace_report(&r->diag, &r->o, r->sources, r->set.v[OPT_errtags]);
}

/* --- sources ------------------------------------------------------------------------------------------ */

static enum d_spec spec_of(char opt)
{
	switch (opt) {
	case 's':
		return D_SPEC_FILE;
	case 'P':
		return D_SPEC_PROV;
	case 'm':
		return D_SPEC_MOD;
	case 'f':
		return D_SPEC_FUNC;
	default:	/* -n, and -i, whose number is a description, too */
		return D_SPEC_NAME;
	}
}

static int read_source(struct run *r, const struct dtrace_prog *p, const struct source **ret)
{
	struct source *src = NULL;
	const char *why = NULL;
	int e;

	if (p->opt != 's') {
		*ret = source_text(r->arena, p->text, p->text, strlen(p->text));
		return 0;
	}
	e = source_read(r->arena, p->text, &src);
	if (e) {
		fprintf(stderr, "dtrace: failed to open %s: %s\n", p->text,
			e == -EFBIG ? "it is larger than 16 MiB, which no script is" : strerror(-e));
		return CMD_ERROR;
	}
	if (r->o.cpp.wanted || r->set.v[OPT_cpp]) {
		e = d_cpp(r->arena, src, cpp_args_list(&r->o.cpp, r->arena), &src, &why);
		if (e) {
			fprintf(stderr, "dtrace: failed to compile script %s: %s\n", p->text, why);
			return CMD_ERROR;
		}
	}
	*ret = src;
	return 0;
}

static int set_script_options(struct run *r)
{
	const struct d_pragma *p;
	struct strbuf err = { 0 };
	size_t i;

	for (i = 0; (p = d_option(r->d, i)); i++) {
		strbuf_clear(&err);
		if (options_set(&r->set, p->name, p->value, OPTION_SCRIPT, &err))
			diag_error(&r->diag, p->pos, "D_PRAGMA_OPTSET", "%s", strbuf_str(&err));
	}
	strbuf_fini(&err);
	return report(r) ? CMD_ERROR : 0;
}

static int read_sources(struct run *r)
{
	size_t i;
	int e = 0;

	r->sources = arena_alloc(r->arena, (r->o.nprogs + 1) * sizeof(*r->sources));
	for (i = 0; i < r->o.nprogs && !e; i++)
		e = read_source(r, &r->o.progs[i], &r->sources[i]);
	for (i = 0; i < r->o.nprogs; i++)	/* argv[0] is the first script's name, as in DTrace */
		if (r->o.progs[i].opt == 's') {
			r->o.args[0] = (char *)(uintptr_t)r->o.progs[i].text;
			break;
		}
	return e;
}

/* Parse all programs, with @target as $target. */
static struct d *parse_for(struct run *r, struct arena *a, struct diag *diag, int32_t target)
{
	struct d_macros macros;
	struct d *d;
	size_t i;

	d_macros_init(&macros);
	macros.argv = (const char *const *)r->o.args;
	macros.argc = (unsigned int)r->o.nargs;
	macros.target = target;
	macros.defaultargs = r->set.v[OPT_defaultargs];
	macros.argref = r->set.v[OPT_argref];
	diag_init(diag, a);
	d = d_new(a, diag, &macros);
	d_use(d, probe_types(r->probes, a), r->libs);
	for (i = 0; i < r->o.nprogs; i++)
		d_add(d, r->sources[i], spec_of(r->o.progs[i].opt));
	d_end(d);
	return d;
}

static int parse(struct run *r)
{
	probe_set_target(r->probes, r->ntargets ? (uint32_t)target_pid(r->targets[0]) : 0);
	r->d = parse_for(r, r->arena, &r->diag, r->ntargets ? target_pid(r->targets[0]) : 0);
	return report(r) ? CMD_ERROR : set_script_options(r);
}

/* --- Python's markers ---------------------------------------------------------------------------------- */

static enum python_mode mode_of(const char *agent)
{
	return !strcmp(agent, "always") ? PYTHON_ALWAYS : !strcmp(agent, "never") ? PYTHON_NEVER : PYTHON_AUTO;
}

static void agent_message(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "# dtrace: %s\n", text);
}

/* A copy of the program alone, without the agent's object, must not pass for a Python in which little happens. */
static void say_missing(struct run *r, const struct probe_desc *descs, size_t n)
{
	const char *missing = supply_missing(r->supply);

	for (size_t i = 0; *missing && i < n; i++) {
		if (strncmp(descs[i].prov, PYTHON_PROVIDER, strlen(PYTHON_PROVIDER)))
			continue;
		agent_message(r, missing);
		return;
	}
}

/*
 * Whether the command needs the agent has to be known before it is started, so the programs are parsed once
 * before their $target exists.  Their mistakes are reported when they are parsed in earnest.
 */
static int foresee(struct run *r, const struct target_preload **preload)
{
	struct supply_conf conf = { .probes = r->probes, .message = agent_message, .ctx = r };
	struct arena *a = arena_new();
	struct strbuf err = { 0 };
	const struct probe_desc *descs;
	const struct d_pragma *p;
	struct diag diag;
	struct d *d;
	size_t n, i;
	int e;

	*preload = NULL;
	if (!a)
		return CMD_ERROR;
	d = parse_for(r, a, &diag, INT32_MAX);
	for (i = 0; (p = d_option(d, i)); i++)
		options_set(&r->set, p->name, p->value, OPTION_SCRIPT, &err);
	strbuf_clear(&err);
	conf.mode = session_in_target(&r->set) ? PYTHON_ALWAYS : mode_of(r->set.text[OPT_agent]);
	e = supply_new(&conf, &r->supply, &err);
	if (e == -ENOENT && !strcmp(r->set.text[OPT_place], "auto") && strcmp(r->set.text[OPT_agent], "always")) {
		/* Nobody has asked for the target place: the script may do without the agent. */
		strbuf_clear(&err);
		conf.mode = mode_of(r->set.text[OPT_agent]);
		e = supply_new(&conf, &r->supply, &err);
	}
	descs = d_descs(d, &n);
	if (!e)
		say_missing(r, descs, n);
	if (!e && r->o.command)
		e = supply_foresee(r->supply, descs, n, r->o.command, preload, &err);
	arena_free(a);
	if (e)
		return fail(&err);
	strbuf_fini(&err);
	return 0;
}

static bool is_target(void *ctx, uint32_t pid)
{
	const struct run *r = ctx;

	for (size_t i = 0; i < r->ntargets; i++)
		if ((uint32_t)target_pid(r->targets[i]) == pid)
			return true;
	return false;
}

/*
 * Who is to get the agent when it executes a program later: everybody, if a description is of any process.  Else a
 * target does, but a command and its children hand it on themselves as long as they load it.
 */
static int follow(struct run *r, const struct probe_desc *descs, size_t n, struct strbuf *err)
{
	bool all = false, some = r->o.npids || (r->o.command && !target_brings(r->targets[0]));

	for (size_t i = 0; i < n; i++)
		all = all || !*descs[i].prov || desc_is_glob(descs[i].prov);
	return all || some ? supply_follow(r->supply, descs, n, all ? NULL : is_target, r, err) : 0;
}

/* Bring the agent into the processes that need it and run already, or cannot have brought it along. */
static int attach_agents(struct run *r)
{
	const struct probe_desc *descs;
	struct strbuf err = { 0 };
	size_t n, i;
	unsigned int missed;
	int e = 0;

	descs = d_descs(r->d, &n);
	for (i = 0; i < r->ntargets && !e; i++)
		e = target_state(r->targets[i]) == TARGET_RUNNING ?
			    supply_attach(r->supply, descs, n, r->targets[i], &err) :
			    supply_settle(r->supply, descs, n, r->targets[i], &err);
	if (!e)
		e = follow(r, descs, n, &err);
	if (e)
		return fail(&err);
	missed = supply_attach_all(r->supply, descs, n, &err);
	if (missed && !r->quiet)
		fprintf(stderr, "# dtrace: %u running Python%s cannot be given the agent and %s not covered: %s\n", missed,
			missed == 1 ? "" : "s", missed == 1 ? "is" : "are", strbuf_str(&err));
	strbuf_fini(&err);
	return 0;
}

/* "# dtrace: dtap's agent supplies line of Python 3.13". */
static void say_supplied(const struct run *r)
{
	struct strbuf what = { 0 };

	supply_say(r->supply, &what);
	if (what.len && !r->quiet)
		fprintf(stderr, "# dtrace: dtap's agent supplies %s\n", strbuf_str(&what));
	strbuf_fini(&what);
}

/* --- targets ------------------------------------------------------------------------------------------ */

static int open_targets(struct run *r, const struct target_preload *preload)
{
	struct strbuf err = { 0 };
	size_t i;
	int e = 0;

	r->targets = arena_alloc(r->arena, (r->o.npids + 1) * sizeof(struct target *));
	if (r->o.command) {
		e = target_create(r->o.command, preload, &r->targets[0], &err);
		if (e) {
			fprintf(stderr, "dtrace: failed to execute %s: %s\n", r->o.command, strbuf_str(&err));
			strbuf_fini(&err);
			return CMD_ERROR;
		}
		r->ntargets++;
	}
	for (i = 0; i < r->o.npids; i++) {
		e = target_attach(r->o.pids[i], &r->targets[r->ntargets], &err);
		if (e) {
			fprintf(stderr, "dtrace: failed to grab pid %d: %s\n", (int)r->o.pids[i],
				strbuf_str(&err));
			strbuf_fini(&err);
			return CMD_ERROR;
		}
		r->ntargets++;
	}
	return 0;
}

static int read_and_open(struct run *r)
{
	const struct target_preload *preload;
	int e = read_sources(r);

	if (!e)
		e = foresee(r, &preload);
	return e ? e : open_targets(r, preload);
}

/* Bring the command to the image that has the probes. */
static int launch(struct run *r)
{
	const struct probe_desc *descs;
	struct strbuf err = { 0 };
	size_t n;
	int e;

	if (!r->o.command)
		return 0;
	descs = d_descs(r->d, &n);
	e = launch_find(r->targets[0], r->probes, descs, n, r->set.v[OPT_zdefs], &err);
	/* A command that ended too early: the descriptions that match nothing are the message.  -EINTR: Ctrl-C. */
	if (e && e != -ESRCH && e != -EINTR)
		return fail(&err);
	strbuf_fini(&err);
	return e == -EINTR ? CMD_ERROR : 0;
}

static int compile(struct run *r)
{
	struct resolver resolver = probe_resolver(r->probes);
	struct d_opts opts = { .strsize = (uint32_t)r->set.v[OPT_strsize], .zdefs = r->set.v[OPT_zdefs],
			       .nspec = (uint32_t)r->set.v[OPT_nspec],
			       .destructive = r->set.v[OPT_destructive],
			       .stackframes = (uint32_t)r->set.v[OPT_stackframes],
			       .ustackframes = (uint32_t)r->set.v[OPT_ustackframes],
			       .jstackframes = (uint32_t)r->set.v[OPT_jstackframes] };
	struct strbuf text = { 0 };
	struct d_attr amin;

	attr_parse(r->set.text[OPT_amin], &amin);
	opts.amin = &amin;
	r->prog = d_compile(r->d, &resolver, &opts);
	if (report(r) || !r->prog)
		return CMD_ERROR;
	if (r->set.v[OPT_ir]) {
		ir_print(r->prog, &text);
		fputs(strbuf_str(&text), stderr);
		strbuf_fini(&text);
	}
	return 0;
}

static void show_attributes(const char *what, struct d_attr a)
{
	printf("\tMinimum %s attributes\n\t\tIdentifier Names: %s\n\t\tData Semantics:   %s\n"
	       "\t\tDependency Class: %s\n", what, attr_stability(a.name), attr_stability(a.data), attr_class(a.class));
}

/* -v: DTrace guide, "Stability", "Computing Stability". */
static void show_stability(const struct run *r)
{
	for (size_t i = 0; i < r->o.nprogs; i++) {
		struct d_attrs a = attr_of(d_tree(r->d), r->sources[i]);

		printf("Stability data for %s %s:\n", r->o.progs[i].opt == 's' ? "script" : "description",
		       r->o.progs[i].text);
		show_attributes("probe description", a.descs);
		show_attributes("probe statement", a.stmts);
		putchar('\n');
	}
	fflush(stdout);
}

/* --- the run ------------------------------------------------------------------------------------------ */

static int open_output(struct run *r)
{
	int e;

	if (!r->o.output)
		e = out_open_fd(&r->out, STDOUT_FILENO);
	else
		e = out_open_file(&r->out, r->o.output);
	if (e) {
		fprintf(stderr, "dtrace: failed to open %s for output: %s\n",
			r->o.output ? r->o.output : "standard output", strerror(-e));
		return CMD_ERROR;
	}
	return 0;
}

/* "dtrace: script 'x.d' matched 3 probes" for each program, unless quiet. */
static void say_matched(const struct run *r, const struct session *s)
{
	size_t i;

	if (r->quiet)
		return;
	for (i = 0; i < r->o.nprogs; i++) {
		unsigned int n = session_matched(s, r->sources[i]);

		fprintf(stderr, "dtrace: %s '%s' matched %u probe%s\n",
			r->o.progs[i].opt == 's' ? "script" : "description", r->o.progs[i].text, n,
			n == 1 ? "" : "s");
	}
}

static void say_ended(const struct run *r)
{
	size_t i;
	int status;

	if (r->quiet)
		return;
	for (i = 0; i < r->ntargets; i++) {
		struct target *t = r->targets[i];
		int pid = (int)target_pid(t);

		if (target_poll(t) != TARGET_EXITED)
			continue;
		if (!target_exit_status(t, &status))
			fprintf(stderr, "dtrace: pid %d has exited\n", pid);
		else if (WIFSIGNALED(status))
			fprintf(stderr, "dtrace: pid %d terminated by signal %d (%s)\n", pid, WTERMSIG(status),
				strsignal(WTERMSIG(status)));
		else if (WEXITSTATUS(status))
			fprintf(stderr, "dtrace: pid %d exited with status %d\n", pid, WEXITSTATUS(status));
		else
			fprintf(stderr, "dtrace: pid %d has exited\n", pid);
	}
}

/* Everything is armed: fire BEGIN, let the targets go, and print until the end. */
static int run_session(struct run *r, struct session *s)
{
	struct strbuf err = { 0 };
	size_t i;
	int e = 0;

	e = supply_start(r->supply, s, &err);
	if (e)
		return fail(&err);
	say_supplied(r);
	say_matched(r, s);
	for (i = 0; i < r->ntargets && !e; i++)
		e = session_watch(s, r->targets[i]);
	if (e) {
		strbuf_printf(&err, "cannot watch the target: %s", strerror(-e));
		return fail(&err);
	}
	if (session_start(s) && r->o.command) {
		session_know(s, r->targets[0]);
		e = target_release(r->targets[0], &err);
		if (e)
			return fail(&err);
	}
	e = session_run(s, &err);
	say_ended(r);
	if (e == -EPIPE) {	/* the reader has seen enough, as head(1) does */
		strbuf_fini(&err);
		return CMD_ERROR;
	}
	if (e)
		return fail(&err);
	strbuf_fini(&err);
	return session_status(s);
}

static int enable_and_run(struct run *r)
{
	struct strbuf err = { 0 }, log = { 0 }, code = { 0 };
	struct session_conf conf = {
		.opts = &r->set, .prog = r->prog, .probes = r->probes, .out = &r->out,
		.command = "dtrace", .message = message, .print_aggs = r->o.print_aggs,
		.verifier_log = r->set.v[OPT_verifierlog] ? &log : NULL,
		.bytecode = r->set.v[OPT_bytecode] ? &code : NULL,
	};
	struct session *s = NULL;
	int e, status;

	e = session_new(&conf, &s, &err);
	if (!e)
		e = session_enable(s, &err);
	fputs(strbuf_str(&code), stderr);
	if (e) {
		fputs(strbuf_str(&log), stderr);
		status = fail(&err);
	} else {
		strbuf_fini(&err);
		status = r->o.mode == DTRACE_RUN ? run_session(r, s) : CMD_OK;
	}
	session_free(s);
	strbuf_fini(&log);
	strbuf_fini(&code);
	return status;
}

static int trace(struct run *r)
{
	int e;

	if (!r->o.nprogs) {
		fputs("dtrace: no probes specified\n", stderr);
		return CMD_USAGE;
	}
	cmd_block_signals();
	e = read_and_open(r);
	if (!e)
		e = parse(r);
	r->quiet = r->set.v[OPT_quiet];
	if (!e && !d_nclauses(r->d) && !r->set.v[OPT_empty]) {
		fputs("dtrace: no probes specified\n", stderr);
		e = CMD_ERROR;
	}
	if (!e)
		e = launch(r);
	if (!e && r->o.mode == DTRACE_RUN)
		e = attach_agents(r);
	if (!e)
		e = compile(r);
	if (!e && r->o.verbose)
		show_stability(r);
	if (e || r->o.mode == DTRACE_COMPILE)
		return e;
	e = open_output(r);
	if (e)
		return e;
	e = enable_and_run(r);
	if (out_close(&r->out) && !e)
		e = CMD_ERROR;
	return e;
}

/* -l: with a target or a script they decide what there is to list. */
static int list(struct run *r)
{
	struct probe_desc all = { .prov = "", .mod = "", .func = "", .name = "" };
	const struct probe_desc *descs = &all;
	size_t n = 1;
	int e, err;

	cmd_block_signals();
	e = read_and_open(r);
	if (!e)
		e = parse(r);
	if (!e)
		e = launch(r);
	if (!e)
		e = open_output(r);
	if (e)
		return e;
	if (r->o.nprogs)
		descs = d_descs(r->d, &n);
	e = dtrace_list(r->arena, r->probes, descs, n, r->o.verbose, &r->out) ? CMD_ERROR : 0;
	err = out_close(&r->out);
	if (err && err != -EPIPE)	/* who reads the list may have seen enough */
		fprintf(stderr, "dtrace: failed to write the list: %s\n", strerror(-err));
	if (err && !e)
		e = CMD_ERROR;
	return e;
}

/* -V; with -v also where a script runs: the one that is given, which is not run, or any. */
static int version(struct run *r)
{
	struct strbuf places = { 0 };

	puts("dtrace: dtap " DTAP_VERSION ", D language 1.13");
	if (!r->o.verbose)
		return CMD_OK;
	fflush(stdout);
	r->set.v[OPT_showplace] = 1;
	if (r->o.nprogs)
		return trace(r);
	session_places(&r->set, &places);
	fprintf(stderr, "# dtrace: %s\n", strbuf_str(&places));
	strbuf_fini(&places);
	return CMD_OK;
}

static int dispatch(struct run *r)
{
	switch (r->o.mode) {
	case DTRACE_HELP:
		dtrace_opts_help();
		return CMD_OK;
	case DTRACE_VERSION:
		return version(r);
	case DTRACE_LIST:
		return list(r);
	case DTRACE_RUN:
	case DTRACE_COMPILE:
		return trace(r);
	}
	return CMD_USAGE;
}

/* dtap's own libraries, and those of -L, which come first. */
static void find_libraries(struct run *r)
{
	const char *dir = *r->set.text[OPT_libdir] ? r->set.text[OPT_libdir] : cmd_share(r->arena, "dlib");

	r->libs = d_libs_new(r->arena);
	if (dir && !r->set.v[OPT_nolibs])
		d_libs_dir(r->libs, dir);
	for (size_t i = 0; i < r->o.nlib_dirs; i++)
		d_libs_dir(r->libs, r->o.lib_dirs[i]);
}

static int trace_or_list(int argc, char **argv)
{
	struct run r = { .arena = arena_new(), .probes = probe_set_new() };
	size_t i;
	int e;

	if (!r.arena || !r.probes) {
		fputs("dtrace: out of memory\n", stderr);
		e = CMD_ERROR;
		goto out;
	}
	options_init(&r.set);
	e = dtrace_opts_parse(&r.o, r.arena, &r.set, argc, argv);
	find_libraries(&r);
	if (!e)
		e = dispatch(&r);
out:
	for (i = 0; i < r.ntargets; i++)
		target_free(r.targets[i]);
	supply_free(r.supply);
	probe_set_free(r.probes);
	arena_free(r.arena);
	return e;
}

int cmd_dtrace(int argc, char **argv)
{
	/* Asked first: build systems call -h and -G with words of other dtraces that only they know. */
	return header_asked(argc, argv) ? header_main(argc, argv) : trace_or_list(argc, argv);
}
