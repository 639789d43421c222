/*
 * dtap serve: scripts and ready-made commands that run as long as the machine does, and their aggregations as metrics.
 *
 *	configuration (config.h) ─► jobs (job.h), one a script, each in a thread ─► families of series (family.h)
 *	events (event.h) ─► outputs (output.h), each with a thread that delivers
 *	scrape (http.h) or textfile ─► asks all jobs for a reading ─► text (prom.h)
 *
 * The main thread waits for signals: SIGHUP reads the configuration anew, and jobs whose script stays the same go on;
 * SIGINT and SIGTERM end the service.  If it dies, the agents let go of the traced processes by themselves.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "cmd/help.h"
#include "cmd/serve/config.h"
#include "cmd/serve/health.h"
#include "cmd/serve/http.h"
#include "cmd/serve/job.h"
#include "cmd/serve/output.h"
#include "cmd/serve/privileges.h"
#include "cmd/serve/watchdog.h"
#include "dtap.h"

enum { READING_MS = 3000 };	/* a reading that takes longer is not waited for: the one before is shown */

/* Outputs that the configuration names, and those that it no longer names but jobs have not let go of yet. */
struct outputs {
	struct output **v;
	size_t n, cap;
};

struct entry {
	struct job *job;
	struct serve_config *config;
	const struct serve_script *script;
};

struct service {
	const char *path;
	uint64_t start_ns;
	struct watchdog *watchdog;
	struct watched watched;		/* the main thread */
	struct dtap_budget *budget;	/* of all jobs */
	struct http *http;
	struct serve_config *listens;	/* the one that @http was started with, whose texts it has */
	pthread_mutex_t lock;		/* of what follows: the server's thread reads it */
	struct serve_config *config;
	struct entry *entries;
	size_t n;
	struct outputs outputs;
	bool config_ok;
	uint64_t reloads;
};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	struct strbuf line = { 0 };
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(&line, fmt, ap);
	va_end(ap);
	fprintf(stderr, "dtap serve: %s\n", strbuf_str(&line));
	strbuf_fini(&line);
}

/* Does @c, NULL before the first one is in force, have that output? */
static bool is_named(const struct serve_config *c, const struct serve_output *conf)
{
	for (size_t i = 0; c && i < c->noutputs; i++)
		if (!strcmp(c->outputs[i].name, conf->name) && !strcmp(c->outputs[i].identity, conf->identity))
			return true;
	return false;
}

/* --- the metrics --------------------------------------------------------------------------------------- */

static void put_health(const struct service *s, enum prom_format format, struct strbuf *out)
{
	struct arena *a = arena_new();
	const char **names = arena_alloc(a, (s->n + 1) * sizeof(*names));
	struct job_health *jobs = arena_alloc(a, (s->n + 1) * sizeof(*jobs));
	const char **output_names = arena_alloc(a, (s->outputs.n + 1) * sizeof(*output_names));
	struct output_health *outputs = arena_alloc(a, (s->outputs.n + 1) * sizeof(*outputs));
	struct health h = { .config_ok = s->config_ok, .reloads = s->reloads, .start_ns = s->start_ns, .scripts = names,
			    .jobs = jobs, .njobs = s->n, .outputs = output_names, .output_healths = outputs };

	for (size_t i = 0; i < s->outputs.n; i++) {
		if (!is_named(s->config, output_conf(s->outputs.v[i])))
			continue;	/* it ends; another one may have its name */
		output_names[h.noutputs] = output_conf(s->outputs.v[i])->name;
		output_health(s->outputs.v[i], &outputs[h.noutputs++]);
	}

	for (size_t i = 0; i < s->n; i++) {
		names[i] = s->entries[i].script->name;
		job_health(s->entries[i].job, &jobs[i]);
		jobs[i].host = s->entries[i].config->machine;
		jobs[i].hash = s->entries[i].script->hash;
	}
	health_write(&h, format, out);
	for (size_t i = 0; i < s->n; i++)
		job_health_fini(&jobs[i]);
	arena_free(a);
}

static void put_metrics(void *ctx, enum prom_format format, struct strbuf *out)
{
	struct service *s = ctx;
	uint64_t due = now_ms() + READING_MS;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n; i++)
		job_ask(s->entries[i].job, format);
	for (size_t i = 0; i < s->n; i++)
		job_take(s->entries[i].job, format, due, out);
	put_health(s, format, out);
	pthread_mutex_unlock(&s->lock);
	prom_end(out, format);
}

/* A file beside it is renamed, so that a reader finds the old one or the new one whole. */
static int write_file(const char *path, const struct strbuf *text)
{
	struct strbuf beside = { 0 };
	FILE *f;
	int e = 0;

	strbuf_printf(&beside, "%s.new", path);
	unlink(strbuf_str(&beside));
	f = fopen(strbuf_str(&beside), "wxe");
	if (!f)
		e = -errno;
	else if ((fwrite(strbuf_str(text), 1, text->len, f) != text->len) | (fchmod(fileno(f), 0644) != 0) | (fclose(f) != 0))
		e = -EIO;
	if (!e && rename(strbuf_str(&beside), path))
		e = -errno;
	if (e && f)
		unlink(strbuf_str(&beside));
	strbuf_fini(&beside);
	return e;
}

static void write_textfile(struct service *s)
{
	struct strbuf text = { 0 };
	int e;

	put_metrics(s, PROM_TEXT, &text);
	e = write_file(s->config->textfile, &text);
	if (e)
		say("cannot write %s: %s", s->config->textfile, strerror(-e));
	strbuf_fini(&text);
}

/* --- the configuration --------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_server(const struct serve_config *a, const struct serve_config *b)
{
	return same_text(a->host, b->host) && same_text(a->port, b->port) && same_text(a->certificate, b->certificate) &&
	       same_text(a->key, b->key) && same_text(a->token, b->token);
}

static void stop_server(struct service *s)
{
	http_stop(s->http);
	s->http = NULL;
	serve_config_drop(s->listens);
	s->listens = NULL;
}

/* Listen as @c says.  0 or a negative errno after a message. */
static int start_server(struct service *s, struct serve_config *c)
{
	const struct http_conf conf = { .host = c->host, .port = c->port, .certificate = c->certificate, .key = c->key,
					.token = c->token, .metrics = put_metrics, .ctx = s };
	struct strbuf err = { 0 };
	int e = c->host ? http_start(&conf, &s->http, &err) : 0;

	if (!e)
		s->listens = serve_config_use(c);
	if (e)
		say("%s", strbuf_str(&err));
	else if (c->host)
		say("metrics at %s://%s%s%s:%u/metrics", c->certificate ? "https" : "http", strchr(c->host, ':') ? "[" : "",
		    c->host, strchr(c->host, ':') ? "]" : "", http_port(s->http));
	strbuf_fini(&err);
	return e;
}

/* The output that @conf, of a script, is; NULL: none, or it could not be started. */
static struct output *output_of(const struct service *s, const struct serve_output *conf)
{
	for (size_t i = 0; conf && i < s->outputs.n; i++) {
		const struct serve_output *c = output_conf(s->outputs.v[i]);

		if (!strcmp(c->name, conf->name) && !strcmp(c->identity, conf->identity))
			return s->outputs.v[i];
	}
	return NULL;
}

static struct job_outputs outputs_of(const struct service *s, const struct serve_script *script)
{
	return (struct job_outputs){ output_of(s, script->output), output_of(s, script->profiles) };
}

/* Start the outputs of @c that there are not. */
static void start_outputs(struct service *s, struct serve_config *c)
{
	for (size_t i = 0; i < c->noutputs; i++) {
		struct output *o;
		int e;

		if (output_of(s, &c->outputs[i]))
			continue;
		e = output_start(c, &c->outputs[i], &o);
		pthread_mutex_lock(&s->lock);
		if (!e && grow_array(&s->outputs.v, &s->outputs.cap, s->outputs.n, sizeof(struct output *)))
			s->outputs.v[s->outputs.n++] = o;
		else
			say("output %s: cannot be started: %s", c->outputs[i].name, strerror(e ? -e : ENOMEM));
		pthread_mutex_unlock(&s->lock);
	}
}

/* End the outputs that @c does not name (NULL: all) and no job uses. */
static void end_outputs(struct service *s, const struct serve_config *c)
{
	for (size_t i = 0; i < s->outputs.n;) {
		struct output *o = s->outputs.v[i];

		if (c && (is_named(c, output_conf(o)) || output_is_shared(o))) {
			i++;
			continue;
		}
		pthread_mutex_lock(&s->lock);
		s->outputs.v[i] = s->outputs.v[--s->outputs.n];
		pthread_mutex_unlock(&s->lock);
		output_drop(o);
	}
	if (!c)
		free(s->outputs.v);
}

/* The entry whose run can go on as one of @script; NULL: there is none. */
static struct entry *same_run(const struct service *s, const struct serve_script *script)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->entries[i].job && !strcmp(s->entries[i].script->name, script->name) &&
		    !strcmp(s->entries[i].script->identity, script->identity))
			return &s->entries[i];
	return NULL;
}

/* Move the jobs that stay from the service to @entries; their number. */
static size_t keep_jobs(struct service *s, struct serve_config *c, struct entry *entries)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nscripts; i++) {
		struct entry *old = same_run(s, &c->scripts[i]);

		if (!old)
			continue;
		job_show(old->job, c, &c->scripts[i], outputs_of(s, &c->scripts[i]));
		entries[n++] = (struct entry){ old->job, serve_config_use(c), &c->scripts[i] };
		old->job = NULL;
	}
	return n;
}

static void release_entries(struct entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (entries[i].job)
			job_end(entries[i].job);
	for (size_t i = 0; i < n; i++) {
		job_stop(entries[i].job);
		serve_config_drop(entries[i].config);
	}
	free(entries);
}

/* Start the scripts of @c that no entry runs. */
static void start_jobs(struct service *s, struct serve_config *c)
{
	for (size_t i = 0; i < c->nscripts; i++) {
		struct entry *at = &s->entries[s->n];
		int e;

		if (same_run(s, &c->scripts[i]))
			continue;
		e = job_start(c, &c->scripts[i], outputs_of(s, &c->scripts[i]), s->watchdog, s->budget, &at->job);
		if (e) {
			say("%s: cannot be started: %s", c->scripts[i].name, strerror(-e));
			continue;
		}
		at->config = serve_config_use(c);
		at->script = &c->scripts[i];
		pthread_mutex_lock(&s->lock);
		s->n++;
		pthread_mutex_unlock(&s->lock);
	}
}

/* Run what @c says, which is taken over: jobs of the same scripts go on. */
static void take_config(struct service *s, struct serve_config *c)
{
	struct entry *entries = calloc(c->nscripts + 1, sizeof(*entries)), *old = s->entries;
	struct serve_config *before = s->config;
	size_t nold = s->n;

	if (!entries) {
		serve_config_drop(c);
		say("out of memory");
		return;
	}
	start_outputs(s, c);
	dtap_budget_set(s->budget, c->budget);
	pthread_mutex_lock(&s->lock);
	s->n = keep_jobs(s, c, entries);
	s->entries = entries;
	s->config = c;
	pthread_mutex_unlock(&s->lock);
	release_entries(old, nold);
	serve_config_drop(before);
	start_jobs(s, c);
	end_outputs(s, c);
}

static void set_config_ok(struct service *s, bool ok)
{
	pthread_mutex_lock(&s->lock);
	s->config_ok = ok;
	s->reloads++;
	pthread_mutex_unlock(&s->lock);
}

/* SIGHUP.  A configuration with mistakes is refused as a whole. */
static void reload(struct service *s)
{
	struct serve_config *c = serve_config_read(s->path, stderr);
	bool ok = c != NULL;

	if (c && !same_server(s->config, c)) {
		stop_server(s);
		if (start_server(s, c)) {
			serve_config_drop(c);
			ok = false;
			start_server(s, s->config);
		}
	}
	if (ok)
		take_config(s, c);
	set_config_ok(s, ok);
	say(ok ? "the configuration was read again" : "the configuration was refused: the one before is in force");
}

/* --- the command --------------------------------------------------------------------------------------- */

enum {
	TIDY_MS = 30000,		/* between two times that unused memory is given back */
	LARGE = 64 << 10,		/* bytes of a buffer that is mapped */
};

/* Until SIGINT or SIGTERM. */
static void follow(struct service *s, int signals)
{
	struct pollfd fd = { .fd = signals, .events = POLLIN };
	uint64_t write_due = now_ms(), tidy_due = write_due;

	for (;;) {
		struct signalfd_siginfo info;
		uint64_t now = now_ms(), next;
		int wait, most;

		if (s->config->textfile && now >= write_due) {
			write_textfile(s);
			write_due = now_ms() + s->config->interval_s * UINT64_C(1000);
		}
		/* What a burst of processes took, and has given back, is in pieces between what stays: the system gets them. */
		if (now >= tidy_due) {
			malloc_trim(0);
			tidy_due = now_ms() + TIDY_MS;
		}
		now = now_ms();
		next = s->config->textfile && write_due < tidy_due ? write_due : tidy_due;
		wait = next > now ? (int)(next - now) : 0;
		most = watchdog_wait_ms(s->watchdog);
		poll(&fd, 1, most >= 0 && wait > most ? most : wait);
		watchdog_alive(&s->watched);
		if (read(signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo != SIGHUP)
			return;
		reload(s);
		write_due = now_ms();
	}
}

static int serve(const char *path)
{
	struct service s = { .path = path, .config_ok = true, .start_ns = now_wall_ns() };
	struct serve_config *c;
	sigset_t set;
	int signals, e = privileges_drop();

	if (e) {
		say("cannot give up privileges: %s", strerror(-e));
		return CMD_ERROR;
	}
	/* Large buffers, which come and go, are given back whole, and have nothing that stays above them in the heap. */
	mallopt(M_MMAP_THRESHOLD, LARGE);
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);	/* before there are threads, which inherit it */
	signal(SIGPIPE, SIG_IGN);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c = signals < 0 ? NULL : serve_config_read(path, stderr);
	if (!c)
		return CMD_ERROR;
	pthread_mutex_init(&s.lock, NULL);
	s.watchdog = watchdog_new(c->watchdog_s);
	e = s.watchdog ? dtap_budget_new(c->budget, &s.budget) : -ENOMEM;
	if (!e)
		e = start_server(&s, c);
	if (e) {
		serve_config_drop(c);
	} else {
		watchdog_join(s.watchdog, &s.watched, "the service");
		take_config(&s, c);
		watchdog_tell("READY=1");
		follow(&s, signals);
		watchdog_tell("STOPPING=1");
		stop_server(&s);
		release_entries(s.entries, s.n);
		end_outputs(&s, NULL);
		if (s.config->textfile)		/* what nobody keeps up to date is not to be read */
			unlink(s.config->textfile);
		serve_config_drop(s.config);
	}
	dtap_budget_free(s.budget);
	watchdog_free(s.watchdog);
	pthread_mutex_destroy(&s.lock);
	close(signals);
	return e ? CMD_ERROR : CMD_OK;
}

static int check(const char *path)
{
	struct serve_config *c = serve_config_read(path, stderr);
	int code = c ? CMD_OK : CMD_ERROR;

	for (size_t i = 0; c && i < c->nscripts; i++)
		if (job_check(c, &c->scripts[i]))
			code = CMD_ERROR;
	if (code == CMD_OK)
		printf("%s: %zu script%s, no mistakes\n", path, c->nscripts, c->nscripts == 1 ? "" : "s");
	serve_config_drop(c);
	return code;
}

static const char help[] =
	"usage: dtap serve [-f CONFIG] [-c]\n"
	"\n"
	"Run scripts and ready-made commands on the Pythons that rules select, as they come and go, and show their\n"
	"aggregations as metrics for Prometheus.  SIGHUP reads the configuration again.\n"
	"\n"
	"  -f, --config FILE  the configuration, /etc/dtap/serve.yaml without it\n"
	"  -c, --check        say what is wrong with the configuration and its scripts, and run nothing\n"
	"  -h, --help         this text\n";

int cmd_serve(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'f' }, { "check", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' }, { 0 },
	};
	const char *path = "/etc/dtap/serve.yaml";
	bool checks = false;
	int c;

	while ((c = getopt_long(argc, argv, "f:ch", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			path = optarg;
			break;
		case 'c':
			checks = true;
			break;
		default:
			return help_or_mistake(c, help);
		}
	}
	if (!help_has_words(argc, 0, help))
		return CMD_USAGE;
	return checks ? check(path) : serve(path);
}
