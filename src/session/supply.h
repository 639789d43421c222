/*
 * Python's markers from dtap's agent, for one session: does the script need the agent, loading it into the processes,
 * and telling it what to supply.  probe/python.h decides which markers come from it; target/agent.h loads it.
 *
 *	supply_new	find the agent's object, tell the probe set
 *	supply_foresee	before the command is started: must it load the agent at its start?
 *	supply_settle	load it into the held command, at the image to trace
 *	supply_follow	load it into processes that are started from now on, while the session runs
 *	supply_attach	load it into processes that run already
 *	supply_await	wait until their agents are ready
 *	supply_start	the sites are armed: make the agents install their hooks; handle them while the session runs
 *	supply_free	make the agents remove their hooks
 *
 * Functions that fail return a negative errno and append one line without a newline to @err.
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

/*
 * Its agent's hooks are installed (told at each change); it gets none, or none that works; its agent is gone; it is named
 * python and had ended before it could be looked at, so that nothing is known of it; its program, started meanwhile, may have
 * begun before its hooks are installed.
 */
enum supply_fate { SUPPLY_READY, SUPPLY_REFUSED, SUPPLY_GONE, SUPPLY_UNSEEN, SUPPLY_LATE };

struct supply_conf {
	struct probe_set *probes;	/* must outlive it */
	enum python_mode mode;
	/* Called with a line without a newline about what a process's agent cannot do; may be NULL. */
	void (*message)(void *ctx, const char *text);
	void *ctx;
	/* What became of a process; may be NULL. */
	void (*process)(void *ctx, enum supply_fate fate, uint32_t pid, const char *why);
	/* Must process @pid, which no description names, get the agent?  NULL: all must.  Called with @ctx. */
	bool (*selects)(void *ctx, uint32_t pid);
	bool keep_signals;	/* signals are the caller's: they do not end a wait, and no function returns -EINTR */
	bool few;	/* it is about few of the machine's processes: one that ended before anybody could look was none of them */
};

/* Without an object PYTHON_AUTO is PYTHON_NEVER, and PYTHON_ALWAYS is -ENOENT. */
int supply_new(const struct supply_conf *conf, struct supply **ret, struct strbuf *err);
void supply_free(struct supply *s);	/* accepts NULL */

/* With PYTHON_AUTO: why there is no object, and what that means for scripts about Python; "" if there is one. */
const char *supply_missing(const struct supply *s);

/*
 * With PYTHON_AUTO: if agents can fire all that the script describes with the same events, processes that it names get
 * one, too; where that is not possible their own markers remain.  Before the following functions.
 */
void supply_prefer(struct supply *s, const struct probe_desc *descs, size_t n);

/*
 * The script has these descriptions, with any number as $target, and will trace @command, a command line.  *preload is
 * for target_create(); NULL if no description needs the agent, or the command is an interpreter that does not need
 * it.
 */
int supply_foresee(struct supply *s, const struct probe_desc *descs, size_t n, const char *command,
		   const struct target_preload **preload, struct strbuf *err);

/*
 * Load the object into the held target @t if @t does not load it itself (target_brings).  @t may be AT_ENTRY
 * afterwards.
 */
int supply_settle(struct supply *s, const struct probe_desc *descs, size_t n, struct target *t, struct strbuf *err);

/* Can one of the descriptions need the agent in processes that it does not name? */
bool supply_is_of_any(const struct supply *s, const struct probe_desc *descs, size_t n);

/* Does one of the descriptions name process @pid ("python1234"), for which it can need the agent? */
bool supply_names(const struct supply *s, const struct probe_desc *descs, size_t n, uint32_t pid);

/*
 * The session is about those processes alone for which @also returns true.  @each, or NULL: calls @fn for each of them, which are
 * known one by one, whether they are there or not.  @ctx must outlive @s.
 */
void supply_limit(struct supply *s, bool (*also)(void *ctx, uint32_t pid),
		  void (*each)(void *ctx, void (*fn)(void *fn_ctx, uint32_t pid), void *fn_ctx), void *ctx);

/*
 * Processes that execute a program from now on, or have just done so, get the agent, too, if one of the descriptions
 * needs it there.  @descs must outlive @s.  message() reports each process that cannot get it.
 */
int supply_follow(struct supply *s, const struct probe_desc *descs, size_t n, struct strbuf *err);

/*
 * Load the agent into running @t if one of the descriptions needs it there.  0 also if that is impossible now, for
 * example because @t is stopped: message() reports it, and @t gets the agent later, while the session runs.
 * -EINTR: a signal asks the tracer to end (agents_wait).
 */
int supply_attach(struct supply *s, const struct probe_desc *descs, size_t n, struct target *t, struct strbuf *err);

/* The same for all other processes, if descriptions are for any process.  0 or -EINTR; see supply_await(). */
int supply_attach_all(struct supply *s, const struct probe_desc *descs, size_t n);

/* The same for process @pid; -EAGAIN: not now, but supply_follow() will do it. */
int supply_attach_pid(struct supply *s, const struct probe_desc *descs, size_t n, uint32_t pid, struct strbuf *err);

/*
 * Wait until the loaded agents are ready.  A process that is too slow is skipped until its agent is ready; message()
 * reports it.  *missed: the number of processes that could not get the agent, with the first one's reason in
 * @missed_why, which may be NULL; a process of supply_attach() among them is an error.  -EINTR as there.
 */
int supply_await(struct supply *s, unsigned int *missed, struct strbuf *missed_why, struct strbuf *err);

/*
 * Call it when the session's sites are armed and nothing has fired yet.  0: each agent in a running process has
 * installed its hooks, or is skipped as by supply_await().  -EINTR as there.
 */
int supply_start(struct supply *s, struct session *session, struct strbuf *err);

/*
 * The script's run is over: hear what agents have said meanwhile, and what new ones say now.  @command: the process of
 * -c, or NULL.  A script can end by what its command's agent does before the agent's first word is heard.  Accepts NULL
 * for @s.
 */
void supply_end(struct supply *s, struct target *command);

/* Append "function-entry and line of Python 3.13" to @out if agents supply something. */
void supply_say(const struct supply *s, struct strbuf *out);

#endif
