/*
 * What a provider definition becomes in C: macros around <sys/sdt.h>, and semaphores.
 */
#include "sdt/sdt.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/ast.h"
#include "type/type.h"

/*
 * The header decides about semaphores by asking whether <sys/sdt.h> was there before it: a program that
 * includes that first, without _SDT_HAS_SEMAPHORES, wants none, need not link the object of -G, and its
 * _ENABLED() macros are 1.
 */
static const char prologue[] =
	"#ifndef _SYS_SDT_H\n"
	"# define _SDT_HAS_SEMAPHORES 1\n"
	"#endif\n"
	"#include <sys/sdt.h>\n"
	"\n"
	"#ifdef __cplusplus\n"
	"extern \"C\" {\n"
	"#endif\n";

static const char epilogue[] =
	"\n"
	"#ifdef __cplusplus\n"
	"}\n"
	"#endif\n";

/* Hidden: the object of -G is linked into each program or library, so that no access goes through a table. */
static const char attributes[] = "__attribute__((unused, section(\".probes\"), visibility(\"hidden\")))";

/* A file name in a comment must not end it. */
static void write_name(struct strbuf *out, const char *s)
{
	for (; *s; s++) {
		strbuf_putc(out, *s == '\n' ? ' ' : *s);
		if (s[0] == '*' && s[1] == '/')
			strbuf_putc(out, ' ');
	}
}

static void write_params(struct strbuf *out, const struct d_params *params)
{
	size_t i;

	for (i = 0; i < params->n; i++) {
		strbuf_puts(out, i ? ", " : "");
		type_print(out, params->v[i].type, params->v[i].name);
	}
}

/* "arg0, arg1": the macro's parameters */
static void write_args(struct strbuf *out, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		strbuf_printf(out, "%sarg%zu", i ? ", " : "", i);
}

/* "-4@_SDT_ANY 8@_SDT_ANY": what the question whether the probe is enabled has as arguments */
static void write_any(struct strbuf *out, const struct d_params *params)
{
	size_t i;

	for (i = 0; i < params->n; i++) {
		const struct type *t = params->v[i].type;
		uint64_t size = type_size(t);
		bool fits = size == 1 || size == 2 || size == 4 || size == 8;

		strbuf_printf(out, "%s%s%u@_SDT_ANY", i ? " " : "", fits && type_is_signed(t) ? "-" : "",
			      fits ? (unsigned int)size : 8);
	}
}

static void write_probe(struct strbuf *out, const struct sdt_provider *prov, const struct sdt_probe *pr)
{
	const char *semaphore = "_semaphore";
	size_t n = pr->def->args.n;

	strbuf_printf(out, "\n/* probe %s(", pr->def->name);
	write_params(out, &pr->def->args);
	strbuf_puts(out, ")");
	if (pr->def->has_xargs) {
		strbuf_puts(out, " : (");
		write_params(out, &pr->def->xargs);
		strbuf_puts(out, ")");
	}
	strbuf_puts(out, " */\n");
	strbuf_printf(out, "#ifdef _SDT_HAS_SEMAPHORES\n"
		      "extern unsigned short %s_%s%s\n\t%s;\n"
		      "# ifdef SDT_ENABLED\n"
		      "#  define %s_ENABLED() SDT_ENABLED(%s, %s, ",
		      prov->name, pr->marker, semaphore, attributes, pr->macro, prov->name, pr->marker);
	write_any(out, &pr->def->args);
	strbuf_printf(out, ")\n"
		      "# else\n"
		      "#  define %s_ENABLED() __builtin_expect(%s_%s%s, 0)\n"
		      "# endif\n"
		      "#else\n"
		      "# define %s_ENABLED() 1\n"
		      "#endif\n",
		      pr->macro, prov->name, pr->marker, semaphore, pr->macro);
	strbuf_printf(out, "#define %s(", pr->macro);
	write_args(out, n);
	strbuf_puts(out, ") \\\n\tDTRACE_PROBE");
	if (n)
		strbuf_printf(out, "%zu", n);
	strbuf_printf(out, "(%s, %s%s", prov->name, pr->marker, n ? ", " : "");
	write_args(out, n);
	strbuf_puts(out, ")\n");
}

void sdt_write_header(struct strbuf *out, const struct sdt_defs *defs, const char *source)
{
	size_t i, j;

	strbuf_puts(out, "/* Made by dtrace -h from ");
	write_name(out, source);
	strbuf_puts(out, ".  Changes will be lost. */\n\n");
	strbuf_puts(out, prologue);
	for (i = 0; i < defs->n; i++)
		for (j = 0; j < defs->providers[i].nprobes; j++)
			write_probe(out, &defs->providers[i], &defs->providers[i].probes[j]);
	strbuf_puts(out, epilogue);
}

/* --- the note with the types ---------------------------------------------------------------------------- */

/*
 * A type as a script can read it: D has the typedefs of <stdint.h> and its own; others are written as what they stand
 * for, and so are enumerations.  A string is passed as an address; of what is neither a number nor an address the size
 * in the marker's note says all.
 */
static void write_type(struct strbuf *out, struct arena *a, const struct types *known, const struct type *t)
{
	const char *text;

	while (t->kind == TYPE_TYPEDEF && !type_find_typedef(known, t->name) && !type_is_sou(t))
		t = t->to;
	if (type_is_string(t))
		text = "char *";
	else if (type_strip(t)->kind == TYPE_ENUM)
		text = "int";
	else
		text = type_is_integer(t) || type_is_float(t) || type_is_ptr(t) ? type_text(a, t) : "";
	strbuf_printf(out, "\t\"\\t.asciz \\\"%s\\\"\\n\"\n", text);
}

static void write_byte(struct strbuf *out, size_t byte)
{
	strbuf_printf(out, "\t\"\\t.byte %zu\\n\"\n", byte);
}

static void write_signature(struct strbuf *out, struct arena *a, const struct types *known, const struct sdt_probe *pr)
{
	const struct d_probe_def *def = pr->def;
	size_t n = 0;

	strbuf_printf(out, "\t\"\\t.asciz \\\"%s\\\"\\n\"\n", pr->marker);
	write_byte(out, def->args.n);
	for (size_t i = 0; i < def->args.n; i++)
		write_type(out, a, known, def->args.v[i].type);
	for (size_t i = 0; i < def->xargs.n; i++)
		n += sdt_mapped(def, i) < def->args.n;
	write_byte(out, n);
	for (size_t i = 0; i < def->xargs.n; i++) {
		size_t from = sdt_mapped(def, i);

		if (from == def->args.n)
			continue;
		write_type(out, a, known, def->xargs.v[i].type);
		write_byte(out, from);
	}
	strbuf_puts(out, "\t\"\\t.balign 4\\n\"\n");
}

/*
 * A note of owner dtap, else as those of owner prov (elf/note_usdt.c).  It is not loaded with the program.  Labels are
 * numbers, so that they cannot collide.
 */
static void write_types(struct strbuf *out, const struct sdt_provider *prov)
{
	struct arena *a = arena_new();
	const struct types *known = types_new(a);

	strbuf_printf(out, "__asm__ (\".pushsection .note.dtap,\\\"\\\",\\\"note\\\"\\n\"\n"
		      "\t\"\\t.balign 4\\n\"\n"
		      "\t\"\\t.long 9912f-9911f, 9914f-9913f, 1\\n\"\n"
		      "\t\"9911:\\t.asciz \\\"dtap\\\"\\n\"\n"
		      "\t\"9912:\\t.balign 4\\n\"\n"
		      "\t\"9913:\\t.asciz \\\"%s\\\"\\n\"\n"
		      "\t\"\\t.balign 4\\n\"\n"
		      "\t\"\\t.long 0, 0, 0, 0, 0, %zu\\n\"\n", prov->name, prov->nprobes);
	for (size_t i = 0; i < prov->nprobes; i++)
		write_signature(out, a, known, &prov->probes[i]);
	strbuf_puts(out, "\t\"9914:\\t.balign 4\\n\"\n"
		    "\t\"\\t.popsection\\n\");\n");
	arena_free(a);
}

void sdt_write_semaphores(struct strbuf *out, const struct sdt_defs *defs, const char *source)
{
	size_t i, j;

	strbuf_puts(out, "/* Made by dtrace -G from ");
	write_name(out, source);
	strbuf_puts(out, ". */\n");
	/* A program with markers and no provider's semaphores gets an object all the same: it is not empty C. */
	strbuf_puts(out, "extern int dtap_sdt_object;\n");
	for (i = 0; i < defs->n; i++) {
		for (j = 0; j < defs->providers[i].nprobes; j++)
			strbuf_printf(out, "unsigned short %s_%s_semaphore %s;\n", defs->providers[i].name,
				      defs->providers[i].probes[j].marker, attributes);
		write_types(out, &defs->providers[i]);
	}
}
