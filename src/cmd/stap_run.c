#include "cmd/stap_run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/stap_msg.h"
#include "cmd/stap_opts.h"
#include "ir/ir.h"
#include "lang/diag.h"
#include "probe/points.h"
#include "probe/probe.h"
#include "session/session.h"
#include "stp/stp.h"
#include "target/target.h"

/* --- pass 3 ------------------------------------------------------------------------------------------- */

static int fail(const char *what, struct strbuf *err)
{
	fprintf(stderr, "ERROR: %s%s%s\n", what, *what ? ": " : "", err->len ? strbuf_str(err) : "failed without saying why");
	strbuf_fini(err);
	return CMD_ERROR;
}

/* Give a global its first value, as its type takes it. */
static void set_global(struct stap_program *p, struct stp_var *v, const char *value)
{
	struct stp_node *n = arena_new_of(p->arena, struct stp_node);

	n->kind = v->type == STP_STRINGS ? STP_STR : STP_NUM;
	n->type = v->type;
	n->pos = v->pos;
	n->str = value;
	n->str_len = strlen(value);
	n->value = strtoll(value, NULL, 0);
	v->init = n;
}

static bool set_global_named(struct stap_program *p, const char *name, const char *value)
{
	for (struct stp_var *v = p->prog->globals.first; v; v = v->next) {
		if (strcmp(v->name, name) || v->arity > 0 || v->is_private)
			continue;
		set_global(p, v, value);
		return true;
	}
	return false;
}

/* What the tapset cannot find out for itself. */
static void set_own_globals(struct stap_program *p)
{
	time_t now = time(NULL);
	pid_t target = p->target ? target_pid(p->target) : p->o->pid;
	struct tm tm = { 0 };

	localtime_r(&now, &tm);
	set_global_named(p, "_stap_target", arena_printf(p->arena, "%d", (int)target));
	set_global_named(p, "_stap_tz_west", arena_printf(p->arena, "%ld", -tm.tm_gmtoff));
	set_global_named(p, "_stap_tz_name", arena_strdup(p->arena, tm.tm_zone ? tm.tm_zone : "UTC"));
}

static int set_globals(struct stap_program *p)
{
	set_own_globals(p);
	for (size_t i = 0; i < p->o->globals.n; i++) {
		const char *text = p->o->globals.v[i], *eq = strchr(text, '=');
		char *name = arena_strndup(p->arena, text, (size_t)(eq - text));

		if (set_global_named(p, name, eq + 1))
			continue;
		fprintf(stderr, "ERROR: -G %s: the script has no global variable of that name that is no array\n", text);
		return -EINVAL;
	}
	return 0;
}

static int open_target(struct stap_program *p)
{
	struct strbuf err = { 0 };

	if (!p->o->command || p->o->last_pass < 5)
		return 0;
	if (target_create(p->o->command, NULL, &p->target, &err)) {
		fail(arena_printf(p->arena, "cannot run '%s'", p->o->command), &err);
		return -ENOENT;
	}
	points_target(p->points, (uint32_t)target_pid(p->target));
	strbuf_fini(&err);
	return 0;
}

/* Ctrl-C and its like end the session in good order: the session reads them from a descriptor. */
static void block_signals(void)
{
	sigset_t set;

	session_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Each clause is for the probe that its handler's point became. */
static void name_probes(struct stap_program *p)
{
	for (uint32_t i = 0; i < p->code->prog->nclauses; i++) {
		const struct stp_clause *c = &p->code->clauses[i];
		struct probe *probe = c->handler ? points_probe(p->points, c->handler->point) : NULL;
		bool own = !probe && (c->kind == STP_P_BEGIN || c->kind == STP_P_END || c->kind == STP_P_ERROR);

		if (own && !(p->o->no_globals && c->kind != STP_P_BEGIN))
			probe = points_own(p->points, c->kind);
		if (!probe)
			continue;
		probe->order = c->order;
		c->code->descs = arena_alloc(p->arena, sizeof(*c->code->descs));
		c->code->descs[0] = (struct probe_desc){ .prov = "", .mod = "", .func = "", .name = "",
							 .id = probe->id, .pos = c->code->pos };
		c->code->ndescs = 1;
	}
}

int stap_translate(struct stap_program *p)
{
	int e;

	block_signals();
	e = open_target(p);
	if (!e)
		e = set_globals(p);
	if (e)
		return e;
	p->code = stp_compile(p->stp, p->prog);
	if (!p->code || p->diag->errors)
		return -EINVAL;
	name_probes(p);
	return 0;
}

void stap_show_code(const struct stap_program *p)
{
	struct strbuf text = { 0 };

	ir_print(p->code->prog, &text);
	fputs(strbuf_str(&text), stdout);
	strbuf_fini(&text);
}

/* --- pass 4 ------------------------------------------------------------------------------------------- */

static void message(void *ctx, const char *text)
{
	const struct stap_program *p = ctx;

	if (!strncmp(text, "WARNING: ", 9) && p->o->no_warnings)
		return;
	fputs(text, stderr);
}

static int open_output(struct stap_program *p)
{
	char name[4096];
	time_t now = time(NULL);
	struct tm tm;
	int e;

	if (!p->o->output) {
		e = out_open_fd(&p->out, STDOUT_FILENO);
	} else {
		localtime_r(&now, &tm);
		if (!strftime(name, sizeof(name), p->o->output, &tm))
			snprintf(name, sizeof(name), "%s", p->o->output);
		if (truncate(name, 0) && errno != ENOENT && errno != EINVAL)
			e = -errno;
		else
			e = out_open_file(&p->out, name);
	}
	if (e)
		fprintf(stderr, "ERROR: Couldn't open output file %s: %s\n",
			p->o->output ? p->o->output : "standard output", strerror(-e));
	return e;
}

int stap_load(struct stap_program *p)
{
	struct strbuf err = { 0 }, log = { 0 }, code = { 0 };
	struct session_conf conf;
	int e;

	options_init(&p->set);
	p->set.v[OPT_quiet] = 1;
	p->set.v[OPT_destructive] = p->o->guru;
	if (p->o->bufsize_mb)
		p->set.v[OPT_bufsize] = (int64_t)p->o->bufsize_mb << 20;
	e = open_output(p);
	if (e)
		return e;
	conf = (struct session_conf){
		.opts = &p->set, .prog = p->code->prog, .probes = p->probes, .out = &p->out, .command = "stap",
		.message = message, .message_ctx = p, .stp = p->code, .silent_errors = p->o->no_handler_errors,
		.max_errors = p->o->no_handler_errors ? INT64_MAX : stp_get_limit(p->stp, STP_MAXERRORS),
		.max_skipped = p->o->no_handler_errors ? INT64_MAX : stp_get_limit(p->stp, STP_MAXSKIPPED),
		.timeout_ns = p->o->timeout_ns,
		.verifier_log = p->o->verbose > 2 ? &log : NULL, .bytecode = p->o->verbose > 3 ? &code : NULL,
	};
	e = session_new(&conf, &p->session, &err);
	if (!e)
		e = session_enable(p->session, &err);
	fputs(strbuf_str(&code), stderr);
	if (e) {
		fputs(strbuf_str(&log), stderr);
		fail("", &err);
	}
	strbuf_fini(&err);
	strbuf_fini(&log);
	strbuf_fini(&code);
	return e ? CMD_ERROR : 0;
}

/* --- pass 5 ------------------------------------------------------------------------------------------- */

int stap_run(struct stap_program *p)
{
	struct strbuf err = { 0 };
	int e = p->target ? session_watch(p->session, p->target) : 0;

	if (e) {
		strbuf_puts(&err, strerror(-e));
		return fail("cannot watch the target", &err);
	}
	if (session_start(p->session) && p->target && target_release(p->target, &err))
		return fail("cannot start the target", &err);
	e = session_run(p->session, &err);
	if (e == -EPIPE) {	/* the reader has seen enough, as head(1) does */
		strbuf_fini(&err);
		return CMD_ERROR;
	}
	if (e)
		return fail("", &err);
	strbuf_fini(&err);
	return session_status(p->session) ? CMD_ERROR : 0;
}

void stap_unload(struct stap_program *p)
{
	session_free(p->session);
	p->session = NULL;
	if (out_close(&p->out) && p->o->output)
		fprintf(stderr, "ERROR: Couldn't write output file %s\n", p->o->output);
	target_free(p->target);
	p->target = NULL;
}
