/*
 * The options of -x and #pragma D option: which there are and how their values are written.
 *
 * Knows names and notation only; what a value means is its user's business.
 */
#ifndef DTAP_D_OPTIONS_H
#define DTAP_D_OPTIONS_H

#include <stdint.h>

enum d_option_kind { D_OPTION_FLAG, D_OPTION_SIZE, D_OPTION_TIME, D_OPTION_NUMBER, D_OPTION_WORD };

struct d_option {
	const char *name;
	enum d_option_kind kind;
	const char *what;
};

/* The option called @name, or NULL. */
const struct d_option *d_option_find(const char *name);

/* The @i-th option in alphabetical order, or NULL behind the last: for a listing. */
const struct d_option *d_option_at(unsigned int i);

/*
 * The value @text (NULL: none given) of option @o: bytes, ns, a number, or 0/1 for a flag.  -EINVAL when
 * it is not written as the option's kind wants, -ERANGE when it does not fit.  A WORD gives 0 if there is one.
 */
int d_option_value(const struct d_option *o, const char *text, uint64_t *ret);

#endif
