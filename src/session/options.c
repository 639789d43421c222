#include "session/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "d/attr.h"
#include "session/budget.h"

enum option_kind { BOOL, SIZE, RATE, INT, TEXT };

static const struct option_row {
	const char *name;
	enum option_kind kind;
	const char *def, *what;
} rows[] = {
#define OPTION(name, kind, def, what) { #name, kind, def, what },
#include "session/options.def"
#undef OPTION
};

static const struct {
	const char *name, *why;
} missing[] = {
#define OPTION(name, kind, def, what)
#define OPTION_NONE(name, why) { #name, why },
#include "session/options.def"
#undef OPTION
};

/* Oracle Linux DTrace Guide, "Dynamic Runtime Options"; the others are read before the script runs. */
static const enum option_id dynamic[] = {
	OPT_aggrate, OPT_aggsortkey, OPT_aggsortkeypos, OPT_aggsortpos, OPT_aggsortrev, OPT_aggzoom, OPT_cleanrate,
	OPT_droptags, OPT_flowindent, OPT_quiet, OPT_quietresize, OPT_rawbytes, OPT_stackindent, OPT_statusrate, OPT_switchrate,
	OPT_temporal,
};

static const int64_t ns_per_s = 1000000000;

const char *option_name(enum option_id id)
{
	return rows[id].name;
}

const char *option_what(enum option_id id)
{
	return rows[id].what;
}

static int parse_int(const char *s, char **end, int64_t *ret)
{
	errno = 0;
	*ret = strtoll(s, end, 0);
	return errno || *end == s ? -EINVAL : 0;
}

int option_size(const char *s, int64_t *bytes)
{
	static const char units[] = "kmgt";
	const char *unit;
	unsigned int shift = 0;
	char *end;

	if (parse_int(s, &end, bytes) || *bytes < 0)
		return -EINVAL;
	if (*end) {
		unit = strchr(units, *end | 0x20);
		if (!unit || end[1])
			return -EINVAL;
		shift = 10 * (unsigned int)(unit - units + 1);
	}
	if (*bytes > INT64_MAX >> shift)
		return -EINVAL;
	*bytes <<= shift;
	return 0;
}

int option_rate(const char *s, int64_t *ns)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {
		{ "ns", 1 }, { "nsec", 1 }, { "us", 1000 }, { "usec", 1000 }, { "ms", 1000000 },
		{ "msec", 1000000 }, { "s", 1000000000 }, { "sec", 1000000000 }, { "m", 60000000000 },
		{ "min", 60000000000 }, { "h", 3600000000000 }, { "hour", 3600000000000 },
		{ "d", 86400000000000 }, { "day", 86400000000000 },
	};
	int64_t n;
	size_t i;
	char *end;

	if (parse_int(s, &end, &n) || n < 0)
		return -EINVAL;
	if (!*end || !strcasecmp(end, "hz")) {
		*ns = !n || n > ns_per_s ? 1 : ns_per_s / n;
		return 0;
	}
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(end, units[i].name))
			continue;
		if (n > INT64_MAX / units[i].ns)
			return -EINVAL;
		*ns = n ? n * units[i].ns : 1;
		return 0;
	}
	return -EINVAL;
}

static int option_bool(const char *s, int64_t *v)
{
	static const char *const yes[] = { "on", "enable", "enabled", "yes", "set", "true" };
	static const char *const no[] = { "off", "disable", "disabled", "no", "unset", "false" };
	char *end;
	size_t i;

	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (!strcasecmp(s, yes[i]) || !strcasecmp(s, no[i])) {
			*v = !strcasecmp(s, yes[i]);
			return 0;
		}
	}
	if (parse_int(s, &end, v) || *end || *v < 0)
		return -EINVAL;
	*v = *v != 0;
	return 0;
}

static int parse_value(const struct option_row *row, const char *value, int64_t *v)
{
	char *end;

	switch (row->kind) {
	case BOOL:
		return option_bool(value ? value : "on", v);
	case SIZE:
		*v = 0;
		return value ? option_size(value, v) : 0;
	case RATE:
		return value ? option_rate(value, v) : -EINVAL;
	case INT:
		return value && !parse_int(value, &end, v) && !*end ? 0 : -EINVAL;
	case TEXT:
		return value ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static const char *kind_wants(enum option_kind kind)
{
	switch (kind) {
	case BOOL:
		return "no value, or on or off";
	case SIZE:
		return "a size such as 512k or 4m";
	case RATE:
		return "a rate such as 10hz or 50ms";
	case INT:
		return "a number";
	case TEXT:
		return "a value";
	}
	return "";
}

/* Is it "1.6" or "1.6.3", not newer than dtap's version of D?  The D of DTrace 2 for Linux is 2.0. */
static bool version_known(const char *text)
{
	unsigned int major, minor, micro = 0;
	int end = 0;

	if (sscanf(text, "%3u.%3u%n.%3u%n", &major, &minor, &end, &micro, &end) < 2 || text[end])
		return false;
	return major < 1 || (major == 1 && minor <= 13) || (major == 2 && !minor && !micro);
}

/* The range of an option's size or number; others are limited only by their kind. */
static const struct range {
	enum option_id id;
	int64_t min, max;
	const char *takes;
} ranges[] = {
	{ OPT_strsize, 2, 64 << 10, "a size from 2 to 64k" },
	{ OPT_bufsize, 24, INT64_MAX, "a size from 24 on: a record has to fit" },
	{ OPT_aggsize, 16, 1ll << 31, "a size from 16 to 2g: a value has to fit" },
	{ OPT_dynvarsize, 12, 1ll << 31, "a size from 12 to 2g: a variable has to fit" },
	{ OPT_namesize, 0, INT64_MAX, "a size from 0 on" },
	{ OPT_specsize, 0, 1ll << 31, "a size from 0 to 2g" },
	{ OPT_nspec, 0, INT32_MAX, "a number from 0 on" },
	{ OPT_stackframes, 0, INT32_MAX, "a number from 0 on" },
	{ OPT_ustackframes, 0, INT32_MAX, "a number from 0 on" },
	{ OPT_jstackframes, 0, INT32_MAX, "a number from 0 on" },
	{ OPT_maxframes, 1, 127, "a number from 1 to 127" },
	{ OPT_stackindent, 0, 255, "a number from 0 to 255" },
	{ OPT_nusdtprobes, 0, INT32_MAX, "a number from 0 on" },
	{ OPT_pgmax, 0, INT32_MAX, "a number from 0 on" },
	{ OPT_useruid, 0, INT32_MAX, "a number from 0 on" },
	{ OPT_iregs, 1, INT32_MAX, "a number from 1 on" },
	{ OPT_tregs, 1, INT32_MAX, "a number from 1 on" },
};

/* NULL, or, if the value is invalid for this option although its kind allows it, what the option takes. */
static const char *out_of_range(enum option_id id, int64_t v, const char *text)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (ranges[i].id == id && (v < ranges[i].min || v > ranges[i].max))
			return ranges[i].takes;
	if (id == OPT_cpu && (v < -1 || v >= sysconf(_SC_NPROCESSORS_CONF)))
		return "the number of a CPU that the machine has, or -1 for all";
	if (id == OPT_bufpolicy && strcmp(text, "switch") && strcmp(text, "ring") && strcmp(text, "fill") &&
	    strcmp(text, "wait"))
		return "switch, ring, fill or wait";
	if (id == OPT_budget && !budget_parse(text, &(double){ 0 }))
		return "a part such as 1%, from 0.01% to 50%, or none";
	if (id == OPT_oformat && strcmp(text, "text") && strcmp(text, "json") && strcmp(text, "xml"))
		return "text, json or xml";
	if (id == OPT_stdc && (strlen(text) != 1 || !strchr("acts", *text)))
		return "a, c, t or s";
	if (id == OPT_linktype && strcasecmp(text, "elf") && strcasecmp(text, "dof"))
		return "elf or dof";
	if (id == OPT_linkmode && strcmp(text, "kernel") && strcmp(text, "dynamic") && strcmp(text, "static"))
		return "kernel, dynamic or static";
	if (id == OPT_late && strcmp(text, "dynamic") && strcmp(text, "static"))
		return "dynamic or static";
	if (id == OPT_evaltime && strcmp(text, "exec") && strcmp(text, "preinit") && strcmp(text, "postinit") &&
	    strcmp(text, "main"))
		return "exec, preinit, postinit or main";
	if (id == OPT_lockmem && strcmp(text, "unlimited") && option_size(text, &v))
		return "a size, or unlimited";
	if (id == OPT_amin && !attr_parse(text, &(struct d_attr){ 0 }))
		return "attributes such as Evolving/Evolving/Common";
	if (id == OPT_version && !version_known(text))
		return "a version of D up to 1.13, or 2.0";
	if (id == OPT_bufresize && strcmp(text, "auto") && strcmp(text, "manual"))
		return "auto or manual";
	if (id == OPT_temporal && !v)
		return "on: output is always in time order";
	if (id == OPT_ustackunwind && strcmp(text, "auto") && strcmp(text, "fp"))
		return "auto or fp";
	if (id == OPT_place && strcmp(text, "auto") && strcmp(text, "kernel") && strcmp(text, "target"))
		return "auto, kernel or target";
	if (id == OPT_agent && strcmp(text, "auto") && strcmp(text, "always") && strcmp(text, "never"))
		return "auto, always or never";
	return NULL;
}

/* Options that decide how scripts are read, and so cannot be set in a script. */
static bool is_for_command(enum option_id id)
{
	return id == OPT_cpppath || id == OPT_ldpath || id == OPT_modpath || id == OPT_procfspath || id == OPT_stdc;
}

/* Set row @id to the value, which has been checked, unless a source with precedence has set it. */
static void keep(struct options *o, int id, enum option_from from, int64_t v, const char *value)
{
	if (from < o->from[id])
		return;
	o->from[id] = from;
	o->v[id == OPT_bpflog ? OPT_verifierlog : (enum option_id)id] = v;
	if (rows[id].kind == TEXT)
		snprintf(o->text[id], sizeof(o->text[id]), "%s", value);
}

int options_set(struct options *o, const char *name, const char *value, enum option_from from,
		struct strbuf *err)
{
	const char *wants;
	int64_t v = 0;
	int id;

	for (id = 0; id < OPT_MAX && strcasecmp(rows[id].name, name); id++)
		;
	if (id == OPT_MAX) {
		for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
			if (strcasecmp(missing[i].name, name))
				continue;
			strbuf_printf(err, "dtap has no option '%s': %s", missing[i].name, missing[i].why);
			return -ENOTSUP;
		}
		strbuf_printf(err, "there is no option '%s'", name);
		return -ENOENT;
	}
	wants = parse_value(&rows[id], value, &v) ? kind_wants(rows[id].kind)
						    : out_of_range((enum option_id)id, v, value ? value : "");
	if (wants) {
		strbuf_printf(err, "option '%s' takes %s", rows[id].name, wants);
		if (value)
			strbuf_printf(err, ", not '%s'", value);
		return -EINVAL;
	}
	if (from == OPTION_SCRIPT && is_for_command((enum option_id)id)) {
		strbuf_printf(err, "option '%s' is for the command line: when scripts are read it is too late",
			      rows[id].name);
		return -EINVAL;
	}
	keep(o, id, from, v, value);
	return 0;
}

void options_init(struct options *o)
{
	int64_t v;

	memset(o, 0, sizeof(*o));
	for (int id = 0; id < OPT_MAX; id++)
		if (!parse_value(&rows[id], rows[id].def, &v))
			keep(o, id, OPTION_DEFAULT, v, rows[id].def);
}

bool option_is_dynamic(const char *name)
{
	for (int id = 0; id < OPT_MAX; id++) {
		if (strcasecmp(rows[id].name, name))
			continue;
		for (size_t i = 0; i < sizeof(dynamic) / sizeof(dynamic[0]); i++)
			if (dynamic[i] == (enum option_id)id)
				return true;
		return false;
	}
	return true;
}

int options_from_environment(struct options *o, char *const *environ, struct strbuf *err)
{
	static const char prefix[] = "DTRACE_OPT_";
	char name[64];

	for (; *environ; environ++) {
		const char *eq = strchr(*environ, '='), *from = *environ + sizeof(prefix) - 1;
		int e;

		if (!strncmp(*environ, "DTRACE_DEBUG=", strlen("DTRACE_DEBUG=")))
			o->v[OPT_debug] = 1;
		if (!eq || strncmp(*environ, prefix, sizeof(prefix) - 1) || (size_t)(eq - from) >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(eq - from), from);
		e = options_set(o, name, eq[1] ? eq + 1 : NULL, OPTION_COMMAND, err);
		if (e) {
			strbuf_printf(err, " (in the environment: %s)", *environ);
			return e;
		}
	}
	return 0;
}
