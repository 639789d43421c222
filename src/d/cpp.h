/*
 * -C: D text through the C preprocessor.
 *
 * Runs cpp(1) on a copy of the text; the "# 12 file" lines in its output restore positions (pragma.c).
 */
#ifndef DTAP_D_CPP_H
#define DTAP_D_CPP_H

struct arena;
struct source;

/*
 * Preprocess @src by the program @path; the result is *ret.  A first line "#!" is removed.  @args are dtrace(1)'s -D,
 * -U, -I and -H arguments ("-DNAME=1", or "-I", "dir"), NULL-terminated, or NULL.  #include "x" looks in the script's
 * folder first. __SUNW_D, __SUNW_D_64 and __SUNW_D_VERSION are defined, as in the guide, and __DTAP_D.
 *
 * 0, and in *err what cpp has said besides, in lines (the names of -H, warnings), or NULL; or a negative errno and a
 * message (in the arena) in *err: -ENOENT when cpp is missing; -EINVAL when cpp found mistakes, which *err quotes; -EFBIG
 * for a result of more than 16 MiB.
 */
int d_cpp(struct arena *a, const struct source *src, const char *path, const char *const *args, struct source **ret,
	  const char **err);

#endif
