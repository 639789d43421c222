/*
 * SHA-256 (FIPS 180-4): what sha256sum(1) says of a file.
 */
#ifndef DTAP_BASE_SHA256_H
#define DTAP_BASE_SHA256_H

#include <stddef.h>

enum { SHA256_TEXT = 65 };

/* The digest of the @len bytes at @data as hexadecimal digits. */
void sha256_text(const void *data, size_t len, char text[static SHA256_TEXT]);

#endif
