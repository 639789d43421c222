/*
 * The preprocessor: macros and conditionals, from tokens to tokens.
 *
 *	@define name %( body %)			@name
 *	@define name(a, b) %( @a + @b %)	@name(1, 2)
 *	%( kernel_v >= "2.6.30" && arch == "x86_64" %? tokens %: tokens %)
 *
 * What a conditional can ask for stands in pp_names.def; besides, two strings or two numbers can be
 * compared, which is what becomes of $# and @1.  A macro defined in a script hides one of the library; in one
 * file a name is defined once.  A macro that names itself without end is a mistake: expansion is bounded.
 *
 * Language reference: "Preprocessor macros", "Conditional compilation".
 */
#ifndef DTAP_STP_PREPROC_H
#define DTAP_STP_PREPROC_H

#include <stdbool.h>

#include "stp/lex.h"

struct diag;
struct stp_macro;

/* The version of SystemTap whose language and options these are. */
#define STP_VERSION "5.6"

/* The world that the script is compiled for.  Strings outlive the compilation. */
struct stp_env {
	const char *kernel_v;		/* "6.1.0" */
	const char *kernel_vr;		/* "6.1.0-13-amd64" */
	const char *arch;		/* "x86_64" */
	const char *systemtap_v;	/* STP_VERSION, or an older one that is asked for */
	const char *runtime;		/* "kernel" */
	const char *privilege;		/* "stapdev" */
	bool guru;			/* -g */
	bool unoptimized;		/* -u: code without effect stays */
	bool timing;			/* -t: handlers measure how long they take */
	struct stp_args args;
	/* The value of a CONFIG_ name, or NULL; may itself be NULL: nothing is configured. */
	const char *(*config)(void *ctx, const char *name);
	void *config_ctx;
};

/* The environment of this machine: uname(2), the newest SystemTap whose language is followed, no arguments. */
void stp_env_init(struct stp_env *env, struct arena *a);

struct stp_preproc {
	struct arena *arena;
	struct diag *diag;
	const struct stp_env *env;
	struct stp_macro *macros;	/* newest first */
	size_t work;			/* tokens looked at */
};

void stp_preproc_init(struct stp_preproc *pp, struct arena *a, struct diag *diag, const struct stp_env *env);

/* Expand the tokens of a file (stp_lex) into *out, STP_EOF at its end.  False: reported. */
bool stp_preproc(struct stp_preproc *pp, const struct stp_toks *in, struct stp_toks *out);

#endif
