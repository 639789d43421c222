/*
 * What a language must know of probes, without a system to trace.
 *
 * A probe description is the four-part name that a script gives (provider:module:function:name, globs
 * allowed; an empty part matches anything), or a number.  A resolver, handed to the compilation, answers
 * the questions that the checker has about the probes behind it: are there any, and which arguments do
 * they have?  Tests hand in a table.
 */
#ifndef DTAP_LANG_DESC_H
#define DTAP_LANG_DESC_H

#include <stdbool.h>
#include <stdint.h>

#include "lang/source.h"

struct arena;

struct probe_desc {
	const char *prov, *mod, *func, *name;	/* never NULL; "" matches anything */
	uint32_t id;		/* not 0: the probe of that number, the names are "" */
	struct src_pos pos;
};

enum { PROBE_MAX_ARGS = 12 };

/* An argument as the provider describes it: a C integer or pointer of @size bytes, or a named C type. */
struct probe_arg {
	const char *type;	/* C type as text ("const char *", "int"), or NULL when only the size is known */
	uint8_t size;		/* 1, 2, 4 or 8 */
	bool sign, is_float;
	bool kernel;		/* a pointer is an address of the kernel, not of the traced process */
	uint8_t raw;		/* 1 + the number of the argN that has the value; 0: that of its place */
	const char *xlate;	/* what args[] translates the value, of @type, to ("psinfo_t *"), or NULL */
};

bool probe_arg_same(const struct probe_arg *a, const struct probe_arg *b);

struct probe_sig {
	unsigned int nargs;
	struct probe_arg args[PROBE_MAX_ARGS];
};

struct resolver {
	void *ctx;
	/*
	 * How many probes match @desc; 0 when none.  When they agree on their arguments *sig is filled and
	 * *same set; else *same is false.  Either may be NULL.
	 */
	unsigned int (*match)(void *ctx, const struct probe_desc *desc, struct probe_sig *sig, bool *same);
	/* What to do about a description that has just matched none, in @a; NULL: nobody knows.  May be NULL itself. */
	const char *(*hint)(void *ctx, const struct probe_desc *desc, struct arena *a);
};

/* Does @s match the shell-style pattern @glob (*, ?, [a-z], [!a-z], \x)?  "" as a pattern matches anything. */
bool desc_glob(const char *glob, const char *s);

/* Has @glob a character that is special in patterns? */
bool desc_is_glob(const char *glob);

#endif
