/*
 * Libraries: D files with declarations for scripts to use (types, inlines, translators).
 *
 *	l = d_libs_new(arena);
 *	d_libs_dir(l, "/usr/share/dtap/dlib");
 *	d_use_libs(d, l);
 *
 * A library is parsed, after those that it depends on, when the script or an earlier library uses a name that it
 * declares.  So unused libraries cost only their reading.  As in DTrace a library that depends on a missing module or
 * provider is skipped.
 *
 * Guide: "Translators"; dtrace(1), -L, -x nolibs.
 */
#ifndef DTAP_D_LIB_H
#define DTAP_D_LIB_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct d_libs;
struct d_prog;

struct d_libs *d_libs_new(struct arena *a);

/*
 * Read the *.d of @dir.  Of several declarations of a name the last folder's counts.  @all: parse all of them, used
 * or not, to report mistakes; for folders of the user's own.
 */
void d_libs_dir(struct d_libs *l, const char *dir, bool all);

/* Add the library @name with the text @text, which must outlive @l. */
void d_libs_text(struct d_libs *l, const char *name, const char *text);

/* Is the target of "#pragma D depends_on @kind @name" there? */
bool d_libs_have(const struct d_prog *p, const char *kind, const char *name);

/* Set the libraries that @p may use from now on.  NULL: none. */
void d_libs_use(struct d_prog *p, struct d_libs *l);

/* The path of the @i-th library that was parsed, those that it depends on before it; NULL behind the last one. */
const char *d_libs_used(const struct d_prog *p, size_t i);

enum d_lib_kind { D_LIB_TYPE, D_LIB_VALUE };	/* typedefs and tags; inlines and enumerators */

/*
 * Parse the library that declares @name.  True: it was parsed now, so @name may be known; false: none, or parsed
 * before.
 */
bool d_libs_need(struct d_prog *p, const char *name, enum d_lib_kind kind);

#endif
