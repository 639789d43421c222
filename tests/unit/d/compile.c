#include "compile.h"

#include <string.h>

#include "lang/source.h"

#define STR { .type = "const char *", .size = 8 }
#define INT { .type = "int", .size = 4, .sign = true }

static const struct probe {
	const char *prov, *mod, *func, *name;
	struct probe_sig sig;
} probes[] = {
	{ "dtrace", "", "", "BEGIN", { 0 } },
	{ "dtrace", "", "", "END", { 0 } },
	{ "dtrace", "", "", "ERROR", { 0 } },
	{ "profile", "", "", "tick-1s", { 2, { { .size = 8 }, { .size = 8 } } } },
	{ "profile", "", "", "profile-97", { 2, { { .size = 8 }, { .size = 8 } } } },
	{ "python123", "python3", "f", "function-entry", { 3, { STR, STR, INT } } },
	{ "python123", "python3", "f", "function-return", { 3, { STR, STR, INT } } },
	{ "python123", "python3", "f", "line", { 3, { STR, STR, INT } } },
	{ "python123", "python3", "g", "gc-start", { 1, { INT } } },
	{ "python123", "python3", "g", "gc-done", { 1, { { .type = "long", .size = 8, .sign = true } } } },
	{ "sizes123", "m", "f", "all", { 9, {
		{ .size = 1, .sign = true }, { .size = 1 }, { .size = 2, .sign = true }, { .size = 2 },
		{ .size = 4, .sign = true }, { .size = 4 }, { .size = 8, .sign = true }, { .size = 8 },
		{ .size = 8, .is_float = true } } } },
};

static bool same_sig(const struct probe_sig *a, const struct probe_sig *b)
{
	if (a->nargs != b->nargs)
		return false;
	for (unsigned int i = 0; i < a->nargs; i++)
		if (a->args[i].size != b->args[i].size || a->args[i].sign != b->args[i].sign)
			return false;
	return true;
}

static unsigned int match(void *ctx, const struct probe_desc *d, struct probe_sig *sig, bool *same)
{
	const struct probe_sig *first = NULL;
	bool agree = true;
	unsigned int n = 0;

	(void)ctx;
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		const struct probe *p = &probes[i];

		if (d->id ? d->id != i + 1 : !desc_glob(d->prov, p->prov) || !desc_glob(d->mod, p->mod) ||
						     !desc_glob(d->func, p->func) || !desc_glob(d->name, p->name))
			continue;
		n++;
		if (!first)
			first = &p->sig;
		agree = agree && same_sig(first, &p->sig);
	}
	if (same)
		*same = n && agree;
	if (sig && n && agree)
		*sig = *first;
	return n;
}

const struct resolver test_resolver = { .match = match };

struct ir_prog *compile_source(struct arena *a, const struct source *src, struct diag *diag, struct d **ret)
{
	const struct d_opts opts = { .strsize = 256 };
	struct d_macros macros;
	struct d *d;

	memset(&macros, 0, sizeof(macros));
	macros.target = 123;
	d = d_new(a, diag, &macros);
	d_add(d, src, D_SPEC_FILE);
	d_end(d);
	if (ret)
		*ret = d;
	return d_compile(d, &test_resolver, &opts);
}

void compile_text(struct compiled *c, const char *name, const char *text, size_t len)
{
	memset(c, 0, sizeof(*c));
	c->arena = arena_new();
	diag_init(&c->diag, c->arena);
	c->prog = compile_source(c->arena, source_text(c->arena, name, text, len), &c->diag, &c->d);
}

void compiled_free(struct compiled *c)
{
	arena_free(c->arena);
}
