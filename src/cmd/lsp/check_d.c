#include "cmd/lsp/check.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/d.h"
#include "d/lib.h"
#include "probe/probe.h"
#include "session/options.h"

/* Does a line begin with a directive of the C preprocessor that D does not have itself? */
static bool has_cpp_lines(struct text t)
{
	static const char *const words[] = { "include", "define", "undef", "if", "ifdef", "ifndef", "endif" };
	const char *s = t.s, *end = t.s + t.len;

	for (; s < end; s++) {
		struct text_span w;
		size_t at = (size_t)(s - t.s);

		while (at < t.len && (t.s[at] == ' ' || t.s[at] == '\t'))
			at++;
		if (at < t.len && t.s[at] == '#') {
			for (at++; at < t.len && (t.s[at] == ' ' || t.s[at] == '\t'); at++)
				;
			w = text_word(t, at);
			for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
				if (w.to - at == strlen(words[i]) && !memcmp(t.s + at, words[i], w.to - at))
					return true;
		}
		s = memchr(s, '\n', (size_t)(end - s));
		if (!s)
			break;
	}
	return false;
}

/* Set the options of the script's pragmas; mistakes are reported.  False: it is for the C preprocessor. */
static bool set_options(struct verdict *c, const struct d *d, struct options *o)
{
	struct strbuf err = { 0 };
	const struct d_pragma *p;

	options_init(o);
	for (size_t i = 0; (p = d_option(d, i)); i++) {
		strbuf_clear(&err);
		if (options_set(o, p->name, p->value, OPTION_SCRIPT, &err))
			diag_error(&c->diag, p->pos, "D_PRAGMA_OPTSET", "%s", strbuf_str(&err));
	}
	strbuf_fini(&err);
	return !o->v[OPT_cpp];
}

static struct d_libs *libraries(struct verdict *c, const struct lsp *s)
{
	struct d_libs *libs = d_libs_new(c->arena);

	if (s->dlib)
		d_libs_dir(libs, s->dlib, false);
	if (s->topology)
		d_libs_text(libs, "topology.d", s->topology);
	for (size_t i = 0; i < s->ndirs; i++)
		d_libs_dir(libs, s->dirs[i], false);
	return libs;
}

void check_d(struct verdict *c, struct lsp *s, struct text t, bool is_library)
{
	const char *argv[] = { c->src->name };
	struct resolver resolver = check_resolver(c);
	struct d_opts opts = { 0 };
	struct options *set;
	struct d_macros macros;
	struct d *d;

	d_macros_init(&macros);
	macros.argv = argv;
	macros.argc = 1;
	macros.target = INT32_MAX;
	macros.defaultargs = macros.argref = true;
	c->probes = probe_set_new();
	if (!c->probes) {
		c->unchecked = "there is no memory";
		return;
	}
	probe_set_general(c->probes);
	d = d_new(c->arena, &c->diag, &macros);
	c->d = d_tree(d);
	if (text_has_option(t, 'C') || has_cpp_lines(t)) {
		c->unchecked = "it is for the C preprocessor (-C), which is not run here";
		return;
	}
	d_use(d, probe_types(c->probes, c->arena), libraries(c, s));
	d_add(d, c->src, D_SPEC_FILE);
	d_end(d);
	if (c->diag.errors)
		return;
	set = arena_new_of(c->arena, struct options);
	if (!set_options(c, d, set)) {
		c->unchecked = "it is for the C preprocessor (option cpp), which is not run here";
		return;
	}
	if (c->diag.errors || is_library)
		return;
	opts.strsize = (uint32_t)set->v[OPT_strsize];
	opts.nspec = (uint32_t)set->v[OPT_nspec];
	opts.stackframes = (uint32_t)set->v[OPT_stackframes];
	opts.ustackframes = (uint32_t)set->v[OPT_ustackframes];
	opts.jstackframes = (uint32_t)set->v[OPT_jstackframes];
	opts.destructive = s->destructive || set->v[OPT_destructive] || text_has_option(t, 'w');
	d_compile(d, &resolver, &opts);
}
