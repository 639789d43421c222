/*
 * From the probe points that a script names to those that exist, with all that runs at each: aliases are
 * followed, patterns in names expanded, and points that are optional or suffice left out.
 *
 * What the running system has (does the program exist, which markers has it, what are their arguments) is
 * asked of a resolver that is handed in; patterns inside of ("...") are its business as well.
 *
 * Language reference: "Probe points", "Prologue-style aliases", "Epilogue-style aliases", "Probe point flags".
 */
#ifndef DTAP_STP_POINT_H
#define DTAP_STP_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "stp/ast.h"

struct diag;

enum stp_point_kind {
	STP_P_BEGIN, STP_P_END, STP_P_ERROR, STP_P_NEVER,
	STP_P_TIMER_S, STP_P_TIMER_MS, STP_P_TIMER_US, STP_P_TIMER_NS, STP_P_TIMER_HZ, STP_P_TIMER_JIFFIES,
	STP_P_TIMER_PROFILE,
	STP_P_PROCESS_BEGIN, STP_P_PROCESS_END, STP_P_THREAD_BEGIN, STP_P_THREAD_END,
	STP_P_SYSCALL_ENTRY, STP_P_SYSCALL_RETURN,
	STP_P_MARK, STP_P_FUNCTION, STP_P_INLINE, STP_P_RETURN, STP_P_CALLEE, STP_P_STATEMENT,
	STP_P_PLT, STP_P_PLT_RETURN,
	STP_P_TRACEPOINT, STP_P_KERNEL, STP_P_PERF, STP_P_PROCFS, STP_P_INPUT,
};

struct stp_resolver {
	void *ctx;
	/*
	 * Is there anything at @point, which is of @kind?  If not, *why may become a sentence (in static memory
	 * or the compilation's arena) that says what is missing.
	 */
	bool (*find)(void *ctx, const struct stp_point *point, enum stp_point_kind kind, const char **why);
	/*
	 * Has @point the context variable @target (STP_TARGET, with its parts)?  *type becomes STP_LONG or
	 * STP_STRINGS.  $$name and its like, which are strings, are asked for as well.
	 */
	bool (*target)(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
		       const struct stp_node *target, enum stp_type *type);
};

/*
 * Make prog->handlers of prog->probes.  @resolver may be NULL: everything exists that points.def has, and no
 * context variable.  False: reported.
 */
bool stp_expand(struct stp_prog *prog, struct diag *diag, const struct stp_resolver *resolver);

#endif
