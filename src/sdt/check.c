/*
 * Are the provider definitions of a program sound?
 *
 * The parser has read them, resolved the types and refused what D's grammar and limits do.  What is left:
 * names that C can bear and that still differ when they have become macros, arguments that a marker can
 * pass, output arguments that can be made of the inputs, and pragmas that are about something.
 */
#include "sdt/sdt.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "d/ast.h"
#include "lang/diag.h"
#include "type/type.h"

struct check {
	struct arena *a;
	struct diag *diag;
	const struct d_prog *prog;
	struct sdt_defs *defs;
};

/* --- names -------------------------------------------------------------------------------------------- */

static bool is_identifier(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	while (isalnum((unsigned char)*s) || *s == '_')
		s++;
	return !*s;
}

/* "query-receive" as a marker's name: "query__receive" */
static const char *marker_name(struct arena *a, const char *name)
{
	char *s = arena_alloc(a, 2 * strlen(name) + 1), *p = s;

	for (; *name; name++) {
		*p++ = *name == '-' ? '_' : *name;
		if (*name == '-')
			*p++ = '_';
	}
	return s;
}

/* "myserv", "query__receive": "MYSERV_QUERY_RECEIVE" */
static const char *macro_name(struct arena *a, const char *provider, const char *marker)
{
	char *s = arena_printf(a, "%s_%s", provider, marker), *to = s;
	const char *from;

	for (from = s; *from; from++) {
		*to++ = (char)toupper((unsigned char)*from);
		if (from[0] == '_' && from[1] == '_' && from > s + strlen(provider))
			from++;
	}
	*to = '\0';
	return s;
}

/* C's part of what a name must be; D's the parser has seen to. */
static bool check_name(struct check *c, const char *name, struct src_pos pos, const char *kind)
{
	if (is_identifier(name))
		return true;
	diag_error(c->diag, pos, "D_PROV_BADNAME", "%s name %s is not a C identifier", kind, name);
	diag_hint(c->diag, "it becomes part of macros and of symbols");
	return false;
}

/* --- arguments ---------------------------------------------------------------------------------------- */

static void check_args(struct check *c, const struct d_probe_def *def)
{
	if (def->args.n <= PROBE_MAX_ARGS)
		return;
	diag_error(c->diag, def->args.v[PROBE_MAX_ARGS].pos, "D_PROV_PRARGLEN",
		   "probe %s has %zu arguments, a marker has at most %d", def->name, def->args.n, (int)PROBE_MAX_ARGS);
}

/* That of its name, or an unnamed one at its position. */
size_t sdt_mapped(const struct d_probe_def *def, size_t i)
{
	const struct d_param *x = &def->xargs.v[i];

	for (size_t j = 0; x->name && j < def->args.n; j++)
		if (def->args.v[j].name && !strcmp(x->name, def->args.v[j].name))
			return j;
	return i < def->args.n ? i : def->args.n;
}

/* Is there a translator from @in to @out?  The output argument of a probe points to what one makes. */
static bool has_translator(const struct check *c, const struct type *in, const struct type *out)
{
	const struct type *made = type_is_ptr(out) ? type_target(type_strip(out)) : out;
	size_t i;

	for (i = 0; i < c->prog->nitems; i++) {
		const struct d_item *it = &c->prog->items[i];

		if (it->kind == D_ITEM_XLATOR && type_same(it->xlator->in, in) &&
		    (type_same(it->xlator->out, made) || type_same(it->xlator->out, out)))
			return true;
	}
	return false;
}

/*
 * A script sees an output argument through a translator, or as it is.  As it is it can be seen when both are
 * what a register holds: pointers to the provider's own and to the script's view of a structure differ in
 * name only where the translators are in another file.
 */
static bool convertible(const struct type *in, const struct type *out)
{
	return type_same(in, out) || (type_is_scalar(in) && type_is_scalar(out)) ||
	       ((type_is_string(in) || type_is_char_ptr(in)) && (type_is_string(out) || type_is_char_ptr(out)));
}

static void check_mapping(struct check *c, const struct sdt_provider *prov, const struct d_probe_def *def)
{
	const struct d_param *x, *in;
	size_t i, from;

	for (i = 0; def->has_xargs && i < def->xargs.n; i++) {
		x = &def->xargs.v[i];
		from = sdt_mapped(def, i);
		in = from < def->args.n ? &def->args.v[from] : NULL;
		if (!in || convertible(in->type, x->type) || has_translator(c, in->type, x->type))
			continue;	/* none: the parser has said so */
		diag_error(c->diag, x->pos, "D_PROV_PRXLATOR",
			   "translator for %s:%s output argument #%zu from %s to %s is not defined", prov->name,
			   def->name, i + 1, type_text(c->a, in->type), type_text(c->a, x->type));
	}
}

/* --- probes and providers ----------------------------------------------------------------------------- */

/* Is @longer the macro that asks whether anybody listens to the probe of @macro? */
static bool is_enabled_macro(const char *longer, const char *macro)
{
	size_t len = strlen(macro);

	return !strncmp(longer, macro, len) && !strcmp(longer + len, "_ENABLED");
}

/* Has an earlier probe one of the macros of @pr? */
static void check_macro(struct check *c, const struct sdt_probe *pr)
{
	const struct sdt_probe *old;
	size_t i, j;

	for (i = 0; i < c->defs->n; i++) {
		for (j = 0; j < c->defs->providers[i].nprobes; j++) {
			old = &c->defs->providers[i].probes[j];
			if (strcmp(old->macro, pr->macro) != 0 && !is_enabled_macro(old->macro, pr->macro) &&
			    !is_enabled_macro(pr->macro, old->macro))
				continue;
			diag_error(c->diag, pr->def->pos, "D_PROV_PRDUP",
				   "probe %s makes the macro %s, and so does %s in line %u", pr->def->name,
				   strlen(old->macro) > strlen(pr->macro) ? old->macro : pr->macro, old->def->name,
				   old->def->pos.line);
			return;
		}
	}
}

static void check_probe(struct check *c, struct sdt_provider *prov, const struct d_probe_def *def)
{
	struct sdt_probe pr = { .def = def, .marker = marker_name(c->a, def->name) };

	check_args(c, def);
	check_mapping(c, prov, def);
	if (!check_name(c, pr.marker, def->pos, "probe"))
		return;
	pr.macro = macro_name(c->a, prov->name, pr.marker);
	check_macro(c, &pr);
	prov->probes = arena_grow(c->a, prov->probes, &prov->probes_cap, prov->nprobes, sizeof(*prov->probes));
	prov->probes[prov->nprobes++] = pr;
}

static const struct sdt_provider *find_provider(const struct check *c, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < c->defs->n; i++)
		if (strlen(c->defs->providers[i].name) == len && !strncmp(c->defs->providers[i].name, name, len))
			return &c->defs->providers[i];
	return NULL;
}

static void check_provider(struct check *c, const struct d_provider *def)
{
	const struct sdt_provider *old = find_provider(c, def->name, strlen(def->name));
	struct sdt_provider *prov;
	size_t i;

	check_name(c, def->name, def->pos, "provider");
	if (old)
		diag_error(c->diag, def->pos, "D_PROV_INCOMPAT", "provider %s is defined twice, first in line %u",
			   def->name, old->def->pos.line);
	c->defs->providers = arena_grow(c->a, c->defs->providers, &c->defs->cap, c->defs->n,
					sizeof(*c->defs->providers));
	prov = &c->defs->providers[c->defs->n++];
	*prov = (struct sdt_provider){ .def = def, .name = def->name };
	for (i = 0; i < def->nprobes; i++)
		check_probe(c, prov, &def->probes[i]);
}

/* #pragma D attributes Evolving/Evolving/Common provider NAME PART, before or behind the provider */
static void check_attributes(struct check *c, const struct d_pragma *pr)
{
	static const char *const parts[] = { "provider", "module", "function", "name", "args" };
	const char *name = pr->value, *part;
	size_t i;

	if (strncmp(name, "provider ", 9) != 0)
		return;		/* about an identifier: the D checker's */
	name += 9;
	part = name + strcspn(name, " ");
	if (!find_provider(c, name, (size_t)(part - name))) {
		diag_error(c->diag, pr->pos, "D_PRAGMA_UNUSED", "attributes for a provider that is not defined: %.*s",
			   (int)(part - name), name);
		return;
	}
	part += *part == ' ';
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(part, parts[i]))
			return;
	diag_error(c->diag, pr->pos, "D_PRAGMA_INVAL", "invalid part of a provider in #pragma attributes: %s", part);
	diag_hint(c->diag, "it is one of provider, module, function, name and args");
}

bool sdt_check(struct arena *a, struct diag *diag, const struct d_prog *p, struct sdt_defs *ret)
{
	struct check c = { a, diag, p, ret };
	unsigned int before = diag->errors;
	size_t i;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < p->nitems; i++)
		if (p->items[i].kind == D_ITEM_PROVIDER)
			check_provider(&c, p->items[i].provider);
	for (i = 0; i < p->nitems; i++)
		if (p->items[i].kind == D_ITEM_PRAGMA && p->items[i].pragma->kind == D_PRAGMA_ATTRIBUTES)
			check_attributes(&c, p->items[i].pragma);
	return diag->errors == before;
}
