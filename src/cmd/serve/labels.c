#include "cmd/serve/labels.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ends.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "cmd/serve/config.h"

enum { READ_MAX = 1 << 20, CONTAINER_DIGITS = 64 };

/* Where the number of a container is in a part: "docker-0123...ef.scope"; NULL: there is none. */
static const char *container_in(const char *part, size_t len)
{
	size_t digits = 0;

	for (size_t i = 0; i < len; i++) {
		digits = isxdigit((unsigned char)part[i]) ? digits + 1 : 0;
		if (digits == CONTAINER_DIGITS)
			return part + i + 1 - CONTAINER_DIGITS;
	}
	return NULL;
}

/* The innermost ones count: a service of a user is in the user's own service. */
void labels_of_cgroup(const char *path, struct strbuf *unit, struct strbuf *container)
{
	while (*path) {
		size_t len = strcspn(path, "/");
		const char *number = container_in(path, len);

		if (number) {
			strbuf_clear(container);
			strbuf_add(container, number, CONTAINER_DIGITS);
		} else if (ends_in(path, len, ".service") || ends_in(path, len, ".scope")) {
			strbuf_clear(unit);
			strbuf_add(unit, path, len);
		}
		path += len;
		path += *path == '/';
	}
}

/* cgroups(7): lines "NUMBER:CONTROLLERS:PATH". */
static void read_cgroup(int proc, struct labels *l)
{
	struct strbuf text = { 0 }, unit = { 0 }, container = { 0 };
	char *rest, *line, *path;

	if (!proc_read_at(proc, "cgroup", READ_MAX, &text) && text.len) {
		for (line = strtok_r(text.s, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
			path = strchr(line, ':');
			path = path ? strchr(path + 1, ':') : NULL;
			if (path)
				labels_of_cgroup(path + 1, &unit, &container);
		}
	}
	l->unit = strdup(strbuf_str(&unit));
	l->container = strdup(strbuf_str(&container));
	strbuf_fini(&text);
	strbuf_fini(&unit);
	strbuf_fini(&container);
}

static void read_interpreter(int proc, struct labels *l)
{
	static const char deleted[] = " (deleted)";
	char path[PATH_MAX];
	ssize_t n = readlinkat(proc, "exe", path, sizeof(path) - 1);
	const char *name;

	path[n > 0 ? n : 0] = 0;
	if (n > 0 && ends_in(path, (size_t)n, deleted))
		path[(size_t)n - strlen(deleted)] = 0;
	name = strrchr(path, '/');
	l->interpreter = strdup(name ? name + 1 : path);
}

static const char *variable(const struct strbuf *environment, const char *name)
{
	const char *end = strbuf_str(environment) + environment->len;
	size_t len = strlen(name);

	for (const char *p = strbuf_str(environment); p < end; p += strlen(p) + 1)
		if (!strncmp(p, name, len) && p[len] == '=')
			return p + len + 1;
	return "";
}

static void read_values(int proc, const struct serve_pairs *wanted, struct labels *l)
{
	struct strbuf text = { 0 };

	l->values = wanted->n ? calloc(wanted->n, sizeof(*l->values)) : NULL;
	if (!l->values || proc_read_at(proc, "environ", READ_MAX, &text))
		strbuf_clear(&text);
	for (; l->values && l->nvalues < wanted->n; l->nvalues++)
		l->values[l->nvalues] = strdup(variable(&text, wanted->v[l->nvalues].value));
	strbuf_fini(&text);
}

void labels_read(pid_t pid, const struct serve_pairs *environment, struct labels *ret)
{
	int proc = proc_open(pid);
	struct stat st;

	*ret = (struct labels){ .user = proc >= 0 && !fstat(proc, &st) ? st.st_uid : (uid_t)-1 };
	read_cgroup(proc, ret);
	read_interpreter(proc, ret);
	read_values(proc, environment, ret);
	if (proc >= 0)
		close(proc);
}

int labels_copy(const struct labels *l, struct labels *ret)
{
	bool failed;

	*ret = (struct labels){ .user = l->user, .gone_ms = l->gone_ms, .unit = strdup(l->unit ? l->unit : ""),
				.container = strdup(l->container ? l->container : ""),
				.interpreter = strdup(l->interpreter ? l->interpreter : ""),
				.values = calloc(l->nvalues ? l->nvalues : 1, sizeof(*ret->values)) };
	failed = !ret->unit || !ret->container || !ret->interpreter || !ret->values;
	for (size_t i = 0; i < l->nvalues && !failed; i++) {
		ret->values[i] = strdup(l->values[i] ? l->values[i] : "");
		failed = !ret->values[i];
		ret->nvalues++;
	}
	if (failed)
		labels_fini(ret);
	return failed ? -ENOMEM : 0;
}

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 1;
}

/* Put @text at *@to, behind which it is then. */
static char *put(char **to, const char *text)
{
	char *ret = *to;

	memcpy(ret, text ? text : "", size_of(text));
	*to += size_of(text);
	return ret;
}

struct labels *labels_pack(const struct labels *l)
{
	size_t size = sizeof(*l) + l->nvalues * sizeof(*l->values) + size_of(l->unit) + size_of(l->container) +
		      size_of(l->interpreter);
	struct labels *ret;
	char *to;

	for (size_t i = 0; i < l->nvalues; i++)
		size += size_of(l->values[i]);
	ret = malloc(size);
	if (!ret)
		return NULL;
	*ret = *l;
	ret->values = (char **)(ret + 1);
	to = (char *)(ret->values + l->nvalues);
	ret->unit = put(&to, l->unit);
	ret->container = put(&to, l->container);
	ret->interpreter = put(&to, l->interpreter);
	for (size_t i = 0; i < l->nvalues; i++)
		ret->values[i] = put(&to, l->values[i]);
	return ret;
}

void labels_fini(struct labels *l)
{
	free(l->unit);
	free(l->container);
	free(l->interpreter);
	for (size_t i = 0; i < l->nvalues; i++)
		free(l->values[i]);
	free(l->values);
	*l = (struct labels){ 0 };
}
