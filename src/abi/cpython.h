/*
 * The versions of CPython that dtap supports, by minor number, for the agent, stacks and functions by name.
 */
#ifndef DTAP_ABI_CPYTHON_H
#define DTAP_ABI_CPYTHON_H

#define CPYTHON_FIRST 9		/* 3.8 has no PyFrame_GetCode */
#define CPYTHON_LAST 15		/* later ones are unknown */

/* The same for builds without a GIL (PEP 703). */
#define CPYTHON_FREE_FIRST 13
#define CPYTHON_FREE_LAST 13

#define CPYTHON_TEXT(n) "3." CPYTHON_DIGITS(n)
#define CPYTHON_DIGITS(n) #n
#define CPYTHON_RANGE CPYTHON_TEXT(CPYTHON_FIRST) " to " CPYTHON_TEXT(CPYTHON_LAST)	/* for messages */

#define CPYTHON_FREE_RANGE CPYTHON_TEXT(CPYTHON_FREE_LAST)

#endif
