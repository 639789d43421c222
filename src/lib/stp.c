/*
 * SystemTap scripts: SystemTap's passes 1 and 2, which parse and check, and queries about a script.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "ir/ir.h"
#include "lang/diag.h"
#include "lib/stp_env.h"
#include "lib/stp_list.h"
#include "lib/stp_run.h"
#include "out/dialect.h"
#include "probe/points.h"
#include "stp/affect.h"
#include "stp/preproc.h"
#include "stp/tapset.h"
#include "target/agent.h"
#include "target/target.h"
#include "target/words.h"

static void print(void *ctx, enum diag_level level, const char *text)
{
	lib_message(ctx, level == DIAG_ERROR ? DTAP_ERROR : DTAP_WARNING, text);
}

static int init(struct dtap *t)
{
	struct stp_run *r = arena_new_of(t->arena, struct stp_run);

	t->state = r;
	t->set.v[OPT_quiet] = 1;
	t->set.v[OPT_destructive] = t->stap.guru;
	r->msg = (struct stp_msg){ .print = print, .ctx = t, .no_warnings = t->stap.no_warnings, .errtags = t->conf.tags,
				   .all = t->stap.all_messages || t->conf.tags };
	return 0;
}

static void fini(struct dtap *t)
{
	struct stp_run *r = stp_run_of(t);

	if (!r)
		return;
	stp_msg_end(&r->msg);
	points_free(r->points);
	strbuf_fini(&r->agent);
}

/* --- pass 1 ------------------------------------------------------------------------------------------- */

static int read_script(struct dtap *t, struct lib_script *s)
{
	struct source *src = NULL;
	int e;

	if (s->kind != DTAP_FILE) {
		s->src = source_text(t->arena, "<input>", s->text, strlen(s->text));
		return 0;
	}
	e = source_read(t->arena, s->text, &src);
	if (e == -ENOENT) {
		struct strbuf b = { 0 };

		strbuf_printf(&b, "Input file '%s' is missing.\n", s->text);
		lib_message(t, DTAP_ERROR, strbuf_str(&b));
		strbuf_fini(&b);
	} else if (e) {
		lib_error(t, "Input file '%s' cannot be read: %s", s->text, strerror(-e));
	} else if (!strcmp(s->text, "-")) {
		src->name = "<input>";
	}
	s->src = src;
	return e;
}

/* Read all scripts.  The first is the main script. */
static int read_scripts(struct dtap *t)
{
	struct stp_run *r = stp_run_of(t);
	const struct source **all = arena_alloc(t->arena, (t->nscripts + 1) * sizeof(*all));
	int e = 0;

	if (!t->nscripts)	/* the query is about the tapset */
		dtap_script(t, DTAP_MORE_TEXT, "");
	for (size_t i = 0; i < t->nscripts && !e; i++) {
		e = read_script(t, &t->scripts[i]);
		all[i] = t->scripts[i].src;
	}
	if (e)
		return e;
	r->name = all[0]->name;
	r->msg.scripts = all;
	r->msg.nscripts = t->nscripts;
	for (size_t i = 0; i < t->nscripts; i++)
		stp_tapset_script(r->tapset, all[i]);
	for (size_t i = 0; i < t->args.n; i++)
		stp_tapset_argument(r->tapset, source_text(t->arena, "", t->args.v[i], strlen(t->args.v[i])));
	return 0;
}

/* The caller's folders, then $SYSTEMTAP_TAPSET or the tapset that lib_share() finds. */
static void add_folders(struct dtap *t)
{
	const char *dir = getenv("SYSTEMTAP_TAPSET"), *skip = t->scripts[0].kind == DTAP_FILE ? t->scripts[0].text : NULL;
	struct stp_run *r = stp_run_of(t);

	for (size_t i = 0; i < t->libraries.n; i++)
		stp_tapset_dir(r->tapset, t->libraries.v[i], skip);
	if (!dir || !*dir)
		dir = lib_share(t, "tapset");
	if (dir)
		stp_tapset_dir(r->tapset, dir, skip);
}

/* Tapset files with mistakes are left out, as in SystemTap; the mistakes do not count as the script's. */
static void add_tapset(struct dtap *t)
{
	struct stp_run *r = stp_run_of(t);
	const struct source *src;

	while ((src = stp_tapset_next(r->tapset))) {
		unsigned int errors = t->diag.errors;

		if (stp_tapset_add(r->tapset, r->stp))
			continue;
		stp_msg_print(&r->msg, &t->diag);
		stp_msg_warn(&r->msg, "tapset \"%s\" has errors, and will be skipped", src->name);
		t->diag.errors = errors;
	}
}

static int set_limits(struct dtap *t)
{
	struct stp *stp = stp_run_of(t)->stp;
	int64_t low, high;

	for (size_t i = 0; i < t->limits.n; i++) {
		const char *text = t->limits.v[i], *eq = strchr(text, '=');
		char *name = eq ? arena_strndup(t->arena, text, (size_t)(eq - text)) : arena_strdup(t->arena, text);

		if (stp_set_limit(stp, name, eq ? strtoll(eq + 1, NULL, 0) : 1, &low, &high))
			continue;
		lib_error(t, "-D %s: dtap has room for %s from %" PRId64 " to %" PRId64, text, name, low, high);
		return -EINVAL;
	}
	if (t->stap.no_time_limits)
		stp_set_limit(stp, "MAXACTION", INT64_MAX, &low, &high);
	if (t->stap.no_handler_errors) {
		stp_set_limit(stp, "MAXERRORS", INT64_MAX, &low, &high);
		stp_set_limit(stp, "MAXSKIPPED", INT64_MAX, &low, &high);
	}
	return 0;
}

static int parse_failed(struct dtap *t)
{
	struct strbuf b = { 0 };

	stp_msg_print(&stp_run_of(t)->msg, &t->diag);
	if (t->diag.errors)
		strbuf_printf(&b, "%u parse error%s.\n", t->diag.errors, t->diag.errors == 1 ? "" : "s");
	lib_message(t, DTAP_ERROR, strbuf_str(&b));
	strbuf_fini(&b);
	return -EINVAL;
}

static int parse(struct dtap *t)
{
	struct stp_run *r = stp_run_of(t);
	bool ok = true;
	int e;

	stp_env_init(&r->env, t->arena);
	r->env.guru = t->stap.guru;
	r->env.unoptimized = t->stap.unoptimized;
	r->env.timing = t->stap.timing;
	r->env.readings = t->read_globals;
	r->env.args = (struct stp_args){ t->args.v, t->args.n };
	if (t->stap.compatible)
		r->env.systemtap_v = t->stap.compatible;
	r->stp = stp_new(t->arena, &t->diag, &r->env);
	r->tapset = stp_tapset_new(t->arena, r->env.arch);
	stp_suggest(r->stp, r->tapset);
	e = set_limits(t);
	if (!e)
		e = read_scripts(t);
	if (e)
		return e;
	add_folders(t);
	if (t->stap.all_tapset || t->purpose == DTAP_TO_LIST)
		stp_tapset_all(r->tapset);
	add_tapset(t);
	for (size_t i = 0; i < t->nscripts && t->scripts[0].kind != DTAP_MORE_TEXT; i++)
		ok = stp_add(r->stp, t->scripts[i].src, false) && ok;
	if (!ok || t->diag.errors)
		return parse_failed(t);
	stp_msg_print(&r->msg, &t->diag);
	return 0;
}

/* --- pass 2 ------------------------------------------------------------------------------------------- */

/* Does @text contain $N or @N, or $# or @#, the number of arguments? */
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

/* An argument that no script uses is probably a mistake. */
static void warn_unused_args(struct dtap *t)
{
	for (unsigned int n = 1; n <= t->args.n; n++) {
		bool used = false;

		for (size_t i = 0; i < t->nscripts; i++)
			used |= uses_arg(t->scripts[i].src->text, t->scripts[i].src->len, n);
		if (!used)
			stp_msg_warn(&stp_run_of(t)->msg, "unused command line option $%u/@%u", n, n);
	}
}

static void say_expanded(void *ctx, const char *pattern, const char *path)
{
	lib_note(ctx, "Expanded process(\"%s\") to process(\"%s\")", pattern, path);
}

/* The command is started before its program is read. */
static int find_points(struct dtap *t)
{
	struct points_conf conf = { t->command, (uint32_t)stp_pid(t), t->stap.sysroot, .hz = stp_run_of(t)->env.hz, .next_image = stp_next_image,
				    .expanded = t->stap.expansions ? say_expanded : NULL, .ctx = t };
	struct stp_run *r = stp_run_of(t);
	int e;

	agents_object(&r->agent, NULL);
	e = t->purpose == DTAP_TO_RUN ? stp_hold(t) : 0;
	if (e)
		return e;
	conf.held = t->ntargets ? (uint32_t)target_pid(t->targets[0]) : 0;
	conf.agent = r->agent.len ? strbuf_str(&r->agent) : NULL;
	conf.agent_always = stp_in_target(t);
	conf.skip_badvars = t->stap.skip_badvars;
	r->points = points_new(t->arena, t->probes, &conf);
	return 0;
}

static int check(struct dtap *t)
{
	struct stp_run *r = stp_run_of(t);
	struct stp_resolver resolver;
	int e = find_points(t);

	if (e)
		return e;
	resolver = points_resolver(r->points);
	warn_unused_args(t);
	r->prog = stp_check(r->stp, &resolver);
	stp_msg_print(&r->msg, &t->diag);
	if (!r->prog || t->diag.errors)
		return -EINVAL;
	if (t->stap.strict_warnings && r->msg.warnings) {
		lib_error(t, "warnings count as errors: leave out -W, or mend what they tell");
		return -EINVAL;
	}
	return 0;
}

/* --- queries -------------------------------------------------------------------------------------------- */

static void armed(struct dtap *t)
{
	(void)t;	/* stap prints nothing */
}

static int text(struct dtap *t, enum dtap_what what, struct strbuf *out)
{
	struct stp_run *r = stp_run_of(t);

	if (what == DTAP_PROBE_TYPES)
		stp_list_types(out);
	else if (what == DTAP_TREE && t->step >= LIB_PARSED)
		stp_list_tree(out, stp_tree(r->stp), r->name);
	else if (what == DTAP_CHECKED && t->step >= LIB_CHECKED)
		stp_list_checked(out, r->prog);
	else if (what == DTAP_LOCKS && t->step >= LIB_CHECKED)
		stp_dump_locks(out, r->prog);
	else if (what == DTAP_CODE && t->prog)
		ir_print(t->prog, out);
	else if (what == DTAP_ALIASES && t->step == LIB_PARSED)
		stp_list_aliases(out, stp_parsed(r->stp));
	else if (what == DTAP_ALL_FUNCTIONS && t->step == LIB_PARSED)
		stp_list_functions(out, stp_parsed(r->stp), t->stap.all_messages);
	else
		return -EINVAL;
	return 0;
}

static size_t count(const struct dtap *t, enum dtap_count what)
{
	const struct stp_run *r = stp_run_of(t);
	size_t n = 0;

	if (what == DTAP_WARNINGS)
		return r->msg.warnings;
	if (what == DTAP_LIBRARY_FILES)
		return r->tapset ? stp_tapset_files(r->tapset) : 0;
	if (!r->prog)
		return 0;
	if (what == DTAP_CLAUSES)
		for (const struct stp_handler *h = r->prog->handlers; h; h = h->next)
			n++;
	if (what == DTAP_FUNCTIONS)
		for (const struct stp_func *f = r->prog->funcs; f; f = f->next)
			n += f->needed;
	if (what == DTAP_GLOBALS)
		for (const struct stp_var *v = r->prog->globals.first; v; v = v->next)
			n += v->reads || v->writes;
	return n;
}

static size_t list(struct dtap *t, bool verbose, struct strbuf *out)
{
	struct points_conf conf = { t->command, (uint32_t)stp_pid(t), t->stap.sysroot, .hz = stp_run_of(t)->env.hz, .listing = true,
				    .expanded = t->stap.expansions ? say_expanded : NULL, .ctx = t };
	struct stp_run *r = stp_run_of(t);

	stp_parsed(r->stp);
	r->points = points_new(t->arena, t->probes, &conf);
	return !stp_list_points(out, r->stp, r->points, verbose);
}

static void bad_option(struct dtap *t, const char *name, const char *value, int e, const char *why)
{
	(void)e;
	lib_error(t, "--%s%s%s: %s", name, value ? "=" : "", value ? value : "", why);
}

static void bad_command(struct dtap *t, const char *why)
{
	if (words_flaw(t->command))
		lib_error(t, "semantic error: invalid -c command '%s', it %s", t->command, words_flaw(t->command));
	else
		lib_error(t, "cannot run '%s': %s", t->command, why);
}

static bool is_talking(const struct dtap *t)
{
	(void)t;
	return false;
}

/* As stapio, which prints a pid only for a process that is not its child. */
static void ended(struct dtap *t, const struct target *of, int status, struct strbuf *out)
{
	if (!WIFSIGNALED(status))
		return;
	if (of == t->watched)
		strbuf_printf(out, "WARNING: Process %d exited with", (int)target_pid(of));
	else
		strbuf_puts(out, "WARNING: Child process exited with");
	strbuf_printf(out, " signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

const struct lib_language lib_stp = {
	.command = "stap", .version = STP_VERSION, .prefix = "ERROR: ", .note = "# stap: ",
	.bad_option = bad_option, .bad_command = bad_command, .is_talking = is_talking, .ended = ended, .dialect = &dialect_stp, .init = init, .fini = fini, .parse = parse, .check = check,
	.translate = stp_translate, .enable = stp_enable, .armed = armed, .text = text, .count = count, .list = list,
};
