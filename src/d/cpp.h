/*
 * -C: D text through the C preprocessor.
 *
 * Runs cpp(1) on a copy of the text; the "# 12 file" lines in what it makes bring positions back (pragma.c).
 */
#ifndef DTAP_D_CPP_H
#define DTAP_D_CPP_H

struct arena;
struct source;

/*
 * @src preprocessed, in *ret.  @args are the -D, -U and -I arguments and -H as dtrace(1) has them ("-DNAME=1",
 * or "-I", "dir"; NULL at the end; NULL itself: none).  #include "x" looks beside the script first.  Defined
 * are __SUNW_D, __SUNW_D_64 and __SUNW_D_VERSION, as the guide says, and __DTAP_D.
 *
 * 0, or a negative errno and a message in the arena in *err: -ENOENT when there is no cpp, -EINVAL when cpp
 * found mistakes, which *err then quotes, -EFBIG for a result of more than 16 MiB.
 */
int d_cpp(struct arena *a, const struct source *src, const char *const *args, struct source **ret,
	  const char **err);

#endif
