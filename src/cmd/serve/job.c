#include "cmd/serve/job.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytemap.h"
#include "base/grow.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "cmd/ready/opts.h"
#include "cmd/ready/script.h"
#include "cmd/serve/config.h"
#include "cmd/serve/family.h"
#include "cmd/serve/fold.h"
#include "cmd/serve/known.h"
#include "cmd/serve/labels.h"
#include "cmd/serve/output.h"
#include "cmd/serve/profile.h"
#include "cmd/serve/rule.h"
#include "cmd/serve/watchdog.h"
#include "dtap.h"

enum {
	PAUSE_MIN_MS = 5000, PAUSE_MAX_MS = 300000,	/* before a run that could not be started is tried again */
	REASONS = 20,			/* different ones that are told; the others are one */
	LATE_MS = 5000,			/* events of a process that has ended come so much later at most */
	LINES = 20, LINES_MS = 60000,	/* notes in the log, at most so many in such a time */
	UNREAD_MS = 60000,		/* rows of processes that have ended are not kept for a reader who does not come */
};

struct job {
	pthread_t thread;
	int wake;			/* an eventfd: @asked, @next or @stop has changed */

	/* The thread's own. */
	struct serve_config *config;
	const struct serve_script *script;
	struct job_outputs outputs;
	struct families *families;
	struct folds folds;		/* what processes that have ended had counted */
	uint64_t read_ms;		/* when the aggregations were read last, or left unread */
	uint64_t rows_ms, stacks_ms;	/* when they were read last for metrics, and for profiles */
	struct profiles *profiles;	/* NULL: none were wanted so far */
	uint64_t profiles_ms;		/* when they are to be read next; UINT64_MAX: never */
	struct known known;		/* processes that events tell of */
	char boot[64];
	struct watchdog *watchdog;
	struct dtap_budget *budget;
	struct watched watched;
	char name[64];			/* the script's, as long as the job is there */
	uint64_t wall_off_ns, wall_off_ms;	/* from CLOCK_MONOTONIC to the time of day, and when it was asked for */
	uint64_t lines_from_ms;
	unsigned int lines;

	pthread_mutex_t lock;		/* of all that follows */
	pthread_cond_t answered;
	bool stop;
	struct serve_config *next;	/* NULL, or what shall replace @config and @script */
	const struct serve_script *next_script;
	struct job_outputs next_outputs;
	uint64_t asked[PROM_FORMATS], given[PROM_FORMATS];
	struct strbuf text[PROM_FORMATS];
	bool up;
	uint64_t starts, traced, late, events, profiled, unseen, begun;
	struct dtap_cost cost;
	pid_t *pids;			/* processes that are traced now */
	size_t npids, pids_cap;
	struct job_counts refused, lost, series;
};

/* One job at a time starts: together they would take all processors, and none would begin soon. */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

/* --- counts -------------------------------------------------------------------------------------------- */

static struct job_count *known_count(const struct job_counts *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->v[i].name, name))
			return &c->v[i];
	return NULL;
}

/* The count of that name; NULL: out of memory. */
static struct job_count *count_of(struct job_counts *c, const char *name)
{
	struct job_count *known = known_count(c, name);

	if (known)
		return known;
	if (!grow_array(&c->v, &c->cap, c->n, sizeof(*c->v)))
		return NULL;
	c->v[c->n] = (struct job_count){ .name = strdup(name) };
	return c->v[c->n].name ? &c->v[c->n++] : NULL;
}

static void fini_counts(struct job_counts *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i].name);
	free(c->v);
	*c = (struct job_counts){ 0 };
}

static void log_power(struct job *j, uint64_t n, const char *why);

/* Reasons with numbers in them, of processes and addresses, would be too many. */
static void count_refused(struct job *j, const char *why)
{
	struct strbuf reason = { 0 };
	struct job_count *c;

	for (const char *p = why; *p; p++)
		if (!isdigit((unsigned char)*p))
			strbuf_putc(&reason, *p);
		else if (!isdigit((unsigned char)p[1]))
			strbuf_putc(&reason, 'N');
	c = known_count(&j->refused, strbuf_str(&reason));
	if (!c)
		c = count_of(&j->refused, j->refused.n < REASONS ? strbuf_str(&reason) : "(other)");
	if (c)
		c->n++;
	if (c)
		log_power(j, c->n, c->name);
	strbuf_fini(&reason);
}

/* False: it is not there. */
static bool forget_pid(struct job *j, pid_t pid)
{
	for (size_t i = 0; i < j->npids; i++) {
		if (j->pids[i] == pid) {
			j->pids[i] = j->pids[--j->npids];
			return true;
		}
	}
	return false;
}

static void keep_pid(struct job *j, pid_t pid)
{
	bool known = forget_pid(j, pid);

	j->traced += !known;
	if (grow_array(&j->pids, &j->pids_cap, j->npids, sizeof(*j->pids)))
		j->pids[j->npids++] = pid;
}

/* --- the library's calls, in the job's thread ---------------------------------------------------------- */

/* Without "# " and the name of the command whose messages they are. */
static const char *words_of(const char *text)
{
	text += !strncmp(text, "# ", 2) ? 2 : 0;
	return text + (!strncmp(text, "dtrace: ", 8) ? 8 : !strncmp(text, "stap: ", 6) ? 6 : 0);
}

/* May one more line be logged?  Thousands of processes have as many. */
static bool may_log(struct job *j)
{
	uint64_t now = now_ms();

	if (!j->lines_from_ms || now - j->lines_from_ms > LINES_MS) {
		j->lines_from_ms = now;
		j->lines = 0;
	}
	if (++j->lines == LINES)
		fprintf(stderr, "dtap serve: %s: more messages are left out for a minute\n", j->script->name);
	return j->lines < LINES;
}

/* Ever fewer lines about processes that are not traced. */
static void log_power(struct job *j, uint64_t n, const char *why)
{
	if (!(n & (n - 1)) && may_log(j))
		fprintf(stderr, "dtap serve: %s: not traced, %" PRIu64 " so far: %s\n", j->script->name, n, why);
}

static void message(void *ctx, enum dtap_level level, const char *text)
{
	struct job *j = ctx;

	if (level == DTAP_NOTE && strstr(text, "dtap's agent supplies"))
		return;
	if (may_log(j))
		fprintf(stderr, "dtap serve: %s: %s", j->script->name, words_of(text));
}

static bool selects(void *ctx, pid_t pid)
{
	const struct job *j = ctx;

	return rule_selects(j->script->rule, pid);
}

/* --- events -------------------------------------------------------------------------------------------- */

static uint64_t wall_off(struct job *j)
{
	uint64_t now = now_ms();

	if (!j->wall_off_ns || now - j->wall_off_ms >= 1000) {
		j->wall_off_ns = now_wall_off_ns();
		j->wall_off_ms = now;
	}
	return j->wall_off_ns;
}

/* A process that was never told of is a child of one that is traced. */
static const struct labels *labels_of(struct job *j, pid_t pid)
{
	const struct labels *l = known_process(&j->known, pid);

	if (!l && pid != getpid()) {
		l = known_learn(&j->known, pid, &j->config->labels);
		known_retire(&j->known, pid, now_ms());
	}
	return l;
}

static uint64_t next_number(void *ctx)
{
	return output_next(ctx);
}

static const struct labels *process_labels(void *ctx, pid_t pid)
{
	return labels_of(ctx, pid);
}

static void record(void *ctx, const struct dtap_record *r)
{
	struct job *j = ctx;
	struct strbuf line = { 0 };
	struct event e = { .config = j->config, .script = j->script, .boot = j->boot };

	if (!j->outputs.events)
		return;
	e.labels = labels_of(j, (pid_t)r->pid);
	e.wall_off_ns = wall_off(j);
	e.run = output_run(j->outputs.events);
	e.sequence = next_number;
	e.ctx = j->outputs.events;
	if (event_write(output_form(j->outputs.events), &e, r, &line)) {
		output_put(j->outputs.events, &line);
		pthread_mutex_lock(&j->lock);
		j->events++;
		pthread_mutex_unlock(&j->lock);
	}
	strbuf_fini(&line);
}

static void process(void *ctx, const struct dtap_process_event *e)
{
	struct job *j = ctx;

	if (e->what == DTAP_TRACED)
		known_learn(&j->known, e->pid, &j->config->labels);
	else if (e->what == DTAP_GONE || e->what == DTAP_REFUSED)
		known_retire(&j->known, e->pid, now_ms());
	pthread_mutex_lock(&j->lock);
	switch (e->what) {
	case DTAP_TRACED:
		keep_pid(j, e->pid);
		break;
	case DTAP_REFUSED:
		count_refused(j, e->why);
		forget_pid(j, e->pid);
		break;
	case DTAP_GONE:
		forget_pid(j, e->pid);
		break;
	case DTAP_UNSEEN:
		j->unseen++;
		log_power(j, j->unseen, "named python, and had ended before anybody could look whether the rule selects it");
		break;
	case DTAP_LATE:
		j->begun++;
		break;
	case DTAP_RESTS:
	case DTAP_GOES_ON:
		break;
	}
	pthread_mutex_unlock(&j->lock);
}

static void lost(void *ctx, const char *kind, uint64_t n)
{
	struct job *j = ctx;
	struct job_count *c;

	pthread_mutex_lock(&j->lock);
	c = count_of(&j->lost, kind);
	if (c)
		c->n += n;
	pthread_mutex_unlock(&j->lock);
}

/* --- a run --------------------------------------------------------------------------------------------- */

/* The script and its settings.  0 or a negative errno, after a message. */
static int prepare(struct dtap *t, const struct serve_script *s)
{
	bool in_kernel = s->command && s->command->head.needs_kernel;
	int e = 0;

	if (s->rule)
		dtap_select(t, DTAP_SELECT_RULE, 0);
	else if (!in_kernel && s->language == DTAP_D)
		dtap_set(t, "place", "target");
	if (s->language == DTAP_STAP)
		dtap_read_globals(t);
	for (size_t i = 0; i < s->options.n && !e; i++) {
		const char *value = s->options.v[i].value;

		e = dtap_set(t, s->options.v[i].name, *value ? value : NULL);
	}
	for (size_t i = 0; i < s->arguments.n; i++)
		dtap_argument(t, s->arguments.v[i]);
	if (e || (s->command && ready_script_add(s->command, t)))
		return e ? e : -EINVAL;
	if (!s->command) {
		if (s->language == DTAP_D)
			dtap_set(t, "quiet", NULL);
		dtap_script(t, s->file ? DTAP_FILE : DTAP_TEXT, s->file ? s->file : s->program);
	}
	return 0;
}

static struct dtap *open_run(struct job *j)
{
	const struct dtap_conf conf = {
		.size = sizeof(conf), .language = j->script->language, .ctx = j, .message = message, .selects = selects,
		.process = process, .lost = lost, .keep_signals = true, .budget = j->budget,
		.record = j->outputs.events ? record : NULL,
	};
	struct dtap *t = dtap_new(&conf);
	int e;

	if (!t) {
		fprintf(stderr, "dtap serve: %s: out of memory\n", j->script->name);
		return NULL;
	}
	pthread_mutex_lock(&starting);
	e = prepare(t, j->script);
	if (!e)
		e = dtap_open(t);
	if (!e)
		e = dtap_start(t);
	pthread_mutex_unlock(&starting);
	if (!e)
		return t;
	dtap_free(t);
	return NULL;
}

static void set_up(struct job *j, bool up)
{
	pthread_mutex_lock(&j->lock);
	j->up = up;
	j->starts += up;
	j->npids = up ? j->npids : 0;
	pthread_mutex_unlock(&j->lock);
}

static int take_row(void *ctx, const struct dtap_row *row)
{
	return families_add(ctx, row);
}

/* Keep how many series there are, for job_health(). */
static void count_series(struct job *j)
{
	for (size_t i = 0; i < families_count(j->families); i++) {
		size_t series, over;
		struct job_count *c = count_of(&j->series, families_name(j->families, i, &series, &over));

		if (c)
			*c = (struct job_count){ c->name, series, over };
	}
}

static void keep_cost(struct job *j, struct dtap *t)
{
	struct dtap_cost cost = { .size = sizeof(cost) };

	if (dtap_cost(t, &cost))
		return;
	pthread_mutex_lock(&j->lock);
	j->cost = cost;
	pthread_mutex_unlock(&j->lock);
}

/* Those whose rows were read after their last events. */
static void forget_ended(struct job *j)
{
	uint64_t read = j->profiles_ms != UINT64_MAX && j->stacks_ms < j->rows_ms ? j->stacks_ms : j->rows_ms;

	known_forget(&j->known, read > LATE_MS ? read - LATE_MS : 0);
}

static int read_rows(struct job *j, struct dtap *t)
{
	int e;

	families_begin(j->families);
	e = dtap_aggregations(t, NULL, take_row, j->families);
	if (!e)
		e = families_end(j->families);
	j->read_ms = j->rows_ms = now_ms();
	forget_ended(j);
	return e;
}

/* Nobody has asked for long.  The probes of a SystemTap script would wait for it. */
static void read_unread(struct job *j, struct dtap *t)
{
	int e = j->script->language == DTAP_D ? read_rows(j, t) : 0;

	if (e && may_log(j))
		fprintf(stderr, "dtap serve: %s: cannot read the aggregations: %s\n", j->script->name, strerror(-e));
	j->read_ms = now_ms();
}

/* Read the aggregations of @t, and give @format to who asked. */
static void give(struct job *j, struct dtap *t, enum prom_format format, uint64_t number)
{
	struct strbuf text = { 0 };
	int e = 0;

	if (t) {
		keep_cost(j, t);
		e = read_rows(j, t);
	}
	if (e)
		fprintf(stderr, "dtap serve: %s: cannot read the aggregations: %s\n", j->script->name, strerror(-e));
	families_write(j->families, format, &text);
	pthread_mutex_lock(&j->lock);
	strbuf_fini(&j->text[format]);
	j->text[format] = text;
	if (t && !e)
		count_series(j);
	j->given[format] = number;
	pthread_cond_broadcast(&j->answered);
	pthread_mutex_unlock(&j->lock);
}

/* --- profiles ------------------------------------------------------------------------------------------ */

/* From now on, or no longer, as the configuration says. */
static void plan_profiles(struct job *j)
{
	const struct serve_output *conf = j->script->profiles;

	if (j->profiles)
		profiles_show(j->profiles, j->config, j->script);
	else if (conf)
		j->profiles = profiles_new(j->config, j->script, process_labels, j, now_wall_ns());
	j->profiles_ms = conf && j->profiles && j->outputs.profiles ? now_ms() + conf->interval_ms : UINT64_MAX;
}

static int take_stack(void *ctx, const struct dtap_row *row)
{
	return profiles_add(ctx, row);
}

/* A period ends: what @t has counted in it is a profile. */
static void take_profiles(struct job *j, struct dtap *t)
{
	uint64_t n;
	int e;

	if (j->profiles_ms == UINT64_MAX)
		return;
	profiles_begin(j->profiles);
	e = dtap_aggregations(t, NULL, take_stack, j->profiles);
	if (e && may_log(j))
		fprintf(stderr, "dtap serve: %s: cannot read the aggregations: %s\n", j->script->name, strerror(-e));
	n = profiles_put(j->profiles, j->outputs.profiles, now_wall_ns());
	j->stacks_ms = now_ms();
	forget_ended(j);
	j->profiles_ms = now_ms() + j->script->profiles->interval_ms;
	pthread_mutex_lock(&j->lock);
	j->profiled += n;
	pthread_mutex_unlock(&j->lock);
}

/* How long to wait in poll(2), at most. */
static int wait_ms(const struct job *j)
{
	int most = watchdog_wait_ms(j->watchdog);
	uint64_t now = now_ms(), read = j->read_ms + UNREAD_MS, due = j->profiles_ms < read ? j->profiles_ms : read;
	uint64_t left = due > now ? due - now : 0;

	return most >= 0 && left > (uint64_t)most ? most : (int)left;
}

/* The outputs are used from now on, and those of before no longer. */
static void use_outputs(struct job_outputs *to, struct job_outputs outputs)
{
	output_use(outputs.events);
	output_use(outputs.profiles);
	output_drop(to->events);
	output_drop(to->profiles);
	*to = outputs;
}

static bool same_pairs(const struct serve_pairs *a, const struct serve_pairs *b)
{
	bool same = a->n == b->n;

	for (size_t i = 0; same && i < a->n; i++)
		same = !strcmp(a->v[i].name, b->v[i].name) && !strcmp(a->v[i].value, b->v[i].value);
	return same;
}

/* The results are to be shown as another configuration says. */
static void take_next(struct job *j)
{
	struct serve_config *next;

	pthread_mutex_lock(&j->lock);
	next = j->next;
	if (next) {
		families_free(j->families);
		if (!same_pairs(&j->config->labels, &next->labels)) {	/* those that have ended have none from now on */
			known_fini(&j->known);
			folds_unlabel(&j->folds);
		}
		serve_config_drop(j->config);
		use_outputs(&j->outputs, j->next_outputs);	/* never the last reference: the service has it */
		use_outputs(&j->next_outputs, (struct job_outputs){ 0 });
		j->config = next;
		j->script = j->next_script;
		j->next = NULL;
		j->families = families_new(j->script, &next->labels, &j->folds, process_labels, j);
		fini_counts(&j->series);
		plan_profiles(j);
	}
	pthread_mutex_unlock(&j->lock);
}

/* Do what others want.  False: the job is to end. */
static bool serve(struct job *j, struct dtap *t)
{
	uint64_t count;
	ssize_t n = read(j->wake, &count, sizeof(count));
	bool on;

	(void)n;	/* nothing may have come */
	take_next(j);
	for (int format = 0; format < PROM_FORMATS; format++) {
		uint64_t asked, given;

		pthread_mutex_lock(&j->lock);
		asked = j->asked[format];
		given = j->given[format];
		pthread_mutex_unlock(&j->lock);
		if (asked != given)
			give(j, t, (enum prom_format)format, asked);
	}
	pthread_mutex_lock(&j->lock);
	on = !j->stop;
	pthread_mutex_unlock(&j->lock);
	return on;
}

/* Until the script ends, or the job is to end: false. */
static bool follow(struct job *j, struct dtap *t)
{
	struct pollfd fds[] = { { .fd = dtap_fd(t), .events = POLLIN }, { .fd = j->wake, .events = POLLIN } };
	int e = 1;

	while (e > 0 && (poll(fds, 2, wait_ms(j)) >= 0 || errno == EINTR)) {
		watchdog_alive(&j->watched);
		if (!serve(j, t))
			return false;
		if (now_ms() >= j->profiles_ms)
			take_profiles(j, t);
		if (now_ms() - j->read_ms >= UNREAD_MS)
			read_unread(j, t);
		e = dtap_turn(t, 0);
	}
	return true;
}

/* @ms without a run; negative: no limit.  False: the job is to end. */
static bool idle(struct job *j, int64_t ms)
{
	struct pollfd fd = { .fd = j->wake, .events = POLLIN };
	uint64_t now, end = now_ms() + (uint64_t)(ms < 0 ? 0 : ms);
	int most;

	for (;;) {
		now = now_ms();
		if (ms >= 0 && now >= end)
			return true;
		most = watchdog_wait_ms(j->watchdog);
		poll(&fd, 1, ms < 0 || (most >= 0 && end - now > (uint64_t)most) ? most : (int)(end - now));
		watchdog_alive(&j->watched);
		if (!serve(j, NULL))
			return false;
	}
}

static void run(struct job *j)
{
	int64_t pause = PAUSE_MIN_MS;
	struct dtap *t;
	bool on;

	while (!(t = open_run(j))) {
		fprintf(stderr, "dtap serve: %s: does not run, next try in %" PRId64 " s\n", j->script->name, pause / 1000);
		if (!idle(j, pause))
			return;
		pause = 2 * pause > PAUSE_MAX_MS ? PAUSE_MAX_MS : 2 * pause;
	}
	j->read_ms = now_ms();
	set_up(j, true);
	plan_profiles(j);
	on = follow(j, t);
	dtap_finish(t);
	take_profiles(j, t);
	set_up(j, false);
	if (on) {	/* the script has called exit(), or its run failed: what it has counted stays */
		fprintf(stderr, "dtap serve: %s: has ended\n", j->script->name);
		give(j, t, PROM_TEXT, j->given[PROM_TEXT]);
	}
	dtap_free(t);
	if (on)
		idle(j, -1);
}

static void *watched_run(void *ctx)
{
	struct job *j = ctx;

	watchdog_join(j->watchdog, &j->watched, j->name);
	run(j);
	watchdog_leave(j->watchdog, &j->watched);
	return NULL;
}

/* --- for other threads --------------------------------------------------------------------------------- */

static void wake(struct job *j)
{
	uint64_t one = 1;
	ssize_t n = write(j->wake, &one, sizeof(one));

	(void)n;	/* -EAGAIN: it is awake */
}

static void read_boot(struct job *j)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || fscanf(f, "%63s", j->boot) != 1)
		*j->boot = 0;
	if (f)
		fclose(f);
}

static void release(struct job *j)
{
	families_free(j->families);
	folds_fini(&j->folds);
	profiles_free(j->profiles);
	known_fini(&j->known);
	use_outputs(&j->outputs, (struct job_outputs){ 0 });
	use_outputs(&j->next_outputs, (struct job_outputs){ 0 });
	serve_config_drop(j->config);
	serve_config_drop(j->next);
	for (int i = 0; i < PROM_FORMATS; i++)
		strbuf_fini(&j->text[i]);
	fini_counts(&j->refused);
	fini_counts(&j->lost);
	fini_counts(&j->series);
	free(j->pids);
	if (j->wake >= 0)
		close(j->wake);
	pthread_cond_destroy(&j->answered);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

int job_start(struct serve_config *config, const struct serve_script *script, struct job_outputs outputs, struct watchdog *watchdog,
	      struct dtap_budget *budget, struct job **ret)
{
	struct job *j = calloc(1, sizeof(*j));
	pthread_condattr_t monotonic;
	int e;

	if (!j)
		return -ENOMEM;
	j->config = serve_config_use(config);
	j->script = script;
	use_outputs(&j->outputs, outputs);
	j->watchdog = watchdog;
	j->budget = budget;
	snprintf(j->name, sizeof(j->name), "%s", script->name);
	j->families = families_new(script, &config->labels, &j->folds, process_labels, j);
	read_boot(j);
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&j->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	j->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e = j->wake < 0 ? -errno : -pthread_create(&j->thread, NULL, watched_run, j);
	if (e) {
		release(j);
		return e;
	}
	pthread_setname_np(j->thread, "dtap-job");
	*ret = j;
	return 0;
}

void job_end(struct job *j)
{
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_mutex_unlock(&j->lock);
	wake(j);
}

void job_stop(struct job *j)
{
	if (!j)
		return;
	job_end(j);
	pthread_join(j->thread, NULL);
	release(j);
}

void job_show(struct job *j, struct serve_config *config, const struct serve_script *script, struct job_outputs outputs)
{
	pthread_mutex_lock(&j->lock);
	serve_config_drop(j->next);
	use_outputs(&j->next_outputs, outputs);
	j->next = serve_config_use(config);
	j->next_script = script;
	pthread_mutex_unlock(&j->lock);
	wake(j);
}

void job_ask(struct job *j, enum prom_format format)
{
	pthread_mutex_lock(&j->lock);
	j->asked[format]++;
	pthread_mutex_unlock(&j->lock);
	wake(j);
}

void job_take(struct job *j, enum prom_format format, uint64_t due_ms, struct strbuf *out)
{
	const struct timespec due = { (time_t)(due_ms / 1000), (long)(due_ms % 1000) * 1000000 };

	pthread_mutex_lock(&j->lock);
	while (j->given[format] != j->asked[format] && !pthread_cond_timedwait(&j->answered, &j->lock, &due))
		;
	j->late += j->given[format] != j->asked[format];
	strbuf_puts(out, strbuf_str(&j->text[format]));
	pthread_mutex_unlock(&j->lock);
}

static void copy_counts(struct job_counts *to, const struct job_counts *from)
{
	for (size_t i = 0; i < from->n; i++) {
		struct job_count *c = count_of(to, from->v[i].name);

		if (c)
			*c = (struct job_count){ c->name, from->v[i].n, from->v[i].over };
	}
}

void job_health(struct job *j, struct job_health *h)
{
	*h = (struct job_health){ 0 };
	pthread_mutex_lock(&j->lock);
	h->up = j->up;
	h->starts = j->starts;
	h->traced = j->traced;
	h->events = j->events;
	h->profiles = j->profiled;
	h->processes = j->npids;
	h->late = j->late;
	h->unseen = j->unseen;
	h->begun = j->begun;
	h->cost = j->cost;
	copy_counts(&h->refused, &j->refused);
	copy_counts(&h->lost, &j->lost);
	copy_counts(&h->series, &j->series);
	pthread_mutex_unlock(&j->lock);
}

void job_health_fini(struct job_health *h)
{
	fini_counts(&h->refused);
	fini_counts(&h->lost);
	fini_counts(&h->series);
}

/* --- --check ------------------------------------------------------------------------------------------- */

struct checked {
	const struct serve_config *config;
	const struct serve_script *script;
};

static void check_message(void *ctx, enum dtap_level level, const char *text)
{
	const struct checked *c = ctx;

	if (level != DTAP_NOTE)
		fprintf(stderr, "%s:%zu:%zu: %s: %s", c->config->path, c->script->line, c->script->column, c->script->name,
			words_of(text));
}

static bool selects_none(void *ctx, pid_t pid)
{
	(void)ctx;
	(void)pid;
	return false;
}

int job_check(const struct serve_config *config, const struct serve_script *script)
{
	struct checked c = { config, script };
	const struct dtap_conf conf = { .size = sizeof(conf), .language = script->language, .ctx = &c, .message = check_message,
					.selects = selects_none, .keep_signals = true };
	struct dtap *t = dtap_new(&conf);
	int e;

	if (!t)
		return -ENOMEM;
	dtap_purpose(t, DTAP_TO_COMPILE);
	e = prepare(t, script);
	if (!e)
		e = dtap_open(t);
	dtap_free(t);
	return e;
}
