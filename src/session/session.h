/*
 * A session: one compiled program, armed, run and reported.
 *
 *	session_new	lay out the program, create its maps
 *	session_enable	find the probes of each clause, generate and load the programs, arm the sites
 *	session_start	fire BEGIN, open the gate for all other probes
 *	session_run	print what comes until exit(), a signal or the end of all targets; fire END
 *	session_free	take everything down again
 *
 * Between session_enable and session_start everything is armed but nothing fires, so a target that is held
 * meanwhile misses nothing.  The session prints results to a sink and hands messages (drops, run-time
 * faults) to its owner; it exits nowhere.
 *
 * It knows no provider by name: a probe tells what kind of thing fires it (probe/probe.h).
 */
#ifndef DTAP_SESSION_SESSION_H
#define DTAP_SESSION_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "ir/ir.h"
#include "session/options.h"

struct probe_set;
struct session;
struct out_sink;
struct stp_code;
struct strbuf;
struct target;

struct session_conf {
	const struct options *opts;
	const struct ir_prog *prog;
	struct probe_set *probes;	/* expands the clauses' descriptions */
	struct out_sink *out;
	const char *command;		/* its name stands in front of messages */
	/* Lines for the user, complete with name and newline. */
	void (*message)(void *ctx, const char *text);
	void *message_ctx;
	/* After output was handed to @out's descriptor; NULL: nobody wants to know.  With message_ctx. */
	void (*written)(void *ctx);
	const struct stp_code *stp;	/* of a SystemTap script: what its faults say; else NULL */
	int64_t max_errors, max_skipped;	/* SystemTap: more of them end the session */
	bool silent_errors;		/* SystemTap: say nothing of faults */
	uint64_t timeout_ns;		/* end after that time; 0: never */
	bool print_aggs;		/* at the end also where the output is a document (dtrace -O) */
	struct strbuf *verifier_log;	/* when not NULL, gets the log of a refused program */
	struct strbuf *bytecode;	/* when not NULL, gets the disassembly of all programs */
};

/*
 * All that @conf points to must outlive the session.  0, or a negative errno with one line in @err; -EINVAL
 * means that the program asks for something that cannot be done.
 */
int session_new(const struct session_conf *conf, struct session **ret, struct strbuf *err);
void session_free(struct session *s);

int session_enable(struct session *s, struct strbuf *err);

/* Fire BEGIN and let the others.  False when BEGIN called exit(): session_run then ends at once. */
bool session_start(struct session *s);

/*
 * Between session_start and target_release: when the program asks for stacks, let a held target run to its entry
 * point, so that the libraries in them are known even if it ends at once.
 */
void session_know(struct session *s, struct target *t);
void session_know_pid(struct session *s, uint32_t pid);

/* End the session when all the targets named so far have exited; they must outlive it. */
int session_watch(struct session *s, struct target *t);

/* Call @ready whenever @fd, which stays the caller's, can be read while the session runs.  0 or a negative errno. */
int session_watch_fd(struct session *s, int fd, void (*ready)(void *ctx), void *ctx);

/*
 * Is the script to run inside the traced processes (-x place), as far as its probes allow, with all markers from the
 * agent?  Of itself that is so where the kernel does not let this user trace.
 */
bool session_in_target(const struct options *o);

/* What decides about the place of a script that is not known, in a few words. */
void session_places(const struct options *o, struct strbuf *out);

/* In the target place: the segment for the agents (target/agent.h), whose descriptors stay the session's. */
bool session_segment(const struct session *s, int fds[3]);

/*
 * Until the end: 0, or a negative errno when the output cannot be written (-EPIPE: nobody reads it any
 * more) or the system fails.  The signals of session_signals, which must be blocked, end it in good order.
 */
int session_run(struct session *s, struct strbuf *err);

/* The signals that end a session: SIGINT, SIGTERM, SIGHUP. */
void session_signals(sigset_t *set);

/* What the script gave exit(), 0 without; 1 when faults ended a SystemTap script. */
int session_status(const struct session *s);

/* Probes that the clauses at @src matched, as DTrace counts them: each clause's probes. */
unsigned int session_matched(const struct session *s, const struct source *src);

#endif
