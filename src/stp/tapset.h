/*
 * Tapset files: what of them a script needs.
 *
 * Folders are searched for *.stp and *.stpm files, which are only read over for what they declare: functions,
 * aliases, globals, macros.  A declaration is needed when the script, or another one that is needed, uses its
 * name; only such declarations are parsed, and with the first of a file the probes in it that are no aliases.
 * What a name is used as is not looked at, so that at most too much is taken.
 *
 * A name defined nearer to the user hides the others: the script's own first, then folders in the order in
 * which they were added.  So a tapset that comes with the script replaces an alias of the same name instead of
 * being called beside it.
 *
 * Man page stap(1), "TAPSET" in "PROCESSING": which folders; stappaths(7).
 */
#ifndef DTAP_STP_TAPSET_H
#define DTAP_STP_TAPSET_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct source;
struct stp;
struct stp_tapset;

struct stp_tapset *stp_tapset_new(struct arena *a, const char *arch);

/*
 * Add the files in @dir, and in its folders for Linux and for the machine, whose names end in .stp or .stpm,
 * by name; files that cannot be read and @skip (or NULL: the script itself) are passed over.  A folder that
 * is not there has none.
 */
void stp_tapset_dir(struct stp_tapset *t, const char *dir, const char *skip);

/* The script, or one of several: its names are used, and hide the folders' definitions. */
void stp_tapset_script(struct stp_tapset *t, const struct source *src);

/* Take everything, whether it is used or not: for lists. */
void stp_tapset_all(struct stp_tapset *t);

/* The next file that is needed, macros first, or NULL behind the last.  It is then to be given to stp_tapset_add. */
const struct source *stp_tapset_next(struct stp_tapset *t);

/* Parse the file that stp_tapset_next returned, without what is hidden.  As stp_add. */
bool stp_tapset_add(struct stp_tapset *t, struct stp *stp);

/* Call @fn for the name of each function, or alias ("a.b.c"), of the scripts and folders, needed or not. */
void stp_tapset_functions(struct stp_tapset *t, void (*fn)(void *ctx, const char *name), void *ctx);
void stp_tapset_aliases(struct stp_tapset *t, void (*fn)(void *ctx, const char *name), void *ctx);

/* Has any folder's file been given out so far, and how many have been seen. */
size_t stp_tapset_files(const struct stp_tapset *t);

#endif
