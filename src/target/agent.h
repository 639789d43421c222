/*
 * The agents of one session: loading dtap's object into CPython processes, and the tracer's ends of the channels to it.
 *
 * abi/agent.h defines the protocol between object and tracer.  There are two ways to load the object:
 *
 * - A command created with agents_preload() loads it by LD_PRELOAD, and so do its children.  If one of its programs
 *   does not (target_brings), call agents_attach() at its entry point.
 * - agents_attach() loads it with ptrace into a process that is running already.
 *
 * Connecting to the tracer's socket is possible for anybody, but gives no access: channels are for processes that the
 * tracer has chosen, by loading the agent or by the environment, and for those that they fork; listen.c verifies each.
 *
 * When the channels are closed, by agents_free() or the tracer's death, the agents remove their hooks; the object stays
 * loaded and does nothing.
 *
 * One thread at a time.  Functions that can fail return a negative errno and add one line without a newline to @why,
 * which may be NULL.
 */
#ifndef DTAP_TARGET_AGENT_H
#define DTAP_TARGET_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct agents;
struct domain;
struct strbuf;
struct target;
struct target_preload;

/* Events of an agent, in this order but for ANOTHER and the last one; OFF and LOST are followed by GONE only, GONE by nothing. */
enum agents_what {
	AGENTS_READY,	/* in working order; it is then sent a LOOK */
	AGENTS_OFF,	/* it cannot work in this process: @why */
	AGENTS_LATE,	/* the program has gone on without hooks, and maybe ended, since the tracer was slow */
	AGENTS_ANOTHER,	/* the process has ended its interpreter and begun another one, of which the agent sees nothing; told once */
	AGENTS_STATE,	/* the answer to a LOOK, or a reason why a segment cannot be used */
	AGENTS_LOST,	/* its protocol version is another one: @why; the channel is closed */
	AGENTS_REFUSED,	/* it gets no segment: @why */
	AGENTS_GONE,	/* the process has ended, or executes another program */
	AGENTS_WAIT,	/* of none: who connects now is let in later, if there is room then: @why; told once */
};

struct agents_event {
	enum agents_what what;
	pid_t pid;		/* in the tracer's pid namespace */
	uint32_t python;	/* the interpreter's PY_VERSION_HEX */
	uint32_t can;		/* the markers that it could supply: bits in the order of abi/marker.def */
	uint32_t supplied;	/* STATE: those that it supplies now */
	const char *why;	/* OFF, LOST, REFUSED, WAIT; STATE when something is missing; else "".  Printable text */
	bool again;		/* the process's event before had the same @why */
	bool is_off;		/* OFF came before this, or is this */
};

typedef void agents_fn(void *ctx, const struct agents_event *e);

/*
 * Listen for agents.  @object is the object's file, NULL: the one of agents_object().  @fn is called with each event,
 * by agents_turn(), agents_wait() and agents_look(); of the functions declared here it may call agents_leave() only.
 * -ENOENT: there is no such object.
 */
int agents_new(struct agents **ret, const char *object, agents_fn *fn, void *ctx, struct strbuf *why);
void agents_free(struct agents *a);	/* accepts NULL */

/* Signals are the caller's, and end no wait: nothing returns -EINTR for one that is pending. */
void agents_keep_signals(struct agents *a);

/* Find the running program's object: in its build folder, else where it is installed.  -ENOENT. */
int agents_object(struct strbuf *path, struct strbuf *why);

/*
 * Append the path of the object that musl's dlopen() takes, which is beside @object.  False: there is none; processes on
 * musl that run already are refused then.
 */
bool agents_object_musl(const char *object, struct strbuf *path);

/*
 * The preload for target_create() with which the command loads the object.  Lives as long as @a.  An object whose path
 * LD_PRELOAD cannot hold (with blanks) can be loaded by agents_attach() only; after an exec, children do not have it.
 */
const struct target_preload *agents_preload(const struct agents *a);

/*
 * Load the agent into @t, which is running, or created with agents_preload() and TARGET_AT_ENTRY; its state does not
 * change.  0 also if it is loaded already.  READY or OFF follows later; for a created target only after its release.
 *
 * A running process is examined, for some seconds at most, until one of its threads is at a point where calling the
 * dynamic loader is safe; then that thread loads the object, and continues where it was, even if the tracer dies
 * meanwhile.
 *
 * -ENOTSUP with the reason, the process is unchanged: no CPython, or one without its API's symbols (linked statically,
 * stripped), without a GIL, older than 3.8, a PyPy, another machine's program.  -ESRCH: it has ended.  -EPERM: ptrace
 * is refused, or another process traces it.  -EBUSY: no thread came to a safe point.  -EINVAL: @t is in another state.
 * -EINTR as agents_wait().
 */
int agents_attach(struct agents *a, struct target *t, struct strbuf *why);

/*
 * The same for a running process, but for some milliseconds only.  A later attempt may succeed: for a process that has
 * only just been started this is true of every error except -ESRCH.
 */
int agents_try(struct agents *a, struct target *t, struct strbuf *why);

/* Is the object in process @t now, whether it has answered or not? */
bool agents_are_in(const struct agents *a, const struct target *t);

/* Is there a channel to an agent in process @pid? */
bool agents_have(const struct agents *a, pid_t pid);

/* For poll or epoll: readable when agents_turn() has something to do. */
int agents_fd(const struct agents *a);

/* Handle new agents, messages and closed channels; never waits. */
void agents_turn(struct agents *a);

/*
 * What the agent of process @pid has reported: nothing yet, for instance because its interpreter does not release the
 * GIL; READY; OFF; or its process has ended.  For all but READY a line is added to @why.
 */
enum agents_said { AGENTS_SAID_NOTHING, AGENTS_SAID_READY, AGENTS_SAID_OFF, AGENTS_SAID_END };

enum agents_said agents_said(const struct agents *a, pid_t pid, struct strbuf *why);

/*
 * Wait until all of the @n processes have reported something, @timeout_ms for all together.  0; -ETIMEDOUT: some have
 * not; -EINTR when a signal handler ran, or SIGINT, SIGTERM, SIGHUP or SIGQUIT is pending and blocked for the caller.
 */
int agents_wait(struct agents *a, const pid_t *pids, size_t n, int timeout_ms);

/* The markers (bits) that process @pid's agent must not supply for this tracer, from its next LOOK on. */
void agents_leave(struct agents *a, pid_t pid, uint32_t leave);

/*
 * Let the programs of the session's segment rest in process @pid, or go on: its agent is sent a LOOK.  False: it has no
 * agent that is ready.
 */
bool agents_rest(struct agents *a, pid_t pid, bool rest);

/* Make children that attached processes fork open channels, too, as those of preloaded agents do. */
void agents_follow_forks(struct agents *a);

/*
 * Offer a session's segment: from now on each agent is sent one before its first LOOK, so that markers run the
 * session's programs in the process.  @fn chooses it for processes of @domain.  1: @fds are image, data and wake of
 * abi/segment.h, which the caller owns and which must outlive @a; 0: none is needed; a negative errno with a line in
 * @why: REFUSED.
 */
typedef int agents_segment_fn(void *ctx, const struct domain *domain, int fds[3], struct strbuf *why);

void agents_offer(struct agents *a, agents_segment_fn *fn, void *ctx);

/*
 * Let Pythons that start ask (abi/ask.h): those for which @fn returns true get the agent before their first line.  @has: it has
 * the agent already, which was brought from outside.  An error with a line in @why: there is no folder in which this user's
 * sessions may be asked (base/guarded.h); they are not heard.
 */
typedef bool agents_wanted_fn(void *ctx, pid_t pid, bool has);

int agents_answer(struct agents *a, agents_wanted_fn *fn, void *ctx, struct strbuf *why);

/*
 * Semaphores or the markers of agents_leave() have changed: send a LOOK to all agents that are ready, and wait for
 * their answers.  0; -ETIMEDOUT: some did not answer in time, but will apply the change later; -EINTR as agents_wait().
 */
int agents_look(struct agents *a, int timeout_ms);

/*
 * The session ends: wait until all agents have answered their first LOOK, which tells whether their programs went on without
 * hooks, for @timeout_ms at most, or until a signal as in agents_wait().  @fn is called with the processes of those that have not.
 */
void agents_end(struct agents *a, int timeout_ms, void (*fn)(void *ctx, pid_t pid), void *ctx);

/* Call @fn for all processes that have a channel. */
void agents_each(const struct agents *a, void (*fn)(void *ctx, pid_t pid), void *ctx);

/* Call @fn for those that have not answered the last LOOK. */
void agents_each_asked(const struct agents *a, void (*fn)(void *ctx, pid_t pid), void *ctx);

#endif
