/*
 * The provider compiler: from "provider NAME { probe NAME(args); ... };" to what a C or C++ program needs to
 * fire those probes, namely a header of macros (dtrace -h) and the semaphores (dtrace -G).
 *
 *	sdt_check(arena, diag, prog, &defs);		the tree is d_parse's
 *	sdt_write_header(out, &defs, "p.d");
 *	sdt_write_semaphores(out, &defs, "p.d");	C text; who has a compiler makes the object of it
 *
 * One probe has three names.  A definition of probe query__receive in provider myserv gives scripts
 * myserv$target:::query-receive, C the macros MYSERV_QUERY_RECEIVE() and MYSERV_QUERY_RECEIVE_ENABLED(), and
 * the file the marker myserv:query__receive with the semaphore myserv_query__receive_semaphore.
 *
 * Markers are what <sys/sdt.h> makes of DTRACE_PROBEn, so an argument's size and sign are those of the
 * expression that the program passes; the definition's types are checked, and say so in the header.
 *
 * Guide: "Statically Defined Tracing for User Applications".  Macros as SystemTap's dtrace(1) writes them.
 */
#ifndef DTAP_SDT_SDT_H
#define DTAP_SDT_SDT_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct d_probe_def;
struct d_prog;
struct d_provider;
struct diag;
struct strbuf;

struct sdt_probe {
	const struct d_probe_def *def;
	const char *marker;	/* "query__receive" */
	const char *macro;	/* "MYSERV_QUERY_RECEIVE" */
};

struct sdt_provider {
	const struct d_provider *def;
	const char *name;	/* "myserv" */
	struct sdt_probe *probes;
	size_t nprobes, probes_cap;
};

/* All providers of a program, in its order; in the arena. */
struct sdt_defs {
	struct sdt_provider *providers;
	size_t n, cap;
};

/*
 * Check the provider definitions of @p, and its pragmas about them, and fill *ret.  A program without a
 * provider is fine, and so are clauses beside them: configure scripts try "BEGIN{}".  False: there were
 * errors, in @diag, and *ret is not to be used.
 */
bool sdt_check(struct arena *a, struct diag *diag, const struct d_prog *p, struct sdt_defs *ret);

/* Add the header's text; @source is the definition's name for its first comment. */
void sdt_write_header(struct strbuf *out, const struct sdt_defs *defs, const char *source);

/*
 * Add C text that defines the semaphores, and a note that tells scripts the types of the arguments and which of them
 * they see (elf/note_usdt.c reads it).  It includes nothing.
 */
void sdt_write_semaphores(struct strbuf *out, const struct sdt_defs *defs, const char *source);

/* The number of the input argument that output argument @i of @def is made of; def->args.n: there is none. */
size_t sdt_mapped(const struct d_probe_def *def, size_t i);

#endif
