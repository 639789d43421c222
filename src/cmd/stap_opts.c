#include "cmd/stap_opts.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "dtap.h"

static int usage(void)
{
	fputs("Try '--help' for more information. [man stap]\n", stderr);
	return CMD_ERROR;
}

/* --- single options ----------------------------------------------------------------------------------- */

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

/* Is it NAME=VALUE, or NAME if @bare?  @in_value: characters allowed in the value beside letters and digits. */
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

static int set_size(struct stap_opts *o, struct arena *a, const char *text)
{
	unsigned long long mb;
	unsigned int files = 0;
	int used = 0;

	(void)a;
	if (!isdigit((unsigned char)*text) ||
	    (sscanf(text, "%7llu%n,%7u%n", &mb, &used, &files, &used) < 1 || text[used]))
		return mismatch('S', text, "^[0-9]+(,[0-9]+)?$");
	o->max_bytes = mb << 20;
	o->max_files = files;
	return 0;
}

/* dtap builds no module, but refuses the names that SystemTap refuses. */
static int check_module(struct stap_opts *o, struct arena *a, const char *name)
{
	size_t n = strlen(name);

	(void)o;
	(void)a;
	if (n > 3 && !strcmp(name + n - 3, ".ko"))
		n -= 3;
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) && name[i] != '_')
			return mismatch('m', name, "^[a-z0-9_]+$");
	return n ? 0 : mismatch('m', name, "^[a-z0-9_]+$");
}

static int set_timeout(struct stap_opts *o, struct arena *a, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	(void)a;
	if (end == text || *end || !(seconds > 0) || seconds > 1e9) {
		fputs("Invalid timeout interval.\n", stderr);
		return CMD_ERROR;
	}
	o->timeout_ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int check_runtime(struct stap_opts *o, struct arena *a, const char *mode)
{
	(void)o;
	(void)a;
	if (!strcmp(mode, "kernel") || !strcmp(mode, "bpf"))
		return 0;
	if (!strcmp(mode, "dyninst"))
		fputs("ERROR: --runtime=dyninst: there is no Dyninst runtime: leave it out\n", stderr);
	else
		fprintf(stderr, "ERROR: %s is an invalid argument for --runtime\n", mode);
	return CMD_ERROR;
}

/* Set the language's version, "4.8"; one newer than ours is an error. */
static int set_compatible(struct stap_opts *o, struct arena *a, const char *version)
{
	const char *ours = dtap_language_version(DTAP_STAP);
	unsigned int major = 0, minor = 0, our_major, our_minor;

	(void)a;
	sscanf(ours, "%u.%u", &our_major, &our_minor);
	if (sscanf(version, "%u.%u", &major, &minor) < 1) {
		fprintf(stderr, "ERROR: '%s' is no version for --compatible\n", version);
		return usage();
	}
	if (major > our_major || (major == our_major && minor > our_minor)) {
		fprintf(stderr, "ERROR: systemtap version %s cannot be compatible with future version %s\n",
			ours, version);
		return CMD_ERROR;
	}
	o->compatible = version;
	return 0;
}

static int set_only_text(struct stap_opts *o, enum stap_mode mode, const char *text)
{
	if (o->text) {
		fputs("Only one script can be given on the command line.\n", stderr);
		return usage();
	}
	o->mode = mode;
	o->text = text;
	return 0;
}

static int set_script(struct stap_opts *o, struct arena *a, const char *script)
{
	(void)a;
	return set_only_text(o, o->mode, script);
}

static int set_list(struct stap_opts *o, struct arena *a, const char *point)
{
	(void)a;
	return set_only_text(o, STAP_LIST, point);
}

static int set_list_vars(struct stap_opts *o, struct arena *a, const char *point)
{
	(void)a;
	return set_only_text(o, STAP_LIST_VARS, point);
}

static int set_pid(struct stap_opts *o, struct arena *a, const char *text)
{
	long long n;

	(void)a;
	if (!to_number(text, 1, INT32_MAX, &n)) {
		fputs("Invalid target process ID number.\n", stderr);
		return CMD_ERROR;
	}
	o->pid = (pid_t)n;
	return 0;
}

static int set_pass(struct stap_opts *o, struct arena *a, const char *text)
{
	long long n;

	(void)a;
	if (!to_number(text, 1, 5, &n)) {
		fputs("Invalid pass number (should be 1-5).\n", stderr);
		return CMD_ERROR;
	}
	o->last_pass = (unsigned int)n;
	return 0;
}

static int set_bufsize(struct stap_opts *o, struct arena *a, const char *text)
{
	long long n;

	(void)a;
	if (!to_number(text, 1, 4095, &n)) {
		fputs("Invalid buffer size (should be 1-4095).\n", stderr);
		return usage();
	}
	o->bufsize_mb = (unsigned int)n;
	return 0;
}

static int add_limit(struct stap_opts *o, struct arena *a, const char *setting)
{
	if (!is_setting(setting, true, "_-"))
		return mismatch('D', setting, "^[a-z_][a-z_0-9]*(=-?[a-z_0-9]+)?$");
	add(&o->limits, a, setting);
	return 0;
}

static int add_global(struct stap_opts *o, struct arena *a, const char *setting)
{
	if (!is_setting(setting, false, "_.-"))
		return mismatch('G', setting, "^[a-z_][a-z0-9_]*=[a-z0-9_.-]+$");
	add(&o->globals, a, setting);
	return 0;
}

static int more_verbose(struct stap_opts *o, struct arena *a, const char *none)
{
	(void)a;
	(void)none;
	o->verbose++;
	return 0;
}

static int check_privilege(struct stap_opts *o, struct arena *a, const char *level)
{
	(void)a;
	o->privilege = level;
	if (!level || !strcmp(level, "stapdev") || !strcmp(level, "stapsys") || !strcmp(level, "stapusr"))
		return 0;
	fprintf(stderr, "Invalid argument '%s' for --privilege.\n", level);
	return CMD_ERROR;
}

static int drop_privilege(struct stap_opts *o, struct arena *a, const char *none)
{
	(void)a;
	(void)none;
	o->privilege = "stapusr";
	return 0;
}

/* Set a resource limit of stap itself.  Man page stap(1), "--rlimit-as=NUM". */
static int limit_resource(int resource, const char *name, const char *text)
{
	struct rlimit limit;
	char *end;

	errno = 0;
	limit.rlim_cur = limit.rlim_max = strtoul(text, &end, 0);
	if (end == text || *end || errno) {
		fprintf(stderr, "ERROR: --rlimit-%s=%s: write a number\n", name, text);
		return usage();
	}
	if (!setrlimit(resource, &limit))
		return 0;
	fprintf(stderr, "ERROR: --rlimit-%s=%s: %s\n", name, text, strerror(errno));
	return CMD_ERROR;
}

#define LIMITS(function, resource, name)								\
	static int function(struct stap_opts *o, struct arena *a, const char *text)		\
	{											\
		(void)o;									\
		(void)a;									\
		return limit_resource(resource, name, text);					\
	}
LIMITS(limit_as, RLIMIT_AS, "as")
LIMITS(limit_cpu, RLIMIT_CPU, "cpu")
LIMITS(limit_nproc, RLIMIT_NPROC, "nproc")
LIMITS(limit_stack, RLIMIT_STACK, "stack")
LIMITS(limit_fsize, RLIMIT_FSIZE, "fsize")
#undef LIMITS

/* --- the table ---------------------------------------------------------------------------------------- */

enum opt_class { DONE, ACCEPTED, REFUSED };

/* The effect of an option, as given in stap_opts.def. */
struct opt_effect {
	enum { DOES_NOTHING, SETS_FLAG, KEEPS_TEXT, ADDS_TEXT, SETS_MODE, CALLS } kind;
	size_t member;			/* FLAG, TEXT, TEXTS: offset in struct stap_opts */
	enum stap_mode mode;
	int (*call)(struct stap_opts *o, struct arena *a, const char *arg);
};

#define NOTHING { .kind = DOES_NOTHING }
#define FLAG(MEMBER) { .kind = SETS_FLAG, .member = offsetof(struct stap_opts, MEMBER) }
#define TEXT(MEMBER) { .kind = KEEPS_TEXT, .member = offsetof(struct stap_opts, MEMBER) }
#define TEXTS(MEMBER) { .kind = ADDS_TEXT, .member = offsetof(struct stap_opts, MEMBER) }
#define MODE(VALUE) { .kind = SETS_MODE, .mode = VALUE }
#define CALL(FUNCTION) { .kind = CALLS, .call = FUNCTION }

static const struct opt_row {
	enum opt_class class;
	char letter;		/* or 0 */
	const char *name;	/* the long one, or NULL */
	const char *arg;	/* or NULL; "[X]" is optional */
	const char *what;
	struct opt_effect effect;
} rows[] = {
#define STAP_OPT(ID, letter, name, arg, effect, what) { DONE, letter, name, arg, what, effect },
#define STAP_ACCEPT(ID, letter, name, arg, what) { ACCEPTED, letter, name, arg, what, NOTHING },
#define STAP_REFUSE(ID, letter, name, arg, what) { REFUSED, letter, name, arg, what, NOTHING },
#include "cmd/stap_opts.def"
#undef STAP_OPT
#undef STAP_ACCEPT
#undef STAP_REFUSE
};

enum { NOPTS = sizeof(rows) / sizeof(rows[0]) };
enum { LONG_FIRST = 256 };	/* getopt's value for rows[i] is LONG_FIRST + i, by letter or by name */

static int one_option(struct stap_opts *o, struct arena *a, const struct opt_effect *e, const char *arg)
{
	void *member = (char *)o + e->member;

	switch (e->kind) {
	case DOES_NOTHING:
		break;
	case SETS_FLAG:
		*(bool *)member = true;
		break;
	case KEEPS_TEXT:
		*(const char **)member = arg;
		break;
	case ADDS_TEXT:
		add(member, a, arg);
		break;
	case SETS_MODE:
		o->mode = e->mode;
		break;
	case CALLS:
		return e->call(o, a, arg);
	}
	return 0;
}

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

static int refuse(const struct opt_row *r)
{
	if (r->letter)
		fprintf(stderr, "ERROR: option -%c: %s\n", r->letter, r->what);
	else
		fprintf(stderr, "ERROR: option --%s: %s\n", r->name, r->what);
	return usage();
}

/* --- the command line ----------------------------------------------------------------------------------- */

/* Check that the options fit together, and find the script and its arguments. */
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
	if (o->guru && o->privilege && strcmp(o->privilege, "stapdev")) {
		fprintf(stderr, "You can't specify -g and --privilege=%s together.\n", o->privilege);
		return usage();
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
	if (!o->text && !o->file) {
		fputs("A script must be specified.\n", stderr);
		return usage();
	}
	return 0;
}

/* The options in the form of getopt_long(3). */
static void for_getopt(struct option longs[NOPTS + 1], char letters[2 * NOPTS + 2])
{
	*letters++ = ':';
	for (int i = 0; i < NOPTS; i++) {
		const struct opt_row *r = &rows[i];

		if (r->name)
			*longs++ = (struct option){ r->name, !r->arg ? no_argument : *r->arg == '[' ? optional_argument :
								 required_argument, NULL, LONG_FIRST + i };
		if (!r->letter)
			continue;
		*letters++ = r->letter;
		if (r->arg)
			*letters++ = ':';
	}
	*letters = '\0';
	*longs = (struct option){ 0 };
}

/* Report an error of getopt_long() in its wording; @c is ':' (an argument is missing) or '?'. */
static int misused(int c, char **argv)
{
	bool is_long = !optopt || optopt >= LONG_FIRST;

	if (c == ':' && !is_long)
		fprintf(stderr, "%s: option requires an argument -- '%c'\n", argv[0], optopt);
	else if (c == ':')
		fprintf(stderr, "%s: option requires an argument: '%s'\n", argv[0], argv[optind - 1]);
	else if (is_long)
		fprintf(stderr, "%s: unrecognized option '%s'\n", argv[0], argv[optind - 1]);
	else
		fprintf(stderr, "%s: invalid option -- '%c'\n", argv[0], optopt);
	return usage();
}

int stap_opts_parse(struct stap_opts *o, struct arena *a, int argc, char **argv)
{
	struct option longs[NOPTS + 1];
	char letters[2 * NOPTS + 2];
	const struct opt_row *r;
	int c, e;

	memset(o, 0, sizeof(*o));
	o->last_pass = 5;
	for_getopt(longs, letters);
	opterr = optopt = optind = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == ':' || c == '?')
			return misused(c, argv);
		r = c >= LONG_FIRST ? &rows[c - LONG_FIRST] : rows;
		while (c < LONG_FIRST && r->letter != c)
			r++;
		e = r->class == REFUSED ? refuse(r) : one_option(o, a, &r->effect, optarg);
		if (e)
			return e;
		if (o->mode == STAP_HELP)
			return 0;
	}
	return check_together(o, a, argc, argv);
}
