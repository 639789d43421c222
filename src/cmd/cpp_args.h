/*
 * The options for the C preprocessor, which a run of a script and dtrace -h and -G have in common: -C -D -U -I -H.
 */
#ifndef DTAP_CMD_CPP_ARGS_H
#define DTAP_CMD_CPP_ARGS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

struct cpp_args {
	bool wanted;		/* -C */
	const char **v;		/* the others as cpp takes them */
	size_t n, cap;
};

/* Take option @letter with its argument (NULL: it has none).  False: it is none of them. */
bool cpp_args_take(struct cpp_args *c, struct arena *a, int letter, const char *arg);

/* One more word, as it is. */
void cpp_args_add(struct cpp_args *c, struct arena *a, const char *word);

/* Those of d_cpp(): up to a NULL. */
const char *const *cpp_args_list(struct cpp_args *c, struct arena *a);

#endif
