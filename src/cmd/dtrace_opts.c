#include "cmd/dtrace_opts.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "cmd/cmd.h"
#include "dtap.h"

/* The one-letter options, for getopt and --help. */
static const struct opt_row {
	char letter;
	const char *arg;	/* name of its argument, or NULL */
	const char *what;
} rows[] = {
	{ 'b', "SIZE", "memory for records on their way to the tracer (-x bufsize)" },
	{ 'c', "COMMAND", "run the command, trace it ($target), end with it" },
	{ 'C', NULL, "run scripts through the C preprocessor" },
	{ 'D', "NAME[=VALUE]", "define a macro for -C" },
	{ 'e', NULL, "compile only, run nothing" },
	{ 'f', "[[PROV:]MOD:]FUNC [CLAUSE]", "trace or list a function's probes" },
	{ 'F', NULL, "indent the output at each entry, back at each return" },
	{ 'G', NULL, "write the object with a provider's semaphores (-s FILE, -o FILE)" },
	{ 'h', NULL, "write the header of a provider definition (-s FILE, -o FILE)" },
	{ 'H', NULL, "with -C: print the names of included files" },
	{ 'i', "ID [CLAUSE]", "trace or list the probe of that number" },
	{ 'I', "DIR", "look for included files there (-C)" },
	{ 'l', NULL, "list probes instead of enabling them" },
	{ 'L', "DIR", "look for D libraries there" },
	{ 'm', "[PROV:]MOD [CLAUSE]", "trace or list a module's probes" },
	{ 'n', "[[[PROV:]MOD:]FUNC:]NAME [CLAUSE]", "trace or list probes by name" },
	{ 'o', "FILE", "append the output to the file" },
	{ 'O', NULL, "with -x oformat: print the aggregations at the end, too" },
	{ 'p', "PID", "trace the process ($target), end with it" },
	{ 'P', "PROV [CLAUSE]", "trace or list a provider's probes" },
	{ 'q', NULL, "quiet: print only what the script prints" },
	{ 's', "FILE", "run the script, - is standard input" },
	{ 'S', NULL, "show the intermediate code (-x ir)" },
	{ 'U', "NAME", "undefine a macro for -C" },
	{ 'v', NULL, "verbose: with -l the probes' arguments, with -V where the script runs, else the scripts' stability" },
	{ 'V', NULL, "print the version of the D language, with -v that of dtap, too" },
	{ 'w', NULL, "permit destructive actions" },
	{ 'x', "NAME[=VALUE]", "set an option, see below" },
	{ 'X', "a|c|t", "which ISO C the preprocessor of -C is; accepted" },
	{ 'Z', NULL, "permit probe descriptions that match no probe" },
};

/* Options of other DTraces that dtap does not have, each with the reason. */
static const struct refused_row {
	char letter;
	const char *why;
} refused[] = {
	{ 'a', "there is no anonymous tracing state to claim on Linux" },
	{ 'A', "anonymous tracing needs a kernel module, which dtap does not use" },
	{ 'B', "there is no driver configuration to write to" },
};

void dtrace_opts_help(void)
{
	const char *name, *what;
	size_t i;

	puts("usage: dtrace [option ...] [-s FILE | -n DESCRIPTION | -P | -m | -f | -i ...] [argument ...]\n"
	     "\n"
	     "Runs D scripts: prints what they trace until exit(), Ctrl-C, or the target's end.\n");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		printf("  -%c %s", rows[i].letter, rows[i].arg ? rows[i].arg : "");
		printf("%*s%s\n", rows[i].arg && strlen(rows[i].arg) > 16 ? 1
					: 17 - (rows[i].arg ? (int)strlen(rows[i].arg) : 0), "", rows[i].what);
	}
	puts("  -32, -64           for -G: the object's class\n"
	     "  --help, --version\n"
	     "\n"
	     "Arguments are the script's $1, $2 ... and, as strings, $$1, $$2 ...\n"
	     "\n"
	     "Options of -x, also set by \"#pragma D option NAME=VALUE\":\n");
	for (i = 0; dtap_option(i, &name, &what); i++)
		printf("  %-18s %s\n", name, what);
	puts("\nExit codes: 0, 1 after an error, 2 for a command line that is no use; exit(N) in the script gives N.");
}

static int usage(void)
{
	fputs("Usage: dtrace [-32|-64] [-CeFGhHlOqSvVwZ] [-b bufsz] [-c cmd] [-D name[=def]]\n"
	      "\t[-I path] [-L path] [-o output] [-p pid] [-s script] [-U name]\n"
	      "\t[-x opt[=val]] [-X a|c|t]\n"
	      "\t[-P provider [[ predicate ] action ]]\n"
	      "\t[-m [ provider: ] module [[ predicate ] action ]]\n"
	      "\t[-f [[ provider: ] module: ] func [[ predicate ] action ]]\n"
	      "\t[-n [[[ provider: ] module: ] func: ] name [[ predicate ] action ]]\n"
	      "\t[-i probe-id [[ predicate ] action ]] [ args ... ]\n"
	      "dtrace --help explains them.\n", stderr);
	return CMD_USAGE;
}

static int add_pid(struct dtap *t, const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (errno || end == text || *end || pid <= 0 || pid > 0x7fffffff) {
		fprintf(stderr, "dtrace: invalid pid: %s\n", text);
		return CMD_ERROR;
	}
	dtap_process(t, (pid_t)pid);
	return 0;
}

/* -x name[=value], and the letters that are short for one. */
static int set_option(struct dtap *t, const char *name, const char *value)
{
	return dtap_set(t, name, value) ? CMD_ERROR : 0;
}

static enum dtap_script_kind kind_of(int letter)
{
	switch (letter) {
	case 's':
		return DTAP_FILE;
	case 'P':
		return DTAP_PROVIDER;
	case 'm':
		return DTAP_MODULE;
	case 'f':
		return DTAP_FUNCTION;
	case 'i':
		return DTAP_ID;
	default:
		return DTAP_NAME;
	}
}

static int refuse(int letter)
{
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (refused[i].letter == letter) {
			fprintf(stderr, "dtrace: option -%c: %s\n", letter, refused[i].why);
			return CMD_USAGE;
		}
	}
	return usage();
}

static int set_mode(struct dtrace_opts *o, struct dtap *t, enum dtrace_mode mode)
{
	if (o->mode != DTRACE_RUN && o->mode != mode) {
		fputs("dtrace: only one of the options -e, -l and -V can be given\n", stderr);
		return CMD_USAGE;
	}
	o->mode = mode;
	dtap_purpose(t, mode == DTRACE_LIST ? DTAP_TO_LIST : DTAP_TO_COMPILE);
	return 0;
}

static int one_option(struct dtrace_opts *o, struct dtap *t, int c, char *arg);

/* -x: an option of the library, or the long name of a letter that only this command handles. */
static int extended_option(struct dtrace_opts *o, struct dtap *t, char *text)
{
	static const struct {
		const char *name;
		char letter;
		bool arg;
	} names[] = {
		{ "cpphdrs", 'H', false }, { "define", 'D', true }, { "incdir", 'I', true },
		{ "undef", 'U', true }, { "verbose", 'v', false },
	};
	char *eq = strchr(text, '=');
	size_t len = eq ? (size_t)(eq - text) : strlen(text), i;

	if (eq && len == strlen("cppargs") && !strncmp(text, "cppargs", len)) {
		char *words = arena_strdup(o->arena, eq + 1), *at;

		for (at = strtok_r(words, " ", &words); at; at = strtok_r(NULL, " ", &words))
			cpp_args_add(&o->cpp, o->arena, at);
		return 0;
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == len && !strncmp(text, names[i].name, len) && names[i].arg == (eq != NULL))
			return one_option(o, t, names[i].letter, eq ? eq + 1 : NULL);
	return set_option(t, arena_strndup(o->arena, text, len), eq ? eq + 1 : NULL);
}

static int one_option(struct dtrace_opts *o, struct dtap *t, int c, char *arg)
{
	if (cpp_args_take(&o->cpp, o->arena, c, arg))
		return 0;
	switch (c) {
	case 'b':
		return set_option(t, "bufsize", arg);
	case 'c':
		if (o->command) {
			fputs("dtrace: -c can be given once\n", stderr);
			return CMD_USAGE;
		}
		o->command = true;
		dtap_command(t, arg);
		return 0;
	case 'e':
		return set_mode(o, t, DTRACE_COMPILE);
	case 'l':
		return set_mode(o, t, DTRACE_LIST);
	case 'V':
		return set_mode(o, t, DTRACE_VERSION);
	case 'L':
		dtap_library(t, arg);
		return 0;
	case 'f':
	case 'i':
	case 'm':
	case 'n':
	case 'P':
	case 's':
		dtap_script(t, kind_of(c), arg);
		o->nprogs++;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case 'O':
		dtap_print_aggregations(t);
		return 0;
	case 'p':
		return add_pid(t, arg);
	case 'F':
		return set_option(t, "flowindent", NULL);
	case 'q':
		return set_option(t, "quiet", NULL);
	case 'S':
		return set_option(t, "ir", NULL);
	case 'v':
		o->verbose = true;
		return 0;
	case 'w':
		return set_option(t, "destructive", NULL);
	case 'x':
		return extended_option(o, t, arg);
	case 'X':
		return set_option(t, "stdc", arg);
	case 'Z':
		return set_option(t, "zdefs", NULL);
	case '3':	/* for -G only */
	case '6':
		return strcmp(arg, c == '3' ? "2" : "4") ? usage() : 0;
	case 1:	/* an operand */
		dtap_argument(t, arg);
		return 0;
	default:
		return refuse(c);
	}
}

/* getopt's own message would not start with "dtrace: ". */
static int missing_argument(int c)
{
	fprintf(stderr, "dtrace: option -%c requires an argument\n", c);
	return usage();
}

/* Pass the collected preprocessor arguments to the run. */
static void give_cpp_words(const struct dtrace_opts *o, struct dtap *t)
{
	if (o->cpp.wanted)
		dtap_set(t, "cpp", NULL);
	for (size_t i = 0; i < o->cpp.n; i++)
		dtap_define(t, DTAP_DEFINE_CPP, o->cpp.v[i]);
}

void dtrace_opts_fini(struct dtrace_opts *o)
{
	arena_free(o->arena);
}

int dtrace_opts_parse(struct dtrace_opts *o, struct dtap *t, int argc, char **argv)
{
	enum { HELP = 256, VERSION };
	static const struct option longs[] = {
		{ "help", no_argument, NULL, HELP },
		{ "version", no_argument, NULL, VERSION },
		{ NULL, 0, NULL, 0 },
	};
	char letters[2 * sizeof(rows) / sizeof(rows[0]) + 16], *p = letters;
	size_t i;
	int c, e;

	memset(o, 0, sizeof(*o));
	o->arena = arena_new();
	*p++ = '-';	/* operands in order, as option 1: macro arguments may come between options */
	*p++ = ':';
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		*p++ = rows[i].letter;
		if (rows[i].arg)
			*p++ = ':';
	}
	strcpy(p, "3:6:aAB");
	if (dtap_set_from_environment(t))
		return CMD_ERROR;
	opterr = optopt = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == ':')
			return missing_argument(optopt);
		if (c == HELP) {
			o->mode = DTRACE_HELP;
			return 0;
		}
		if (c == VERSION) {
			o->full = true;
			c = 'V';
		}
		if (c == '?') {
			if (optopt)
				fprintf(stderr, "dtrace: there is no option -%c\n", optopt);
			else
				fprintf(stderr, "dtrace: there is no option %s\n", argv[optind - 1]);
			return usage();
		}
		e = one_option(o, t, c, optarg);
		if (e)
			return e;
	}
	for (; optind < argc; optind++)
		dtap_argument(t, argv[optind]);
	give_cpp_words(o, t);
	return 0;
}
