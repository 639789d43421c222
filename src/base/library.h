/*
 * Shared libraries that are loaded when they are first needed.  Each one that a program is linked with takes 0.06 ms of its every
 * start; what few sessions need is not linked.
 *
 * A library's functions are the members of a structure, which a list makes:
 *
 *	#define LIBDW(X) X(dwarf_attr, attr) X(dwarf_child, child)
 *	LIBRARY_DECLARE(libdw, LIBDW)						in a header
 *	LIBRARY_DEFINE(libdw, LIBDW, "libdw.so.1", "libdw1")			in one file
 *
 * After libdw_load(), libdw.attr() is dwarf_attr().  In the static program (DTAP_STATIC) they are linked.
 *
 * name_load(): NULL, or why it cannot be loaded: "the library libdw.so.1 is not there (Debian: libdw1)".  name_is_there(): the
 * same for who cannot tell, and does without: it is told once, on standard error.  By any thread.
 */
#ifndef DTAP_BASE_LIBRARY_H
#define DTAP_BASE_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct library {
	const char *soname, *package;	/* Debian's package */
	const char *const *names;	/* of its functions */
	void *functions;		/* the structure: as many pointers to functions, in that order */
	size_t n;
	pthread_mutex_t lock;
	enum { LIBRARY_NEW, LIBRARY_LOADED, LIBRARY_MISSING } state;
	bool told;
	char why[160];
};

/* What name_load() and name_is_there() call. */
const char *library_load(struct library *l);
bool library_is_there(struct library *l);

#define LIBRARY_MEMBER(function, member) __typeof__(&function) member;
#define LIBRARY_NAME(function, member) #function,
#define LIBRARY_ADDRESS(function, member) .member = function,

#define LIBRARY_DECLARE(name, LIST) \
	extern struct name { LIST(LIBRARY_MEMBER) } name; \
	const char *name##_load(void); \
	bool name##_is_there(void);

#ifdef DTAP_STATIC
#define LIBRARY_DEFINE(name, LIST, so, debian) \
	struct name name = { LIST(LIBRARY_ADDRESS) }; \
	const char *name##_load(void) \
	{ \
		return NULL; \
	} \
	bool name##_is_there(void) \
	{ \
		return true; \
	}
#else
#define LIBRARY_DEFINE(name, LIST, so, debian) \
	struct name name; \
	static const char *const name##_names[] = { LIST(LIBRARY_NAME) }; \
	static struct library name##_library = { \
		.soname = so, .package = debian, .names = name##_names, .functions = &name, \
		.n = sizeof(name##_names) / sizeof(name##_names[0]), .lock = PTHREAD_MUTEX_INITIALIZER, \
	}; \
	_Static_assert(sizeof(name) == sizeof(name##_names), "a name for each member"); \
	const char *name##_load(void) \
	{ \
		return library_load(&name##_library); \
	} \
	bool name##_is_there(void) \
	{ \
		return library_is_there(&name##_library); \
	}
#endif

#endif
