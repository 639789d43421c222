/*
 * dtap stream: a script's records, aggregations and messages as JSON lines, for programs that call dtap.
 *
 * Each line is an object whose "event" says what it is: "started", "record", "row", "rows", "message", "process",
 * "lost", "end"; dtap-stream(1) lists their members.  Lines that the caller writes are requests: "rows" and "stop".  The
 * end of the caller, which closes the channel, is a "stop" as well: nothing is traced for nobody.
 *
 * A traced command never has the channel: it is close-on-exec, and where it is standard input and output, the command
 * gets /dev/null and standard error instead.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "cmd/help.h"
#include "cmd/ready/cell.h"
#include "dtap.h"

enum {
	REQUEST_MAX = 64,
	TURN_MS = 1000,
	FLUSH_AT = 1 << 16,	/* bytes of lines that are written at once */
};

struct stream {
	struct dtap *t;
	int in, out;
	int err;		/* the first error of writing: the caller has gone */
	struct strbuf lines;	/* not written yet */
	char request[REQUEST_MAX];	/* the part of a line that was read */
	size_t len;
};

/* --- lines out ------------------------------------------------------------------------------------------ */

static void flush(struct stream *s)
{
	const char *p = strbuf_str(&s->lines);
	size_t left = s->lines.len;

	while (left && !s->err) {
		ssize_t n = write(s->out, p, left);

		if (n > 0) {
			p += n;
			left -= (size_t)n;
		} else if (n < 0 && errno != EINTR) {
			s->err = -errno;
		}
	}
	strbuf_clear(&s->lines);
}

static void put_text(struct stream *s, const char *name, const char *text)
{
	strbuf_printf(&s->lines, ",\"%s\":", name);
	ready_json_text(text, &s->lines);
}

static void put_value(struct stream *s, const struct dtap_value *v)
{
	switch (v->type) {
	case DTAP_INT:
		strbuf_printf(&s->lines, "%" PRId64, v->i);
		break;
	case DTAP_UINT:
		strbuf_printf(&s->lines, "%" PRIu64, v->u);
		break;
	case DTAP_FLOAT:	/* JSON has no infinities */
		strbuf_printf(&s->lines, isfinite(v->f) ? "%.17g" : "\"%g\"", v->f);
		break;
	case DTAP_STRING:
		ready_json_text(v->s, &s->lines);
		break;
	case DTAP_STACK:
		strbuf_putc(&s->lines, '[');
		for (size_t i = 0; i < v->stack.n; i++) {
			if (i)
				strbuf_putc(&s->lines, ',');
			ready_json_text(v->stack.frames[i], &s->lines);
		}
		strbuf_putc(&s->lines, ']');
		break;
	}
}

static void put_values(struct stream *s, const char *name, const struct dtap_value *v, size_t n)
{
	strbuf_printf(&s->lines, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		if (i)
			strbuf_putc(&s->lines, ',');
		put_value(s, &v[i]);
	}
	strbuf_putc(&s->lines, ']');
}

static void begin_line(struct stream *s, const char *event)
{
	strbuf_printf(&s->lines, "{\"event\":\"%s\"", event);
}

static void end_line(struct stream *s)
{
	strbuf_puts(&s->lines, "}\n");
	if (s->lines.len > FLUSH_AT)
		flush(s);
}

static void message(void *ctx, enum dtap_level level, const char *text)
{
	static const char *const names[] = { "error", "warning", "note", "drop", "dump" };
	struct stream *s = ctx;

	begin_line(s, "message");
	put_text(s, "level", names[level]);
	put_text(s, "text", text);
	end_line(s);
}

static void record(void *ctx, const struct dtap_record *r)
{
	struct stream *s = ctx;

	begin_line(s, "record");
	strbuf_printf(&s->lines, ",\"time_ns\":%" PRIu64 ",\"pid\":%u,\"tid\":%u,\"cpu\":%u,\"probe\":%u", r->time_ns, r->pid,
		      r->tid, r->cpu, r->probe);
	put_text(s, "provider", r->provider);
	put_text(s, "module", r->module);
	put_text(s, "function", r->function);
	put_text(s, "name", r->name);
	strbuf_puts(&s->lines, ",\"actions\":[");
	for (size_t i = 0; i < r->nactions; i++) {
		const struct dtap_action *a = &r->actions[i];

		strbuf_puts(&s->lines, i ? ",{\"name\":" : "{\"name\":");
		ready_json_text(a->name, &s->lines);
		if (a->text)
			put_text(s, "text", a->text);
		put_values(s, "values", a->values, a->nvalues);
		strbuf_putc(&s->lines, '}');
	}
	strbuf_putc(&s->lines, ']');
	end_line(s);
}

static int row(void *ctx, const struct dtap_row *r)
{
	struct stream *s = ctx;

	begin_line(s, "row");
	put_text(s, "aggregation", r->aggregation);
	put_text(s, "function", r->function);
	put_values(s, "keys", r->keys, r->nkeys);
	if (r->buckets) {
		strbuf_puts(&s->lines, ",\"buckets\":[");
		for (size_t i = 0; i < r->nbuckets; i++)
			strbuf_printf(&s->lines, "%s[%" PRId64 ",%" PRId64 "]", i ? "," : "", r->buckets[i].from,
				      r->buckets[i].count);
		strbuf_putc(&s->lines, ']');
	} else {
		strbuf_puts(&s->lines, ",\"value\":");
		put_value(s, &r->value);
	}
	if (r->count)
		strbuf_printf(&s->lines, ",\"count\":%" PRIu64 ",\"sum\":%" PRId64, r->count, r->sum);
	end_line(s);
	return s->err;
}

static void process(void *ctx, const struct dtap_process_event *e)
{
	static const char *const names[] = { "traced", "refused", "gone" };
	struct stream *s = ctx;

	begin_line(s, "process");
	put_text(s, "what", names[e->what]);
	strbuf_printf(&s->lines, ",\"pid\":%d", (int)e->pid);
	put_text(s, "why", e->why);
	end_line(s);
}

static void lost(void *ctx, const char *kind, uint64_t n)
{
	struct stream *s = ctx;

	begin_line(s, "lost");
	put_text(s, "kind", kind);
	strbuf_printf(&s->lines, ",\"n\":%" PRIu64, n);
	end_line(s);
}

static void put_event(struct stream *s, const char *event)
{
	begin_line(s, event);
	end_line(s);
	flush(s);
}

/* All aggregations, and the line that ends them. */
static void put_rows(struct stream *s)
{
	dtap_aggregations(s->t, NULL, row, s);
	put_event(s, "rows");
}

/* The last line.  @e: the errno that ended the run, or 0. */
static void put_end(struct stream *s, int e)
{
	int status;

	begin_line(s, "end");
	put_text(s, "error", e ? strerror(-e) : "");
	strbuf_printf(&s->lines, ",\"status\":%d", dtap_status(s->t));
	if (!dtap_command_status(s->t, &status))
		strbuf_printf(&s->lines, ",\"command\":%d",
			      WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
	end_line(s);
	flush(s);
}

/* --- requests ------------------------------------------------------------------------------------------- */

static void obey(struct stream *s, const char *request)
{
	if (!strcmp(request, "rows")) {
		put_rows(s);
	} else if (!strcmp(request, "stop")) {
		dtap_stop(s->t);
	} else {
		message(s, DTAP_ERROR, "dtap stream: a request that is not known: it is 'rows' or 'stop'\n");
		dtap_stop(s->t);
	}
}

/* Read what the caller has written, and obey.  False: there will be nothing more. */
static bool read_requests(struct stream *s)
{
	ssize_t n = read(s->in, s->request + s->len, sizeof(s->request) - 1 - s->len);
	char *line = s->request, *end;

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	s->len += (size_t)n;
	s->request[s->len] = '\0';
	while ((end = strchr(line, '\n'))) {
		*end = '\0';
		obey(s, line);
		line = end + 1;
	}
	s->len -= (size_t)(line - s->request);
	memmove(s->request, line, s->len);
	if (s->len < sizeof(s->request) - 1)
		return true;
	obey(s, "");
	return false;
}

/* --- the run -------------------------------------------------------------------------------------------- */

/* 0 when the run is over, or the errno that ended it. */
static int turn(struct stream *s)
{
	struct pollfd p[2] = { { .fd = dtap_fd(s->t), .events = POLLIN }, { .fd = s->in, .events = POLLIN } };
	int e;

	do {
		flush(s);
		if (s->err)
			dtap_stop(s->t);
		else
			poll(p, 2, TURN_MS);
		e = dtap_turn(s->t, 0);
		if (p[1].fd >= 0 && p[1].revents && !read_requests(s)) {
			dtap_stop(s->t);
			p[1].fd = -1;
		}
	} while (e > 0);
	return e;
}

static int run(struct stream *s)
{
	int e = dtap_open(s->t), later;

	if (!e)
		e = dtap_start(s->t);
	if (e)
		return e;
	put_event(s, "started");
	e = turn(s);
	later = dtap_finish(s->t);
	put_rows(s);
	return e ? e : later;
}

/* --- the command line ------------------------------------------------------------------------------------ */

static const char help[] =
	"usage: dtap stream [-w] [-l d | stap] [-x OPTION[=VALUE]]... [-p PID]... [-c COMMAND] [--channel FD]\n"
	"                   -s FILE | -n SCRIPT [ARGUMENT]...\n"
	"\n"
	"Run a script, for a program that reads its records, aggregations and messages as lines of JSON.\n"
	"\n"
	"  -s, --file FILE         the script's file; - is standard input, which then carries no requests\n"
	"  -n, --script SCRIPT     the script itself\n"
	"  -l, --language LANGUAGE d or stap; d without it\n"
	"  -x, --option NAME[=VALUE] an option as of dtrace -x\n"
	"  -w, --destructive       permit destructive actions\n"
	"  -p, --pid PID           trace this process\n"
	"  -c, --command COMMAND   run the command, and trace it\n"
	"      --channel FD        write lines to and read requests from this descriptor, a socket\n"
	"  -h, --help              this text\n";

struct words {
	const char *file, *script, *language, *channel;
	bool is_destructive;
	const char *command;
};

/*
 * The descriptors of lines and requests.  Standard input and output are moved away from the traced command.  Input that
 * is neither pipe nor socket, such as /dev/null, has no caller at its other end: there are no requests then.  0, or
 * CMD_ERROR after a message.
 */
static int open_channel(struct stream *s, const struct words *w)
{
	bool script_is_input = w->file && !strcmp(w->file, "-"), has_caller;
	int fd = -1, null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (w->channel) {
		char *end;
		long n = strtol(w->channel, &end, 10);

		if (*w->channel < '0' || *w->channel > '9' || *end || n > 65535 || fcntl((int)n, F_SETFD, FD_CLOEXEC)) {
			fprintf(stderr, "dtap stream: --channel %s: no open descriptor\n", w->channel);
			close(null);
			return CMD_ERROR;
		}
		s->in = s->out = (int)n;
	} else {
		has_caller = !script_is_input && !fstat(STDIN_FILENO, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
		s->in = has_caller ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
		s->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		fd = script_is_input || dup2(null, STDIN_FILENO) >= 0 ? dup2(STDERR_FILENO, STDOUT_FILENO) : -1;
		if (s->out < 0 || fd < 0) {
			fprintf(stderr, "dtap stream: standard input and output: %s\n", strerror(errno));
			close(null);
			return CMD_ERROR;
		}
	}
	close(null);
	return 0;
}

static int usage_error(const char *what, const char *word)
{
	fprintf(stderr, "dtap stream: %s '%s'; dtap stream --help lists the options\n", what, word);
	return CMD_USAGE;
}

/* -x name[=value].  0, or the error of dtap_set(), which was reported. */
static int set_option(struct dtap *t, char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	return dtap_set(t, word, value);
}

static int add_pid(struct dtap *t, const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	if (*word < '0' || *word > '9' || *end || pid <= 0 || pid > INT32_MAX)
		return usage_error("no process id:", word);
	dtap_process(t, (pid_t)pid);
	return 0;
}

enum { CHANNEL = 256 };

static const char letters[] = "s:n:l:x:wp:c:h";
static const struct option longs[] = {
	{ "file", required_argument, NULL, 's' },    { "script", required_argument, NULL, 'n' },
	{ "language", required_argument, NULL, 'l' }, { "option", required_argument, NULL, 'x' },
	{ "destructive", no_argument, NULL, 'w' },    { "pid", required_argument, NULL, 'p' },
	{ "command", required_argument, NULL, 'c' },  { "channel", required_argument, NULL, CHANNEL },
	{ "help", no_argument, NULL, 'h' },	      { 0 },
};

/* What must be known before there is a run: language and channel.  -1, or the exit code. */
static int read_words(struct words *w, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		switch (c) {
		case 's':
			w->file = optarg;
			break;
		case 'n':
			w->script = optarg;
			break;
		case 'l':
			w->language = optarg;
			break;
		case 'c':
			w->command = optarg;
			break;
		case 'w':
			w->is_destructive = true;
			break;
		case CHANNEL:
			w->channel = optarg;
			break;
		case 'x':
		case 'p':
			break;
		default:
			return help_or_mistake(c, help);
		}
	}
	if (!w->file == !w->script) {
		fputs(help, stderr);
		return CMD_USAGE;
	}
	if (w->language && strcmp(w->language, "d") && strcmp(w->language, "stap"))
		return usage_error("no language:", w->language);
	return -1;
}

/* Hand the words to the run.  0, or the exit code. */
static int give_words(struct dtap *t, const struct words *w, int argc, char **argv)
{
	int c, e = 0;

	optind = 1;
	while (!e && (c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == 'x')
			e = set_option(t, optarg) ? CMD_ERROR : 0;
		else if (c == 'p')
			e = add_pid(t, optarg);
	}
	for (int i = optind; !e && i < argc; i++)
		dtap_argument(t, argv[i]);
	if (w->is_destructive)
		dtap_set(t, "destructive", NULL);
	dtap_script(t, w->file ? DTAP_FILE : DTAP_TEXT, w->file ? w->file : w->script);
	if (w->command)
		dtap_command(t, w->command);
	return e;
}

int cmd_stream(int argc, char **argv)
{
	struct stream s = { .in = -1, .out = -1 };
	struct dtap_conf conf = { .size = sizeof(conf), .ctx = &s, .message = message, .record = record,
				  .process = process, .lost = lost };
	static struct dtap_stap stap;
	struct words w = { 0 };
	int e = read_words(&w, argc, argv);

	if (e >= 0)
		return e;
	e = open_channel(&s, &w);
	if (e)
		return e;
	conf.language = w.language && !strcmp(w.language, "stap") ? DTAP_STAP : DTAP_D;
	stap.guru = w.is_destructive;
	conf.stap = &stap;
	s.t = dtap_new(&conf);
	if (!s.t) {
		fputs("dtap stream: out of memory\n", stderr);
		return CMD_ERROR;
	}
	dtap_block_signals();
	e = give_words(s.t, &w, argc, argv);
	if (!e) {
		e = run(&s);
		put_end(&s, e);
		e = e ? CMD_ERROR : dtap_status(s.t);
	} else {
		put_end(&s, -EINVAL);
	}
	dtap_free(s.t);
	strbuf_fini(&s.lines);
	return e;
}
