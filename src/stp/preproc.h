/*
 * The preprocessor: macros and conditionals, from tokens to tokens.
 *
 *	@define name %( body %)			@name
 *	@define name(a, b) %( @a + @b %)	@name(1, 2)
 *	%( kernel_v >= "2.6.30" && arch == "x86_64" %? tokens %: tokens %)
 *
 * The names for conditions are in pp_names.def.  Two strings or two numbers can be compared, too: $# and @1 become
 * such.  A macro defined in a script hides one of the library; a file may define a name only once.  An endless
 * recursion of macros is a mistake: expansion is limited.
 *
 * Language reference: "Preprocessor macros", "Conditional compilation".
 */
#ifndef DTAP_STP_PREPROC_H
#define DTAP_STP_PREPROC_H

#include <stdbool.h>
#include <stdint.h>

#include "stp/lex.h"

struct diag;
struct stp_macro;

/* The version of SystemTap whose language and options dtap implements. */
#define STP_VERSION "5.6"

/* The system and options that the script is compiled for.  Strings outlive the compilation. */
struct stp_env {
	const char *kernel_v;		/* "6.1.0" */
	const char *kernel_vr;		/* "6.1.0-13-amd64" */
	const char *arch;		/* "x86_64" */
	const char *systemtap_v;	/* STP_VERSION, or an older one (--compatible) */
	const char *runtime;		/* "kernel" */
	const char *privilege;		/* "stapdev" */
	bool guru;			/* -g */
	bool unoptimized;		/* -u: code without effect stays */
	bool readings;			/* the owner of the run asks for globals: handlers of STP_P_READ */
	bool timing;			/* -t: measure how long handlers take */
	/* Of the machine, and of the process that runs the script: */
	uint32_t pid, uid;
	int64_t page_size, hz;		/* hz: the kernel's jiffies a second */
	bool in_pid_ns;			/* ids are those of a pid namespace, not of the whole machine */
	struct stp_args args;
	/* The value of a CONFIG_ name, or NULL; may itself be NULL: nothing is configured. */
	const char *(*config)(void *ctx, const char *name);
	void *config_ctx;
};

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
