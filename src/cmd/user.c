#include "cmd/user.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>

bool user_of(const char *text, uid_t *ret)
{
	const struct passwd *user = getpwnam(text);
	unsigned long number;
	char *end;

	if (user) {
		*ret = user->pw_uid;
		return true;
	}
	errno = 0;
	number = strtoul(text, &end, 10);
	*ret = (uid_t)number;
	return !errno && end != text && !*end && *text != '-' && number < UINT32_MAX;
}
