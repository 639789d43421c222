/*
 * The layout of an iteration's buffer, for the code that fills, sorts and reads it.
 *
 * A buffer is a header and entries.  The header's first word says that the buffer is in use, its second word how many
 * entries there are.  An entry points to the key and the value of an element, which may have been removed when they are
 * read: the element's number tells.
 */
#ifndef DTAP_BPF_RT_ITER_H
#define DTAP_BPF_RT_ITER_H

enum { ITER_COUNT = 8, ITER_HEADER = 64, ITER_ENTRY_SHIFT = 5 };

/* Words of an entry. */
enum { ENTRY_NUMBER, ENTRY_KEY, ENTRY_VALUE, ENTRY_SORT };	/* number << 2 | the key's class */

/* Words of the context of the functions that collect. */
enum {
	COLLECT_BUF, COLLECT_MAX, COLLECT_CLASS,
	COLLECT_OFF,		/* offset of the integer to sort by, in the key or in the value; of the key's first
				 * string */
	COLLECT_NTH,		/* which string of the key to sort by */
	COLLECT_WORK, COLLECT_STRSIZE,
	COLLECT_WORDS
};

/* How to sort. */
enum { SORT_DOWN = 1, SORT_STRINGS = 2 };

#endif
