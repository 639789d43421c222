/* SPDX-License-Identifier: MIT */
/*
 * The channels to tracers (abi/agent.h).  Adding one is the only thing that any thread may do, at any time, without
 * the GIL; the rest belongs to the agent's thread, or to a process that has no other thread of the agent.
 */
#ifndef AGENT_CONTROL_H
#define AGENT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

enum { CONTROL_CHANNELS = 8, CONTROL_POLLED = CONTROL_CHANNELS + 1 };

struct pollfd;

/*
 * Take over @fd, a connected channel.  It moves to a high number, where programs do not count theirs.  0, or -errno
 * and the caller still owns it; -EPERM when who made the other end is neither this user nor root; -EUSERS when there
 * are CONTROL_CHANNELS already.
 */
int control_add(int fd);
/*
 * Connect to the socket of the abstract namespace that DTAP_AGENT names, if it does.  0, or -errno: -ENOENT without
 * a name, others as control_add().  Never waits.
 */
int control_connect(void);
bool control_has_channel(void);
/* HELLO to a channel that is not taken over, for an agent that is off. */
void control_refuse(int fd);
/* In a child of fork: the parent's channels are not its own, but a tracer that is known by name gets one. */
void control_forked(void);
/* To every channel that has not had it: HELLO.  An agent that is off has no more to say, and ends the channel. */
void control_greet(void);

/* The markers that every tracer leaves to the interpreter, as enum want; a child of fork begins with its parent's. */
unsigned control_left(void);
/*
 * Wait for the LOOK that answers HELLO, ABI_AGENT_WAIT_MS at most, in the agent's thread's place: before there is
 * one.
 */
void control_first_look(void (*look)(void));

/* A socket pair by which others wake the agent's thread; made anew where the program closed it.  0 or -errno. */
int control_make_waker(void);
void control_wake(void);

/*
 * What the agent's thread waits for: fills @polled, returns how many.  control_serve() then reads what came: calls
 * @look() for each LOOK and answers; true when a channel has ended.
 */
int control_waits(struct pollfd *polled);
bool control_serve(const struct pollfd *polled, int n, void (*look)(void));

#endif
