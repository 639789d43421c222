#include "cmd/cpp_args.h"

#include "base/arena.h"

void cpp_args_add(struct cpp_args *c, struct arena *a, const char *word)
{
	c->v = arena_grow(a, c->v, &c->cap, c->n, sizeof(*c->v));
	c->v[c->n++] = word;
}

bool cpp_args_take(struct cpp_args *c, struct arena *a, int letter, const char *arg)
{
	switch (letter) {
	case 'C':
		c->wanted = true;
		return true;
	case 'D':
	case 'U':
	case 'I':
		cpp_args_add(c, a, arena_printf(a, "-%c%s", letter, arg));
		return true;
	case 'H':
		cpp_args_add(c, a, "-H");
		return true;
	default:
		return false;
	}
}

const char *const *cpp_args_list(struct cpp_args *c, struct arena *a)
{
	c->v = arena_grow(a, c->v, &c->cap, c->n, sizeof(*c->v));
	c->v[c->n] = NULL;
	return c->v;
}
