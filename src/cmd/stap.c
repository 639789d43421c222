/*
 * stap(1): options and messages around the library.
 *
 * SystemTap's passes, as far as they are there: 1 reads the scripts, 2 finds probes and types, 3 lowers to the
 * intermediate representation, 4 makes bytecode of it, 5 runs that.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/stap_list.h"
#include "cmd/stap_msg.h"
#include "cmd/stap_opts.h"
#include "cmd/stap_run.h"
#include "lang/diag.h"
#include "probe/points.h"
#include "probe/probe.h"
#include "stp/stp.h"
#include "stp/tapset.h"
#include "target/agent.h"

struct run {
	struct arena *arena;
	struct stap_opts o;
	struct diag diag;
	struct stap_msg msg;
	struct stp_env env;
	struct stp *stp;
	struct stp_tapset *tapset;
	struct probe_set *probes;
	struct points *points;
	struct stp_prog *prog;
	const char *name;		/* the main script's */
	struct timespec start;		/* of the pass */
	struct rusage usage;
};

/* --- -v ----------------------------------------------------------------------------------------------- */

static void pass_begins(struct run *r)
{
	clock_gettime(CLOCK_MONOTONIC, &r->start);
	getrusage(RUSAGE_SELF, &r->usage);
}

static long ms_between(struct timeval a, struct timeval b)
{
	return (b.tv_sec - a.tv_sec) * 1000 + (b.tv_usec - a.tv_usec) / 1000;
}

/* "Pass 2: analyzed script: ... in 10usr/20sys/21real ms." */
static void __attribute__((format(printf, 2, 3))) pass_ends(struct run *r, const char *fmt, ...)
{
	struct timespec now;
	struct rusage usage;
	va_list ap;

	if (!r->o.verbose)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	getrusage(RUSAGE_SELF, &usage);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " in %ldusr/%ldsys/%ldreal ms.\n", ms_between(r->usage.ru_utime, usage.ru_utime),
		ms_between(r->usage.ru_stime, usage.ru_stime),
		(now.tv_sec - r->start.tv_sec) * 1000 + (now.tv_nsec - r->start.tv_nsec) / 1000000);
}

static int pass_failed(const struct run *r, unsigned int pass, const char *what)
{
	(void)r;
	fprintf(stderr, "Pass %u: %s failed.  [man error::pass%u]\n", pass, what, pass);
	return CMD_ERROR;
}

/* --- pass 1 ------------------------------------------------------------------------------------------- */

/* The folder of the installed tapset, or of the source tree that this was built in. */
static void add_own_tapset(struct run *r)
{
	const char *dir = getenv("SYSTEMTAP_TAPSET");

	if (!dir || !*dir)
		dir = cmd_share(r->arena, "tapset");
	if (dir)
		stp_tapset_dir(r->tapset, dir, r->o.file);
}

static int read_script(struct run *r, const struct source **ret)
{
	struct source *src = NULL;
	const char *text = r->o.text;
	int e;

	if (r->o.mode == STAP_LIST || r->o.mode == STAP_LIST_VARS)
		text = arena_printf(r->arena, "probe %s {}", text);
	if (text || r->o.mode > STAP_LIST_VARS) {
		text = text ? text : "";
		*ret = source_text(r->arena, "<input>", text, strlen(text));
		return 0;
	}
	e = source_read(r->arena, r->o.file, &src);
	if (e == -ENOENT)
		fprintf(stderr, "Input file '%s' is missing.\n", r->o.file);
	else if (e)
		fprintf(stderr, "Input file '%s' cannot be read: %s\n", r->o.file, strerror(-e));
	else if (!strcmp(r->o.file, "-"))
		src->name = "<input>";
	*ret = src;
	return e;
}

/* A tapset file with mistakes is left out, as SystemTap does, and is no mistake of the script. */
static void add_tapset(struct run *r)
{
	const struct source *src;

	while ((src = stp_tapset_next(r->tapset))) {
		unsigned int errors = r->diag.errors;

		if (stp_tapset_add(r->tapset, r->stp))
			continue;
		stap_msg_print(&r->msg, &r->diag);
		stap_msg_warn(&r->msg, "tapset \"%s\" has errors, and will be skipped", src->name);
		r->diag.errors = errors;
	}
}

static void use_all_tapset(struct run *r)
{
	bool lists = r->o.mode != STAP_RUN;

	if (lists)
		stp_tapset_all(r->tapset);
}

static int set_limits(struct run *r)
{
	int64_t low, high;

	for (size_t i = 0; i < r->o.limits.n; i++) {
		const char *text = r->o.limits.v[i], *eq = strchr(text, '=');
		char *name = eq ? arena_strndup(r->arena, text, (size_t)(eq - text)) : arena_strdup(r->arena, text);

		if (stp_set_limit(r->stp, name, eq ? strtoll(eq + 1, NULL, 0) : 1, &low, &high))
			continue;
		fprintf(stderr, "ERROR: -D %s: dtap has room for %s from %" PRId64 " to %" PRId64 "\n", text, name, low, high);
		return CMD_ERROR;
	}
	if (r->o.no_time_limits)
		stp_set_limit(r->stp, "MAXACTION", INT64_MAX, &low, &high);
	if (r->o.no_handler_errors) {
		stp_set_limit(r->stp, "MAXERRORS", INT64_MAX, &low, &high);
		stp_set_limit(r->stp, "MAXSKIPPED", INT64_MAX, &low, &high);
	}
	return 0;
}

static int parse_failed(struct run *r)
{
	stap_msg_print(&r->msg, &r->diag);
	if (r->diag.errors)
		fprintf(stderr, "%u parse error%s.\n", r->diag.errors, r->diag.errors == 1 ? "" : "s");
	return pass_failed(r, 1, "parse");
}

static int pass_1(struct run *r)
{
	const struct source *src, **more;
	bool ok = true;

	pass_begins(r);
	diag_init(&r->diag, r->arena);
	stp_env_init(&r->env, r->arena);
	r->env.guru = r->o.guru;
	r->env.unoptimized = r->o.unoptimized;
	r->env.timing = r->o.timing;
	r->env.args = (struct stp_args){ r->o.args.v, r->o.args.n };
	if (r->o.compatible)
		r->env.systemtap_v = r->o.compatible;
	r->stp = stp_new(r->arena, &r->diag, &r->env);
	if (set_limits(r) || read_script(r, &src))
		return pass_failed(r, 1, "parse");
	r->name = src->name;
	r->tapset = stp_tapset_new(r->arena, r->env.arch);
	stp_suggest(r->stp, r->tapset);
	stp_tapset_script(r->tapset, src);
	more = arena_alloc(r->arena, (r->o.more.n + 1) * sizeof(*more));
	for (size_t i = 0; i < r->o.more.n; i++) {
		more[i] = source_text(r->arena, "<input>", r->o.more.v[i], strlen(r->o.more.v[i]));
		stp_tapset_script(r->tapset, more[i]);
	}
	more[r->o.more.n] = src;
	r->msg.scripts = more;
	r->msg.nscripts = r->o.more.n + 1;
	for (size_t i = 0; i < r->o.dirs.n; i++)
		stp_tapset_dir(r->tapset, r->o.dirs.v[i], r->o.file);
	add_own_tapset(r);
	use_all_tapset(r);
	add_tapset(r);
	if (r->o.mode <= STAP_LIST_VARS) {
		ok = stp_add(r->stp, src, false);
		for (size_t i = 0; i < r->o.more.n; i++)
			ok = stp_add(r->stp, more[i], false) && ok;
	}
	if (!ok || r->diag.errors)
		return parse_failed(r);
	stap_msg_print(&r->msg, &r->diag);
	pass_ends(r, "Pass 1: parsed user script and %zu library scripts", stp_tapset_files(r->tapset));
	return 0;
}

/* --- pass 2 ------------------------------------------------------------------------------------------- */

static unsigned int count_handlers(const struct stp_prog *prog)
{
	unsigned int n = 0;

	for (const struct stp_handler *h = prog->handlers; h; h = h->next)
		n++;
	return n;
}

/* Does @text have $N or @N in it, or $# or @#, which count them? */
static bool uses_arg(const char *text, size_t len, unsigned int n)
{
	char number[12];
	size_t digits = (size_t)snprintf(number, sizeof(number), "%u", n);

	for (size_t i = 0; i + 1 < len; i++) {
		if (text[i] != '$' && text[i] != '@')
			continue;
		if (text[i + 1] == '#')
			return true;
		if (i + digits < len && !strncmp(text + i + 1, number, digits) &&
		    (i + digits + 1 >= len || text[i + digits + 1] < '0' || text[i + digits + 1] > '9'))
			return true;
	}
	return false;
}

/* An argument that the script does not look at is likely one too many. */
static void warn_unused_args(struct run *r)
{
	for (unsigned int n = 1; n <= r->o.args.n; n++) {
		bool used = false;

		for (size_t i = 0; i < r->msg.nscripts; i++)
			used |= uses_arg(r->msg.scripts[i]->text, r->msg.scripts[i]->len, n);
		if (!used)
			stap_msg_warn(&r->msg, "unused command line option $%u/@%u", n, n);
	}
}

static int pass_2(struct run *r)
{
	struct stp_resolver resolver;
	unsigned int nfuncs = 0, nglobals = 0;

	pass_begins(r);
	resolver = points_resolver(r->points);
	warn_unused_args(r);
	r->prog = stp_check(r->stp, &resolver);
	stap_msg_print(&r->msg, &r->diag);
	if (!r->prog || r->diag.errors)
		return pass_failed(r, 2, "analysis");
	if (r->o.strict_warnings && r->msg.warnings)
		return pass_failed(r, 2, "analysis");
	for (const struct stp_func *f = r->prog->funcs; f; f = f->next)
		nfuncs += f->needed;
	for (const struct stp_var *v = r->prog->globals.first; v; v = v->next)
		nglobals += v->reads || v->writes;
	pass_ends(r, "Pass 2: analyzed script: %u probe%s, %u function%s, 0 embeds, %u global%s",
		  count_handlers(r->prog), count_handlers(r->prog) == 1 ? "" : "s", nfuncs, nfuncs == 1 ? "" : "s",
		  nglobals, nglobals == 1 ? "" : "s");
	return 0;
}

/* --- passes 3 to 5 ------------------------------------------------------------------------------------ */

static int later_passes(struct run *r, struct stap_program *p)
{
	int e;

	pass_begins(r);
	e = stap_translate(p);
	stap_msg_print(&r->msg, &r->diag);
	if (e)
		return pass_failed(r, 3, "translation");
	pass_ends(r, "Pass 3: translated to intermediate code");
	if (r->o.last_pass == 3) {
		stap_show_code(p);
		return 0;
	}
	pass_begins(r);
	if (stap_load(p))
		return pass_failed(r, 4, "compilation");
	pass_ends(r, "Pass 4: compiled to bytecode");
	if (r->o.last_pass == 4)
		return 0;
	pass_begins(r);
	if (r->o.verbose)
		fputs("Pass 5: starting run.\n", stderr);
	e = stap_run(p);
	pass_ends(r, "Pass 5: run completed");
	return e ? pass_failed(r, 5, "run") : 0;
}

/* Pass 2 looks at the command's program, so the command is started before it. */
static int passes_from_2(struct run *r)
{
	struct stap_program p = {
		.arena = r->arena, .o = &r->o, .diag = &r->diag, .msg = &r->msg, .stp = r->stp, .probes = r->probes,
	};
	struct points_conf conf = { r->o.command, (uint32_t)r->o.pid, r->o.sysroot, .next_image = stap_next_image, .ctx = &p };
	int e;

	agents_object(&p.agent, NULL);
	e = stap_set_options(&p) ? -1 : r->o.last_pass == 5 ? stap_hold(&p) : 0;
	if (e < 0) {
		stap_unload(&p);
		return pass_failed(r, 5, "run");
	}
	conf.held = (uint32_t)e;
	conf.agent = p.agent.len ? strbuf_str(&p.agent) : NULL;
	conf.agent_always = stap_in_target(&p);
	conf.skip_badvars = r->o.skip_badvars;
	r->points = p.points = points_new(r->arena, r->probes, &conf);
	e = pass_2(r);
	p.prog = r->prog;
	if (!e && r->o.last_pass == 2)
		stap_dump_checked(r->prog);
	else if (!e)
		e = later_passes(r, &p);
	stap_unload(&p);
	return e;
}

static int run_script(struct run *r)
{
	int e = pass_1(r);

	if (e)
		return e;
	if (r->o.last_pass == 1) {
		stap_dump_tree(stp_tree(r->stp), r->name);
		return 0;
	}
	return passes_from_2(r);
}

static int list(struct run *r)
{
	struct points_conf conf = { r->o.command, (uint32_t)r->o.pid, r->o.sysroot };
	struct stp_prog *prog;
	int e = pass_1(r);

	if (e)
		return e;
	prog = stp_parsed(r->stp);
	r->points = points_new(r->arena, r->probes, &conf);
	switch (r->o.mode) {
	case STAP_DUMP_ALIASES:
		stap_dump_aliases(prog);
		return 0;
	case STAP_DUMP_FUNCTIONS:
		stap_dump_functions(prog);
		return 0;
	default:
		return stap_list_points(r->stp, r->points, r->o.mode == STAP_LIST_VARS) ? 0 : CMD_ERROR;
	}
}

static int dispatch(struct run *r)
{
	switch (r->o.mode) {
	case STAP_HELP:
		stap_opts_help();
		return 0;
	case STAP_VERSION_MODE:
		puts("Systemtap translator/driver (version " STP_VERSION ", dtap " DTAP_VERSION ")\n"
		     "dtap runs SystemTap's language without a kernel module; it shares no code with SystemTap.");
		return 0;
	case STAP_DUMP_POINTS:
		stap_dump_types();
		return 0;
	case STAP_RUN:
		return run_script(r);
	default:
		return list(r);
	}
}

int cmd_stap(int argc, char **argv)
{
	struct run r = { .arena = arena_new(), .probes = probe_set_new() };
	int e;

	if (!r.arena || !r.probes) {
		fputs("ERROR: out of memory\n", stderr);
		e = CMD_ERROR;
		goto out;
	}
	e = stap_opts_parse(&r.o, r.arena, argc, argv);
	if (!e) {
		r.msg = (struct stap_msg){ .no_warnings = r.o.no_warnings, .errtags = r.o.errtags,
					  .all = r.o.verbose || r.o.errtags };
		e = dispatch(&r);
		stap_msg_end(&r.msg);
	}
out:
	points_free(r.points);
	probe_set_free(r.probes);
	arena_free(r.arena);
	return e;
}
