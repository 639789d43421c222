/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <stddef.h>

unsigned int utf8_bytes(const char *p)
{
	static const struct {
		unsigned char from, to, first, last;	/* the lead byte's range, and the second byte's */
		unsigned int n;
	} forms[] = {
		{ 0x01, 0x7f, 0, 0, 1 },	{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },	{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },	{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const unsigned char *u = (const unsigned char *)p;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (*u < forms[i].from || *u > forms[i].to)
			continue;
		for (unsigned int k = 1; k < forms[i].n; k++)
			if (u[k] < (k == 1 ? forms[i].first : 0x80) || u[k] > (k == 1 ? forms[i].last : 0xbf))
				return 0;
		return forms[i].n;
	}
	return 0;
}
