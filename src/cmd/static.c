/*
 * The static program (meson -Dstatic=true): nothing of the machine's libraries is loaded into it.
 *
 * glibc's own static functions would: dlopen() loads objects, which need the very same glibc, and so does the lookup of
 * users, services and hosts, as nsswitch.conf(5) has it.  Here no object can be loaded, and names come from the files in
 * /etc and from DNS.
 */
#include <dlfcn.h>
#include <nss.h>

void *dlopen(const char *path, int flags)
{
	(void)path;
	(void)flags;
	return NULL;
}

char *dlerror(void)
{
	static char why[] = "the program is static";

	return why;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	(void)handle;
	(void)name;
	return NULL;
}

__attribute__((constructor)) static void names_from_files(void)
{
	static const struct {
		const char *database, *services;
	} lookups[] = {
		{ "passwd", "files" },
		{ "group", "files" },
		{ "services", "files" },
		{ "hosts", "files dns" },
	};

	for (unsigned int i = 0; i < sizeof(lookups) / sizeof(lookups[0]); i++)
		__nss_configure_lookup(lookups[i].database, lookups[i].services);
}
