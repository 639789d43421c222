/*
 * stap(1): options and messages around the library.
 *
 * SystemTap's passes are the library's steps: 1 parses the scripts, 2 finds probes and types, 3 lowers to IR, 4
 * compiles to bytecode, 5 runs it.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "cmd/stap_opts.h"
#include "cmd/stap_output.h"
#include "dtap.h"

struct run {
	struct arena *arena;
	struct stap_opts o;
	struct dtap_stap stap;
	struct dtap *t;
	struct stap_output out;
	int ready_fd;			/* -F: the pipe on which the parent waits; else -1 */
	struct timespec start;		/* of the pass */
	struct rusage usage;
};

static void message(void *ctx, enum dtap_level level, const char *text)
{
	(void)ctx;
	(void)level;
	fputs(text, stderr);
}

static void written(void *ctx)
{
	struct run *r = ctx;

	stap_output_written(&r->out);
}

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

static int pass_failed(unsigned int pass, const char *what)
{
	fprintf(stderr, "Pass %u: %s failed.  [man error::pass%u]\n", pass, what, pass);
	return CMD_ERROR;
}

/* --- the passes --------------------------------------------------------------------------------------- */

static int pass_1(struct run *r)
{
	pass_begins(r);
	if (dtap_parse(r->t))
		return pass_failed(1, "parse");
	pass_ends(r, "Pass 1: parsed user script and %zu library scripts", dtap_count(r->t, DTAP_LIBRARY_FILES));
	return 0;
}

static int pass_2(struct run *r)
{
	size_t probes, functions, globals;

	pass_begins(r);
	if (dtap_check(r->t))
		return pass_failed(2, "analysis");
	probes = dtap_count(r->t, DTAP_CLAUSES);
	functions = dtap_count(r->t, DTAP_FUNCTIONS);
	globals = dtap_count(r->t, DTAP_GLOBALS);
	pass_ends(r, "Pass 2: analyzed script: %zu probe%s, %zu function%s, 0 embeds, %zu global%s", probes,
		  probes == 1 ? "" : "s", functions, functions == 1 ? "" : "s", globals, globals == 1 ? "" : "s");
	return 0;
}

static int pass_3(struct run *r)
{
	pass_begins(r);
	if (r->o.verbose > 2)
		fputs(dtap_text(r->t, DTAP_LOCKS), stderr);
	if (dtap_translate(r->t))
		return pass_failed(3, "translation");
	pass_ends(r, "Pass 3: translated to intermediate code");
	return 0;
}

static int pass_4(struct run *r)
{
	pass_begins(r);
	if (stap_output_open(&r->out, r->arena, &r->o))
		return pass_failed(4, "compilation");
	dtap_output(r->t, r->out.fd);
	if (dtap_enable(r->t))
		return pass_failed(4, "compilation");
	pass_ends(r, "Pass 4: compiled to bytecode");
	return 0;
}

/*
 * -F: continue in a child.  The parent waits until everything is armed, prints the child's pid and exits.  0 in the
 * child, or without -F.
 */
static int detach(struct run *r)
{
	char ready = 0;
	int ends[2];
	pid_t pid;

	r->ready_fd = -1;
	if (!r->o.flight)
		return 0;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		close(ends[0]);
		r->ready_fd = ends[1];
		setsid();
		return 0;
	}
	close(ends[1]);
	if (read(ends[0], &ready, 1) != 1)
		_exit(CMD_ERROR);
	printf("%d\n", (int)pid);
	fflush(stdout);
	_exit(CMD_OK);
}

static void say_ready(struct run *r)
{
	int null;

	if (r->ready_fd < 0)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= 2; fd++)	/* a reader of stap's output must not wait for the child */
		dup2(null, fd);
	if (write(r->ready_fd, "", 1) != 1)
		return;
	close(r->ready_fd);
}

static int pass_5(struct run *r)
{
	int e;

	pass_begins(r);
	if (r->o.verbose)
		fputs("Pass 5: starting run.\n", stderr);
	say_ready(r);
	e = dtap_run(r->t) || dtap_status(r->t) ? CMD_ERROR : 0;
	pass_ends(r, "Pass 5: run completed");
	return e ? pass_failed(5, "run") : 0;
}

/* -k: create a folder with the tree or the code of the script. */
static void keep_folder(struct run *r, unsigned int pass)
{
	const char *tmp = getenv("TMPDIR");
	char *path = arena_printf(r->arena, "%s/stapXXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	FILE *f;

	if (!mkdtemp(path)) {
		fprintf(stderr, "WARNING: no temporary directory can be made: %s\n", strerror(errno));
		return;
	}
	f = fopen(arena_printf(r->arena, "%s/%s", path, pass < 3 ? "tree" : "code"), "we");
	if (f) {
		fputs(dtap_text(r->t, pass < 3 ? DTAP_TREE : DTAP_CODE), f);
		fclose(f);
	}
	fprintf(stderr, "Keeping temporary directory \"%s\"\n", path);
}

static int run_script(struct run *r)
{
	static int (*const passes[])(struct run *r) = { pass_1, pass_2, pass_3, pass_4, pass_5 };
	static const enum dtap_what shown[] = { DTAP_TREE, DTAP_CHECKED, DTAP_CODE };
	int e = 0;

	for (unsigned int pass = 1; pass <= r->o.last_pass && !e; pass++) {
		if (pass == 2 && r->o.last_pass == 5) {
			e = detach(r);
			if (e) {
				fprintf(stderr, "ERROR: cannot go into the background: %s\n", strerror(-e));
				return pass_failed(5, "run");
			}
			dtap_block_signals();
		}
		e = passes[pass - 1](r);
	}
	if (!e && r->o.last_pass <= 3)
		fputs(dtap_text(r->t, shown[r->o.last_pass - 1]), stdout);
	if (r->o.keep)
		keep_folder(r, e ? 1 : r->o.last_pass);
	if (stap_output_close(&r->out) && !e)
		e = CMD_ERROR;
	return e;
}

/* --- the modes ---------------------------------------------------------------------------------------- */

static int list(struct run *r)
{
	size_t missing;

	if (pass_1(r))
		return CMD_ERROR;
	switch (r->o.mode) {
	case STAP_DUMP_ALIASES:
		fputs(dtap_text(r->t, DTAP_ALIASES), stdout);
		return 0;
	case STAP_DUMP_FUNCTIONS:
		fputs(dtap_text(r->t, DTAP_ALL_FUNCTIONS), stdout);
		return 0;
	default:
		fputs(dtap_list(r->t, r->o.mode == STAP_LIST_VARS, &missing), stdout);
		return missing ? CMD_ERROR : 0;
	}
}

static int dispatch(struct run *r)
{
	switch (r->o.mode) {
	case STAP_HELP:
		stap_opts_help();
		return 0;
	case STAP_VERSION_MODE:
		printf("Systemtap translator/driver (version %s, dtap " DTAP_VERSION ")\n"
		       "dtap runs SystemTap's language without a kernel module; it shares no code with SystemTap.\n",
		       dtap_language_version(DTAP_STAP));
		return 0;
	case STAP_DUMP_POINTS:
		fputs(dtap_text(r->t, DTAP_PROBE_TYPES), stdout);
		return 0;
	case STAP_RUN:
		return run_script(r);
	default:
		return list(r);
	}
}

/* --- passing the options to the run ------------------------------------------------------------------- */

static void give_scripts(struct run *r)
{
	bool lists = r->o.mode == STAP_LIST || r->o.mode == STAP_LIST_VARS;

	if (r->o.mode > STAP_LIST_VARS)
		return;
	if (r->o.text)
		dtap_script(r->t, DTAP_TEXT, lists ? arena_printf(r->arena, "probe %s {}", r->o.text) : r->o.text);
	else
		dtap_script(r->t, DTAP_FILE, r->o.file);
	for (size_t i = 0; i < r->o.more.n; i++)
		dtap_script(r->t, DTAP_MORE_TEXT, r->o.more.v[i]);
}

static void give_texts(struct run *r)
{
	const struct stap_opts *o = &r->o;

	for (size_t i = 0; i < o->args.n; i++)
		dtap_argument(r->t, o->args.v[i]);
	for (size_t i = 0; i < o->dirs.n; i++)
		dtap_library(r->t, o->dirs.v[i]);
	for (size_t i = 0; i < o->limits.n; i++)
		dtap_define(r->t, DTAP_DEFINE_LIMIT, o->limits.v[i]);
	for (size_t i = 0; i < o->globals.n; i++)
		dtap_define(r->t, DTAP_DEFINE_GLOBAL, o->globals.v[i]);
	if (o->command)
		dtap_command(r->t, o->command);
	if (o->pid)
		dtap_process(r->t, o->pid);
}

static int set_options(struct run *r)
{
	const struct stap_opts *o = &r->o;

	if (o->verbose > 1)
		dtap_set(r->t, "showplace", NULL);
	if (o->verbose > 2)
		dtap_set(r->t, "verifierlog", NULL);
	if (o->verbose > 3)
		dtap_set(r->t, "bytecode", NULL);
	if (o->place && dtap_set(r->t, "place", o->place))
		return pass_failed(5, "run");
	if (o->bufsize_mb)
		dtap_set(r->t, "bufsize", arena_printf(r->arena, "%um", o->bufsize_mb));
	return 0;
}

static int new_run(struct run *r)
{
	const struct stap_opts *o = &r->o;
	struct dtap_conf conf = {
		.size = sizeof(conf), .language = DTAP_STAP, .tags = o->errtags, .ctx = r, .message = message,
		.written = written, .stap = &r->stap,
	};

	r->stap = (struct dtap_stap){
		.guru = o->guru, .unoptimized = o->unoptimized, .timing = o->timing, .no_warnings = o->no_warnings,
		.strict_warnings = o->strict_warnings, .all_messages = o->verbose, .expansions = o->verbose > 1, .skip_badvars = o->skip_badvars,
		.no_time_limits = o->no_time_limits, .no_handler_errors = o->no_handler_errors,
		.no_globals = o->no_globals, .compatible = o->compatible, .sysroot = o->sysroot,
		.timeout_ns = o->timeout_ns,
	};
	r->t = dtap_new(&conf);
	if (!r->t) {
		fputs("ERROR: out of memory\n", stderr);
		return CMD_ERROR;
	}
	if (o->mode != STAP_RUN)
		dtap_purpose(r->t, DTAP_TO_LIST);
	else if (o->last_pass < 5)
		dtap_purpose(r->t, DTAP_TO_COMPILE);
	give_scripts(r);
	give_texts(r);
	return set_options(r);
}

int cmd_stap(int argc, char **argv)
{
	struct run r = { .arena = arena_new(), .out = { .fd = -1 } };
	int e = stap_opts_parse(&r.o, r.arena, argc, argv);

	if (!e)
		e = new_run(&r);
	if (!e)
		e = dispatch(&r);
	dtap_free(r.t);
	arena_free(r.arena);
	return e;
}
