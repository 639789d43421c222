/*
 * -C: D text through the C preprocessor.
 *
 * Runs cpp(1) with the text on its standard input; its "# 12 file" lines bring positions back (lex.c).
 */
#ifndef DTAP_D_CPP_H
#define DTAP_D_CPP_H

struct arena;
struct source;

/*
 * @src preprocessed, in *ret.  @args are -D, -U, -I and -H (include a file first) arguments as dtrace(1) has
 * them ("-DNAME=1", "-I", "dir", NULL at the end).  0, or a negative errno and a message in *err in the
 * arena: -ENOENT when there is no cpp, -EINVAL when cpp reported mistakes, which *err then quotes.
 */
int d_cpp(struct arena *a, const struct source *src, const char *const *args, struct source **ret,
	  const char **err);

#endif
