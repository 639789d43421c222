/* SPDX-License-Identifier: MIT */
/*
 * The agent's traces in the environment.  They are hidden from os.environ, where a program could trip over them,
 * and stay in C's environ, which subprocesses get unless the program hands them one of its own.
 */
#ifndef AGENT_ENVIRON_H
#define AGENT_ENVIRON_H

/* With the GIL.  Takes DTAP_AGENT, and the agent from LD_PRELOAD, out of os.environ; may leave an exception. */
void environ_hide(void);

#endif
