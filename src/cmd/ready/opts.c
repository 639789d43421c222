#include "cmd/ready/opts.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/user.h"

/* getopt's value of the first of the command's own options, which have long names only. */
enum { OWN = 256 };

static int __attribute__((format(printf, 2, 3))) usage(const struct ready_request *r, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "dtap %s: ", r->head.name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "; dtap %s --help explains it\n", r->head.name);
	return CMD_USAGE;
}

/* --- the arguments of options -------------------------------------------------------------------------- */

static int add_pid(struct ready_request *r, const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (errno || end == text || *end || pid <= 0 || pid > INT32_MAX)
		return usage(r, "'%s' is no process id", text);
	r->pids = arena_grow(r->arena, r->pids, &r->pids_cap, r->npids, sizeof(*r->pids));
	r->pids[r->npids++] = (pid_t)pid;
	return 0;
}

static int set_user(struct ready_request *r, const char *text)
{
	if (!user_of(text, &r->user))
		return usage(r, "there is no user '%s'", text);
	r->by_user = true;
	return 0;
}

static int seconds(const struct ready_request *r, const char *text, uint64_t *ns)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end || !isfinite(s) || s < 0.001 || s > 1e9)
		return usage(r, "'%s' is no number of seconds, from 0.001 on", text);
	*ns = (uint64_t)(s * 1e9);
	return 0;
}

static int set_duration(struct ready_request *r, const char *text)
{
	return seconds(r, text, &r->duration_ns);
}

static int set_interval(struct ready_request *r, const char *text)
{
	return seconds(r, text, &r->interval_ns);
}

static int set_rows(struct ready_request *r, const char *text)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 1)
		return usage(r, "'%s' is no number of rows", text);
	r->rows = (size_t)n;
	return 0;
}

/* --- the table ----------------------------------------------------------------------------------------- */

static const struct row {
	int letter;
	const char *name, *arg, *what;
	size_t flag, text;	/* of struct ready_request; 0: none */
	int (*call)(struct ready_request *r, const char *text);
} rows[] = {
#define FLAG(member) offsetof(struct ready_request, member), 0, NULL
#define TEXT(member) 0, offsetof(struct ready_request, member), NULL
#define CALL(function) 0, 0, function
#define READY_OPT(letter, name, arg, become, what) { letter, name, arg, what, become },
#include "cmd/ready/opts.def"
#undef READY_OPT
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static int take(struct ready_request *r, const struct row *o, const char *arg)
{
	if (o->call)
		return o->call(r, arg);
	if (o->text)
		*(const char **)(void *)((char *)r + o->text) = arg;
	else
		*(bool *)((char *)r + o->flag) = true;
	return 0;
}

static int take_own(struct ready_request *r, struct ready_option *o, const char *arg)
{
	char *end;

	if (o->is_variant && r->variant && r->variant != o)
		return usage(r, "it is --%s or --%s", r->variant->name, o->name);
	r->variant = o->is_variant ? o : r->variant;
	if (o->kind == READY_BOOL) {
		o->value = "1";
		return 0;
	}
	errno = 0;
	if (o->kind == READY_INT && (strtoll(arg, &end, 10), errno || end == arg || *end))
		return usage(r, "'%s' is no number for --%s", arg, o->name);
	o->value = arg;
	return 0;
}

static bool is_number(const char *word)
{
	return *word && !word[strspn(word, "0123456789")];
}

/* Check that the options fit together. */
static int check(const struct ready_request *r)
{
	int targets = (r->command != NULL || r->npids) + r->all + r->by_user;

	if (r->help || r->script)
		return 0;
	if (r->nfunctions && r->head.functions == READY_NO_FUNCTIONS)
		return usage(r, is_number(r->functions[0]) ? "it is not about functions: '%s'; a process is named by -p"
							   : "it is not about functions: '%s'; those that are: dtap calls, flow, lines, slow, trace, waits",
			     r->functions[0]);
	if (!r->nfunctions && r->head.functions == READY_SOME_FUNCTIONS)
		return usage(r, "name the functions, as FUNCTION, MODULE:FUNCTION or FILE.py:FUNCTION");
	if (targets > 1)
		return usage(r, "it is -a, or -u, or -c and -p");
	if (!targets)
		return usage(r, "name what to trace: -p PID, -c COMMAND, -u USER or -a");
	return 0;
}

int ready_opts_parse(struct ready_request *r, int argc, char **argv)
{
	struct ready_head *h = &r->head;
	struct option *longs = arena_alloc(r->arena, (ROWS + h->noptions + 1) * sizeof(*longs));
	char letters[2 * ROWS + 2], *p = letters;
	size_t i;
	int c, e = 0;

	*p++ = ':';
	for (i = 0; i < ROWS; i++) {
		longs[i] = (struct option){ rows[i].name, rows[i].arg ? required_argument : no_argument, NULL, rows[i].letter };
		*p++ = (char)rows[i].letter;
		if (rows[i].arg)
			*p++ = ':';
	}
	*p = '\0';
	for (i = 0; i < h->noptions; i++)
		longs[ROWS + i] = (struct option){ h->options[i].name, h->options[i].kind == READY_BOOL ? no_argument : required_argument,
						   NULL, OWN + (int)i };
	opterr = optopt = 0;
	optind = 0;
	while (!e && (c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == ':')
			return usage(r, "option %s requires an argument", argv[optind - 1]);
		if (c == '?')
			return optopt && optopt < OWN ? usage(r, "there is no option -%c", optopt) :
							usage(r, "there is no option %s", argv[optind - 1]);
		if (c >= OWN) {
			e = take_own(r, &h->options[c - OWN], optarg);
			continue;
		}
		for (i = 0; rows[i].letter != c; i++)
			;
		e = take(r, &rows[i], optarg);
	}
	r->functions = (const char *const *)argv + optind;
	r->nfunctions = (size_t)(argc - optind);
	return e ? e : check(r);
}

/* --- help ---------------------------------------------------------------------------------------------- */

static void put_option(int letter, const char *name, const char *arg, const char *what)
{
	char text[80];

	snprintf(text, sizeof(text), "--%s%s%s", name, arg ? " " : "", arg ? arg : "");
	if (letter)
		printf("  -%c, %-20s %s\n", letter, text, what);
	else
		printf("      %-20s %s\n", text, what);
}

void ready_opts_help(const struct ready_head *h)
{
	static const char *const functions[] = { "", " [FUNCTION ...]", " FUNCTION ..." };
	static const char *const args[READY_KINDS] = { [READY_INT] = "N", [READY_TEXT] = "TEXT" };
	size_t i;

	printf("usage: dtap %s [-p PID]... [-c COMMAND] [-u USER] [-a] [OPTION ...]%s\n\n%s.\n", h->name, functions[h->functions],
	       h->summary);
	if (*h->about)
		printf("\n%s", h->about);
	putchar('\n');
	for (i = 0; i < ROWS; i++)
		if (rows[i].letter != 'i' || h->form == READY_TABLE || h->form == READY_FUNCTION_TABLE)
			put_option(rows[i].letter, rows[i].name, rows[i].arg, rows[i].what);
	for (i = 0; i < h->noptions; i++) {
		put_option(0, h->options[i].name, args[h->options[i].kind], h->options[i].what);
		if (h->options[i].preset && !h->options[i].is_addition && strcmp(h->options[i].preset, "-"))
			printf("%27s(%s without it)\n", "", h->options[i].preset);
	}
	if (h->functions)
		puts("\nFUNCTION is a name, MODULE:NAME or FILE.py:NAME; * stands for any text: 'get_*', 'app.orders:*'.");
	printf("\nThe script is %s.\n", h->path);
}
