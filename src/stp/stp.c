#include "stp/stp.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "ir/ir.h"
#include "lang/diag.h"
#include "stp/lex.h"
#include "stp/lower.h"
#include "stp/parse.h"
#include "stp/sem.h"

struct stp {
	struct arena *arena;
	struct diag *diag;
	struct stp_env env;
	struct stp_preproc preproc;
	struct stp_prog *prog;
	int64_t limits[STP_NLIMITS];
	uint32_t limits_given;		/* bits by their numbers */
};

static const struct {
	const char *name;
	int64_t value, low, high;
} limits[STP_NLIMITS] = {
#define STP_LIMIT(name, value, low, high, what) { #name, value, low, high },
#include "stp/limits.def"
#undef STP_LIMIT
};

const struct stp_env *stp_env_of(const struct stp *stp)
{
	return &stp->env;
}

struct stp *stp_new(struct arena *a, struct diag *diag, const struct stp_env *env)
{
	struct stp *stp = arena_new_of(a, struct stp);

	stp->arena = a;
	stp->diag = diag;
	stp->env = *env;
	stp->prog = stp_prog_new(a);
	for (size_t i = 0; i < STP_NLIMITS; i++)
		stp->limits[i] = limits[i].value;
	stp_preproc_init(&stp->preproc, a, diag, &stp->env);
	return stp;
}

bool stp_add(struct stp *stp, const struct source *src, bool from_library)
{
	struct stp_toks read = {0}, toks = {0};

	stp_lex(stp->arena, src, &stp->env.args, &read);
	return stp_preproc(&stp->preproc, &read, &toks) &&
	       stp_parse(stp->prog, stp->diag, &toks, from_library, stp->env.guru);
}

static void drop_functions(struct stp_prog *prog, struct stp_func **from,
			   bool (*hidden)(void *ctx, const char *name, bool alias), void *ctx)
{
	while (*from)
		if (hidden(ctx, (*from)->name, false))
			*from = (*from)->next;
		else
			from = &(*from)->next;
	prog->funcs_tail = from;
}

static bool is_hidden_alias(const struct stp_probe *p, bool (*hidden)(void *ctx, const char *name, bool alias),
			    void *ctx)
{
	struct strbuf name = {0};
	bool found = false;

	for (size_t i = 0; i < p->names.n && !found; i++) {
		strbuf_clear(&name);
		stp_dump_point(&name, p->names.v[i]);
		found = hidden(ctx, strbuf_str(&name), true);
	}
	strbuf_fini(&name);
	return found;
}

bool stp_add_library(struct stp *stp, const struct source *src,
		     bool (*hidden)(void *ctx, const char *name, bool alias), void *ctx)
{
	struct stp_func **funcs = stp->prog->funcs_tail;
	struct stp_probe **probes = stp->prog->probes_tail;
	bool ok = stp_add(stp, src, true);

	drop_functions(stp->prog, funcs, hidden, ctx);
	while (*probes)
		if (is_hidden_alias(*probes, hidden, ctx))
			*probes = (*probes)->next;
		else
			probes = &(*probes)->next;
	stp->prog->probes_tail = probes;
	return ok;
}

void stp_suggest(struct stp *stp, struct stp_tapset *tapset)
{
	stp->prog->tapset = tapset;
}

bool stp_set_limit(struct stp *stp, const char *name, int64_t value, int64_t *low, int64_t *high)
{
	for (size_t i = 0; i < STP_NLIMITS; i++) {
		if (strcmp(name, limits[i].name))
			continue;
		*low = limits[i].low;
		*high = limits[i].high;
		if (value < *low || value > *high)
			return false;
		stp->limits[i] = value;
		stp->limits_given |= 1u << i;
	}
	return true;
}

bool stp_limit_is_given(const struct stp *stp, enum stp_limit limit)
{
	return stp->limits_given & 1u << limit;
}

int64_t stp_get_limit(const struct stp *stp, enum stp_limit limit)
{
	return stp->limits[limit];
}

bool stp_is_older(const struct stp *stp, const char *version)
{
	return strverscmp(stp->env.systemtap_v, version) < 0;
}

struct stp_prog *stp_check(struct stp *stp, const struct stp_resolver *resolver)
{
	struct sem s = { .arena = stp->arena, .diag = stp->diag, .prog = stp->prog, .resolver = resolver,
			 .guru = stp->env.guru };

	if (stp->prog->embedded) {
		diag_error(stp->diag, stp->prog->embedded->pos, "S_EMBEDDED", "semantic error: embedded code is not supported");
		diag_hint(stp->diag, "dtap compiles no C: write it in the script language, with tapset functions "
			  "(user_string, user_int32, ...), or read memory with $var->member and @cast");
		return NULL;
	}
	if (!stp_expand(stp->prog, stp->diag, resolver) || !sem_symbols(&s))
		return NULL;
	sem_warn_unassigned(&s);
	if ((!stp->env.unoptimized && !sem_elide(&s)) || !sem_infer(&s) || !sem_autocast(&s) ||
	    !sem_loops(&s) || !sem_places(&s))
		return NULL;
	sem_display(stp->prog);
	if (stp->env.readings)
		sem_readings(stp->prog);
	return stp->prog;
}

struct stp_code *stp_compile(struct stp *stp, struct stp_prog *prog)
{
	return stp_lower_prog(stp, stp->arena, stp->diag, prog, stp->env.timing);
}

const struct stp_prog *stp_tree(const struct stp *stp)
{
	return stp->prog;
}

struct stp_prog *stp_parsed(struct stp *stp)
{
	return stp->prog;
}

void stp_find_locals(struct stp *stp, const struct stp_resolver *resolver)
{
	struct diag quiet;
	struct sem s = { .arena = stp->arena, .diag = &quiet, .prog = stp->prog, .resolver = resolver };

	diag_init(&quiet, stp->arena);
	if (sem_symbols(&s))
		sem_infer(&s);
}
