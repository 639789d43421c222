/*
 * The run: the caller's settings, the steps, and the parts of the steps that both languages share.
 */
#include "lib/lib.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/now.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "place/kernel.h"
#include "probe/probe.h"
#include "probe/procs.h"
#include "session/budget.h"
#include "session/supply.h"
#include "target/target.h"

const char *dtap_version(void)
{
	return DTAP_VERSION;
}

static const struct lib_language *const languages[] = { [DTAP_D] = &lib_d, [DTAP_STAP] = &lib_stp };

static const size_t nlanguages = sizeof(languages) / sizeof(languages[0]);

const char *dtap_language_version(enum dtap_language language)
{
	return languages[language]->version;
}

int dtap_kernel(char *why, size_t size)
{
	struct strbuf text = { 0 };
	int e = kernel_available(&text);

	if (size)
		snprintf(why, size, "%s", strbuf_str(&text));
	strbuf_fini(&text);
	return e;
}

/* --- messages ------------------------------------------------------------------------------------------ */

void lib_message(struct dtap *t, enum dtap_level level, const char *text)
{
	t->said = t->said || level == DTAP_ERROR;
	if (t->conf.message && *text)
		t->conf.message(t->conf.ctx, level, text);
}

static void __attribute__((format(printf, 4, 0)))
put_line(struct dtap *t, enum dtap_level level, const char *front, const char *fmt, va_list ap)
{
	struct strbuf b = { 0 };

	strbuf_puts(&b, front);
	strbuf_vprintf(&b, fmt, ap);
	strbuf_putc(&b, '\n');
	lib_message(t, level, strbuf_str(&b));
	strbuf_fini(&b);
}

void lib_note(struct dtap *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(t, DTAP_NOTE, t->lang->note, fmt, ap);
	va_end(ap);
}

void lib_say_missed(struct dtap *t, unsigned int n, const char *one, const char *many, const char *why)
{
	if (n)
		lib_note(t, "%u %s cannot be given the agent and %s not covered: %s", n, n == 1 ? one : many,
			 n == 1 ? "is" : "are", why);
}

void lib_error(struct dtap *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(t, DTAP_ERROR, t->lang->prefix, fmt, ap);
	va_end(ap);
}

int lib_fail(struct dtap *t, int e, struct strbuf *err)
{
	lib_error(t, "%s", err->len ? strbuf_str(err) : "failed without saying why");
	strbuf_fini(err);
	return e;
}

int lib_done(struct dtap *t, int e, struct strbuf *err)
{
	if (e && e != -EINTR)
		return lib_fail(t, e, err);
	strbuf_fini(err);
	return e;
}

void lib_agent_message(void *t, const char *text)
{
	lib_note(t, "%s", text);
}

bool lib_is_selected(void *ctx, uint32_t pid)
{
	const struct dtap *t = ctx;
	uid_t user;

	if (t->select == DTAP_SELECT_ALL)
		return true;
	if (t->select == DTAP_SELECT_RULE)
		return t->conf.selects && t->conf.selects(t->conf.ctx, (pid_t)pid);
	if (t->select == DTAP_SELECT_USER)
		return !procs_user(pid, &user) && user == t->user;
	for (size_t i = 0; i < t->ntargets; i++)
		if (procs_descends(pid, (uint32_t)target_pid(t->targets[i])))
			return true;
	return false;
}

void lib_agent_process(void *ctx, enum supply_fate fate, uint32_t pid, const char *why)
{
	static const enum dtap_fate fates[] = {
		[SUPPLY_READY] = DTAP_TRACED, [SUPPLY_REFUSED] = DTAP_REFUSED, [SUPPLY_GONE] = DTAP_GONE,
		[SUPPLY_UNSEEN] = DTAP_UNSEEN, [SUPPLY_LATE] = DTAP_LATE,
	};
	const struct dtap *t = ctx;
	const struct dtap_process_event e = { fates[fate], (pid_t)pid, why };

	if (t->conf.process)
		t->conf.process(t->conf.ctx, &e);
}

/* --- settings ------------------------------------------------------------------------------------------ */

struct dtap *dtap_new(const struct dtap_conf *conf)
{
	struct dtap *t;
	int e;

	if (!conf || conf->size < offsetof(struct dtap_conf, ctx) || (size_t)conf->language >= nlanguages)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	memcpy(&t->conf, conf, conf->size < sizeof(t->conf) ? conf->size : sizeof(t->conf));
	if (t->conf.stap)
		t->stap = *t->conf.stap;
	t->lang = languages[t->conf.language];
	t->arena = arena_new();
	t->probes = probe_set_new();
	t->output_fd = -1;
	t->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	options_init(&t->set);
	e = t->probes && t->stop_fd >= 0 ? 0 : -ENOMEM;
	if (!e) {
		diag_init(&t->diag, t->arena);
		e = t->lang->init(t);
	}
	if (!e)
		return t;
	dtap_free(t);
	return NULL;
}

void dtap_free(struct dtap *t)
{
	if (!t)
		return;
	session_free(t->session);
	budget_drop(t->budget);
	out_close(&t->out);
	supply_free(t->supply);		/* it asks which processes are targets */
	for (size_t i = 0; i < t->ntargets; i++)
		target_free(t->targets[i]);
	target_free(t->watched);
	t->lang->fini(t);
	lib_values_free(t->values);
	probe_set_free(t->probes);
	if (t->stop_fd >= 0)
		close(t->stop_fd);
	strbuf_fini(&t->log);
	strbuf_fini(&t->code);
	strbuf_fini(&t->text);
	arena_free(t->arena);
	free(t);
}

void dtap_purpose(struct dtap *t, enum dtap_purpose purpose)
{
	t->purpose = purpose;
}

void dtap_print_aggregations(struct dtap *t)
{
	t->print_aggregations = true;
}

int dtap_set(struct dtap *t, const char *name, const char *value)
{
	struct strbuf err = { 0 };
	int e = options_set(&t->set, name, value, OPTION_COMMAND, &err);

	if (e)
		t->lang->bad_option(t, name, value, e, strbuf_str(&err));
	strbuf_fini(&err);
	return e;
}

bool dtap_option(size_t i, const char **name, const char **what)
{
	if (i >= OPT_MAX)
		return false;
	*name = option_name((enum option_id)i);
	*what = option_what((enum option_id)i);
	return true;
}

int64_t dtap_get(const struct dtap *t, const char *name)
{
	for (int id = 0; id < OPT_MAX; id++)
		if (!strcmp(option_name((enum option_id)id), name))
			return t->set.v[id];
	return 0;
}

int dtap_set_from_environment(struct dtap *t)
{
	struct strbuf err = { 0 };
	int e = options_from_environment(&t->set, environ, &err);

	if (e)
		return lib_fail(t, e, &err);
	strbuf_fini(&err);
	return 0;
}

void lib_add_text(struct dtap *t, struct lib_texts *to, const char *text)
{
	to->v = arena_grow(t->arena, to->v, &to->cap, to->n, sizeof(*to->v));
	to->v[to->n++] = arena_strdup(t->arena, text);
}

void dtap_define(struct dtap *t, enum dtap_definition kind, const char *text)
{
	lib_add_text(t, kind == DTAP_DEFINE_LIMIT ? &t->limits : kind == DTAP_DEFINE_GLOBAL ? &t->globals : &t->cpp, text);
}

void dtap_argument(struct dtap *t, const char *text)
{
	lib_add_text(t, &t->args, text);
}

void dtap_library(struct dtap *t, const char *dir)
{
	lib_add_text(t, &t->libraries, dir);
}

void dtap_script(struct dtap *t, enum dtap_script_kind kind, const char *text)
{
	t->scripts = arena_grow(t->arena, t->scripts, &t->scripts_cap, t->nscripts, sizeof(*t->scripts));
	t->scripts[t->nscripts++] = (struct lib_script){ kind, arena_strdup(t->arena, text), NULL };
}

void dtap_command(struct dtap *t, const char *cmdline)
{
	t->command = arena_strdup(t->arena, cmdline);
}

void dtap_process(struct dtap *t, pid_t pid)
{
	t->pids = arena_grow(t->arena, t->pids, &t->pids_cap, t->npids, sizeof(*t->pids));
	t->pids[t->npids++] = pid;
}

void dtap_select(struct dtap *t, enum dtap_select which, uid_t user)
{
	t->select = which;
	t->user = user;
	if (which != DTAP_SELECT_ALL)
		dtap_set(t, "place", "target");
}

void dtap_read_globals(struct dtap *t)
{
	t->read_globals = t->conf.language == DTAP_STAP;
	t->stap.no_globals |= t->read_globals;
}

void dtap_output(struct dtap *t, int fd)
{
	t->output_fd = fd;
}

/* --- processes ----------------------------------------------------------------------------------------- */

int lib_open_targets(struct dtap *t, const struct target_preload *preload)
{
	struct strbuf err = { 0 };
	size_t i;
	int e = 0;

	t->targets = arena_alloc(t->arena, (t->npids + 1) * sizeof(struct target *));
	if (t->command) {
		e = target_create(t->command, preload, &t->targets[0], &err);
		if (e && e != -EINTR)
			t->lang->bad_command(t, strbuf_str(&err));
		t->ntargets += !e;
	}
	for (i = 0; i < t->npids && !e && t->lang->grabs; i++) {
		e = target_attach(t->pids[i], &t->targets[t->ntargets], &err);
		if (e)
			lib_error(t, "failed to grab pid %d: %s", (int)t->pids[i], strbuf_str(&err));
		else
			t->ntargets++;
	}
	strbuf_fini(&err);
	return e;
}

/* --- the steps ----------------------------------------------------------------------------------------- */

/* Do a step of the language once, if the run has reached it. */
static int advance(struct dtap *t, enum lib_step from, int (*do_it)(struct dtap *t))
{
	int e;

	if (t->step != from)
		return -EINVAL;
	e = do_it(t);
	if (!e)
		t->step = (enum lib_step)(from + 1);
	else if (e != -EINTR && !t->said)	/* no function gave a better message */
		lib_error(t, "%s", strerror(-e));
	return e;
}

int dtap_parse(struct dtap *t)
{
	return advance(t, LIB_NEW, t->lang->parse);
}

int dtap_check(struct dtap *t)
{
	return advance(t, LIB_PARSED, t->lang->check);
}

int dtap_translate(struct dtap *t)
{
	int e = advance(t, LIB_CHECKED, t->lang->translate);

	if (!e && t->prog)
		t->prog->dialect = t->lang->dialect;
	return e;
}

static void session_message(void *ctx, const char *text)
{
	struct dtap *t = ctx;

	if (t->stap.no_warnings && !strncmp(text, "WARNING: ", 9))
		return;
	lib_message(t, DTAP_DROP, text);
}

static void session_lost(void *ctx, const char *kind, uint64_t n)
{
	struct dtap *t = ctx;

	if (t->conf.lost)
		t->conf.lost(t->conf.ctx, kind, n);
}

static void session_rests(void *ctx, uint32_t pid, bool rest)
{
	const struct dtap *t = ctx;
	const struct dtap_process_event e = { rest ? DTAP_RESTS : DTAP_GOES_ON, (pid_t)pid, "" };

	if (t->conf.process)
		t->conf.process(t->conf.ctx, &e);
}

static void session_written(void *ctx)
{
	struct dtap *t = ctx;

	if (t->conf.written)
		t->conf.written(t->conf.ctx);
}

static void stopped(void *ctx)
{
	struct dtap *t = ctx;

	session_end(t->session);
}

/* Watch for the end of the targets, which ends the run, and for dtap_stop(). */
static int watch(struct dtap *t)
{
	int e = session_watch_fd(t->session, t->stop_fd, stopped, t);

	for (size_t i = 0; i < t->ntargets && !e; i++)
		e = session_watch(t->session, t->targets[i]);
	if (e)
		lib_error(t, "cannot watch the target: %s", strerror(-e));
	return e;
}

/* Enable the agents and report it to the caller, before any probe can fire. */
static int arm(struct dtap *t)
{
	struct strbuf err = { 0 };
	int e = lib_done(t, supply_start(t->supply, t->session, &err), &err);

	if (e)
		return e;
	t->lang->armed(t);
	return watch(t);
}

/* Open the output: the caller's descriptor, or /dev/null. */
static int open_output(struct dtap *t)
{
	int e = t->output_fd >= 0 ? out_open_fd(&t->out, t->output_fd) : out_open_file(&t->out, "/dev/null");

	if (e)
		lib_error(t, "cannot open the output: %s", strerror(-e));
	return e;
}

/* The caller's budget, or the option's. */
static int open_budget(struct dtap *t)
{
	double share;

	if (t->conf.budget)
		t->budget = budget_use((struct budget *)t->conf.budget);
	else if (budget_parse(t->set.text[OPT_budget], &share) && share > 0)
		t->budget = budget_new(share, NULL);
	else
		return 0;
	return t->budget ? 0 : -ENOMEM;
}

static int enable(struct dtap *t)
{
	struct session_conf conf = {
		.opts = &t->set, .prog = t->prog, .probes = t->probes, .out = &t->out, .command = t->lang->command,
		.message = session_message, .message_ctx = t, .written = session_written, .lost = session_lost,
		.rests = session_rests,
		.keep_signals = t->conf.keep_signals,
		.starts = t->command,
		.only_loads = t->purpose == DTAP_TO_COMPILE,
		.verifier_log = t->set.v[OPT_verifierlog] ? &t->log : NULL,
		.bytecode = t->set.v[OPT_bytecode] ? &t->code : NULL,
	};
	struct strbuf err = { 0 };
	int e = open_output(t);

	if (!e)
		e = open_budget(t);
	conf.budget = t->budget;
	if (!e)
		e = t->lang->enable(t, &conf);
	if (!e && (t->conf.record || t->read_globals))
		e = lib_values_new(t, &conf);
	if (e)
		return e;
	e = session_new(&conf, &t->session, &err);
	probe_hold(t->probes, false);
	if (!e)
		e = session_enable(t->session, &err);
	lib_message(t, DTAP_DUMP, strbuf_str(&t->code));
	if (e) {
		lib_message(t, DTAP_DUMP, strbuf_str(&t->log));
		return lib_fail(t, e, &err);
	}
	strbuf_fini(&err);
	return t->purpose == DTAP_TO_RUN ? arm(t) : 0;
}

int dtap_enable(struct dtap *t)
{
	return advance(t, LIB_TRANSLATED, enable);
}

int dtap_open(struct dtap *t)
{
	static int (*const steps[])(struct dtap *t) = {
		[LIB_NEW] = dtap_parse, [LIB_PARSED] = dtap_check, [LIB_CHECKED] = dtap_translate,
		[LIB_TRANSLATED] = dtap_enable,
	};
	int e = 0;

	while (t->step < LIB_ENABLED && !e)
		e = steps[t->step](t);
	return e;
}

/* The CPU time of a process, all threads together, in clock ticks; 0: no such process. */
static uint64_t ticks_of(pid_t pid)
{
	struct strbuf stat = { 0 };
	uint64_t ticks = 0;

	if (!proc_read(pid, "stat", &stat))
		ticks = proc_stat_cpu_time(strbuf_str(&stat));
	strbuf_fini(&stat);
	return ticks;
}

static void keep_ticks(struct dtap *t)
{
	t->cpu_ticks = arena_alloc(t->arena, (t->ntargets + 1) * sizeof(*t->cpu_ticks));
	for (size_t i = 0; i < t->ntargets; i++)
		t->cpu_ticks[i] = ticks_of(target_pid(t->targets[i]));
}

/* Name the targets that used no CPU time: a sampling probe never fires in them. */
static void say_blocked(struct dtap *t)
{
	for (size_t i = 0; t->sampler && t->cpu_ticks && i < t->ntargets; i++) {
		pid_t pid = target_pid(t->targets[i]);
		bool is_command = t->command && !i;

		if (!is_command && target_poll(t->targets[i]) != TARGET_EXITED && ticks_of(pid) == t->cpu_ticks[i])
			lib_note(t, "process %d used no CPU time meanwhile, and %s sees what runs on a CPU alone; "
				 "dtap dump -p %d shows what it waits for", (int)pid, t->sampler, (int)pid);
	}
}

/* Is the output a pipe, whose reader waits as long as the command has it open, and standard error a terminal? */
static bool holds_pipe(const struct dtap *t)
{
	struct stat st;

	return t->output_fd >= 0 && !fstat(t->output_fd, &st) && S_ISFIFO(st.st_mode) && isatty(STDERR_FILENO);
}

static int start(struct dtap *t)
{
	struct strbuf err = { 0 };
	int e = 0;

	if (t->purpose != DTAP_TO_RUN)
		return -EINVAL;
	if (!t->ntargets && t->npids)
		target_attach(t->pids[0], &t->watched, NULL);
	if (!t->ntargets && t->npids)
		session_know_pid(t->session, (uint32_t)t->pids[0]);
	if (t->sampler)
		keep_ticks(t);
	/* In D the command runs also when BEGIN has ended the script: what it does is not the script's to prevent. */
	if ((session_start(t->session) || t->lang->grabs) && t->command) {
		e = t->lang->grabs ? session_know(t->session, t->targets[0]) : 0;
		if (!e)
			e = target_release(t->targets[0], &err);
		if (e == -EINTR)	/* BEGIN has fired: so does END */
			session_finish(t->session, &err);
		if (e)
			return lib_done(t, e, &err);
	}
	strbuf_fini(&err);
	session_ready(t->session);
	return 0;
}

int dtap_start(struct dtap *t)
{
	return advance(t, LIB_ENABLED, start);
}

int dtap_turn(struct dtap *t, int timeout_ms)
{
	return t->step == LIB_STARTED ? session_turn(t->session, timeout_ms) : -EINVAL;
}

int dtap_fd(const struct dtap *t)
{
	return t->step == LIB_STARTED ? session_fd(t->session) : -EINVAL;
}

/* Scripts call exit() when a process calls exit_group(): wait for the process, until @until at most, in ms. */
static void await_end(struct target *of, uint64_t until)
{
	struct pollfd end = { .fd = target_fd(of), .events = POLLIN };
	uint64_t now = now_ms();

	if (now < until && target_poll(of) != TARGET_EXITED)
		poll(&end, 1, (int)(until - now));
}

/* Report how a process ended, if it has by @until.  One that was killed by a signal is reported even under -q. */
static void say_ended(struct dtap *t, struct target *of, uint64_t until)
{
	struct strbuf b = { 0 };
	int status = 0;

	await_end(of, until);
	if (target_poll(of) != TARGET_EXITED) {
		if (t->command && of == t->targets[0] && target_state(of) == TARGET_RUNNING && (t->lang->is_talking(t) || holds_pipe(t)))
			lib_note(t, "the command runs on, as process %d%s", (int)target_pid(of),
				 holds_pipe(t) ? ", and has the output's pipe open" : "");
		return;
	}
	target_exit_status(of, &status);
	t->lang->ended(t, of, status, &b);
	lib_message(t, DTAP_NOTE, strbuf_str(&b));
	strbuf_fini(&b);
}

/* -x showcost. */
static void say_cost(struct dtap *t)
{
	struct session_cost c;

	session_cost(t->session, &c);
	if (c.events)
		lib_note(t, "%llu events have cost the traced processes %.6f s, %.1f ns each", (unsigned long long)c.events,
			 (double)c.spent_ns / 1e9, (double)c.spent_ns / (double)c.events);
	else
		lib_note(t, "what events have cost is not known: there were none");
}

static int finish(struct dtap *t)
{
	enum { EXIT_GROUP_MS = 50 };
	struct strbuf err = { 0 };
	uint64_t until;
	int e;

	supply_end(t->supply, t->command && t->ntargets ? t->targets[0] : NULL);
	e = session_finish(t->session, &err);
	until = session_exited(t->session) ? now_ms() + EXIT_GROUP_MS : 0;
	for (size_t i = 0; i < t->ntargets; i++)
		say_ended(t, t->targets[i], until);
	if (t->watched)
		say_ended(t, t->watched, until);
	say_blocked(t);
	if (t->set.v[OPT_showcost])
		say_cost(t);
	if (e && e != -EPIPE)	/* -EPIPE: the reader has closed the pipe, as head(1) does */
		return lib_fail(t, e, &err);
	strbuf_fini(&err);
	return e;
}

int dtap_finish(struct dtap *t)
{
	int e;

	if (t->step != LIB_STARTED)
		return -EINVAL;
	e = finish(t);
	t->step = LIB_FINISHED;
	return e;
}

int dtap_run(struct dtap *t)
{
	int e = t->step == LIB_ENABLED ? dtap_start(t) : 0;

	if (e)
		return e;
	while (dtap_turn(t, -1) > 0)
		;
	return dtap_finish(t);
}

void dtap_stop(struct dtap *t)
{
	uint64_t one = 1;
	int saved = errno;

	ssize_t n = write(t->stop_fd, &one, sizeof(one));

	(void)n;	/* -EAGAIN: the counter is full, so the run was told before */
	errno = saved;
}

void dtap_block_signals(void)
{
	sigset_t set;

	session_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int dtap_command_status(const struct dtap *t, int *status)
{
	if (!t->command || !t->ntargets)
		return -ENOENT;
	if (target_poll(t->targets[0]) != TARGET_EXITED)
		return -EAGAIN;
	target_exit_status(t->targets[0], status);
	return 0;
}

int dtap_status(const struct dtap *t)
{
	return t->session ? session_status(t->session) : 0;
}

int dtap_budget_new(const char *share, struct dtap_budget **ret)
{
	double d;

	if (!budget_parse(share, &d))
		return -EINVAL;
	*ret = (struct dtap_budget *)budget_new(d, NULL);
	return *ret ? 0 : -ENOMEM;
}

int dtap_budget_set(struct dtap_budget *b, const char *share)
{
	double d;

	if (!budget_parse(share, &d))
		return -EINVAL;
	budget_set((struct budget *)b, d);
	return 0;
}

void dtap_budget_free(struct dtap_budget *b)
{
	budget_drop((struct budget *)b);
}

/* --- queries -------------------------------------------------------------------------------------------- */

int dtap_cost(struct dtap *t, struct dtap_cost *ret)
{
	struct session_cost c;
	struct dtap_cost all;

	if (!t->session || ret->size < offsetof(struct dtap_cost, events))
		return -EINVAL;
	session_cost(t->session, &c);
	all = (struct dtap_cost){
		.size = ret->size, .events = c.events, .spent_ns = c.spent_ns, .tracer_ns = c.tracer_ns,
		.cpu_ns = c.of_budget.cpu_ns, .rests = c.of_budget.rests, .rested_ns = c.of_budget.rested_ns,
		.resting = c.of_budget.resting, .ratio = c.of_budget.ratio, .is_bounded = c.is_bounded,
	};
	memcpy(ret, &all, all.size < sizeof(all) ? all.size : sizeof(all));
	return 0;
}

size_t dtap_count(const struct dtap *t, enum dtap_count what)
{
	return t->lang->count(t, what);
}

const char *dtap_text(struct dtap *t, enum dtap_what what)
{
	int e;

	strbuf_clear(&t->text);
	if (what == DTAP_PLACES) {
		session_places(&t->set, &t->text);
		return strbuf_str(&t->text);
	}
	e = t->lang->text(t, what, &t->text);
	return e ? NULL : strbuf_str(&t->text);
}

const char *dtap_list(struct dtap *t, bool verbose, size_t *missing)
{
	size_t n;

	strbuf_clear(&t->text);
	n = t->lang->list(t, verbose, &t->text);
	if (missing)
		*missing = n;
	return strbuf_str(&t->text);
}
