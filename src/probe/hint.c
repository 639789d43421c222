/*
 * Hints for a description that no probe matches.  The usual reasons: a misspelt name, underscores for dashes, a
 * missing colon, a provider of markers without its process, or a process of another kind than expected.
 */
#include "probe/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abi/cpython.h"
#include "base/arena.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "lang/similar.h"
#include "probe/provider.h"
#include "probe/python.h"

enum { NBEST = 24 };

enum part { NAME, FUNCTION, MODULE };

static struct probe_list find(struct probe_set *set, const char *prov, const char *func, const char *name)
{
	struct probe_desc desc = { .prov = prov, .mod = "", .func = func, .name = name };
	struct probe_list found = { 0 };

	probe_find(set, &desc, PROBE_ENABLE, &found);
	return found;
}

/* python1234 -> python */
static const char *without_pid(struct arena *a, const char *prov)
{
	return arena_strndup(a, prov, (size_t)(desc_digits(prov) - prov));
}

/* Is there such a provider of markers in any process?  CPython's is known even if no Python runs. */
static bool is_per_process(struct probe_set *set, struct arena *a, const char *base)
{
	return *base && !desc_is_glob(base) &&
	       (!strcmp(base, "python") || find(set, arena_printf(a, "%s*", base), "", "").n);
}

static const char *text_of(const struct probe *p, enum part part)
{
	return part == NAME ? p->name : part == FUNCTION ? p->func : p->mod;
}

/* The texts in @all that differ from @text by at most @limit letters, the most similar first. */
static unsigned int nearest(const struct probe_list *all, enum part part, const char *text, size_t limit,
			    const char *best[static NBEST])
{
	unsigned int far[NBEST], n = 0;

	for (size_t i = 0; i < all->n; i++) {
		const char *one = text_of(all->probes[i], part);
		unsigned int d = strcasecmp(one, text) ? similar_distance(one, text) : 0, at = 0;
		bool skip = !*one || d > limit;

		for (unsigned int k = 0; k < n && !skip; k++)
			skip = !strcmp(best[k], one);
		while (at < n && far[at] <= d)
			at++;
		if (skip || at == NBEST)
			continue;
		n += n < NBEST;
		memmove(best + at + 1, best + at, (n - at - 1) * sizeof(*best));
		memmove(far + at + 1, far + at, (n - at - 1) * sizeof(*far));
		best[at] = one;
		far[at] = d;
	}
	return n;
}

/* "similar names are: gc-done, gc-start"; all names if none is similar and they are few; else NULL. */
static const char *instead(const struct probe_list *all, struct arena *a, enum part part, const char *text)
{
	static const char *const words[] = { "names", "functions", "modules" };
	const char *best[NBEST], *like = "similar ", *ret;
	unsigned int n = nearest(all, part, text, strlen(text) / 3 + 1, best);
	struct strbuf b = { 0 };

	if (!n) {
		like = "the provider's ";
		n = nearest(all, part, text, SIZE_MAX, best);
		if (!n || n == NBEST)
			return NULL;
	}
	strbuf_printf(&b, "%s%s are: ", like, words[part]);
	for (unsigned int i = 0; i < n; i++)
		strbuf_printf(&b, "%s%s", i ? ", " : "", best[i]);
	ret = arena_strdup(a, strbuf_str(&b));
	strbuf_fini(&b);
	return ret;
}

/* A probe that is not there, and what serves in its place; or NULL. */
static const char *of_later(const struct probe_desc *d)
{
	static const struct {
		const char *prov, *name, *what;
	} rows[] = {
#define LATER(...)
#define LATER_NAME(prov, name, what) { prov, name, what },
#include "probe/later.def"
#undef LATER_NAME
#undef LATER
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (desc_glob(rows[i].prov, d->prov) && *d->name && !desc_is_glob(d->name) && desc_glob(rows[i].name, d->name))
			return rows[i].what;
	return NULL;
}

/* The provider exists, but has no such module, function and name. */
static const char *of_provider(struct probe_set *set, struct arena *a, const struct probe_desc *d)
{
	struct probe_list all = find(set, d->prov, "", "");
	const char *ret;

	if (!all.n)
		return NULL;
	if (!find(set, d->prov, "", d->name).n && of_later(d))
		ret = of_later(d);
	else if (!find(set, d->prov, "", d->name).n)
		ret = instead(&all, a, NAME, d->name);
	else if (*d->func && !find(set, d->prov, d->func, d->name).n)
		ret = instead(&all, a, FUNCTION, d->func);
	else
		ret = instead(&all, a, MODULE, d->mod);
	return ret ? ret : arena_printf(a, "dtrace -l -P '%s' lists the provider's probes", d->prov);
}

/* A name without a provider: of the dtrace provider, or CPython's. */
static const char *of_any(struct probe_set *set, struct arena *a, const struct probe_desc *d)
{
	static const char *const provs[] = { "dtrace", "python*" };

	for (size_t i = 0; i < sizeof(provs) / sizeof(provs[0]); i++) {
		struct probe_list all = find(set, provs[i], "", "");
		const char *best[NBEST];

		if (nearest(&all, NAME, d->name, strlen(d->name) / 3, best))
			return instead(&all, a, NAME, d->name);
	}
	return NULL;
}

/* "python1234::line" has the provider in the place of the module. */
static const char *shifted(struct probe_set *set, struct arena *a, const struct probe_desc *d)
{
	const char *prov = *d->prov ? "" : *d->mod ? d->mod : d->func, *base = without_pid(a, prov);

	/* Without a name it is a module or function by -m or -f, and may be one that is not there. */
	if ((!*d->name && !strcmp(prov, base)) || !is_per_process(set, a, base))
		return NULL;
	return arena_printf(a, "a description with a provider has three colons, also where module and function are left out: "
			    "%s:::%s", prov, d->name);
}

/* "is CPython 3.99, ..." for a version that dtap does not know; or NULL. */
static const char *of_version(struct probe_set *set, struct arena *a, long pid)
{
	struct python_process p = { 0 };
	int version = 0;

	if (pid > 0 && pid <= INT32_MAX && !python_look(&p, set, (uint32_t)pid))
		version = p.version;
	python_done(&p, set);
	if (!version || (version >= 0x0300 + CPYTHON_FIRST && version <= 0x0300 + CPYTHON_LAST))
		return NULL;
	return arena_printf(a, "is CPython %d.%d, and dtap knows " CPYTHON_RANGE, version >> 8, version & 0xff);
}

static const char *of_process(struct probe_set *set, struct arena *a, const struct probe_desc *d)
{
	const char *base = without_pid(a, d->prov), *pid = d->prov + strlen(base);
	const char *was = "is not there, or no longer";
	struct strbuf comm = { 0 };
	long number = strtol(pid, NULL, 10);

	if (!is_per_process(set, a, base))
		return NULL;
	if (!*pid)
		return arena_printf(a, "each process has a provider of its own: %s$target is that of -c or -p, %s* are all; "
				    "quote it, since the shell, too, knows $ and *", base, base);
	if (!strcmp(base, "python") && of_version(set, a, number))
		return arena_printf(a, "process %s %s", pid, of_version(set, a, number));
	if (number <= INT32_MAX && !proc_read((pid_t)number, "comm", &comm) && comm.len)
		was = arena_printf(a, "is a program \"%.*s\" that has no such probes", (int)strcspn(comm.s, "\n"), comm.s);
	strbuf_fini(&comm);
	return arena_printf(a, "process %s %s; those of all that -c starts are %s* with -x family, or with "
			    "/progenyof($target)/", pid, was, base);
}

/* "pyton1234": a misspelt provider. */
static const char *misspelt(struct arena *a, const struct probe_desc *d)
{
	static const char *const names[] = {
		"python", "py",
#define PROVIDER(name) #name,
#include "probe/providers.def"
#undef PROVIDER
	};
	const char *base = without_pid(a, d->prov), *best = NULL;
	size_t len = strcspn(base, "*");
	unsigned int far = (unsigned int)len / 3 + 1;

	base = arena_strndup(a, base, len);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsigned int distance = similar_distance(base, names[i]);

		/* usdt and pyfunc are kinds of providers, not names. */
		if (distance && distance < far && strcmp(names[i], "usdt") && strcmp(names[i], "pyfunc")) {
			far = distance;
			best = names[i];
		}
	}
	return best && len > 2 ? arena_printf(a, "there is no provider %s; did you mean %s%s?", base, best,
					      strcmp(best, "python") && strcmp(best, "py") && strcmp(best, "pid") ? "" : "$target") :
				 NULL;
}

/* The command ended before a program with such probes was found. */
static const char *of_ended(struct probe_set *set, struct arena *a, const struct probe_desc *d)
{
	const char *base = without_pid(a, d->prov);

	if (!set_program(set) || strcmp(d->prov + strlen(base), arena_printf(a, "%u", set_program(set))))
		return NULL;
	if (strcmp(base, "pid"))
		return "the command ran and ended, and no program that it was has such probes";
	return "the command ran and ended, and had no such function among what is mapped at its start: what Python imports "
	       "later, as libsqlite3, is found in a process that runs, with -p";
}

/* The process has ended. */
static const char *of_gone(struct probe_set *set, struct arena *a, const struct probe_desc *d)
{
	const char *hint = misspelt(a, d);

	if (!hint && !desc_glob("pid[0-9]*", d->prov))
		hint = of_process(set, a, d);
	return hint ? hint : of_ended(set, a, d);
}

/* Is that all that probe_why() says? */
static bool is_gone(const struct probe_set *set)
{
	return strstr(probe_why(set), strerror(ESRCH));
}

const char *probe_hint(struct probe_set *set, const struct probe_desc *desc, struct arena *a)
{
	const char *why = arena_strdup(a, probe_why(set)), *hint = NULL;
	bool gone = is_gone(set);

	if (gone && !desc->id)
		hint = of_gone(set, a, desc);
	if (hint)
		return hint;
	if (desc->id || (*why && !gone) || desc_glob("pid[0-9]*", desc->prov))	/* too many functions */
		return *why ? why : NULL;
	if (!gone)
		hint = shifted(set, a, desc);
	if (!hint && !gone)
		hint = *desc->prov ? of_provider(set, a, desc) : of_any(set, a, desc);
	if (!hint)
		hint = of_process(set, a, desc);
	if (!hint && !gone)
		hint = misspelt(a, desc);
	return hint || !*why ? hint : why;
}
