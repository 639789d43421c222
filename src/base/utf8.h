/* SPDX-License-Identifier: MIT */
/* Characters of UTF-8 (RFC 3629, section 4) in texts that may be anything.  The agent has this, too. */
#ifndef DTAP_BASE_UTF8_H
#define DTAP_BASE_UTF8_H

/* The number of bytes of the character at @p; 0: there is none.  The first byte that belongs to none is the last one read. */
unsigned int utf8_bytes(const char *p);

#endif
