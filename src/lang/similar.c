#include "lang/similar.h"

#include <string.h>

unsigned int similar_distance(const char *a, const char *b)
{
	unsigned int row[64], n = (unsigned int)strnlen(b, 63), above, left;

	for (unsigned int k = 0; k <= n; k++)
		row[k] = k;
	for (unsigned int i = 0; a[i] && i < 63; i++) {
		above = row[0];
		row[0] = left = i + 1;
		for (unsigned int k = 1; k <= n; k++) {
			unsigned int best = above + (a[i] != b[k - 1]);

			above = row[k];
			if (above + 1 < best)
				best = above + 1;
			if (left + 1 < best)
				best = left + 1;
			row[k] = left = best;
		}
	}
	return row[n];
}
