/*
 * Python's markers from dtap's agent, for one session: does the script need it, then how it gets into the processes,
 * and what it is told.  Which marker comes from where is probe/python.h's choice, loading is target/agent.h's work.
 *
 *	supply_new	find the agent's object, tell the probe set
 *	supply_foresee	the descriptions are known, the command not started: is it to bring the agent along?
 *	supply_settle	the command is held, at the image to trace
 *	supply_follow	into those that will be started from now on, while the session runs
 *	supply_attach	into the processes that run already
 *	supply_start	the sites are armed: have the agents look, and follow those to come while the session runs
 *	supply_free	the agents take their hooks away
 *
 * Functions that can fail return a negative errno and add one line without a newline to @err.
 */
#ifndef DTAP_SESSION_SUPPLY_H
#define DTAP_SESSION_SUPPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "lang/desc.h"
#include "probe/probe.h"

struct session;
struct strbuf;
struct supply;
struct target;
struct target_preload;

struct supply_conf {
	struct probe_set *probes;	/* must outlive it */
	enum python_mode mode;
	/* What a process's agent cannot do, a line without a newline; NULL: nobody wants to know. */
	void (*message)(void *ctx, const char *text);
	void *ctx;
};

/* Without an object PYTHON_AUTO is PYTHON_NEVER, and PYTHON_ALWAYS is -ENOENT. */
int supply_new(const struct supply_conf *conf, struct supply **ret, struct strbuf *err);
void supply_free(struct supply *s);	/* accepts NULL */

/* With PYTHON_AUTO: why there is no object, and what that means for scripts about Python; "" when there is one. */
const char *supply_missing(const struct supply *s);

/*
 * The script has these descriptions, $target being any number, and is to trace @command, a command line.  *preload is
 * for target_create(): NULL when the command is an interpreter that needs nothing of the agent, or nothing of the
 * agent is described.
 */
int supply_foresee(struct supply *s, const struct probe_desc *descs, size_t n, const char *command,
		   const struct target_preload **preload, struct strbuf *err);

/*
 * Where the held target @t does not load the object by itself (target_brings), bring it in.  @t may be
 * AT_ENTRY afterwards.
 */
int supply_settle(struct supply *s, const struct probe_desc *descs, size_t n, struct target *t, struct strbuf *err);

/*
 * Processes that execute a program from now on get the agent, too, if one of the descriptions means it there and @also,
 * unless it is NULL, says yes; so do those that have only just begun.  @descs and @ctx must outlive @s, whose message()
 * is told of each that should have it and cannot.
 */
int supply_follow(struct supply *s, const struct probe_desc *descs, size_t n, bool (*also)(void *ctx, uint32_t pid),
		  void *ctx, struct strbuf *err);

/* Bring the agent into running @t, if one of the descriptions means it there. */
int supply_attach(struct supply *s, const struct probe_desc *descs, size_t n, struct target *t, struct strbuf *err);

/*
 * The same for all other processes, when descriptions are of any process.  Returns how many could not be given it, with
 * the reason of the first in @err.
 */
unsigned int supply_attach_all(struct supply *s, const struct probe_desc *descs, size_t n, struct strbuf *err);

/* The same for process @pid: -EAGAIN: not now, but supply_follow() looks after it. */
int supply_attach_pid(struct supply *s, const struct probe_desc *descs, size_t n, uint32_t pid, struct strbuf *err);

/* The session's sites are armed and nothing has fired yet.  0: each agent in a running process has its hooks in. */
int supply_start(struct supply *s, struct session *session, struct strbuf *err);

/* "function-entry and line of Python 3.13" in @out when agents supply something. */
void supply_say(const struct supply *s, struct strbuf *out);

#endif
