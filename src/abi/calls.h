/*
 * Optional system calls of the agent, in groups (abi/calls.def).  The tracer evaluates the seccomp filters of a process
 * and tells the agent which groups are forbidden: by the second argument of its entry point for the whole agent (those
 * of all tracers add up), and with a segment for the segment's programs.
 */
#ifndef DTAP_ABI_CALLS_H
#define DTAP_ABI_CALLS_H

enum abi_calls {
	ABI_CALLS_MEMORY = 1,	/* without it, access to addresses that may be unmapped is a fault */
	ABI_CALLS_CODE = 2,	/* programs are interpreted, not compiled */
	ABI_CALLS_SIGNAL = 4,	/* raise() sends nothing; processes that may have died count as alive */
	ABI_CALLS_NAME = 8,	/* the thread's name is empty */
	ABI_CALLS_FOLDER = 16,	/* the working directory is empty */
	ABI_CALLS_BARRIER = 32,	/* events of subinterpreters with their own GIL are lost */
	ABI_CALLS_OPENED = 64,	/* which file or which peer an object of Python's has is not told */
};

#endif
