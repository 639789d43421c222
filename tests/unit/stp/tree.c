#include "tree.h"
#include "lib/stp_env.h"

#include <string.h>

static void start(struct compiled *c, const char *const *args)
{
	memset(c, 0, sizeof(*c));
	c->arena = arena_new();
	diag_init(&c->diag, c->arena);
	stp_env_init(&c->env, c->arena);
	c->env.kernel_v = "6.1.0";
	c->env.kernel_vr = "6.1.0-13-amd64";
	c->env.arch = "x86_64";
	c->env.args.v = args;
	while (args && args[c->env.args.n])
		c->env.args.n++;
}

void parse(struct compiled *c, const char *script, const char *const *args)
{
	start(c, args);
	c->stp = stp_new(c->arena, &c->diag, &c->env);
	if (stp_add(c->stp, source_text(c->arena, "<input>", script, strlen(script)), false))
		stp_dump(&c->text, stp_tree(c->stp));
	else
		strbuf_puts(&c->text, message(c, DIAG_ERROR, 0));
}

void check(struct compiled *c, const char *script, const struct stp_resolver *resolver)
{
	parse(c, script, NULL);
	if (!c->diag.errors)
		c->prog = stp_check(c->stp, resolver);
}

void compiled_fini(struct compiled *c)
{
	strbuf_fini(&c->text);
	arena_free(c->arena);
}

const char *message(const struct compiled *c, enum diag_level level, size_t i)
{
	for (size_t k = 0; k < c->diag.n; k++)
		if (c->diag.msgs[k].level == level && !i--)
			return c->diag.msgs[k].text;
	return "";
}
