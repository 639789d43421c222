/*
 * The options for the C preprocessor, common to running a script and to dtrace -h and -G: -C -D -U -I -H.
 */
#ifndef DTAP_CMD_CPP_ARGS_H
#define DTAP_CMD_CPP_ARGS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

struct cpp_args {
	bool wanted;		/* -C */
	const char **v;		/* the others, as arguments of cpp */
	size_t n, cap;
};

/* Handle option @letter with its argument, or NULL.  False: it is not one of these options. */
bool cpp_args_take(struct cpp_args *c, struct arena *a, int letter, const char *arg);

/* Add an argument, unchanged. */
void cpp_args_add(struct cpp_args *c, struct arena *a, const char *word);

/* The arguments for d_cpp(), with a NULL at the end. */
const char *const *cpp_args_list(struct cpp_args *c, struct arena *a);

#endif
