/*
 * Tapset files: finding the declarations that a script needs.
 *
 * The *.stp and *.stpm files in folders are scanned for the names that they declare: functions, aliases, globals,
 * macros.  A declaration is needed when the script, or another needed declaration, uses its name; then so are the
 * probes of its file.  Only needed declarations are parsed.  How a name is used does not matter, so that at worst too
 * much is parsed.
 *
 * Definitions of a name hide later ones: the script's own come first, then folders in the order in which they were
 * added.  So an alias in a script's own tapset replaces one of the same name.
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
 * Add the *.stp and *.stpm files in @dir, and in its subfolders for Linux and for the machine, sorted by name.
 * Unreadable files and @skip (the script itself, or NULL) are skipped; a missing folder is not an error.
 */
void stp_tapset_dir(struct stp_tapset *t, const char *dir, const char *skip);

/* Add a script: its uses count, and its definitions hide those in folders. */
void stp_tapset_script(struct stp_tapset *t, const struct source *src);

/* Add an argument of the script, which $1 and its like may put into it: its words count as used. */
void stp_tapset_argument(struct stp_tapset *t, const struct source *src);

/* Treat everything as needed: for lists. */
void stp_tapset_all(struct stp_tapset *t);

/* The next needed file, macros first, or NULL after the last.  The caller then calls stp_tapset_add. */
const struct source *stp_tapset_next(struct stp_tapset *t);

/* Parse the file that stp_tapset_next returned, without hidden definitions; as stp_add. */
bool stp_tapset_add(struct stp_tapset *t, struct stp *stp);

/* Call @fn with the name of each function, or alias ("a.b.c"), of the scripts and folders, needed or not. */
void stp_tapset_functions(struct stp_tapset *t, void (*fn)(void *ctx, const char *name), void *ctx);
void stp_tapset_aliases(struct stp_tapset *t, void (*fn)(void *ctx, const char *name), void *ctx);

/* How many files of folders were read. */
size_t stp_tapset_files(const struct stp_tapset *t);

#endif
