#include "cmd/serve/health.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/strbuf.h"

/* --- of the service ------------------------------------------------------------------------------------ */

static double dtap_serve_config_ok(const struct health *h)
{
	return h->config_ok;
}

static double dtap_serve_reloads(const struct health *h)
{
	return (double)h->reloads;
}

/* proc_pid_statm(5): size, resident, in pages. */
static double process_resident_memory_bytes(const struct health *h)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long size, resident = 0;

	(void)h;
	if (!f)
		return 0;
	if (fscanf(f, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static double process_cpu_seconds(const struct health *h)
{
	struct rusage u;

	(void)h;
	if (getrusage(RUSAGE_SELF, &u))
		return 0;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double process_open_fds(const struct health *h)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;
	double n = -1;			/* the folder's own */

	(void)h;
	if (!d)
		return 0;
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static double process_start_time_seconds(const struct health *h)
{
	return (double)h->start_ns / 1e9;
}

/* --- of each script ------------------------------------------------------------------------------------ */

/* A sample of a script: @label and @value are one label more, unless NULL. */
struct sample {
	const char *name, *suffix, *script;
	struct strbuf *out;
};

static void put(const struct sample *s, const char *label, const char *value, double v)
{
	struct strbuf labels = { 0 };

	prom_label(&labels, "script", s->script);
	if (label)
		prom_label(&labels, label, value);
	prom_sample(s->out, s->name, s->suffix, strbuf_str(&labels));
	strbuf_printf(s->out, " %.15g\n", v);
	strbuf_fini(&labels);
}

static void put_counts(const struct sample *s, const char *label, const struct job_counts *c, bool over)
{
	for (size_t i = 0; i < c->n; i++)
		put(s, label, c->v[i].name, (double)(over ? c->v[i].over : c->v[i].n));
}

static void dtap_serve_script_info(const struct sample *s, const struct job_health *j)
{
	struct strbuf labels = { 0 };

	prom_label(&labels, "script", s->script);
	prom_label(&labels, "host", j->host);
	prom_label(&labels, "hash", j->hash);
	prom_sample(s->out, s->name, s->suffix, strbuf_str(&labels));
	strbuf_puts(s->out, " 1\n");
	strbuf_fini(&labels);
}

static void dtap_serve_script_up(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, j->up);
}

static void dtap_serve_script_starts(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->starts);
}

static void dtap_serve_processes(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->processes);
}

static void dtap_serve_attached(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->traced);
}

static void dtap_serve_refused(const struct sample *s, const struct job_health *j)
{
	put_counts(s, "reason", &j->refused, false);
}

static void dtap_serve_begun(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->begun);
}

static void dtap_serve_unseen(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->unseen);
}

static void dtap_serve_lost(const struct sample *s, const struct job_health *j)
{
	put_counts(s, "kind", &j->lost, false);
}

static void dtap_serve_series(const struct sample *s, const struct job_health *j)
{
	put_counts(s, "metric", &j->series, false);
}

static void dtap_serve_series_over(const struct sample *s, const struct job_health *j)
{
	put_counts(s, "metric", &j->series, true);
}

static void dtap_serve_late(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->late);
}

static void dtap_serve_events(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->events);
}

static void dtap_serve_profiles(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->profiles);
}

static void dtap_budget_bounded(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, j->cost.is_bounded);
}

static void dtap_budget_exact(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, !j->cost.rests);
}

static void dtap_budget_events(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->cost.events);
}

static void dtap_budget_spent_seconds(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->cost.spent_ns / 1e9);
}

static void dtap_budget_tracer_seconds(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->cost.tracer_ns / 1e9);
}

static void dtap_budget_cpu_seconds(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->cost.cpu_ns / 1e9);
}

static void dtap_budget_ratio(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, j->cost.ratio);
}

static void dtap_budget_rests(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->cost.rests);
}

static void dtap_budget_rested_seconds(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, (double)j->cost.rested_ns / 1e9);
}

static void dtap_budget_resting(const struct sample *s, const struct job_health *j)
{
	put(s, NULL, NULL, j->cost.resting);
}

/* --- of each output ------------------------------------------------------------------------------------ */

#define HEALTH(...)
#define HEALTH_SCRIPT(...)
#define HEALTH_OUTPUT(name, TYPE, help, member) \
	static double name(const struct output_health *o) \
	{ \
		return (double)o->member; \
	}
#include "cmd/serve/health.def"
#undef HEALTH
#undef HEALTH_SCRIPT
#undef HEALTH_OUTPUT

static void put_output(const struct sample *s, const char *output, double v)
{
	struct strbuf labels = { 0 };

	prom_label(&labels, "output", output);
	prom_sample(s->out, s->name, s->suffix, strbuf_str(&labels));
	strbuf_printf(s->out, " %.15g\n", v);
	strbuf_fini(&labels);
}

/* --- all ----------------------------------------------------------------------------------------------- */

static const struct row {
	const char *name, *help;
	enum prom_type type;
	double (*of_service)(const struct health *h);
	void (*of_script)(const struct sample *s, const struct job_health *j);
	double (*of_output)(const struct output_health *o);
} rows[] = {
#define HEALTH(name, TYPE, help) { #name, help, PROM_##TYPE, name, NULL, NULL },
#define HEALTH_SCRIPT(name, TYPE, help) { #name, help, PROM_##TYPE, NULL, name, NULL },
#define HEALTH_OUTPUT(name, TYPE, help, member) { #name, help, PROM_##TYPE, NULL, NULL, name },
#include "cmd/serve/health.def"
#undef HEALTH
#undef HEALTH_SCRIPT
#undef HEALTH_OUTPUT
};

void health_write(const struct health *h, enum prom_format format, struct strbuf *out)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		const char *suffix = r->type == PROM_COUNTER ? "_total" : "";

		prom_head(out, format, r->name, r->type, r->help);
		if (r->of_service) {
			prom_sample(out, r->name, suffix, "");
			strbuf_printf(out, " %.15g\n", r->of_service(h));
		}
		for (size_t k = 0; r->of_script && k < h->njobs; k++)
			r->of_script(&(struct sample){ r->name, suffix, h->scripts[k], out }, &h->jobs[k]);
		for (size_t k = 0; r->of_output && k < h->noutputs; k++)
			put_output(&(struct sample){ r->name, suffix, NULL, out }, h->outputs[k], r->of_output(&h->output_healths[k]));
	}
}
