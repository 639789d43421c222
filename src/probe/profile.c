/*
 * The profile provider: profile-N fires at an interval on each CPU, tick-N on one.  N is in hertz, or in the unit of
 * its suffix.  DTrace guide, "profile Provider".
 *
 * Probes are created when a description names them; a pattern matches the usual ones and those created so far.  An
 * interval under 200 microseconds is refused, so that a script cannot load the machine with interrupts.
 */
#include "probe/provider.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"

extern const struct provider provider_profile;

#define NS_PER_S UINT64_C(1000000000)

enum { MIN_PERIOD_NS = 200000 };

static const struct {
	const char *name;
	uint64_t ns;	/* 0: a frequency */
} units[] = {
	{ "", 0 },			 { "hz", 0 },
	{ "ns", 1 },			 { "nsec", 1 },
	{ "us", 1000 },			 { "usec", 1000 },
	{ "ms", 1000000 },		 { "msec", 1000000 },
	{ "s", NS_PER_S },		 { "sec", NS_PER_S },
	{ "m", 60 * NS_PER_S },		 { "min", 60 * NS_PER_S },
	{ "h", 3600 * NS_PER_S },	 { "hour", 3600 * NS_PER_S },
	{ "d", 24 * 3600 * NS_PER_S },	 { "day", 24 * 3600 * NS_PER_S },
};

static const char *const usual[] = {
	"profile-97", "profile-199", "profile-499", "profile-997", "profile-1999", "profile-4001", "profile-4999",
	"tick-1", "tick-10", "tick-100", "tick-500", "tick-1000", "tick-5000",
};

/* interval := digits [unit]; 0 if it is invalid or too large. */
static uint64_t parse_interval(const char *s)
{
	uint64_t n = 0;

	if (!isdigit((unsigned char)*s))
		return 0;
	for (; isdigit((unsigned char)*s); s++) {
		if (__builtin_mul_overflow(n, UINT64_C(10), &n) || __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return 0;
	}
	for (size_t i = 0; n && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(units[i].name, s))
			continue;
		if (!units[i].ns)
			n = n > NS_PER_S ? 1 : NS_PER_S / n;
		else if (__builtin_mul_overflow(n, units[i].ns, &n) || n > INT64_MAX)
			return 0;
		return n;
	}
	return 0;
}

static void find_name(struct finding *f, const char *name)
{
	struct probe key = { .prov = "profile", .mod = "", .func = "", .name = name }, *p;
	bool made;

	if (!strncmp(name, "tick-", 5)) {
		key.kind = PROBE_TICK;
		key.period_ns = parse_interval(name + 5);
	} else if (!strncmp(name, "profile-", 8)) {
		key.kind = PROBE_PROFILE;
		key.period_ns = parse_interval(name + 8);
	} else {
		return;
	}
	if (!found_match(f, key.prov, key.mod, key.func, name))
		return;
	if (!key.period_ns) {
		strbuf_printf(set_why(f->set),
			      "%s: not an interval: a number with hz, ns, us, ms, s, m, h or d behind it", name);
		return;
	}
	if (key.period_ns < MIN_PERIOD_NS) {
		strbuf_printf(set_why(f->set), "%s: intervals under 200 microseconds are refused", name);
		return;
	}
	p = set_probe(f->set, &key, &made);
	found_add(f, p);
}

static void find(struct finding *f)
{
	struct probe *p;

	if (*f->desc->name && !desc_is_glob(f->desc->name)) {
		find_name(f, f->desc->name);
		return;
	}
	if (!desc_glob(f->desc->prov, "profile"))
		return;
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (desc_glob(f->desc->name, usual[i]))
			find_name(f, usual[i]);
	for (uint32_t id = 1; (p = probe_get(f->set, id)); id++)
		if ((p->kind == PROBE_TICK || p->kind == PROBE_PROFILE) &&
		    found_match(f, p->prov, p->mod, p->func, p->name))
			found_add(f, p);
}

const struct provider provider_profile = { find, .is_general = true };
