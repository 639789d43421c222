/*
 * dtap diff: what got slower and what faster between two runs of dtap record, or of dtap sample.
 */
#include "cmd/cmd.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/ready/diff.h"
#include "cmd/ready/output.h"

static const char help[] =
	"usage: dtap diff [-hjst] [-n ROWS] [-o FILE] BEFORE AFTER\n"
	"\n"
	"Compare two runs: which functions got slower and which faster, in themselves and with what they call.\n"
	"BEFORE and AFTER are files of dtap record or dtap sample, .jsonl or .folded, or folded stacks of other programs.\n"
	"\n"
	"  -n, --rows ROWS      so many functions that got slower, and so many that got faster; 0: all.  Without it 10 as\n"
	"                       text, all in other forms\n"
	"  -o, --output FILE    write the result to the file: .html is a flame graph coloured by the difference, .svg a\n"
	"                       picture, .txt, .csv and .jsonl are the table\n"
	"  -s, --shares         compare shares of the whole, for runs of different length\n"
	"  -t, --time           the numbers of folded stacks are nanoseconds, as those of dtap record\n"
	"  -j, --json           print lines of JSON\n"
	"  -h, --help           this text\n";

enum { ROWS = 10 };

struct options {
	struct ready_request q;
	bool shares, time, has_rows;
};

static int complain(const char *text)
{
	fprintf(stderr, "dtap diff: %s\n", text);
	return CMD_ERROR;
}

static int set_rows(struct options *o, const char *text)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || n > SIZE_MAX / 4) {
		fprintf(stderr, "dtap diff: '%s' is no number of rows\n", text);
		return CMD_USAGE;
	}
	o->q.rows = (size_t)n;
	o->has_rows = true;
	return 0;
}

/* 0, or the exit code after a message. */
static int parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "rows", required_argument, NULL, 'n' }, { "output", required_argument, NULL, 'o' },
		{ "shares", no_argument, NULL, 's' }, { "time", no_argument, NULL, 't' }, { "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' }, { 0 },
	};
	int c, e = 0;

	while (!e && (c = getopt_long(argc, argv, "n:o:stjh", options, NULL)) != -1) {
		if (c == 'n')
			e = set_rows(o, optarg);
		else if (c == 'o')
			o->q.output = optarg;
		else if (c == 's')
			o->shares = true;
		else if (c == 't')
			o->time = true;
		else if (c == 'j')
			o->q.json = true;
		else if (c == 'h')
			o->q.help = true;
		else
			return CMD_USAGE;
	}
	if (e || o->q.help || argc - optind == 2)
		return e;
	fputs(help, stderr);
	return CMD_USAGE;
}

static int read_both(struct ready_difference *d, const struct options *o, char *const files[static 2])
{
	struct strbuf why = { 0 };
	int e = ready_difference_read(d, READY_BEFORE, files[0], &why);

	if (!e)
		e = ready_difference_read(d, READY_AFTER, files[1], &why);
	if (!e)
		e = ready_difference_end(d, o->time, o->shares, &why);
	if (e)
		e = complain(why.len ? strbuf_str(&why) : strerror(-e));
	strbuf_fini(&why);
	return e;
}

static int print(const struct ready_difference *d, struct ready_run *r)
{
	int e = ready_output_open(r), later;

	if (e)
		return e;
	e = ready_difference_print(d, r);
	if (e)
		fprintf(stderr, "dtap diff: cannot show the result: %s\n", strerror(-e));
	else if (!r->shown && (r->format == READY_AS_TEXT || r->format == READY_AS_JSON || r->format == READY_AS_CSV))
		fputs("# dtap diff: there is no difference\n", stderr);
	later = ready_output_close(r);
	return e ? CMD_ERROR : later;
}

int cmd_diff(int argc, char **argv)
{
	struct options o = { .q = { .arena = arena_new(), .head = { .name = "diff", .form = READY_DIFFERENCE } } };
	struct ready_run r = { .req = &o.q };
	struct ready_difference d = { .sums = { 0 } };
	int e = parse(&o, argc, argv);

	if (!e && o.q.help)
		fputs(help, stdout);
	if (e || o.q.help)
		goto out;
	r.title = arena_printf(o.q.arena, "%s, then %s", argv[optind], argv[optind + 1]);
	e = ready_output_choose(&r);
	if (!o.has_rows && r.format == READY_AS_TEXT)
		o.q.rows = ROWS;
	if (!e)
		e = read_both(&d, &o, argv + optind);
	if (!e)
		e = print(&d, &r);
	ready_difference_fini(&d);
out:
	arena_free(o.q.arena);
	return e;
}
