/*
 * From the probe points in a script to the existing ones, with all code that runs at each: follows aliases, expands
 * patterns in names, and handles the flags ? and !.
 *
 * The caller passes a resolver, which knows the running system (does the program exist, which markers does it have,
 * with which arguments) and also expands patterns inside of ("...").
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
	STP_P_PLT, STP_P_PLT_RETURN, STP_P_PYTHON_CALL, STP_P_PYTHON_RETURN,
	STP_P_TRACEPOINT, STP_P_KERNEL, STP_P_PERF, STP_P_DATA, STP_P_PROCFS, STP_P_INPUT,
	STP_P_READ,			/* display.c: of the owner of the run, which asks for globals */
};

/* How the value of a context variable is computed: a start, then steps through memory. */
enum stp_source_kind {
	STP_SRC_ARG,		/* the probe's argument @arg (ir.h, ARG) */
	STP_SRC_VALUE,		/* the value of the expression of STP_CAST or STP_DEREF */
	STP_SRC_PROGRAM,	/* how far from its file's addresses the process has @program */
	STP_SRC_CALC,		/* what the @ncalc steps @calc compute */
	STP_SRC_THREAD,		/* the thread pointer; with @tls the block of thread-local variables that it says */
	STP_SRC_UNKNOWN,	/* @text, as an item of a LIST: "?" */
	STP_SRC_TEXT,		/* @text itself: $$name, $$provider */
	STP_SRC_FORMAT,		/* the @nnames sources @items printed by the format @text; strings in quotes */
	STP_SRC_LIST,		/* "a=0x1 b=0x2" of the @nnames sources @items: $$vars, $$parms */
	STP_SRC_PYTHON,		/* of Python: the variable @text, NULL: the result; then the node's own parts; its text */
	STP_SRC_PYTHON_VARS,	/* $$parms: of Python's function, @arg of enum abi_variables */
};

enum { STP_MAX_STEPS = 8 };

/*
 * A step from an address to the value of @width bytes at offset @off, in the traced process or the kernel.  @width 0:
 * to the address itself.
 */
struct stp_step {
	int64_t off, scale;
	struct stp_node *index;		/* adds @scale times the index to the offset; or NULL */
	uint8_t width;
	bool sign, kernel;
};

/* The program in a file, for IR_FN_BIAS. */
struct stp_program {
	uint64_t dev, ino, start;
};

/*
 * A library's block of thread-local variables: the 8 bytes at @off from the probe's argument @arg are its distance from
 * the thread pointer or, @is_number, its number in the thread's table, whose address is 8 bytes behind the thread pointer.
 */
struct stp_tls {
	int64_t off;
	bool is_number;
};

struct calc_step;

struct stp_source {
	enum stp_source_kind kind;
	enum stp_type type;		/* STP_LONG, STP_STRINGS: with a LONG source the string at that address */
	uint32_t arg;
	const struct stp_program *program;
	const struct stp_tls *tls;
	const struct calc_step *calc;
	unsigned int ncalc;
	const char *text;
	const char **names;		/* LIST: the texts before the = */
	const struct stp_source *items;
	size_t nnames;
	struct stp_step steps[STP_MAX_STEPS];
	unsigned int nsteps;
	uint8_t width;			/* not 0: only so many low bytes of the value count, with @sign */
	uint8_t bit, bits;		/* bits not 0: only so many bits from @bit up count */
	bool sign;
	uint32_t size;			/* of STRINGS in FORMAT: most bytes; 0: up to a NUL */
	const char *readonly;		/* why it cannot be written to, in SystemTap's words; or NULL */
	const void *target;		/* the resolver's type of the value's target, for -> and []; or NULL */
};

struct stp_resolver {
	void *ctx;
	/*
	 * Find the existing points that @point, which is of @kind, names: @point itself, or what its patterns match.
	 * Each becomes a handler.  Returns their number, and in *found an array in the compilation's arena; their
	 * comps are copies with absolute paths and full names.  If 0, *why may become a sentence (in static memory or
	 * the arena) that says what is missing.
	 */
	size_t (*find)(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
		       const struct stp_point ***found, const char **why);
	/*
	 * Does @point have the context variable @target (STP_TARGET, with its parts)?  If so, fill *source, which is
	 * zeroed before.  Strings such as $$name are context variables, too.  If not, *why may become a sentence that
	 * says why not.  @point is NULL for an @var with a module in a function that no probe calls.
	 */
	bool (*target)(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
		       const struct stp_node *target, struct stp_source *source, const char **why);
	/*
	 * The same for @cast: an STP_CAST at @point or (NULL) in a function, or an STP_DEREF, -> and [] after a value
	 * whose target is known.  May be NULL: no types are known.
	 */
	bool (*cast)(void *ctx, const struct stp_point *point, const struct stp_node *cast, struct stp_source *source,
		     const char **why);
};

/*
 * Make prog->handlers from prog->probes.  @resolver may be NULL: then every point of points.def exists, and no
 * context variable.  False: reported.
 */
bool stp_expand(struct stp_prog *prog, struct diag *diag, const struct stp_resolver *resolver);

/* Does @pattern, which may have * and **, name the alias @name?  @a: for temporary memory. */
bool stp_point_names(const struct stp_point *pattern, const struct stp_point *name, struct arena *a);

/* Is @n available only at a function's entry?  Its variables, and the locations of others, are. */
bool stp_is_gone(const struct stp_node *n);

/*
 * Replace the @entry of @h, a handler of a function's return (entry.c).  Returns the block that must run at the
 * function's entry, or NULL.
 */
struct stp_stmt *stp_split_entries(struct stp_prog *prog, struct stp_handler *h);

#endif
