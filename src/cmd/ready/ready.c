#include "cmd/ready/ready.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/ready/find.h"
#include "cmd/ready/live.h"
#include "cmd/ready/output.h"
#include "cmd/ready/request.h"
#include "cmd/ready/run.h"
#include "cmd/ready/script.h"

static const struct ready_form_ops *const forms[READY_FORMS] = {
	[READY_TABLE] = &ready_table_ops, [READY_EVENTS] = &ready_events_ops, [READY_DISTRIBUTION] = &ready_distribution_ops,
	[READY_TREE] = &ready_tree_ops, [READY_FUNCTION_TABLE] = &ready_functions_ops,
};

/* --- the run ------------------------------------------------------------------------------------------- */

/* The library's messages are dtrace's; replace that name by the command's, in each line, and drop some notes. */
static void message(void *ctx, enum dtap_level level, const char *text)
{
	const struct ready_run *r = ctx;
	const char *mark = !strncmp(text, "# ", 2) ? "# " : "";

	text += strlen(mark);
	if (level == DTAP_NOTE && (strstr(text, "matched ") || strstr(text, "has exited") || strstr(text, "used no CPU time") ||
				    strstr(text, "dtap's agent supplies")))
		return;
	fputs(mark, stderr);
	for (size_t n; *text; text += n) {
		bool named = !strncmp(text, "dtrace: ", 8);

		text += named ? 8 : 0;
		n = strcspn(text, "\n");
		n += text[n] == '\n';
		if (named)
			fprintf(stderr, "dtap %s: ", r->req->head.name);
		fprintf(stderr, "%.*s", (int)n, text);
	}
}

static void process(void *ctx, const struct dtap_process_event *e)
{
	struct ready_run *r = ctx;

	if (r->reads)
		ready_reads_process(r->reads, e);
}

static void record(void *ctx, const struct dtap_record *rec)
{
	struct ready_run *r = ctx;
	const struct ready_form_ops *form = forms[r->req->head.form];

	if (form->record)
		form->record(r, rec);
}

static void select_processes(struct ready_run *r)
{
	const struct ready_request *q = r->req;

	if (q->command)
		dtap_command(r->t, q->command);
	for (size_t i = 0; i < q->npids; i++)
		dtap_process(r->t, q->pids[i]);
	if (q->head.needs_kernel)
		return;
	if (q->all)
		dtap_set(r->t, "place", "target");
	else
		dtap_select(r->t, q->by_user ? DTAP_SELECT_USER : DTAP_SELECT_FAMILIES, q->user);
}

/* 0, the exit code after a message, or -EINTR: by Ctrl-C, before anything was traced. */
static int prepare(struct ready_run *r)
{
	int e = ready_script_add(r->req, r->t);

	if (e)
		return e;
	select_processes(r);
	e = dtap_open(r->t);
	r->began_ns = now_ns();
	if (!e)
		e = dtap_start(r->t);
	r->started = !e;
	return e == -EINTR ? e : e ? CMD_ERROR : 0;
}

static int show(struct ready_run *r, bool last)
{
	int e = forms[r->req->head.form]->show(r, last);

	if (e)
		fprintf(stderr, "dtap %s: cannot show the result: %s\n", r->req->head.name, strerror(-e));
	fflush(r->out);
	return e ? CMD_ERROR : 0;
}

/* Milliseconds until @due, at most a minute; -1 (no limit) if @due is 0. */
static int until(uint64_t now, uint64_t due)
{
	return !due ? -1 : due <= now ? 0 : due - now > 60000 ? 60000 : (int)(due - now);
}

/* Of two times, of which 0 is never. */
static uint64_t earlier(uint64_t x, uint64_t y)
{
	return x && (!y || x < y) ? x : y;
}

static int follow(struct ready_run *r)
{
	uint64_t now = now_ms(), interval = r->interval_ns / 1000000, end = r->req->duration_ns / 1000000;
	uint64_t due = interval ? now + interval : 0, next, read;
	int e = 0;

	end = end || !r->req->duration_ns ? end : 1;
	end = end ? now + end : 0;
	do {
		now = now_ms();
		if (end && now >= end)
			dtap_stop(r->t);
		if (due && now >= due) {
			e = show(r, false);
			due += interval * ((now - due) / interval + 1);
		}
		read = r->reads ? ready_reads_turn(r->reads) : 0;
		next = earlier(read, earlier(due, end));
		if (e || ferror(r->out))
			dtap_stop(r->t);
	} while (dtap_turn(r->t, until(now, next)) > 0);
	return e;
}

/* Explain to beginners why there may be no output. */
static void say_nothing(const struct ready_run *r)
{
	const struct ready_request *q = r->req;

	fprintf(stderr, "# dtap %s: nothing was seen: ", q->head.name);
	if (q->nfunctions)
		fputs("no Python called such a function, or none that was traced", stderr);
	else
		fputs("no Python came there, or none that was traced", stderr);
	fputs("; dtap dump -p PID shows what a process waits for\n", stderr);
}

/* The exit code: that of the traced command if there is one, as with time(1) and strace(1). */
static int exit_code(const struct ready_run *r)
{
	int status, e = dtap_command_status(r->t, &status);

	if (e == -EAGAIN)
		fprintf(stderr, "# dtap %s: the command runs on\n", r->req->head.name);
	if (e)
		return dtap_status(r->t);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(struct ready_run *r)
{
	int e = prepare(r), later;

	if (e == -EINTR) {
		fprintf(stderr, "# dtap %s: interrupted before tracing began\n", r->req->head.name);
		show(r, true);		/* what is written is complete, though empty */
	}
	if (e)
		return e == -EINTR ? CMD_ERROR : e;
	e = r->live ? ready_live(r) : follow(r);
	later = dtap_finish(r->t);
	if (later && later != -EPIPE)
		return CMD_ERROR;
	if (!e && !r->live)
		e = show(r, true);
	if (!e && !r->live && !r->shown)
		say_nothing(r);
	return e ? e : exit_code(r);
}

/* @path NULL: no. */
static bool is_fifo(const char *path)
{
	struct stat st;

	return path && !stat(path, &st) && S_ISFIFO(st.st_mode);
}

static int trace(const struct ready_request *q)
{
	struct ready_run r = { .req = q, .interval_ns = q->interval_ns, .sort = "self" };
	struct dtap_conf conf = { .size = sizeof(conf), .language = DTAP_D, .message = message, .record = record, .process = process,
				  .ctx = &r };
	int e = ready_output_choose(&r), later;

	if (!e && q->interval_ns && !forms[q->head.form]->repeats) {
		fprintf(stderr, "dtap %s: option -i is for tables; %s\n", q->head.name,
			q->head.form == READY_EVENTS ? "this prints each event when it happens"
						     : "this prints one result at its end: -d SECONDS ends it, in a loop of the shell again and again");
		e = CMD_USAGE;
	}
	if (!e && q->head.reads) {
		r.reads = ready_reads_new(&r);
		e = r.reads ? 0 : CMD_USAGE;
	}
	/* From the moment a file is there Ctrl-C completes it; but a FIFO's reader may never come. */
	if (!e && !is_fifo(q->output))
		dtap_block_signals();
	if (!e)
		e = ready_output_open(&r);
	if (e)
		goto out;
	if (q->head.note)
		fprintf(stderr, "# dtap %s: %s\n", q->head.name, q->head.note);
	if (q->head.sort_name)
		r.sort = q->head.sort_name;
	if (!r.interval_ns)
		r.interval_ns = q->head.live_ns;
	r.live = q->head.live_ns && r.width && r.format == READY_AS_TEXT && isatty(STDIN_FILENO);
	r.t = dtap_new(&conf);
	dtap_block_signals();
	e = r.t ? run(&r) : CMD_ERROR;
	if (forms[q->head.form]->fini)
		forms[q->head.form]->fini(&r);
	dtap_free(r.t);
	later = ready_output_close(&r);
	e = e ? e : later;
out:
	ready_reads_free(r.reads);
	return e;
}

/* --- the command --------------------------------------------------------------------------------------- */

bool ready_is(const char *name)
{
	struct arena *a = arena_new();
	bool is = ready_find(a, name);

	arena_free(a);
	return is;
}

int ready_main(int argc, char **argv)
{
	struct ready_request q = { .arena = arena_new() };
	int e = ready_request_read(&q, argc, argv);

	if (!e && q.help)
		ready_opts_help(&q.head);
	else if (!e && q.script)
		e = ready_script_print(&q);
	else if (!e)
		e = trace(&q);
	arena_free(q.arena);
	return e;
}

struct listing {
	struct arena *a;
	FILE *f;
};

static void list_one(void *ctx, const char *name, const char *path)
{
	struct listing *l = ctx;
	struct ready_head h;
	struct strbuf err = { 0 };

	if (ready_head_read(l->a, name, path, &h, &err))
		fprintf(l->f, "  %-10s (%s)\n", name, strbuf_str(&err));
	else
		fprintf(l->f, "  %-10s %s%s\n", name, h.summary, h.needs_kernel && !h.otherwise ? " (for root)" : "");
	strbuf_fini(&err);
}

void ready_list(FILE *f)
{
	struct listing l = { arena_new(), f };

	ready_each(l.a, list_one, &l);
	arena_free(l.a);
}
