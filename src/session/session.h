/*
 * A session: one compiled program, armed, run and reported.
 *
 *	session_new	lay out the program, create its maps
 *	session_enable	find the probes of each clause, generate and load the programs, arm the sites
 *	session_start	fire BEGIN, let all other probes fire
 *	session_turn	process records, until exit(), a signal or the end of all targets
 *	session_finish	fire END, print the rest
 *	session_free	disarm and release everything
 *
 * Between session_enable and session_start everything is armed but nothing fires, so no event of a target that
 * is held meanwhile is missed.  The session prints results to a sink and passes messages (drops, run-time
 * faults) to its owner; it never exits.
 *
 * It knows no provider by name: a probe tells what kind of thing fires it (probe/probe.h).
 */
#ifndef DTAP_SESSION_SESSION_H
#define DTAP_SESSION_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ir/ir.h"
#include "ir/layout.h"
#include "session/budget.h"
#include "session/options.h"

struct budget;
struct probe_set;
struct session;
struct out_sink;
struct strbuf;
struct target;

struct abi_record;
struct domain;
struct ir_agg;
struct names;
struct out_agg_line;
struct probe;

/*
 * A consumer of records' values instead of text.  Between begin and end there is one call for each action that
 * prints: @action as in ir/actions.def, @text from printf() or NULL.  Arguments are valid during the call.
 */
struct session_taker {
	void (*begin)(void *ctx, const struct abi_record *hdr, const struct probe *p);
	void (*action)(void *ctx, const char *action, const char *text, const struct ir_value *v,
		       const struct ir_slot *slots, size_t n);
	/* NULL, or: the statistic that a histogram is printed of, of @m; @words as of abi/stat.h. */
	void (*hist)(void *ctx, const struct ir_map *m, const uint64_t *words);
	void (*end)(void *ctx);
	void *ctx;
};

/*
 * How long clauses took, in ns (stap -t): aggregations by a clause's number, of the shortest, the longest, and count,
 * sum and squares; and for each clause the text that is printed at the end.
 */
struct session_times {
	const struct ir_agg *shortest, *longest, *all;
	struct session_timed {
		uint32_t clause;
		const char *point, *written;	/* the probe point, as resolved and as written in the script */
		struct src_pos pos;
	} *rows;
	uint32_t n;
};

struct session_conf {
	const struct options *opts;
	const struct ir_prog *prog;
	struct probe_set *probes;	/* expands the clauses' descriptions */
	struct out_sink *out;
	const char *command;		/* messages start with its name */
	/* Lines for the user, complete with name and newline. */
	void (*message)(void *ctx, const char *text);
	void *message_ctx;
	/* Called with message_ctx when @n data of a kind (out_drop_name()) were lost; may be NULL. */
	void (*lost)(void *ctx, const char *kind, uint64_t n);
	/* Called with message_ctx after output was written to @out's descriptor; may be NULL. */
	void (*written)(void *ctx);
	const struct session_times *times;	/* NULL: handlers are not timed */
	int64_t max_errors, max_skipped;	/* if the dialect counts them, more of them end the session */
	bool silent_errors;		/* do not report faults */
	uint64_t timeout_ns;		/* end after that time; 0: never */
	const struct session_taker *taker;	/* NULL: records are printed */
	bool print_aggs;		/* at the end, even if the output is a document (dtrace -O) */
	struct budget *budget;		/* of what tracing may cost each process (budget.h), or NULL */
	/* Called with message_ctx when the session rests in process @pid because of that, or goes on there; may be NULL. */
	void (*rests)(void *ctx, uint32_t pid, bool rest);
	bool keep_signals;		/* the signals of session_signals() do not end the session */
	bool starts;			/* a target is held at its start */
	bool only_loads;		/* programs are loaded, but session_start does not follow */
	struct strbuf *verifier_log;	/* if not NULL: gets the log of a refused program */
	struct strbuf *bytecode;	/* if not NULL: gets the disassembly of all programs */
};

/*
 * All that @conf points to must outlive the session.  0, or a negative errno with one line in @err; -EINVAL means
 * that the program needs something that is not possible.
 */
int session_new(const struct session_conf *conf, struct session **ret, struct strbuf *err);
void session_free(struct session *s);

int session_enable(struct session *s, struct strbuf *err);

/* Fire BEGIN, then let all other probes fire.  False if BEGIN called exit(): session_turn then ends at once. */
bool session_start(struct session *s);

/*
 * Between session_start and target_release: if the program uses stacks, run a held target to its entry point, so that
 * its libraries are known even if it ends at once.  0, or -EINTR: a signal asks the tracer to end, and the target cannot be
 * released any more.
 */
int session_know(struct session *s, struct target *t);
void session_know_pid(struct session *s, uint32_t pid);

/* End the session when all the targets named so far have exited; they must outlive it. */
int session_watch(struct session *s, struct target *t);

/* Call @ready whenever @fd, which stays the caller's, can be read while the session runs.  0 or a negative errno. */
int session_watch_fd(struct session *s, int fd, void (*ready)(void *ctx), void *ctx);

/*
 * Must the script run in the traced processes, as far as its probes allow, with all markers from the agent?  With -x
 * place=target; with place=auto if bufpolicy is wait, or the kernel does not let this user trace.
 */
bool session_in_target(const struct options *o);

/* Describe how the place of a script is chosen. */
void session_places(const struct options *o, struct strbuf *out);

/*
 * In the target place: the segment for agents in processes of @domain (agents_segment_fn).  Its descriptors remain the
 * session's.
 */
int session_segment(struct session *s, const struct domain *domain, int fds[3], struct strbuf *why);

/* @each calls @fn for each process that has a segment or may have inherited one. */
typedef void session_peers_fn(void *ctx, void (*fn)(void *fn_ctx, pid_t pid), void *fn_ctx);
void session_set_peers(struct session *s, session_peers_fn *each, void *ctx);

/* The owner lets the session's programs rest in process @pid, or go on.  False: that is not possible now. */
typedef bool session_rest_fn(void *ctx, uint32_t pid, bool rest);
void session_set_rest(struct session *s, session_rest_fn *rest, void *ctx);

/* Process @pid has no agent any more: it has ended, or executes another program. */
void session_forget_cost(struct session *s, uint32_t pid);

/* What the session's events have cost processes so far, in the target place. */
struct session_cost {
	uint64_t events, spent_ns;	/* in the processes */
	uint64_t tracer_ns;		/* the tracer's CPU time for their records; with a budget */
	struct budget_sum of_budget;	/* with a budget */
	bool is_bounded;		/* there is one, and it bounds this session */
};

void session_cost(struct session *s, struct session_cost *ret);

/* Add the events that wake the session; call it after session_start, when held targets have been released. */
void session_ready(struct session *s);

/* Readable when session_turn() has something to do. */
int session_fd(const struct session *s);

/*
 * Wait at most @timeout_ms (negative: no limit) and process what has arrived.  1: the session continues; 0: it is over;
 * or the negative errno that ends it, such as -EPIPE if the output's reader has closed it.  The signals of
 * session_signals(), which must be blocked, end it cleanly, unless keep_signals.
 */
int session_turn(struct session *s, int timeout_ms);

/* Fire END, process the last records, print the aggregations.  0, or the first error, also of session_turn(). */
int session_finish(struct session *s, struct strbuf *err);

/* Let session_turn() return 0 from now on. */
void session_end(struct session *s);

/* The signals that end a session: SIGINT, SIGTERM, SIGHUP. */
void session_signals(sigset_t *set);

/* What @each may return: remove the row when all have been seen.  An event of its key that comes meanwhile may be lost. */
enum { SESSION_FORGET = 0x1000 };

/*
 * Call @each for each row of aggregation @name (NULL: of all), in the order of printing, until it returns neither 0 nor
 * SESSION_FORGET.  Returns what it returned, or a negative errno; -ENOENT: there is no such aggregation.
 */
int session_each_row(struct session *s, const char *name, int (*each)(void *ctx, const struct out_agg_line *line),
		     void *ctx);

/* Fire the probes of PROBE_READ, and process all records until then.  Between session_start() and session_finish(). */
int session_read(struct session *s);

/* The names for numbers of stacks; NULL: the script uses none. */
const struct names *session_names(const struct session *s);

/* Has the script called exit()? */
bool session_exited(const struct session *s);

/* The argument of the script's last exit(), 0 without one; 1 if faults ended a SystemTap script. */
int session_status(const struct session *s);

/* The number of probes that the clauses of @src matched, added up over clauses, as DTrace does. */
unsigned int session_matched(const struct session *s, const struct source *src);

#endif
