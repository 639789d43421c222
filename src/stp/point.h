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

struct arena;
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

/* How the value of a context variable is had: where it begins, then steps through memory. */
enum stp_source_kind {
	STP_SRC_ARG,		/* the probe's argument @arg (ir.h, ARG) */
	STP_SRC_VALUE,		/* the value of STP_CAST's or STP_DEREF's expression */
	STP_SRC_UNKNOWN,	/* @text, as an item of a LIST: "?" */
	STP_SRC_TEXT,		/* @text itself: $$name, $$provider */
	STP_SRC_FORMAT,		/* the @nnames sources @items printed by the format @text; strings in quotes */
	STP_SRC_LIST,		/* "a=0x1 b=0x2" of the @nnames sources @items: $$vars, $$parms */
};

enum { STP_MAX_STEPS = 8 };

/*
 * From an address to the value at it: @width bytes at @off behind it, of the traced process or the kernel.  @width 0:
 * to the address there.
 */
struct stp_step {
	int64_t off, scale;
	struct stp_node *index;		/* @scale times that is added as well; or NULL */
	uint8_t width;
	bool sign, kernel;
};

struct stp_source {
	enum stp_source_kind kind;
	enum stp_type type;		/* STP_LONG, STP_STRINGS: with a LONG source the string at that address */
	uint32_t arg;
	const char *text;
	const char **names;		/* LIST: what stands before the = */
	const struct stp_source *items;
	size_t nnames;
	struct stp_step steps[STP_MAX_STEPS];
	unsigned int nsteps;
	uint8_t width;			/* not 0: of the value, its low bytes count, as a number with @sign */
	uint8_t bit, bits;		/* bits not 0: of the value those count, from @bit up */
	bool sign;
	uint32_t size;			/* of STRINGS in FORMAT: bytes that there can be; 0: up to a NUL */
	const char *readonly;		/* nobody may write to it: why, in SystemTap's words; or NULL */
	const void *target;		/* what the value points to, for -> and [], the resolver's own; or NULL */
};

struct stp_resolver {
	void *ctx;
	/*
	 * What is there at @point, which is of @kind?  Returns how many points that exist, which become handlers
	 * of their own, and gives them in *found, an array in the compilation's arena: @point itself, or what its
	 * patterns match, @point->comps copied and completed (paths absolute, names as they are).  If 0, *why may
	 * become a sentence (in static memory or the arena) that says what is missing.
	 */
	size_t (*find)(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
		       const struct stp_point ***found, const char **why);
	/*
	 * Has @point the context variable @target (STP_TARGET, with its parts)?  *source, zeroed before, becomes
	 * how it is had.  $$name and its like, which are strings, are asked for as well.  If not, *why may become
	 * a sentence that says why not.
	 */
	bool (*target)(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
		       const struct stp_node *target, struct stp_source *source, const char **why);
	/*
	 * The same of @cast, an STP_CAST, at @point or (NULL) in a function, and of -> and [] behind a value, an STP_DEREF
	 * with a value whose target is known.  May be NULL: no types are known.
	 */
	bool (*cast)(void *ctx, const struct stp_point *point, const struct stp_node *cast, struct stp_source *source,
		     const char **why);
};

/*
 * Make prog->handlers of prog->probes.  @resolver may be NULL: everything exists that points.def has, and no
 * context variable.  False: reported.
 */
bool stp_expand(struct stp_prog *prog, struct diag *diag, const struct stp_resolver *resolver);

/* Does @pattern, which may have * and **, name the alias @name?  @a: for what is only needed meanwhile. */
bool stp_point_names(const struct stp_point *pattern, const struct stp_point *name, struct arena *a);

/*
 * Take the @entry out of @h, a handler of a function's return: what must run at the function's entry, a block that is
 * nobody's yet, or NULL (entry.c).
 */
struct stp_stmt *stp_split_entries(struct stp_prog *prog, struct stp_handler *h);

#endif
