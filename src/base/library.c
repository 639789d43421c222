#include "base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Fill in @l's functions, or @l->why. */
static void load(struct library *l)
{
	void *object = dlopen(l->soname, RTLD_NOW | RTLD_LOCAL), *function;

	l->state = LIBRARY_MISSING;
	if (!object) {
		snprintf(l->why, sizeof(l->why), "the library %s is not there (Debian: %s)", l->soname, l->package);
		return;
	}
	for (size_t i = 0; i < l->n; i++) {
		function = dlsym(object, l->names[i]);
		if (!function) {
			snprintf(l->why, sizeof(l->why), "the library %s has no %s", l->soname, l->names[i]);
			return;
		}
		memcpy((char *)l->functions + i * sizeof(function), &function, sizeof(function));
	}
	l->state = LIBRARY_LOADED;
}

const char *library_load(struct library *l)
{
	const char *why;

	pthread_mutex_lock(&l->lock);
	if (l->state == LIBRARY_NEW)
		load(l);
	why = l->state == LIBRARY_LOADED ? NULL : l->why;
	pthread_mutex_unlock(&l->lock);
	return why;
}

bool library_is_there(struct library *l)
{
	const char *why = library_load(l);

	pthread_mutex_lock(&l->lock);
	if (why && !l->told)
		fprintf(stderr, "dtap: %s\n", why);
	l->told = true;
	pthread_mutex_unlock(&l->lock);
	return !why;
}
