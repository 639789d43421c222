/*
 * What a language needs to know of probes, independent of a system to trace.
 *
 * A probe description is the four-part name in a script (provider:module:function:name, globs
 * allowed; an empty part matches anything), or a number.  A resolver, passed to the compilation, answers
 * the checker's questions about the probes that it matches: are there any, and which arguments do
 * they have?  Tests pass a table.
 */
#ifndef DTAP_LANG_DESC_H
#define DTAP_LANG_DESC_H

#include <stdbool.h>
#include <stdint.h>

#include "lang/source.h"

struct arena;

struct probe_desc {
	const char *prov, *mod, *func, *name;	/* never NULL; "" matches anything */
	uint32_t id;		/* not 0: the probe with that number, all names are "" */
	struct src_pos pos;
};

enum { PROBE_MAX_ARGS = 12 };

/* An argument as the provider describes it: a C integer or pointer of @size bytes, or a named C type. */
struct probe_arg {
	const char *type;	/* C type as text ("const char *", "int"), or NULL when only the size is known */
	uint8_t size;		/* 1, 2, 4 or 8 */
	bool sign, is_float;
	bool kernel;		/* a pointer is a kernel address, not one in the traced process */
	uint8_t raw;		/* 1 + the number N of the argN with the value; 0: N is this argument's index */
	const char *xlate;	/* the type to which args[] translates the value of @type ("psinfo_t *"), or NULL */
};

bool probe_arg_same(const struct probe_arg *a, const struct probe_arg *b);

struct probe_sig {
	unsigned int nargs;
	struct probe_arg args[PROBE_MAX_ARGS];
};

struct resolver {
	void *ctx;
	/*
	 * The number of probes that match @desc.  If all have the same arguments, *sig is filled and
	 * *same is true; else *same is false.  Both pointers may be NULL.
	 */
	unsigned int (*match)(void *ctx, const struct probe_desc *desc, struct probe_sig *sig, bool *same);
	/* Advice, in @a, for a description that has just matched no probe; NULL: none.  The function may be NULL. */
	const char *(*hint)(void *ctx, const struct probe_desc *desc, struct arena *a);
};

/* Does @s match the shell-style pattern @glob?  base/glob.h: "" matches anything, ? one character of UTF-8. */
bool desc_glob(const char *glob, const char *s);

/* The digits at the end of a provider's name, and the process that they are ("python1234"); "" and 0: there are none. */
const char *desc_digits(const char *prov);
uint32_t desc_pid(const char *prov);

/* Does @glob have a character that is special in patterns? */
bool desc_is_glob(const char *glob);

#endif
