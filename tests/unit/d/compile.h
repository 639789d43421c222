/*
 * A D script compiled for a test, without a system to trace: the probes are a table.
 *
 *	dtrace:::BEGIN, END, ERROR		no arguments
 *	profile:::tick-1s, profile-97		two integers
 *	python123:python3:f:function-entry, function-return, line	(const char *, const char *, int)
 *	python123:python3:g:gc-start		(int)
 *	python123:python3:g:gc-done		(long)
 *	sizes123:m:f:all			an integer of each width and sign, without types
 */
#ifndef DTAP_TESTS_D_COMPILE_H
#define DTAP_TESTS_D_COMPILE_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/d.h"
#include "ir/ir.h"
#include "lang/desc.h"
#include "lang/diag.h"

struct compiled {
	struct arena *arena;
	struct diag diag;
	struct d *d;
	struct ir_prog *prog;	/* NULL: there were mistakes */
};

extern const struct resolver test_resolver;

/* Compile @src into @a.  @ret: where to put the compilation, or NULL. */
struct ir_prog *compile_source(struct arena *a, const struct source *src, struct diag *diag, struct d **ret);

/* Compile the @len bytes at @text, called @name; compiled_free releases it. */
void compile_text(struct compiled *c, const char *name, const char *text, size_t len);
void compiled_free(struct compiled *c);

#endif
