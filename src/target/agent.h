/*
 * The agents of one session: getting dtap's object into CPython processes, and the tracer's ends of the channels to it.
 *
 * The object and the tracer talk as abi/agent.h says.  It gets in by two ways:
 *
 * - A command is created with agents_preload() and brings the object along, into its children, too.  Where a program
 *   of it does not (target_brings), ask for agents_attach() at its entry.
 * - Into a process that runs already it is brought by agents_attach(), with ptrace.
 *
 * Closing the channels, be it by agents_free() or by the tracer's death, is all that it takes to leave: the agents remove
 * their hooks; the object stays, and does nothing.
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
struct strbuf;
struct target;
struct target_preload;

/* What the session hears of an agent, in this order; after OFF or LOST comes only GONE, after GONE nothing. */
enum agents_what {
	AGENTS_READY,	/* in working order; when this is heard the agent is sent a LOOK */
	AGENTS_OFF,	/* it cannot work in this process: @why */
	AGENTS_STATE,	/* the answer to a LOOK */
	AGENTS_LOST,	/* it does not speak as this tracer does: @why; the channel is closed */
	AGENTS_GONE,	/* the process has ended, or executes another program */
};

struct agents_event {
	enum agents_what what;
	pid_t pid;		/* as the tracer's pid namespace calls it; 0 for one outside of that */
	uint32_t python;	/* the interpreter's PY_VERSION_HEX */
	uint32_t can;		/* the markers it could supply: bits in the order of ABI_AGENT_MARKERS */
	uint32_t supplied;	/* STATE: those that it supplies now */
	const char *why;	/* OFF, LOST; STATE when something is missing; else "".  Printable text */
};

typedef void agents_fn(void *ctx, const struct agents_event *e);

/*
 * Listen for agents.  @object is the object's file, NULL: the one of agents_object().  @fn hears of everything; it is
 * called by agents_turn(), agents_wait() and agents_look(), and may call agents_leave() and nothing else of here.
 * -ENOENT: there is no such object.
 */
int agents_new(struct agents **ret, const char *object, agents_fn *fn, void *ctx, struct strbuf *why);
void agents_free(struct agents *a);	/* accepts NULL */

/* The object's file that belongs to the running program: in its build folder, else where it is installed.  -ENOENT. */
int agents_object(struct strbuf *path, struct strbuf *why);

/*
 * What target_create() must do so that the command brings the object along.  Lives as long as @a.  An object in a folder
 * whose name LD_PRELOAD cannot hold (with blanks) comes by agents_attach() only, and not into children by exec.
 */
const struct target_preload *agents_preload(const struct agents *a);

/*
 * Bring the agent into @t, which is running, or created with agents_preload() and TARGET_AT_ENTRY; it is so still
 * afterwards.  0 as well when it is in there already.  Its READY or OFF is heard of later; before a created one
 * is released nothing is.
 *
 * A running process is looked at until one of its threads is at a point where calling the dynamic loader is safe, for
 * some seconds at most; then that thread loads the object, and goes on where it was.  If the tracer dies meanwhile it
 * goes on likewise.
 *
 * -ENOTSUP with the reason, nothing was touched: no CPython, or one without its API's symbols (linked statically,
 * stripped), without a GIL, older than 3.8, a PyPy, another machine's program.  -ESRCH: it has ended.  -EPERM: ptrace is
 * refused, or somebody else traces it.  -EBUSY: no thread came to a safe point.  -EINVAL: @t is in another state.
 */
int agents_attach(struct agents *a, struct target *t, struct strbuf *why);

/*
 * The same of a running process, within some milliseconds.  What cannot be now may be soon: of one that has only just
 * been started that is so for every error but -ESRCH.
 */
int agents_try(struct agents *a, struct target *t, struct strbuf *why);

/* Is there a channel to an agent in process @pid? */
bool agents_have(const struct agents *a, pid_t pid);

/* For poll or epoll: readable when there is something to do for agents_turn(). */
int agents_fd(const struct agents *a);

/* Take new agents, messages and ends; never waits. */
void agents_turn(struct agents *a);

/*
 * Wait until the agent of process @pid has said what it is.  0: READY; -ENOTSUP: OFF, with the reason; -ESRCH: it has
 * gone; -ETIMEDOUT: it has not spoken, an interpreter that does not let go of its GIL for instance.
 */
int agents_wait(struct agents *a, pid_t pid, int timeout_ms, struct strbuf *why);

/* The markers (bits) that process @pid's agent must not supply for this tracer, from its next LOOK on. */
void agents_leave(struct agents *a, pid_t pid, uint32_t leave);

/* Agents in processes that run already are to have their children of fork make channels, too, as those do that came along. */
void agents_follow_forks(struct agents *a);

/*
 * A session's segment: from now on each agent is sent it once, before the next LOOK, so that markers run its programs
 * there.  @fds: image, data and wake of abi/segment.h; they stay the caller's and must outlive @a.
 */
void agents_offer(struct agents *a, const int fds[3]);

/*
 * The semaphores, or what is left, have changed: have all agents that are ready look, and wait for their answers.  0, or
 * -ETIMEDOUT: some did not answer in time; they will have looked some time.
 */
int agents_look(struct agents *a, int timeout_ms);

#endif
