#include "cmd/serve/rule.h"

#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/strbuf.h"
#include "cmd/serve/config.h"

enum { READ_MAX = 1 << 20 };	/* of a command line or an environment; more is not looked at */

static bool matches(const struct serve_texts *patterns, const char *text)
{
	for (size_t i = 0; i < patterns->n; i++)
		if (!fnmatch(patterns->v[i], text, 0))
			return true;
	return false;
}

static bool has_user(const struct serve_rule *rule, int proc)
{
	struct stat st;

	if (fstat(proc, &st))
		return false;
	for (size_t i = 0; i < rule->nusers; i++)
		if (rule->users[i] == st.st_uid)
			return true;
	return false;
}

/* Does a part of @path, between slashes, match?  "/system.slice/shop-1.service/worker" */
static bool has_part(const struct serve_texts *patterns, char *path)
{
	char *rest;

	for (char *part = strtok_r(path, "/", &rest); part; part = strtok_r(NULL, "/", &rest))
		if (matches(patterns, part))
			return true;
	return false;
}

/* cgroups(7): lines "NUMBER:CONTROLLERS:PATH", of version 2 one. */
static bool has_cgroup(const struct serve_rule *rule, int proc)
{
	bool unit = !rule->units.n, cgroup = !rule->cgroups.n;
	struct strbuf text = { 0 };
	char *rest, *line, *path;

	if (!proc_read_at(proc, "cgroup", READ_MAX, &text) && text.len) {
		for (line = strtok_r(text.s, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
			path = strchr(line, ':');
			path = path ? strchr(path + 1, ':') : NULL;
			if (!path)
				continue;
			cgroup = cgroup || matches(&rule->cgroups, path + 1);
			unit = unit || has_part(&rule->units, path + 1);
		}
	}
	strbuf_fini(&text);
	return unit && cgroup;
}

static bool has_command(const struct serve_rule *rule, int proc)
{
	struct strbuf text = { 0 };
	bool found = false;

	if (!proc_read_at(proc, "cmdline", READ_MAX, &text) && text.len) {
		for (size_t i = 0; i + 1 < text.len; i++)
			if (!text.s[i])
				text.s[i] = ' ';
		found = matches(&rule->commands, text.s);
	}
	strbuf_fini(&text);
	return found;
}

/* Is there NAME=VALUE with a value that matches? */
static bool has_variable(const struct strbuf *environment, const struct serve_pair *want)
{
	const char *end = strbuf_str(environment) + environment->len;
	size_t len = strlen(want->name);

	for (const char *p = strbuf_str(environment); p < end; p += strlen(p) + 1)
		if (!strncmp(p, want->name, len) && p[len] == '=' && !fnmatch(want->value, p + len + 1, 0))
			return true;
	return false;
}

static bool has_environment(const struct serve_rule *rule, int proc)
{
	struct strbuf text = { 0 };
	bool has = !proc_read_at(proc, "environ", READ_MAX, &text);

	for (size_t i = 0; has && i < rule->environment.n; i++)
		has = has_variable(&text, &rule->environment.v[i]);
	strbuf_fini(&text);
	return has;
}

bool rule_selects(const struct serve_rule *rule, pid_t pid)
{
	int proc = proc_open(pid);	/* all that is asked is of one process, whoever has its number later */
	bool yes = proc >= 0 && (!rule->nusers || has_user(rule, proc)) &&
		   ((!rule->units.n && !rule->cgroups.n) || has_cgroup(rule, proc)) &&
		   (!rule->commands.n || has_command(rule, proc)) &&
		   (!rule->environment.n || has_environment(rule, proc));

	if (proc >= 0)
		close(proc);
	return yes;
}
