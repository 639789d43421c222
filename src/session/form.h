/*
 * The form of a session's output: text (form_text.c), a document (structured.c), or values for the library's caller
 * (form_values.c).  session_start() chooses one; no other code depends on which it is.
 */
#ifndef DTAP_SESSION_FORM_H
#define DTAP_SESSION_FORM_H

#include "session/private.h"

/* A record with its fields read, while its actions run. */
struct reading {
	struct session *s;
	const struct ir_rec *rec;
	const struct ir_value *fields;
	const struct record *record;
};

/* 0, or a negative errno: the output failed. */
typedef int action_fn(const struct reading *r, const struct ir_act *act);
typedef int put_aggs_fn(struct session *s, const struct fmt *fmt, const struct out_agg *aggs, size_t n,
			const struct out_agg_order *order);

struct form {
	/* Called before anything fires, and at the end.  NULL: nothing to do. */
	int (*open)(struct session *s);
	void (*close)(struct session *s);
	/* Called before and after the actions of a record.  @next: the firing of the following record, or NULL. */
	void (*begin)(const struct reading *r, const struct out_firing *f, const struct out_firing *next);
	void (*end)(struct session *s);
	/* The actions that print; NULL for those that do the same in each form (records.c). */
	action_fn *act[IR_ACT_MAX];
	/* At the end: print an aggregation that the script did not print. */
	int (*last_agg)(struct session *s, const struct out_agg *agg, const struct out_agg_order *order);
	bool last_aggs_asked;		/* only if conf.print_aggs asks for them */
	bool stands_apart;		/* an empty line precedes them, if the dialect has one */
	/* @n more things of @kind (enum abi_drop or out_drop) were lost. */
	void (*drops)(struct session *s, unsigned int kind, uint64_t n);
};

extern const struct form form_text, form_document, form_values;

/* @act's own fields, and their types; a record without fields has no array of them. */
static inline const struct ir_value *reading_values(const struct reading *r, const struct ir_act *act)
{
	return r->fields + act->field;
}

static inline const struct ir_slot *reading_slots(const struct reading *r, const struct ir_act *act)
{
	return act->nfields ? r->rec->fields + act->field : NULL;
}

/* records.c: the text of @act's format; the caller closes @text. */
int reading_text(const struct reading *r, const struct ir_act *act, struct out_sink *text);

/*
 * records.c: the bytes that tracemem() shows, from the fields after the first, which has their number.  Returns the
 * number.
 */
enum { READING_BYTES = 8 * IR_MAX_FIELDS };
size_t reading_bytes(const struct reading *r, const struct ir_act *act, unsigned char bytes[READING_BYTES]);

/* report.c: pass the aggregations of printa() to @put, and note that they were printed. */
int reading_aggs(const struct reading *r, const struct ir_act *act, put_aggs_fn *put);

#endif
