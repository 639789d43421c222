/*
 * Libraries: D files with declarations for scripts to use (types, inlines, translators).
 *
 *	l = d_libs_new(arena);
 *	d_libs_dir(l, "/usr/share/dtap/dlib");
 *	d_use_libs(d, l);
 *
 * A library is parsed when the script, or a library before it, names something that it declares, so what nobody uses
 * costs only the reading; with it the libraries that it depends on.  One that depends on a module or a provider
 * which is not there is passed over, as in DTrace.
 *
 * Guide: "Translators"; dtrace(1), -L, -x nolibs.
 */
#ifndef DTAP_D_LIB_H
#define DTAP_D_LIB_H

#include <stdbool.h>

struct arena;
struct d_libs;
struct d_prog;

struct d_libs *d_libs_new(struct arena *a);

/* Read the *.d of @dir.  A name that several declare is the last folder's. */
void d_libs_dir(struct d_libs *l, const char *dir);

/* What @p may use from now on.  NULL: nothing. */
void d_libs_use(struct d_prog *p, struct d_libs *l);

enum d_lib_kind { D_LIB_TYPE, D_LIB_VALUE };	/* typedefs and tags; inlines and enumerators */

/* Parse the library that declares @name, unless that was done.  True: it was done now, @name may be known. */
bool d_libs_need(struct d_prog *p, const char *name, enum d_lib_kind kind);

#endif
