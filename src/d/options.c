#include "d/options.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct d_option options[] = {
#define D_OPTION(NAME, KIND, WHAT) { #NAME, D_OPTION_##KIND, WHAT },
#include "d/options.def"
#undef D_OPTION
};

enum { NOPTIONS = sizeof(options) / sizeof(options[0]) };

const struct d_option *d_option_find(const char *name)
{
	for (unsigned int i = 0; i < NOPTIONS; i++)
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

const struct d_option *d_option_at(unsigned int i)
{
	return i < NOPTIONS ? &options[i] : NULL;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "", 1 }, { "k", 1ULL << 10 }, { "m", 1ULL << 20 }, { "g", 1ULL << 30 }, { "t", 1ULL << 40 }, { NULL, 0 },
};

/* Factor 0: so many a second. */
static const struct unit time_units[] = {
	{ "", 0 }, { "hz", 0 },
	{ "ns", 1 }, { "nsec", 1 },
	{ "us", 1000 }, { "usec", 1000 },
	{ "ms", 1000000 }, { "msec", 1000000 },
	{ "s", 1000000000 }, { "sec", 1000000000 },
	{ "m", 60000000000 }, { "min", 60000000000 },
	{ "h", 3600000000000 }, { "hour", 3600000000000 },
	{ "d", 86400000000000 }, { "day", 86400000000000 },
	{ NULL, 0 },
};

static const struct unit no_units[] = { { "", 1 }, { NULL, 0 } };

static int number(const char *text, const struct unit *units, uint64_t *ret)
{
	char *end;
	uint64_t v;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno)
		return -ERANGE;
	while (units->name && strcasecmp(units->name, end) != 0)
		units++;
	if (!units->name)
		return -EINVAL;
	if (units->factor) {
		if (__builtin_mul_overflow(v, units->factor, &v))
			return -ERANGE;
	} else {
		if (v == 0 || v > 1000000000)
			return -ERANGE;
		v = 1000000000 / v;
	}
	*ret = v;
	return 0;
}

static int flag(const char *text, uint64_t *ret)
{
	static const struct {
		const char *on, *off;
	} words[] = {
		{ "1", "0" }, { "on", "off" }, { "enable", "disable" }, { "enabled", "disabled" },
		{ "set", "unset" }, { "yes", "no" }, { "true", "false" },
	};

	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i].on) == 0 || strcasecmp(text, words[i].off) == 0) {
			*ret = strcasecmp(text, words[i].on) == 0;
			return 0;
		}
	}
	return -EINVAL;
}

int d_option_value(const struct d_option *o, const char *text, uint64_t *ret)
{
	if (o->kind == D_OPTION_FLAG) {
		if (text)
			return flag(text, ret);
		*ret = 1;
		return 0;
	}
	if (!text || !*text)
		return -EINVAL;
	switch (o->kind) {
	case D_OPTION_SIZE:
		return number(text, size_units, ret);
	case D_OPTION_TIME:
		return number(text, time_units, ret);
	case D_OPTION_NUMBER:
		return number(text, no_units, ret);
	default:
		*ret = 0;
		return 0;
	}
}
