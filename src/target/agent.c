#include "target/agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/agent_priv.h"

#define OBJECT "dtap-agent.so"

/* What LD_PRELOAD cannot name: the loaders split there, and replace what begins with a dollar sign. */
#define NOT_IN_PRELOAD " :\t\n$"

/* Where it may be, seen from the folder of the running program, or absolute. */
static const char *const places[] = {
	"src/agent/" OBJECT,		/* in the build folder */
	DTAP_LIBDIR "/dtap/" OBJECT,
};

int agents_object(struct strbuf *path, struct strbuf *why)
{
	char dir[PATH_MAX], real[PATH_MAX];
	struct strbuf tried = { 0 };
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	char *slash;
	size_t i;

	dir[n < 0 ? 0 : n] = '\0';
	slash = strrchr(dir, '/');
	if (slash)
		slash[1] = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		strbuf_clear(&tried);
		strbuf_printf(&tried, "%s%s", places[i][0] == '/' ? "" : dir, places[i]);
		if (realpath(strbuf_str(&tried), real)) {
			strbuf_puts(path, real);
			strbuf_fini(&tried);
			return 0;
		}
	}
	target_fail(why, -ENOENT, "dtap's agent is not installed: there is no %s", strbuf_str(&tried));
	strbuf_fini(&tried);
	return -ENOENT;
}

/* Find the object @path, or the program's own. */
static int find_object(struct agents *a, const char *path, struct strbuf *why)
{
	struct strbuf own = { 0 };
	struct stat st;
	int err = path ? 0 : agents_object(&own, why);

	if (err)
		goto out;
	a->object = realpath(path ? path : strbuf_str(&own), NULL);
	if (!a->object || stat(a->object, &st)) {
		err = target_fail_errno(why, -errno, "dtap's agent %s", path ? path : strbuf_str(&own));
		goto out;
	}
	a->dev = st.st_dev;
	a->ino = st.st_ino;
out:
	strbuf_fini(&own);
	return err;
}

int agents_new(struct agents **ret, const char *object, agents_fn *fn, void *ctx, struct strbuf *why)
{
	struct agents *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return target_fail_errno(why, -ENOMEM, "cannot listen for agents");
	a->epoll = a->listener = -1;
	a->fn = fn;
	a->ctx = ctx;
	err = find_object(a, object, why);
	if (!err)
		err = channels_open(a, why);
	if (err) {
		agents_free(a);
		return err;
	}
	snprintf(a->env, sizeof(a->env), "%s=%s", ABI_AGENT_ENV, a->name);
	a->environ[0] = a->env;
	a->preload = (struct target_preload){
		.path = strpbrk(a->object, NOT_IN_PRELOAD) ? NULL : a->object, .environ = a->environ,
	};
	*ret = a;
	return 0;
}

void agents_free(struct agents *a)
{
	if (!a)
		return;
	channels_close(a);
	free(a->object);
	free(a);
}

const struct target_preload *agents_preload(const struct agents *a)
{
	return &a->preload;
}
