/*
 * Formats of one value of a result: for people, JSON and CSV.
 */
#ifndef DTAP_CMD_READY_CELL_H
#define DTAP_CMD_READY_CELL_H

#include <stdbool.h>

#include "cmd/ready/head.h"
#include "dtap.h"

struct strbuf;

/* Replace the text or stack of a value by a copy on the heap: 0 or -ENOMEM.  And free that copy. */
int ready_value_keep(struct dtap_value *v);
void ready_value_drop(const struct dtap_value *v);

/* For people: a time with its unit; text without control characters. */
void ready_cell(enum ready_kind kind, const struct dtap_value *v, struct strbuf *out);

/* Append @ns with a suitable unit: "12.3 ms". */
void ready_time(int64_t ns, struct strbuf *out);

/* Is the column right-aligned? */
bool ready_is_number(enum ready_kind kind);

/* The column's name for programs, with its unit. */
void ready_name(const struct ready_column *c, struct strbuf *out);

void ready_json(enum ready_kind kind, const struct dtap_value *v, struct strbuf *out);
/* @s with U+FFFD in place of invalid UTF-8. */
void ready_utf8(const char *s, struct strbuf *out);

void ready_json_text(const char *s, struct strbuf *out);
void ready_csv(enum ready_kind kind, const struct dtap_value *v, struct strbuf *out);
void ready_csv_text(const char *s, struct strbuf *out);

#endif
