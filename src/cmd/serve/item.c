#include "cmd/serve/item.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cmd/serve/config.h"

static const char *const names[] = {
	"script", "hash", "host", "type", "from", "until", "run", "number", "unit", "container", "interpreter",
};

void item_escape(const char *text, struct strbuf *out)
{
	for (; *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			strbuf_putc(out, *text);
		else
			strbuf_printf(out, "%%%02X", (unsigned char)*text);
	}
}

void item_variable(struct strbuf *variables, const char *name, const char *value)
{
	strbuf_printf(variables, "%s%s=", variables->len ? "&" : "", name);
	item_escape(value, variables);
}

void item_number(struct strbuf *variables, const char *name, uint64_t value)
{
	strbuf_printf(variables, "%s%s=%" PRIu64, variables->len ? "&" : "", name, value);
}

void item_write(const char *variables, const struct strbuf *bytes, struct strbuf *out)
{
	strbuf_printf(out, "%zu %s\n", bytes->len, variables);
	strbuf_add(out, strbuf_str(bytes), bytes->len);
}

bool item_read(const char *text, size_t len, struct item *ret)
{
	const char *end = len ? memchr(text, '\n', len) : NULL, *p = text;
	size_t n = 0;

	for (; end && isdigit((unsigned char)*p) && n <= len; p++)
		n = 10 * n + (size_t)(*p - '0');
	if (!end || p == text || *p != ' ' || n > (size_t)(text + len - end) - 1)
		return false;
	*ret = (struct item){ p + 1, (size_t)(end - p) - 1, end + 1, n };
	return true;
}

void item_value(const struct item *i, const char *name, struct strbuf *out)
{
	const char *p = i->variables, *end = p + i->nvariables, *next;
	size_t len = strlen(name);

	for (; p < end; p = next + 1) {
		next = memchr(p, '&', (size_t)(end - p));
		next = next ? next : end;
		if ((size_t)(next - p) > len && !strncmp(p, name, len) && p[len] == '=') {
			strbuf_add(out, p + len + 1, (size_t)(next - p) - len - 1);
			return;
		}
	}
}

/* The length of a place "{name}" at @p, 0: there is none. */
static size_t place_at(const char *p)
{
	size_t n = 1;

	if (*p != '{')
		return 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	return n > 1 && p[n] == '}' ? n + 1 : 0;
}

void item_address(const struct item *i, const char *address, struct strbuf *out)
{
	while (*address) {
		size_t n = place_at(address);

		if (n) {
			char *name = strndup(address + 1, n - 2);

			item_value(i, name ? name : "", out);
			free(name);
		} else if (*address == '{' || *address == '}') {	/* of labels, which no address has as they are */
			strbuf_puts(out, *address == '{' ? "%7B" : "%7D");
		} else {
			strbuf_putc(out, *address);
		}
		address += n ? n : 1;
	}
}

static bool is_known(const char *name, size_t len, const struct serve_pairs *labels)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && !strncmp(names[i], name, len))
			return true;
	for (size_t i = 0; i < labels->n; i++)
		if (strlen(labels->v[i].name) == len && !strncmp(labels->v[i].name, name, len))
			return true;
	return false;
}

char *item_mistake(const char *address, const struct serve_pairs *labels)
{
	const char *host = strstr(address, "://");
	const char *path = host ? host + 3 + strcspn(host + 3, "/?") : address;
	struct strbuf why = { 0 };

	for (const char *p = address; *p && !why.len; p++) {
		size_t n = place_at(p);

		if (n && p < path) {
			strbuf_printf(&why, "'%.*s' is in the host, which is the same for all", (int)n, p);
		} else if (n && !is_known(p + 1, n - 2, labels)) {
			strbuf_printf(&why, "'%.*s' is not known, but", (int)n, p);
			for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
				strbuf_printf(&why, "%s {%s}", i ? "," : "", names[i]);
			strbuf_puts(&why, ", and the names under \"labels\"");
		}
	}
	return why.s;
}
