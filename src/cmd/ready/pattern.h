/*
 * Which functions a ready-made command traces: patterns of the command line become D code.
 *
 *	f		functions of that name
 *	get_*		functions that match a shell pattern, in which only * is special
 *	app.orders:*	functions of a module; app.*:* those of a package
 *	orders.py:f	functions of a source file, given by its base name or, starting with a slash, by its path
 *
 * A script uses them as the predicate "selected" of function-entry and similar probes, or as probes of provider py,
 * where "$selected:entry" expands to the entries of the functions; there names may be qualified (Order.total), and
 * files are not supported.  In the predicate names are string literals with all special characters escaped, so a
 * pattern cannot add code to the script.
 */
#ifndef DTAP_CMD_READY_PATTERN_H
#define DTAP_CMD_READY_PATTERN_H

#include <stddef.h>

struct strbuf;

/*
 * Append an expression to @out that is true at function-entry and function-return of the functions that match one of
 * the @n patterns; "1" without patterns.  0, or -EINVAL with a line in @err.
 */
int ready_pattern(const char *const *patterns, size_t n, struct strbuf *out, struct strbuf *err);

/*
 * Append to @out the probes @name of provider py for the functions that match the patterns, as descriptions separated
 * by commas.  Modules and qualified names are Python's; a name without a dot also selects methods and inner functions
 * of that name.  0, or -EINVAL with a line in @err.
 */
int ready_descriptions(const char *const *patterns, size_t n, const char *name, size_t len, struct strbuf *out,
		       struct strbuf *err);

/* Append @s as a string literal of D. */
void ready_literal(const char *s, size_t len, struct strbuf *out);

#endif
