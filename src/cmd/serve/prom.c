#include "cmd/serve/prom.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cmd/ready/cell.h"

const char *prom_content_type(enum prom_format format)
{
	return format == PROM_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8" :
					    "text/plain; version=0.0.4; charset=utf-8";
}

/* @text with a backslash before the characters of @special, and \n for a newline. */
static void put_escaped(struct strbuf *out, const char *text, const char *special)
{
	struct strbuf valid = { 0 };

	ready_utf8(text, &valid);
	for (const char *p = strbuf_str(&valid); *p; p++) {
		if (*p == '\n') {
			strbuf_puts(out, "\\n");
			continue;
		}
		if (strchr(special, *p))
			strbuf_putc(out, '\\');
		strbuf_putc(out, *p);
	}
	strbuf_fini(&valid);
}

void prom_head(struct strbuf *out, enum prom_format format, const char *name, enum prom_type type, const char *help)
{
	static const char *const types[] = {
		[PROM_COUNTER] = "counter", [PROM_GAUGE] = "gauge", [PROM_SUMMARY] = "summary", [PROM_HISTOGRAM] = "histogram",
	};
	const char *total = type == PROM_COUNTER && format == PROM_TEXT ? "_total" : "";

	strbuf_printf(out, "# HELP %s%s ", name, total);
	put_escaped(out, help, format == PROM_TEXT ? "\\" : "\\\"");
	strbuf_printf(out, "\n# TYPE %s%s %s\n", name, total, types[type]);
}

void prom_label(struct strbuf *labels, const char *name, const char *value)
{
	strbuf_printf(labels, "%s%s=\"", labels->len ? "," : "", name);
	put_escaped(labels, value, "\\\"");
	strbuf_putc(labels, '"');
}

void prom_sample(struct strbuf *out, const char *name, const char *suffix, const char *labels)
{
	strbuf_printf(out, *labels ? "%s%s{%s}" : "%s%s", name, suffix, labels);
}

/* The shortest decimal number that is @v. */
static void put_number(double v, char *text, size_t size)
{
	int digits = 6;

	do
		snprintf(text, size, "%.*g", digits, v);
	while (strtod(text, NULL) != v && digits++ < 17);
}

void prom_value(struct strbuf *out, uint64_t value, bool is_signed, double scale)
{
	char text[40];

	if (scale != 0) {
		put_number((is_signed ? (double)(int64_t)value : (double)value) * scale, text, sizeof(text));
		strbuf_printf(out, " %s\n", text);
	} else if (is_signed) {
		strbuf_printf(out, " %" PRId64 "\n", (int64_t)value);
	} else {
		strbuf_printf(out, " %" PRIu64 "\n", value);
	}
}

void prom_bound(struct strbuf *out, double bound)
{
	char text[40];

	/* Multiplication by a scale leaves 1.0230000000000001e-06. */
	snprintf(text, sizeof(text), "%.15g", bound);
	put_number(strtod(text, NULL), text, sizeof(text));
	strbuf_puts(out, text);
	if (!strpbrk(text, ".e"))
		strbuf_puts(out, ".0");
}

void prom_end(struct strbuf *out, enum prom_format format)
{
	if (format == PROM_OPENMETRICS)
		strbuf_puts(out, "# EOF\n");
}
