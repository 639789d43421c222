#include "cmd/stap_opts.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "target/words.h"

enum opt_id {
#define STAP_OPT(ID, ...) OPT_##ID,
#define STAP_ACCEPT(ID, ...) OPT_##ID,
#define STAP_REFUSE(ID, ...) OPT_##ID,
#include "cmd/stap_opts.def"
#undef STAP_OPT
#undef STAP_ACCEPT
#undef STAP_REFUSE
	NOPTS
};

enum opt_class { DONE, ACCEPTED, REFUSED };

static const struct opt_row {
	enum opt_class class;
	char letter;		/* or 0 */
	const char *name;	/* the long one, or NULL */
	const char *arg;	/* or NULL; "[X]" may be missing */
	const char *what;
} rows[NOPTS] = {
#define STAP_OPT(ID, letter, name, arg, what) { DONE, letter, name, arg, what },
#define STAP_ACCEPT(ID, letter, name, arg, what) { ACCEPTED, letter, name, arg, what },
#define STAP_REFUSE(ID, letter, name, arg, what) { REFUSED, letter, name, arg, what },
#include "cmd/stap_opts.def"
#undef STAP_OPT
#undef STAP_ACCEPT
#undef STAP_REFUSE
};

enum { LONG_FIRST = 256 };	/* getopt's value for rows[i] is LONG_FIRST + i, by letter or by name */

static void help_row(const struct opt_row *r)
{
	char text[64];

	if (r->letter)
		snprintf(text, sizeof(text), "-%c%s%s%s%s%s", r->letter, r->arg ? " " : "", r->arg ? r->arg : "",
			 r->name ? " --" : "", r->name ? r->name : "", "");
	else
		snprintf(text, sizeof(text), "--%s%s%s", r->name, !r->arg ? "" : *r->arg == '[' ? "[=" : "=",
			 !r->arg ? "" : r->arg + (*r->arg == '['));
	printf("  %-26s %s\n", text, r->what);
}

static void help_class(enum opt_class class)
{
	for (size_t i = 0; i < NOPTS; i++)
		if (rows[i].class == class)
			help_row(&rows[i]);
}

void stap_opts_help(void)
{
	puts("usage: stap [option ...] FILE|-|-e SCRIPT [argument ...]\n"
	     "       stap [option ...] -l PROBE\n"
	     "       stap [option ...] -L PROBE\n"
	     "\n"
	     "Runs SystemTap scripts, without a kernel module, until exit(), Ctrl-C, or the command's end.\n");
	help_class(DONE);
	puts("\nAccepted, without effect:\n");
	help_class(ACCEPTED);
	puts("\nRefused:\n");
	help_class(REFUSED);
	puts("\nArguments are the script's $1, $2 ... and, as strings, @1, @2 ...\n"
	     "Exit codes: 0, 1 after an error in the script or while it ran.");
}

static int usage(void)
{
	fputs("Try '--help' for more information. [man stap]\n", stderr);
	return CMD_ERROR;
}

static void add(struct stap_texts *t, struct arena *a, const char *text)
{
	t->v = arena_grow(a, t->v, &t->cap, t->n, sizeof(*t->v));
	t->v[t->n++] = text;
}

static bool to_number(const char *text, long long low, long long high, long long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	return !errno && end != text && !*end && *ret >= low && *ret <= high;
}

static bool is_word(const char *s, size_t n, const char *also)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr(also, s[i]))
			return false;
	return n > 0;
}

/* NAME=VALUE; the value may be missing if @bare. */
static bool is_setting(const char *text, bool bare, const char *in_value)
{
	size_t n = strcspn(text, "=");

	if (!is_word(text, n, "_") || isdigit((unsigned char)*text))
		return false;
	return text[n] ? is_word(text + n + 1, strlen(text + n + 1), in_value) : bare;
}

static int mismatch(char letter, const char *text, const char *pattern)
{
	fprintf(stderr, "ERROR: Safety pattern mismatch for -%c parameter ('%s' vs. '%s') rc=1\n", letter, text,
		pattern);
	return CMD_ERROR;
}

static int set_size(struct stap_opts *o, const char *text)
{
	unsigned long long mb;
	unsigned int files = 0;
	int used = 0;

	if (!isdigit((unsigned char)*text) ||
	    (sscanf(text, "%7llu%n,%7u%n", &mb, &used, &files, &used) < 1 || text[used]))
		return mismatch('S', text, "^[0-9]+(,[0-9]+)?$");
	o->max_bytes = mb << 20;
	o->max_files = files;
	return 0;
}

/* There is no module to be named so, but a script that is wrong with SystemTap is wrong here. */
static int check_module(const char *name)
{
	size_t n = strlen(name);

	if (n > 3 && !strcmp(name + n - 3, ".ko"))
		n -= 3;
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) && name[i] != '_')
			return mismatch('m', name, "^[a-z0-9_]+$");
	return n ? 0 : mismatch('m', name, "^[a-z0-9_]+$");
}

static int set_timeout(struct stap_opts *o, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds > 0) || seconds > 1e9) {
		fputs("Invalid timeout interval.\n", stderr);
		return CMD_ERROR;
	}
	o->timeout_ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int set_runtime(const char *mode)
{
	if (!strcmp(mode, "kernel") || !strcmp(mode, "bpf"))
		return 0;
	if (!strcmp(mode, "dyninst"))
		fputs("ERROR: --runtime=dyninst: there is no Dyninst runtime: leave it out\n", stderr);
	else
		fprintf(stderr, "ERROR: %s is an invalid argument for --runtime\n", mode);
	return CMD_ERROR;
}

/* Is @version, "4.8", newer than the language here? */
static int set_compatible(struct stap_opts *o, const char *version)
{
	unsigned int major = 0, minor = 0, our_major, our_minor;

	sscanf(STAP_VERSION, "%u.%u", &our_major, &our_minor);
	if (sscanf(version, "%u.%u", &major, &minor) < 1) {
		fprintf(stderr, "ERROR: '%s' is no version for --compatible\n", version);
		return usage();
	}
	if (major > our_major || (major == our_major && minor > our_minor)) {
		fprintf(stderr, "ERROR: systemtap version %s cannot be compatible with future version %s\n",
			STAP_VERSION, version);
		return CMD_ERROR;
	}
	o->compatible = version;
	return 0;
}

static int set_list(struct stap_opts *o, enum stap_mode mode, const char *point)
{
	if (o->text) {
		fputs("Only one script can be given on the command line.\n", stderr);
		return usage();
	}
	o->mode = mode;
	o->text = point;
	return 0;
}

/* staprun(8) gives a command with operators to sh, and expands variables and patterns. */
static const char *by_shell(struct arena *a, const char *command)
{
	struct strbuf b = { 0 };
	const char *ret;

	strbuf_puts(&b, "sh -c '");
	for (; *command; command++) {
		if (*command == '\'')
			strbuf_puts(&b, "'\\''");
		else
			strbuf_putc(&b, *command);
	}
	strbuf_putc(&b, '\'');
	ret = arena_strdup(a, strbuf_str(&b));
	strbuf_fini(&b);
	return ret;
}

static int one_option(struct stap_opts *o, struct arena *a, enum opt_id id, const char *arg)
{
	long long n;

	switch (id) {
	case OPT_SCRIPT:
		return set_list(o, o->mode, arg);
	case OPT_LIST:
		return set_list(o, STAP_LIST, arg);
	case OPT_LIST_VARS:
		return set_list(o, STAP_LIST_VARS, arg);
	case OPT_MORE:
		add(&o->more, a, arg);
		return 0;
	case OPT_COMMAND:
		o->command = words_want_shell(arg) ? by_shell(a, arg) : arg;
		return 0;
	case OPT_PID:
		if (!to_number(arg, 1, INT32_MAX, &n)) {
			fputs("Invalid target process ID number.\n", stderr);
			return CMD_ERROR;
		}
		o->pid = (pid_t)n;
		return 0;
	case OPT_TIMEOUT:
		return set_timeout(o, arg);
	case OPT_PASS:
		if (!to_number(arg, 1, 5, &n)) {
			fputs("Invalid pass number (should be 1-5).\n", stderr);
			return CMD_ERROR;
		}
		o->last_pass = (unsigned int)n;
		return 0;
	case OPT_SIZE:
		return set_size(o, arg);
	case OPT_BUFSIZE:
		if (!to_number(arg, 1, 4095, &n)) {
			fputs("Invalid buffer size (should be 1-4095).\n", stderr);
			return usage();
		}
		o->bufsize_mb = (unsigned int)n;
		return 0;
	case OPT_OUTPUT:
		o->output = arg;
		return 0;
	case OPT_LIMIT:
		if (!is_setting(arg, true, "_-"))
			return mismatch('D', arg, "^[a-z_][a-z_0-9]*(=-?[a-z_0-9]+)?$");
		add(&o->limits, a, arg);
		return 0;
	case OPT_GLOBAL:
		if (!is_setting(arg, false, "_.-"))
			return mismatch('G', arg, "^[a-z_][a-z0-9_]*=[a-z0-9_.-]+$");
		add(&o->globals, a, arg);
		return 0;
	case OPT_DIR:
		add(&o->dirs, a, arg);
		return 0;
	case OPT_GURU:
		o->guru = true;
		return 0;
	case OPT_FLIGHT:
		o->flight = true;
		return 0;
	case OPT_VERBOSE:
		o->verbose++;
		return 0;
	case OPT_NO_WARN:
		o->no_warnings = true;
		return 0;
	case OPT_STRICT:
		o->strict_warnings = true;
		return 0;
	case OPT_UNOPTIMIZED:
		o->unoptimized = true;
		return 0;
	case OPT_RUNTIME:
		return set_runtime(arg);
	case OPT_PLACE:
		o->place = arg;
		return 0;
	case OPT_COMPATIBLE:
		return set_compatible(o, arg);
	case OPT_NO_LIMITS:
		o->no_time_limits = true;
		return 0;
	case OPT_NO_ERRORS:
		o->no_handler_errors = true;
		return 0;
	case OPT_SKIP_BADVARS:
		o->skip_badvars = true;
		return 0;
	case OPT_NO_GLOBALS:
		o->no_globals = true;
		return 0;
	case OPT_SYSROOT:
		o->sysroot = arg;
		return 0;
	case OPT_ERRTAGS:
		o->errtags = true;
		return 0;
	case OPT_VERSION:
		o->mode = STAP_VERSION_MODE;
		return 0;
	case OPT_HELP:
		o->mode = STAP_HELP;
		return 0;
	case OPT_DUMP_POINTS:
		o->mode = STAP_DUMP_POINTS;
		return 0;
	case OPT_DUMP_ALIASES:
		o->mode = STAP_DUMP_ALIASES;
		return 0;
	case OPT_DUMP_FUNCTIONS:
		o->mode = STAP_DUMP_FUNCTIONS;
		return 0;
	case OPT_PRIVILEGE:
		if (!arg || !strcmp(arg, "stapdev") || !strcmp(arg, "stapsys") || !strcmp(arg, "stapusr"))
			return 0;
		fprintf(stderr, "Invalid argument '%s' for --privilege.\n", arg);
		return CMD_ERROR;
	case OPT_MODULE:
		return check_module(arg);
	default:	/* BPF, EXAMPLE and what is accepted without effect */
		return 0;
	}
}

static int refuse(const struct opt_row *r)
{
	if (r->letter)
		fprintf(stderr, "ERROR: option -%c: %s\n", r->letter, r->what);
	else
		fprintf(stderr, "ERROR: option --%s: %s\n", r->name, r->what);
	return usage();
}

/* What fits together, and what is the script. */
static int check_together(struct stap_opts *o, struct arena *a, int argc, char **argv)
{
	if (o->command && o->pid) {
		fputs("You can't specify -c and -x together.\n", stderr);
		return usage();
	}
	if (o->no_time_limits && !o->guru) {
		fputs("ERROR --suppress-time-limits requires guru mode (-g)\n", stderr);
		return CMD_ERROR;
	}
	if (o->max_bytes && !o->output) {
		fputs("ERROR: -S requires -o FILE\n", stderr);
		return usage();
	}
	if (o->flight && !o->output && o->last_pass == 5) {
		fputs("ERROR: -F requires -o FILE: the output must go somewhere after stap returned\n", stderr);
		return usage();
	}
	if (o->mode > STAP_LIST_VARS)
		return 0;
	if (!o->text && optind < argc)
		o->file = argv[optind++];
	for (; optind < argc; optind++)
		add(&o->args, a, argv[optind]);
	if (!o->text && !o->file && o->more.n) {
		o->text = o->more.v[--o->more.n];
	} else if (!o->text && !o->file) {
		fputs("A script must be specified.\n", stderr);
		return usage();
	}
	return 0;
}

int stap_opts_parse(struct stap_opts *o, struct arena *a, int argc, char **argv)
{
	struct option longs[NOPTS + 1] = { 0 };
	char letters[3 * NOPTS + 2], *p = letters;
	size_t i, nlongs = 0;
	int c, e;

	memset(o, 0, sizeof(*o));
	o->last_pass = 5;
	*p++ = ':';
	for (i = 0; i < NOPTS; i++) {
		const struct opt_row *r = &rows[i];

		if (r->name)
			longs[nlongs++] = (struct option){ r->name, !r->arg ? no_argument :
							   *r->arg == '[' ? optional_argument : required_argument,
							   NULL, LONG_FIRST + (int)i };
		if (!r->letter)
			continue;
		*p++ = r->letter;
		if (r->arg)
			*p++ = ':';
	}
	*p = '\0';
	opterr = optopt = optind = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == ':' && optopt && optopt < LONG_FIRST) {
			fprintf(stderr, "%s: option requires an argument -- '%c'\n", argv[0], optopt);
			return usage();
		}
		if (c == ':' || (c == '?' && (!optopt || optopt >= LONG_FIRST))) {
			fprintf(stderr, "%s: %s '%s'\n", argv[0],
				c == ':' ? "option requires an argument:" : "unrecognized option", argv[optind - 1]);
			return usage();
		}
		if (c == '?') {
			fprintf(stderr, "%s: invalid option -- '%c'\n", argv[0], optopt);
			return usage();
		}
		if (c >= LONG_FIRST)
			i = (size_t)(c - LONG_FIRST);
		else
			for (i = 0; rows[i].letter != c; i++)
				;
		e = rows[i].class == REFUSED ? refuse(&rows[i]) : one_option(o, a, (enum opt_id)i, optarg);
		if (e)
			return e;
		if (o->mode == STAP_HELP)
			return 0;
	}
	return check_together(o, a, argc, argv);
}
