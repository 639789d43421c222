/*
 * libdtap: DTrace's D scripts and SystemTap's scripts against CPython, as a library.
 *
 * A struct dtap is one run of one program: scripts and processes go in; typed records, aggregations, and the text
 * that the scripts print come out.  The commands dtrace and stap are callers of this header.
 *
 *	dtap_new ─► settings, scripts, processes ─► dtap_parse ─► dtap_check ─► dtap_translate ─► dtap_enable
 *		─► dtap_start ─► dtap_turn ... ─► dtap_finish ─► dtap_free
 *
 * dtap_open() does the four steps from dtap_parse() to dtap_enable() at once, dtap_run() the three from dtap_start()
 * to dtap_finish().  Up to dtap_start() a command that was started is held at its exec and nothing fires, so no
 * event is missed.  Whatever happens to the caller, traced processes run on: only a held command ends with it.
 *
 *	static void message(void *ctx, enum dtap_level level, const char *text) { fputs(text, stderr); }
 *
 *	struct dtap_conf conf = { .size = sizeof(conf), .language = DTAP_D, .message = message };
 *	struct dtap *t = dtap_new(&conf);
 *
 *	dtap_script(t, DTAP_TEXT, "python$target:::function-entry { @[copyinstr(arg1)] = count(); }");
 *	dtap_command(t, "python3 program.py");
 *	if (!dtap_open(t) && !dtap_run(t))
 *		dtap_aggregations(t, NULL, row, NULL);
 *	dtap_free(t);
 *
 * Errors are negative errno values.  Messages for users go to dtap_conf.message: complete lines in the wording of the
 * language's own command ("dtrace: failed to compile script ...").  A function that fails has reported the reason
 * there.  If there is no memory for a tree or a text, the process ends by abort(); traced processes run on.
 *
 * A run belongs to the thread that creates it, since the kernel ties a held process to a thread; only dtap_stop() may
 * be called from other threads and from signal handlers.  Several threads may have runs at the same time.
 *
 * Compatibility: functions and members are never removed; new members are added at the end of structures, whose size
 * the caller passes; new values are added at the end of enumerations, and callers must ignore unknown ones.
 *
 * dtap(3) has an example, which the tests compile.
 */
#ifndef DTAP_H
#define DTAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DTAP_API __attribute__((visibility("default")))

/* The version of this header, and that of the linked library. */
#define DTAP_VERSION "0.1.0"
DTAP_API const char *dtap_version(void);

struct dtap;

/* --- settings ------------------------------------------------------------------------------------------ */

enum dtap_language { DTAP_D, DTAP_STAP };

/* The version of the language that dtap supports: "1.13". */
DTAP_API const char *dtap_language_version(enum dtap_language language);

enum dtap_level {
	DTAP_ERROR,
	DTAP_WARNING,
	DTAP_NOTE,		/* progress: lines that begin with "#", number of matched probes, ends of processes */
	DTAP_DROP,		/* faults and lost data during the run */
	DTAP_DUMP,		/* output of the options "ir", "bytecode", "verifierlog" */
};

/* What the run is for. */
enum dtap_purpose {
	DTAP_TO_RUN,
	DTAP_TO_COMPILE,	/* up to dtap_enable(): the agent is not loaded into any process */
	DTAP_TO_LIST,		/* dtap_parse(), then dtap_list() */
};

/* Options of stap(1); all zero: the defaults. */
struct dtap_stap {
	bool guru;			/* -g */
	bool unoptimized;		/* -u */
	bool timing;			/* -t */
	bool no_warnings;		/* -w */
	bool strict_warnings;		/* -W */
	bool all_messages;		/* -v: do not suppress similar messages; name internal functions, too */
	bool expansions;		/* -vv: say which programs a pattern names */
	bool skip_badvars;		/* --skip-badvars */
	bool no_time_limits;		/* --suppress-time-limits */
	bool no_handler_errors;		/* --suppress-handler-errors */
	bool no_globals;		/* --no-global-var-display */
	bool all_tapset;		/* read the whole tapset, for lists */
	const char *compatible;		/* --compatible, or NULL */
	const char *sysroot;		/* --sysroot, or NULL */
	uint64_t timeout_ns;		/* -T, 0: none */
};

struct dtap_record;

/* What became of a process that is, or would be, traced by means of the agent. */
enum dtap_fate {
	DTAP_TRACED,		/* its probes fire from now on; may be told again */
	DTAP_REFUSED,		/* it cannot be traced: @why */
	DTAP_GONE,		/* a traced one has ended, or executes another program */
	DTAP_RESTS,		/* a traced one is not traced for a while, to keep to the budget ... */
	DTAP_GOES_ON,		/* ... and is again */
	DTAP_UNSEEN,		/* one named python had ended before it could be looked at: whether it was to be traced is not known */
	DTAP_LATE,		/* one that was started meanwhile may have begun before it is traced; DTAP_TRACED is told as well */
};

struct dtap_process_event {
	enum dtap_fate what;
	pid_t pid;
	const char *why;	/* DTAP_REFUSED: a line without a newline; else "" */
};

/*
 * What tracing may cost each process, of its CPU time, over all runs that have the same struct dtap_budget: events in
 * the process, and the tracer's time for them.  In a process where it costs more, the run that costs most rests until that
 * has evened out, and what happens meanwhile is lost; this is told as a loss of the kind "budget".  It bounds runs in the
 * target place.
 */
struct dtap_budget;

struct dtap_conf {
	size_t size;			/* sizeof(struct dtap_conf): tells the library which members exist */
	enum dtap_language language;
	bool tags;			/* print the stable tag of each error: "[D_SYNTAX]" */
	void *ctx;			/* first argument of the three functions */
	/* A message for users: complete lines.  NULL: messages are dropped. */
	void (*message)(void *ctx, enum dtap_level level, const char *text);
	/* One firing of one clause.  NULL: records are printed to dtap_output() as the command does. */
	void (*record)(void *ctx, const struct dtap_record *r);
	/* Called after text was written to dtap_output()'s descriptor; may be NULL. */
	void (*written)(void *ctx);
	const struct dtap_stap *stap;	/* DTAP_STAP: NULL for the defaults; must outlive the run */
	const char *share;		/* the folder with dlib and tapset; NULL: near the program, or as installed */
	/* DTAP_SELECT_RULE: is @pid to be traced?  Called when it has executed a program, and at the start if it runs. */
	bool (*selects)(void *ctx, pid_t pid);
	/* A process is traced now, or cannot be, or is gone; may be NULL. */
	void (*process)(void *ctx, const struct dtap_process_event *e);
	/* @n data of a kind ("record", "aggregation", "variable" ...) were lost, beside the message; may be NULL. */
	void (*lost)(void *ctx, const char *kind, uint64_t n);
	bool keep_signals;		/* SIGINT, SIGTERM and SIGHUP do not end the run: they are the caller's */
	struct dtap_budget *budget;	/* NULL: that of the option budget, if there is one */
};

/* NULL: out of memory, or @conf is invalid. */
DTAP_API struct dtap *dtap_new(const struct dtap_conf *conf);

/* Release everything, at any step.  Accepts NULL. */
DTAP_API void dtap_free(struct dtap *t);

/*
 * @share: such as "1%", or "none": what runs cost is summed up, and not bounded.  0, -EINVAL, -ENOMEM.  It can be set anew
 * at any time, by any thread.
 */
DTAP_API int dtap_budget_new(const char *share, struct dtap_budget **ret);
DTAP_API int dtap_budget_set(struct dtap_budget *b, const char *share);

/* Accepts NULL.  It may be called before the runs that have it end. */
DTAP_API void dtap_budget_free(struct dtap_budget *b);

/*
 * Can this process have probes in the kernel place?  0, or a negative errno with a line in @why, of @size bytes: -EPERM, if it has
 * not the right to, and others of bpf(2), if this kernel has no such probes.
 */
DTAP_API int dtap_kernel(char *why, size_t size);

/* Call it before dtap_parse(); the default is DTAP_TO_RUN. */
DTAP_API void dtap_purpose(struct dtap *t, enum dtap_purpose purpose);

/*
 * Set option @name of dtrace's -x to @value (NULL: without a value); most work in both languages.  -ENOENT: there is no
 * such option; -ENOTSUP: only other DTraces have it; -EINVAL: invalid value.
 */
DTAP_API int dtap_set(struct dtap *t, const char *name, const char *value);

/* The current value of an option that is a number, a switch, a size or a rate (ns); 0 for others. */
DTAP_API int64_t dtap_get(const struct dtap *t, const char *name);

/* Set options from environment variables DTRACE_OPT_NAME=value, as by dtap_set(). */
DTAP_API int dtap_set_from_environment(struct dtap *t);

/* The options of dtap_set(): name and meaning of option @i; false after the last. */
DTAP_API bool dtap_option(size_t i, const char **name, const char **what);

/* "NAME=VALUE" (strings are copied). */
enum dtap_definition {
	DTAP_DEFINE_LIMIT,	/* stap -D */
	DTAP_DEFINE_GLOBAL,	/* stap -G */
	DTAP_DEFINE_CPP,	/* an argument for the C preprocessor: "-DX=1" */
};
DTAP_API void dtap_define(struct dtap *t, enum dtap_definition kind, const char *text);

/* The script's $1, $2 ...; D's $0 is the first script's name and is set automatically. */
DTAP_API void dtap_argument(struct dtap *t, const char *text);

/* A folder with D libraries or a tapset, searched before dtap's own. */
DTAP_API void dtap_library(struct dtap *t, const char *dir);

enum dtap_script_kind {
	DTAP_FILE,		/* a file's name; "-" is standard input */
	DTAP_TEXT,		/* the script itself */
	/* D: a description as of dtrace's -P, -m, -f, -n and -i, with a clause, or for lists without. */
	DTAP_PROVIDER, DTAP_MODULE, DTAP_FUNCTION, DTAP_NAME, DTAP_ID,
	DTAP_MORE_TEXT,		/* SystemTap: an additional script (-E) */
};
DTAP_API void dtap_script(struct dtap *t, enum dtap_script_kind kind, const char *text);

/* Trace this command line, which dtap_parse() or dtap_check() starts and holds.  Only one. */
DTAP_API void dtap_command(struct dtap *t, const char *cmdline);

/* Trace this process.  Any number in D, one in SystemTap. */
DTAP_API void dtap_process(struct dtap *t, pid_t pid);

/*
 * The processes of D's descriptions that name no process, such as python*, or of those that run the programs that
 * SystemTap's points name, for which there are DTAP_SELECT_ALL and DTAP_SELECT_RULE.
 */
enum dtap_select {
	DTAP_SELECT_ALL,	/* all processes */
	DTAP_SELECT_FAMILIES,	/* the command, the processes of dtap_process(), and their descendants */
	DTAP_SELECT_USER,	/* those of a user */
	DTAP_SELECT_RULE,	/* those for which dtap_conf.selects() returns true, and what these fork */
};

/*
 * Select processes; @user is for DTAP_SELECT_USER.  Any value but DTAP_SELECT_ALL sets the target place: probes in
 * the kernel place fire for every process, so a script there needs a predicate instead.
 */
DTAP_API void dtap_select(struct dtap *t, enum dtap_select which, uid_t user);

/* D: print aggregations at the end even if the output is structured (dtrace -O). */
DTAP_API void dtap_print_aggregations(struct dtap *t);

/*
 * SystemTap: dtap_aggregations() gives the script's globals, and they are not printed at the end.  Call it before dtap_parse().
 */
DTAP_API void dtap_read_globals(struct dtap *t);

/* Print to @fd, which remains the caller's, from dtap_enable() on.  Without it nothing is printed. */
DTAP_API void dtap_output(struct dtap *t, int fd);

/* --- the steps ----------------------------------------------------------------------------------------- */

/* Read the scripts.  D: first start the command and find the processes, since scripts may use $target. */
DTAP_API int dtap_parse(struct dtap *t);

/* Find probes and types.  SystemTap: first start the command.  The agent is loaded into running processes. */
DTAP_API int dtap_check(struct dtap *t);

/* Compile to IR; in D dtap_check() has done this already. */
DTAP_API int dtap_translate(struct dtap *t);

/* Compile to bytecode, load it, arm the probes; nothing fires yet. */
DTAP_API int dtap_enable(struct dtap *t);

/* All remaining ones of these four. */
DTAP_API int dtap_open(struct dtap *t);

/* Fire BEGIN, then enable the other probes and let a held command run. */
DTAP_API int dtap_start(struct dtap *t);

/*
 * Process records, after waiting for them at most @timeout_ms (negative: no limit).  1: the run continues; 0: it is
 * over (exit(), the end of the processes, a signal, dtap_stop()); -EPIPE: the reader of the output has closed it; or
 * another negative errno that ended the run.  Call dtap_finish() after any value but 1.
 */
DTAP_API int dtap_turn(struct dtap *t, int timeout_ms);

/* From dtap_start() on: a descriptor that is readable when dtap_turn() has something to do. */
DTAP_API int dtap_fd(const struct dtap *t);

/* Fire END, process the last records, print aggregations that were not printed.  0, or the errno that ended the run. */
DTAP_API int dtap_finish(struct dtap *t);

/* From dtap_start() to dtap_finish(). */
DTAP_API int dtap_run(struct dtap *t);

/* End the run at its next turn.  May be called from any thread and from signal handlers. */
DTAP_API void dtap_stop(struct dtap *t);

/*
 * SIGINT, SIGTERM and SIGHUP end a run cleanly if they are blocked in all threads (unless dtap_conf.keep_signals is set), and SIGPIPE must not kill the
 * process when the output's reader exits.  This blocks the former and ignores the latter; it is for command-line
 * programs.
 */
DTAP_API void dtap_block_signals(void);

/*
 * How the command of dtap_command() ended: a status as of waitpid(2).  -EAGAIN: it still runs; -ENOENT: there is none.
 */
DTAP_API int dtap_command_status(const struct dtap *t, int *status);

/* The argument of the script's exit(), 0 without one; 1 if faults ended a SystemTap script. */
DTAP_API int dtap_status(const struct dtap *t);

/* --- queries -------------------------------------------------------------------------------------------- */

enum dtap_count {
	DTAP_CLAUSES, DTAP_FUNCTIONS, DTAP_GLOBALS,	/* after dtap_check(): those that are used */
	DTAP_LIBRARY_FILES,				/* considered for this program */
	DTAP_WARNINGS,					/* so far */
};
DTAP_API size_t dtap_count(const struct dtap *t, enum dtap_count what);

enum dtap_what {
	DTAP_TREE,		/* the parsed scripts (stap -p1) */
	DTAP_CHECKED,		/* the used parts of them, with types (stap -p2) */
	DTAP_CODE,		/* the IR (-p3, dtrace -S) */
	DTAP_STABILITY,		/* D: dtrace -v */
	DTAP_PROBE_TYPES, DTAP_ALIASES, DTAP_ALL_FUNCTIONS,	/* stap --dump-... */
	DTAP_PLACES,		/* the facts that decide where scripts run */
	DTAP_LOCKS,		/* what each probe does to globals, and whose condition that changes (stap -p3 -vvv) */
};

/* The text; it is valid until the next call.  NULL: not for this language, or not available yet. */
DTAP_API const char *dtap_text(struct dtap *t, enum dtap_what what);

/*
 * After dtap_parse(): the probes that the scripts' descriptions match, or all if there are no descriptions, as a text
 * like that of dtrace -l and stap -l, valid until the next call; with their arguments if @verbose.  *missing, unless
 * NULL: the number of descriptions that match nothing; each was reported.
 */
DTAP_API const char *dtap_list(struct dtap *t, bool verbose, size_t *missing);

/* --- records -------------------------------------------------------------------------------------------- */

enum dtap_type {
	DTAP_INT,
	DTAP_UINT,
	DTAP_FLOAT,
	DTAP_STRING,		/* the program's bytes, with a NUL after them */
	DTAP_STACK,		/* frames, innermost first, as texts */
};

struct dtap_value {
	enum dtap_type type;
	union {
		int64_t i;
		uint64_t u;
		double f;
		const char *s;
		struct {
			const char *const *frames;
			size_t n;
		} stack;
	};
};

/* One action of a firing, all valid until the callback returns. */
struct dtap_action {
	const char *name;		/* "printf", "trace", "stack", "printa" ... */
	const char *text;		/* printf: the formatted text; else NULL */
	const struct dtap_value *values;
	size_t nvalues;
};

struct dtap_record {
	uint64_t time_ns;		/* CLOCK_MONOTONIC at the firing */
	uint32_t pid, tid, cpu;
	uint32_t probe;			/* its number, as dtrace -l shows it */
	const char *provider, *module, *function, *name;
	const struct dtap_action *actions;
	size_t nactions;
};

struct dtap_bucket {
	int64_t from;			/* its smallest value; INT64_MIN: all values below the next bucket */
	int64_t count;
};

/* One key of one aggregation. */
struct dtap_row {
	const char *aggregation;	/* its name; "" for @ */
	const char *function;		/* "count", "quantize" ...; of globals: "counter", "gauge", "stat", "hist_log", "hist_linear" */
	const struct dtap_value *keys;
	size_t nkeys;
	struct dtap_value value;	/* without buckets: normalized by the script's normalize() */
	const struct dtap_bucket *buckets;
	size_t nbuckets;
	uint64_t count;			/* avg(), stddev() and statistics: the number of values */
	int64_t sum;			/* and their sum, not normalized */
};

/* What a row's function may return: remove the row, and go on.  For keys that nobody counts any more, as of a process that has ended. */
enum { DTAP_FORGET = 0x1000 };

/*
 * Call @row for each row of the aggregation @name (NULL: of all), in the order of printing, until it returns neither 0 nor
 * DTAP_FORGET, which is the same for globals.
 * From dtap_start() on, also after dtap_finish().  Returns what @row returned, or a negative errno; -ENOENT: there is
 * no such aggregation.
 *
 * After dtap_read_globals() these are the script's own globals that have been written to, and are numbers or statistics, with
 * the indexes as keys, in no order: a "counter" if the script only adds to it, else a "gauge"; and a "stat", or a histogram if
 * the script asks for one of it somewhere.  Statistics without values are left out.  Records are processed first.
 */
DTAP_API int dtap_aggregations(struct dtap *t, const char *name, int (*row)(void *ctx, const struct dtap_row *r), void *ctx);

/* What a run has cost so far, all processes together.  Members from cpu_ns on need a budget. */
struct dtap_cost {
	size_t size;			/* sizeof(struct dtap_cost), set by the caller */
	uint64_t events, spent_ns;	/* events in the target place, and what they have cost the processes */
	uint64_t tracer_ns;		/* the tracer's CPU time for their records */
	uint64_t cpu_ns;		/* of the processes, since their first event */
	uint64_t rests, rested_ns;	/* how often the run had to rest in a process, and how long */
	uint32_t resting;		/* processes in which it rests now */
	double ratio;			/* what all runs of the budget cost the dearest process lately, of its CPU time */
	bool is_bounded;		/* there is a budget; without one what is spent is known all the same */
};

/* From dtap_enable() to dtap_free(). */
DTAP_API int dtap_cost(struct dtap *t, struct dtap_cost *ret);

/* --- what a process does now ----------------------------------------------------------------------------- */

struct dtap_object {
	const char *type;		/* "threading.Lock" */
	uint64_t address;		/* Python's id() */
};

/* What a frame has of a lock that some thread waits for. */
struct dtap_lock {
	struct dtap_object lock;
	bool in_with;			/* the frame is inside a `with` of it; false: it is in a variable of the frame */
	bool may_be_free;		/* in_with, but the frame is in a call of Condition.wait(), which releases its lock */
};

enum dtap_wait_kind {
	DTAP_WAIT_UNKNOWN,		/* nothing is known, or it does not wait for another thread */
	DTAP_WAIT_GIL,
	DTAP_WAIT_LOCK,			/* objects[0] */
	DTAP_WAIT_THREAD,		/* a thread's end (threading.Thread.join()) */
};

/* What a thread waits for.  Threads are those of its process, by tid. */
struct dtap_wait {
	enum dtap_wait_kind kind;
	bool has_timeout;
	const struct dtap_object *objects;	/* the lock, then what it is a part of: a Condition, an Event, a Queue ... */
	size_t nobjects;
	uint64_t owner;			/* ident of the RLock's owner, or of the thread waited for; 0: none, or unknown */
	uint32_t owner_tid;		/* 0: the owner is no thread any more */
	const uint32_t *inside;		/* the threads inside a `with` of a Lock, which has no owner */
	size_t ninside;
	/* A deadlock: who this thread waits for, who that one waits for, and so on; the last one is this thread. */
	const uint32_t *cycle;
	size_t ncycle;			/* 0: no deadlock is seen */
	bool cycle_is_sure;		/* false: it holds unless a thread has released a Lock inside its `with` */
};

/* A variable of a Python frame. */
struct dtap_local {
	const char *name, *value;	/* the value as by repr(), shortened; of instances their attributes; "?" if unreadable */
};

struct dtap_frame {
	bool is_python;			/* false: a native frame */
	bool is_evaluator;		/* native: the call of the evaluator that runs the Python frames after it */
	const char *function;		/* Python: co_qualname, before 3.11 co_name; native: its name or NULL */
	const char *file;		/* Python: co_filename; native: the program's or library's name, or NULL */
	uint32_t line;			/* Python only */
	uint64_t address;		/* native only */
	const struct dtap_lock *locks;	/* Python only */
	size_t nlocks;
	const struct dtap_local *locals;	/* the same */
	size_t nlocals;
};

/* A task of asyncio's that has not ended. */
struct dtap_task {
	const char *name;
	bool runs;			/* it has its turn now: its frames are among the thread's */
	const struct dtap_frame *frames;	/* of its coroutines and what they await, the innermost first */
	size_t nframes;
	struct dtap_object awaits;	/* what the innermost awaits; address 0: nothing, or unknown */
	const char *awaits_task;	/* the name of that, if it is a task; or NULL */
};

/* A thread and its stack, valid until the callback returns. */
struct dtap_thread {
	uint32_t pid, tid;		/* tid 0: unknown */
	uint64_t ident;			/* threading.get_ident() */
	const char *command;		/* the process's arguments, separated by spaces */
	uint16_t version;		/* 0x030b: CPython 3.11 */
	const char *name, *state;	/* the kernel's name of the thread; "running", "in futex" or "" */
	const char *python_name;	/* threading.Thread.name; NULL: unknown, as of the main thread */
	bool is_python;			/* false: a thread unknown to Python, with native frames only */
	bool knows_gil, has_gil;	/* has_gil is valid for this version of Python; this thread has the GIL */
	bool is_exact;			/* false: it ran while it was read, so frames may be from different moments */
	bool is_complete, natives_complete;	/* false: there are more frames */
	const struct dtap_frame *frames;	/* the innermost first */
	size_t nframes;
	bool knows_locks;		/* wait and frames' locks are valid for this version of Python */
	struct dtap_wait wait;
	bool knows_locals;		/* frames' locals were read (DTAP_THREADS_LOCALS) */
	bool locals_complete;		/* false: some were not, in the time for which a thread is stopped */
	const struct dtap_task *tasks;	/* of the loop that the thread runs */
	size_t ntasks;
	bool tasks_complete;		/* false: there are more */
};

/* What dtap_threads() gives besides Python frames. */
enum {
	DTAP_THREADS_NATIVES = 1,	/* native frames, and threads unknown to Python */
	DTAP_THREADS_LOCALS = 2,	/* the frames' variables; no code of the process runs for their text */
};

/*
 * Call @thread for each thread of the Python process @pid, the first one first, with its stack and @what
 * (DTAP_THREADS_...), until it does not return 0.  The process is read from outside: nothing is loaded into it, and none of its
 * locks is waited for.  Returns what @thread returned, or a negative errno with a line in @why, of @size bytes: -ENOENT
 * for a process that is no CPython known to dtap, -ESRCH, -EPERM.
 */
DTAP_API int dtap_threads(uint32_t pid, unsigned int what, char *why, size_t size,
			  int (*thread)(void *ctx, const struct dtap_thread *t), void *ctx);

#ifdef __cplusplus
}
#endif

#endif
