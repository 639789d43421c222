/*
 * Finding programs and libraries by the names that users write.
 */
#ifndef DTAP_PROBE_EXEC_H
#define DTAP_PROBE_EXEC_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct obj;

/*
 * The program that a shell would start for @name: the path @name if it has a /, else the first match in $PATH; below
 * @root, if not NULL.  Returns the path without symbolic links, in @a, or NULL.
 */
const char *exec_find(struct arena *a, const char *name, const char *root);

/*
 * The program that runs when file @path, from exec_find, is executed: the file itself or, for a script, the
 * interpreter in its #! line, also through env(1); NULL: there is no such interpreter.
 */
const char *exec_interpreter(struct arena *a, const char *path, const char *root);

/*
 * The libraries that @o is linked to, and those that they are linked to, in the order of the search; paths without
 * symbolic links.  They are found like ld.so(8) does, by DT_NEEDED, DT_RPATH, DT_RUNPATH, $LD_LIBRARY_PATH,
 * /etc/ld.so.conf and the usual folders, without running anything.  Missing ones are left out.
 */
size_t exec_libraries(struct arena *a, struct obj *o, const char *root, const char ***ret);

#endif
