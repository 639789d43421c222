#include "cmd/ready/script.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/ready/opts.h"
#include "cmd/ready/pattern.h"
#include "dtap.h"

static const char selected[] = "$selected:";

/* The command's own option after @o; the first if that is NULL.  Those that name variants are none of the script's. */
static const struct ready_option *next_option(const struct ready_head *h, const struct ready_option *o)
{
	for (o = o ? o + 1 : h->options; o && o < h->options + h->noptions; o++)
		if (!o->is_variant)
			return o;
	return NULL;
}

/* The value of $@number, or NULL. */
static const char *argument(const struct ready_head *h, size_t number)
{
	const struct ready_option *o = next_option(h, NULL);

	while (o && --number)
		o = next_option(h, o);
	return o ? ready_value(o) : NULL;
}

static const char *more(const struct ready_request *q)
{
	return q->head.more ? q->head.more : "";
}

/* Does the script use the selected functions as probes, not as a predicate? */
static bool has_probes(const struct ready_request *q)
{
	return strstr(q->head.text, selected) || strstr(more(q), selected);
}

/* In the kernel place the script itself must select the processes. */
static void put_targeted(const struct ready_request *q, struct strbuf *out)
{
	strbuf_puts(out, "inline int targeted = ");
	if (q->by_user)
		strbuf_printf(out, "uid == %u", q->user);
	else if (q->all)
		strbuf_putc(out, '1');
	else
		strbuf_puts(out, "pid == $target || progenyof($target)");
	for (size_t i = q->command ? 0 : 1; i < q->npids; i++)
		strbuf_printf(out, " || pid == %d || progenyof(%d)", (int)q->pids[i], (int)q->pids[i]);
	strbuf_puts(out, ";\n");
}

/* The definitions before the command's own text: the selected functions and processes, and its options. */
static int prelude(const struct ready_request *q, struct strbuf *out)
{
	struct strbuf err = { 0 };
	int e = 0;

	if (q->head.functions && !has_probes(q)) {
		strbuf_puts(out, "inline int selected = ");
		e = ready_pattern(q->functions, q->nfunctions, out, &err);
		strbuf_puts(out, ";\n");
	}
	if (q->head.needs_kernel)
		put_targeted(q, out);
	for (const struct ready_option *o = next_option(&q->head, NULL); o; o = next_option(&q->head, o)) {
		const char *value = ready_value(o);

		strbuf_printf(out, "inline %s option_%s = ", o->kind == READY_TEXT ? "string" : "int64_t", o->name);
		if (o->kind == READY_TEXT)
			ready_literal(value, strlen(value), out);
		else
			strbuf_puts(out, value);
		strbuf_puts(out, ";\n");
	}
	if (e)
		fprintf(stderr, "dtap %s: %s\n", q->head.name, strbuf_str(&err));
	strbuf_fini(&err);
	return e ? CMD_USAGE : 0;
}

/*
 * The script's text with probes in place of $selected:NAME and, for ready_script_print(), the values of the
 * command's own options in place of $1, $2 ...  0, or the exit code after a message.
 */
static int put_text(const struct ready_request *q, const char *text, bool values, struct strbuf *out)
{
	struct strbuf err = { 0 };
	size_t number, len;
	int e = 0;

	while (*text && !e) {
		number = values && text[0] == '$' && text[1] > '0' && text[1] <= '9' ? (size_t)(text[1] - '0') : 0;
		if (!strncmp(text, selected, strlen(selected))) {
			text += strlen(selected);
			len = strcspn(text, " \t\n,{/");
			e = ready_descriptions(q->functions, q->nfunctions, text, len, out, &err);
			text += len;
		} else if (number && argument(&q->head, number)) {
			strbuf_puts(out, argument(&q->head, number));
			text += 2;
		} else {
			strbuf_putc(out, *text++);
		}
	}
	if (e)
		fprintf(stderr, "dtap %s: %s\n", q->head.name, strbuf_str(&err));
	strbuf_fini(&err);
	return e ? CMD_USAGE : 0;
}

int ready_script_print(const struct ready_request *q)
{
	const char *behind = strstr(q->head.text, "*/\n");	/* the end of the head, checked when it was read */
	struct strbuf text = { 0 };
	int e = 0;

	behind = behind ? behind + 3 : q->head.text;
	strbuf_add(&text, q->head.text, (size_t)(behind - q->head.text));
	e = prelude(q, &text);
	if (!e)
		e = put_text(q, behind, true, &text);
	if (!e)
		e = put_text(q, more(q), true, &text);
	if (!e)
		fputs(strbuf_str(&text), stdout);
	strbuf_fini(&text);
	return e;
}

int ready_script_add(const struct ready_request *q, struct dtap *t)
{
	struct strbuf text = { 0 }, script = { 0 }, script_more = { 0 };
	int e = prelude(q, &text);

	if (!e && has_probes(q))
		e = put_text(q, q->head.text, false, &script);
	if (!e)
		e = put_text(q, more(q), false, &script_more);
	if (e)
		goto out;
	dtap_set(t, "quiet", NULL);
	for (const struct ready_option *o = next_option(&q->head, NULL); o; o = next_option(&q->head, o))
		dtap_argument(t, ready_value(o));
	dtap_set(t, "argref", NULL);
	if (text.len)
		dtap_script(t, DTAP_TEXT, strbuf_str(&text));
	dtap_script(t, script.len ? DTAP_TEXT : DTAP_FILE, script.len ? strbuf_str(&script) : q->head.path);
	if (script_more.len)
		dtap_script(t, DTAP_TEXT, strbuf_str(&script_more));
out:
	strbuf_fini(&script_more);
	strbuf_fini(&text);
	strbuf_fini(&script);
	return e;
}
