/*
 * Growing arrays on the heap.  arena.h has the same for an arena.
 */
#ifndef DTAP_BASE_GROW_H
#define DTAP_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Make room for one more element in the array whose pointer is at @array, of *@cap elements of @size bytes, of which @n
 * are in use.  False: out of memory, nothing has changed.
 */
static inline bool grow_array(void *array, size_t *cap, size_t n, size_t size)
{
	size_t want = *cap ? 2 * *cap : 8;
	void *v;

	if (n < *cap)
		return true;
	memcpy(&v, array, sizeof(v));
	v = reallocarray(v, want, size);
	if (!v)
		return false;
	memcpy(array, &v, sizeof(v));
	*cap = want;
	return true;
}

#endif
