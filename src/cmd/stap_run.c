#include "cmd/stap_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "probe/procs.h"
#include "session/session.h"
#include "session/supply.h"
#include "stp/stp.h"
#include "target/agent.h"
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

/*
 * -F: the parent waits until everything is armed, prints the pid of its child, which goes on, and exits.  0 in the
 * child, or without -F.
 */
static int detach(struct stap_program *p)
{
	char ready = 0;
	int ends[2];
	pid_t pid;

	p->ready_fd = -1;
	if (!p->o->flight)
		return 0;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		close(ends[0]);
		p->ready_fd = ends[1];
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

/* --- Python's markers ---------------------------------------------------------------------------------- */

static void agent_message(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "# stap: %s\n", text);
}

int stap_set_options(struct stap_program *p)
{
	struct strbuf err = { 0 };

	options_init(&p->set);
	p->set.v[OPT_quiet] = 1;
	p->set.v[OPT_destructive] = p->o->guru;
	p->set.v[OPT_showplace] = p->o->verbose > 0;
	if (p->o->place && options_set(&p->set, "place", p->o->place, OPTION_COMMAND, &err))
		return fail(arena_printf(p->arena, "--place=%s", p->o->place), &err);
	if (p->o->bufsize_mb)
		p->set.v[OPT_bufsize] = (int64_t)p->o->bufsize_mb << 20;
	return 0;
}

bool stap_in_target(const struct stap_program *p)
{
	return session_in_target(&p->set) && (p->agent.len || !strcmp(p->set.text[OPT_place], "target"));
}

/* Find the agent, and say how the command is to be started. */
static int foresee(struct stap_program *p, const struct target_preload **preload)
{
	struct supply_conf conf = { .probes = p->probes, .message = agent_message };
	struct points_conf points = { .command = p->o->command, .sysroot = p->o->sysroot };
	const struct probe_desc *descs;
	struct points *look;
	struct strbuf err = { 0 };
	size_t n;
	int e;

	*preload = NULL;
	conf.mode = stap_in_target(p) ? PYTHON_ALWAYS : PYTHON_AUTO;
	points.agent_always = stap_in_target(p);
	e = supply_new(&conf, &p->supply, &err);
	if (!e && p->agent.len && p->o->command) {
		points.agent = strbuf_str(&p->agent);
		look = points_new(p->arena, p->probes, &points);
		n = points_foresee(look, stp_tree(p->stp), &descs);
		e = supply_foresee(p->supply, descs, n, p->o->command, preload, &err);
		points_free(look);
	}
	if (e)
		return fail("", &err);
	strbuf_fini(&err);
	return 0;
}

static void add_pid(struct stap_program *p, uint32_t pid)
{
	p->pids = arena_grow(p->arena, p->pids, &p->pids_cap, p->npids, sizeof(*p->pids));
	p->pids[p->npids++] = pid;
}

static int bring_to(struct stap_program *p, uint32_t pid, struct strbuf *err)
{
	const struct probe_desc *descs;
	size_t n = points_supplied(p->points, pid, &descs);
	int e = supply_attach_pid(p->supply, descs, n, pid, err);

	if (!e)
		add_pid(p, pid);
	return e;
}

struct bringing {
	struct stap_program *p;
	unsigned int missed;
	struct strbuf why;
};

static void bring_to_each(void *ctx, uint32_t pid)
{
	struct bringing *b = ctx;
	struct strbuf err = { 0 };
	int e;

	if (!points_is_supplied(b->p->points, pid))
		return;
	e = bring_to(b->p, pid, &err);
	if (e && e != -ESRCH && e != -EAGAIN && !b->missed++)
		strbuf_puts(&b->why, strbuf_str(&err));
	strbuf_fini(&err);
}

static bool runs_program(void *program, uint32_t pid)
{
	const struct stap_program *p = program;

	return points_is_supplied_program(p->points, pid) &&
	       (!p->target || procs_descends(pid, (uint32_t)target_pid(p->target)));
}

/* Who executes a program that a point names is meant, whenever that is; with a target, if it descends from that. */
static int follow(struct stap_program *p, struct strbuf *err)
{
	const struct probe_desc *descs;
	size_t n = points_supplied(p->points, 0, &descs);

	return supply_follow(p->supply, descs, n, runs_program, p, err);
}

/* Bring the agent to the target, or without one to all processes that the points mean. */
static int bring_agent(struct stap_program *p)
{
	struct bringing b = { .p = p };
	const struct probe_desc *descs;
	struct strbuf err = { 0 };
	uint32_t held = p->target ? (uint32_t)target_pid(p->target) : 0;
	size_t n = points_supplied(p->points, held, &descs);
	int e = 0;

	if (points_found_python(p->points) && *supply_missing(p->supply))
		agent_message(NULL, supply_missing(p->supply));
	if (!n)
		return 0;
	if (p->target) {
		/* It may be a wrapper still, whose last exec is the program that the points name. */
		while (!points_is_supplied(p->points, held) && stap_next_image(p))
			;
		e = supply_settle(p->supply, descs, n, p->target, &err);
		if (!e && !target_brings(p->target))	/* nor will its children have it */
			e = follow(p, &err);
		add_pid(p, held);
	} else if (p->o->pid) {
		e = bring_to(p, (uint32_t)p->o->pid, &err);
	} else {
		e = follow(p, &err);
		if (!e)
			procs_each(bring_to_each, &b);
		if (b.missed)
			fprintf(stderr, "# stap: %u process%s cannot be given the agent and %s not covered: %s\n", b.missed,
				b.missed == 1 ? "" : "es", b.missed == 1 ? "is" : "are", strbuf_str(&b.why));
		strbuf_fini(&b.why);
	}
	if (e)
		return fail("", &err);
	strbuf_clear(&err);
	points_say_supplied(p->points, &err);
	if (!p->o->no_warnings)
		fprintf(stderr, "# stap: dtap's agent supplies %s\n", strbuf_str(&err));
	strbuf_fini(&err);
	return 0;
}

/* ------------------------------------------------------------------------------------------------------- */

int stap_hold(struct stap_program *p)
{
	const struct target_preload *preload;
	struct strbuf err = { 0 };
	int e = detach(p);

	if (e) {
		fprintf(stderr, "ERROR: cannot go into the background: %s\n", strerror(-e));
		return -1;
	}
	if (foresee(p, &preload))
		return -1;

	cmd_block_signals();
	if (!p->o->command)
		return 0;
	if (target_create(p->o->command, preload, &p->target, &err)) {
		fail(arena_printf(p->arena, "cannot run '%s'", p->o->command), &err);
		return -1;
	}
	strbuf_fini(&err);
	return (int)target_pid(p->target);
}

bool stap_next_image(void *program)
{
	struct stap_program *p = program;

	return target_state(p->target) == TARGET_AT_EXEC && target_image_can_exec(p->target) &&
	       !target_next_exec(p->target, NULL) && target_state(p->target) == TARGET_AT_EXEC;
}

static void add_probe(struct stap_program *p, struct ir_clause *code, size_t *cap, const struct probe *probe)
{
	code->descs = arena_grow(p->arena, code->descs, cap, code->ndescs, sizeof(*code->descs));
	code->descs[code->ndescs++] = (struct probe_desc){ .prov = "", .mod = "", .func = "", .name = "",
							   .id = probe->id, .pos = code->pos };
}

/* Each clause is for the probe, or the probes, that its handler's point became. */
static void name_probes(struct stap_program *p)
{
	/* By the program, unless that is not to be asked where the handlers run, or one process is meant. */
	bool each = p->o->pid || (p->o->command && session_in_target(&p->set));

	for (uint32_t i = 0; i < p->code->prog->nclauses; i++) {
		const struct stp_clause *c = &p->code->clauses[i];
		struct probe *probe = c->handler ? points_probe(p->points, c->handler->point) : NULL, *one;
		bool own = !probe && (c->kind == STP_P_BEGIN || c->kind == STP_P_END || c->kind == STP_P_ERROR);
		size_t cap = 0;

		c->code->descs = NULL;
		c->code->ndescs = 0;
		if (own && !(p->o->no_globals && c->kind != STP_P_BEGIN))
			probe = points_own(p->points, c->kind);
		if (!probe)
			continue;
		for (size_t k = 0; k < p->npids; k++) {
			one = c->handler && (each || !probe->exe_ino) ?
				      points_in_process(p->points, c->handler->point, p->pids[k]) : NULL;
			if (one)
				add_probe(p, c->code, &cap, one);
		}
		probe->order = c->order;
		if (c->code->ndescs)
			continue;
		add_probe(p, c->code, &cap, probe);
		for (size_t k = 1; c->handler && (one = points_probe_at(p->points, c->handler->point, k)); k++)
			add_probe(p, c->code, &cap, one);
	}
}

int stap_translate(struct stap_program *p)
{
	int e = set_globals(p);

	if (e)
		return e;
	p->code = stp_compile(p->stp, p->prog);
	if (!p->code || p->diag->errors)
		return -EINVAL;
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

/* --- output ------------------------------------------------------------------------------------------- */

/* The name of the @n-th file of -S, or of the only one. */
static const char *file_name(const struct stap_program *p, unsigned int n)
{
	return p->o->max_bytes ? arena_printf(p->arena, "%s.%u", p->file, n) : p->file;
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
		p->file = arena_strdup(p->arena, name);
		if (truncate(file_name(p, p->files), 0) && errno != ENOENT && errno != EINVAL)
			e = -errno;
		else
			e = out_open_file(&p->out, file_name(p, p->files));
	}
	if (e)
		fprintf(stderr, "ERROR: Couldn't open output file %s: %s\n",
			p->o->output ? p->o->output : "standard output", strerror(-e));
	return e;
}

/* -S: go on in a new file when this one is large enough, and remove the oldest. */
static void written(void *ctx)
{
	struct stap_program *p = ctx;
	int fd;

	if (!p->o->max_bytes || lseek(p->out.fd, 0, SEEK_END) < (off_t)p->o->max_bytes)
		return;
	fd = open(file_name(p, p->files + 1), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return;		/* then this one grows */
	p->files++;
	dup3(fd, p->out.fd, O_CLOEXEC);
	close(fd);
	if (p->o->max_files && p->files >= p->o->max_files)
		unlink(file_name(p, p->files - p->o->max_files));
}

static void say_ready(struct stap_program *p)
{
	int null;

	if (p->ready_fd < 0)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= 2; fd++)	/* whoever reads what stap prints shall not wait for the child */
		dup2(null, fd);
	if (write(p->ready_fd, "", 1) != 1)
		return;
	close(p->ready_fd);
}

int stap_load(struct stap_program *p)
{
	struct strbuf err = { 0 }, log = { 0 }, code = { 0 };
	struct session_conf conf;
	int e;

	e = open_output(p);
	if (e)
		return e;
	conf = (struct session_conf){
		.opts = &p->set, .prog = p->code->prog, .probes = p->probes, .out = &p->out, .command = "stap",
		.message = message, .message_ctx = p, .written = written, .stp = p->code, .silent_errors = p->o->no_handler_errors,
		.max_errors = stp_get_limit(p->stp, STP_MAXERRORS),
		.max_skipped = stp_get_limit(p->stp, STP_MAXSKIPPED),
		.timeout_ns = p->o->timeout_ns,
		.verifier_log = p->o->verbose > 2 ? &log : NULL, .bytecode = p->o->verbose > 3 ? &code : NULL,
	};
	if (p->o->last_pass == 5 && bring_agent(p))
		return CMD_ERROR;
	name_probes(p);
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
	int e = supply_start(p->supply, p->session, &err);

	if (e)
		return fail("", &err);
	e = p->target ? session_watch(p->session, p->target) : 0;
	if (e) {
		strbuf_puts(&err, strerror(-e));
		return fail("cannot watch the target", &err);
	}
	if (!p->target && p->o->pid)
		session_know_pid(p->session, (uint32_t)p->o->pid);
	say_ready(p);
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
	supply_free(p->supply);
	p->supply = NULL;
	strbuf_fini(&p->agent);
}
