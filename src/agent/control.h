/* SPDX-License-Identifier: MIT */
/*
 * The channels to tracers (abi/agent.h).  Any thread may add one at any time, without the GIL; everything else is done
 * by the agent's thread, or while the process has no such thread.
 */
#ifndef AGENT_CONTROL_H
#define AGENT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/state.h"

enum { CONTROL_POLLED = CONTROL_CHANNELS + 1 };

struct pollfd;

/*
 * Take over @fd, a connected channel.  It gets a high number, which programs are unlikely to use.  0, or -errno and the
 * caller still owns it; -EPERM if the creator of the other end is neither this user nor root; -EUSERS if there are
 * CONTROL_CHANNELS already.  @connected: by this process, and the program waits (control_await).  control_take_back()
 * closes it again, by its *@row, if no thread can be started to serve it.
 */
int control_add(int fd, bool connected, unsigned *row);
void control_take_back(unsigned row);
/*
 * With the GIL, which is released meanwhile: wait until the agent's thread has installed the hooks of channel @row, until the
 * channel has ended, or for @ms in which it is the tracer's turn.  In the last case the tracer is told, with the next STATE, that
 * the program went on before.
 */
void control_await(unsigned row, long long ms);
/*
 * Connect to the socket whose address is in DTAP_AGENT, and send the word of that address.  0, or -errno: -ENOENT
 * without an address, or in the second copy of the agent in a process; others as control_add().  Waits some milliseconds at most, if others connect all the time.
 */
int control_connect(void);
bool control_has_channel(void);
/* Do the programs rest that the channel with this cookie has brought? */
bool control_rests(uint64_t cookie);
/* Tell the tracers whose hooks there were that this process has begun another interpreter.  By any thread, once. */
void control_tell_another(void);
/* For an agent that is off: send HELLO to a channel that is not taken over. */
void control_refuse(int fd);
/* In a child of fork: close the parent's channels and connect to each tracer whose address is known. */
void control_forked(void);
/* Send HELLO to every channel that has not had it.  An agent that is off then closes the channel. */
void control_greet(void);

/* The markers that every tracer leaves to the interpreter, as enum want; a child of fork begins with its parent's. */
unsigned control_left(void);
/* Before the agent's thread is started: wait for the LOOK that answers HELLO, as long as abi/agent.h says. */
void control_first_look(void (*look)(void));

/*
 * A socket pair by which other threads wake the agent's thread; created again if the program has closed it.  0 or
 * -errno.
 */
int control_make_waker(void);
void control_wake(void);

/*
 * Fill @polled with what the agent's thread waits for; returns the number.  control_serve() then reads the messages,
 * calls @look() for each LOOK and answers; true if a channel has ended.
 */
int control_waits(struct pollfd *polled);
/* Does control_wake() end a wait for these?  It does not if the program has closed the pair, even if there is a new one by now. */
bool control_can_wake(const struct pollfd *polled);
bool control_serve(const struct pollfd *polled, int n, void (*look)(void));

#endif
