/*
 * A caller of libdtap that prints what it gets: "show d|stap SCRIPT COMMAND [OPTION=VALUE ...]".
 *
 *	message LEVEL TEXT
 *	record PROVIDER:NAME ACTION [text=TEXT] VALUE ...
 *	row NAME FUNCTION KEY ... = VALUE | BOUND:COUNT ...
 *
 * With "turn" among the options it turns the loop itself; with "stop=N" it calls dtap_stop() at the N-th record; with
 * "print" the library prints instead.
 */
#include <dtap.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dtap *t;
static unsigned long stop_at, nrecords;

static void message(void *ctx, enum dtap_level level, const char *text)
{
	static const char *const names[] = { "error", "warning", "note", "drop", "dump" };

	(void)ctx;
	printf("message %s %s", names[level], text);
}

static void put(const struct dtap_value *v)
{
	switch (v->type) {
	case DTAP_INT:
		printf(" int=%lld", (long long)v->i);
		break;
	case DTAP_UINT:
		printf(" uint=%llu", (unsigned long long)v->u);
		break;
	case DTAP_FLOAT:
		printf(" float=%g", v->f);
		break;
	case DTAP_STRING:
		printf(" string=%s", v->s);
		break;
	case DTAP_STACK:
		printf(" stack=");
		for (size_t i = 0; i < v->stack.n; i++)
			printf("%s%s", i ? "|" : "", v->stack.frames[i]);
		break;
	}
}

static void record(void *ctx, const struct dtap_record *r)
{
	(void)ctx;
	for (size_t i = 0; i < r->nactions; i++) {
		const struct dtap_action *a = &r->actions[i];

		printf("record %s:%s %s", r->provider, r->name, a->name);
		if (a->text)
			printf(" text=%s", a->text);
		for (size_t k = 0; k < a->nvalues; k++)
			put(&a->values[k]);
		putchar('\n');
	}
	if (++nrecords == stop_at)
		dtap_stop(t);
}

static int row(void *ctx, const struct dtap_row *r)
{
	(void)ctx;
	printf("row %s %s", r->aggregation, r->function);
	for (size_t i = 0; i < r->nkeys; i++)
		put(&r->keys[i]);
	printf(" =");
	if (!r->buckets)
		put(&r->value);
	for (size_t i = 0; i < r->nbuckets; i++)
		printf(" %lld:%lld", (long long)r->buckets[i].from, (long long)r->buckets[i].count);
	putchar('\n');
	return 0;
}

static int turn(void)
{
	struct pollfd p;
	int e = dtap_start(t);

	if (e)
		return e;
	p = (struct pollfd){ .fd = dtap_fd(t), .events = POLLIN };
	do {
		poll(&p, 1, 1000);
		e = dtap_turn(t, 0);
	} while (e > 0);
	return dtap_finish(t);
}

int main(int argc, char **argv)
{
	struct dtap_conf conf = { .size = sizeof(conf), .message = message, .record = record };
	bool turns = false;
	int e;

	if (argc < 4)
		return 2;
	conf.language = strcmp(argv[1], "d") ? DTAP_STAP : DTAP_D;
	for (int i = 4; i < argc; i++)
		if (!strcmp(argv[i], "print"))
			conf.record = NULL;
	t = dtap_new(&conf);
	if (!t)
		return 2;
	dtap_script(t, DTAP_TEXT, argv[2]);
	if (*argv[3])
		dtap_command(t, argv[3]);
	for (int i = 4; i < argc; i++) {
		char *eq = strchr(argv[i], '=');

		if (!strcmp(argv[i], "turn")) {
			turns = true;
		} else if (!strcmp(argv[i], "print")) {
			dtap_output(t, 1);
		} else if (!strncmp(argv[i], "stop=", 5)) {
			stop_at = strtoul(eq + 1, NULL, 10);
		} else {
			if (eq)
				*eq = '\0';
			dtap_set(t, argv[i], eq ? eq + 1 : NULL);
		}
	}
	e = dtap_open(t);
	if (!e)
		e = turns ? turn() : dtap_run(t);
	if (!e)
		e = dtap_aggregations(t, NULL, row, NULL);
	printf("end %d status %d\n", e, dtap_status(t));
	dtap_free(t);
	return 0;
}
