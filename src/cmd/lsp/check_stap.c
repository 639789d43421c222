#include "cmd/lsp/check.h"

#include <string.h>

#include "base/arena.h"
#include "lib/stp_env.h"
#include "stp/stp.h"
#include "stp/tapset.h"

/* Points of points.def exist: what is found is the point itself. */
static size_t find(void *ctx, const struct stp_point *point, enum stp_point_kind kind, const struct stp_point ***found,
		   const char **why)
{
	(void)ctx;
	(void)point;
	(void)kind;
	(void)found;
	(void)why;
	return 1;
}

/* Every context variable exists.  Those of Python's functions are strings (probe/points_pyfunc.c). */
static bool target(void *ctx, const struct stp_point *point, enum stp_point_kind kind, const struct stp_node *n,
		   struct stp_source *source, const char **why)
{
	(void)ctx;
	(void)point;
	(void)why;
	if (kind == STP_P_PYTHON_CALL || kind == STP_P_PYTHON_RETURN || n->pretty || !strncmp(n->name, "$$", 2)) {
		source->kind = STP_SRC_TEXT;
		source->type = STP_STRINGS;
		source->text = "";
	}
	return true;
}

static bool cast(void *ctx, const struct stp_point *point, const struct stp_node *n, struct stp_source *source,
		 const char **why)
{
	(void)ctx;
	(void)point;
	(void)why;
	source->kind = STP_SRC_VALUE;
	source->type = STP_LONG;
	if (n->pretty) {
		source->kind = STP_SRC_TEXT;
		source->type = STP_STRINGS;
		source->text = "";
	}
	return true;
}

/* The arguments of the script: $1 and @1 are 1. */
enum { NARGS = 32 };

static void set_args(struct verdict *c, struct stp_env *env)
{
	const char **v = arena_alloc(c->arena, NARGS * sizeof(*v));

	for (size_t i = 0; i < NARGS; i++)
		v[i] = "1";
	env->args = (struct stp_args){ v, NARGS };
}

/* Parse what the script needs of the tapset.  Files with mistakes are left out, and their mistakes not told. */
static void add_tapset(struct verdict *c, const struct lsp *s, struct stp *stp, struct stp_tapset *tapset)
{
	stp_tapset_script(tapset, c->src);
	for (size_t i = 0; i < s->ndirs; i++)
		stp_tapset_dir(tapset, s->dirs[i], c->src->name);
	if (s->tapset)
		stp_tapset_dir(tapset, s->tapset, c->src->name);
	while (stp_tapset_next(tapset)) {
		struct diag before = c->diag;

		if (!stp_tapset_add(tapset, stp)) {
			c->diag.n = before.n;
			c->diag.errors = before.errors;
		}
	}
}

void check_stap(struct verdict *c, struct lsp *s, struct text t, bool is_library)
{
	static const struct stp_resolver resolver = { .find = find, .target = target, .cast = cast };
	struct stp_tapset *tapset;
	struct stp_prog *prog;
	struct stp_env env;
	struct stp *stp;

	stp_env_init(&env, c->arena);
	env.guru = s->guru || is_library || text_has_option(t, 'g');
	set_args(c, &env);
	stp = stp_new(c->arena, &c->diag, &env);
	c->stap = stp_tree(stp);
	tapset = stp_tapset_new(c->arena, env.arch);
	stp_suggest(stp, tapset);
	add_tapset(c, s, stp, tapset);
	if (!stp_add(stp, c->src, is_library) || c->diag.errors || is_library)
		return;
	prog = stp_check(stp, &resolver);
	if (prog && !c->diag.errors)
		stp_compile(stp, prog);
}
