/*
 * Programs and libraries by the names that people give them.
 */
#ifndef DTAP_PROBE_EXEC_H
#define DTAP_PROBE_EXEC_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct obj;

/*
 * The program that a shell would start for @name: itself when there is a / in it, else the first in $PATH; below
 * @root, if that is not NULL.  Its path without symbolic links, in @a, or NULL.
 */
const char *exec_find(struct arena *a, const char *name, const char *root);

/*
 * The program that runs when file @path, as of exec_find, is executed: itself, or of a script the interpreter that its
 * first line names behind #!, also by way of env(1); NULL: there is no such interpreter.
 */
const char *exec_interpreter(struct arena *a, const char *path, const char *root);

/*
 * The libraries that @o is linked to, and those that they are linked to, in the order of the search; their paths
 * without symbolic links.  Where they are is asked, as by ld.so(8), of DT_NEEDED, DT_RPATH and DT_RUNPATH, of
 * $LD_LIBRARY_PATH, /etc/ld.so.conf and the usual folders: no file is run for it.  What is not found is left out.
 */
size_t exec_libraries(struct arena *a, struct obj *o, const char *root, const char ***ret);

#endif
