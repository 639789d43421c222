#include "target/agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/self.h"
#include "target/agent_priv.h"

#define OBJECT "dtap-agent.so"

/* Characters that a path in LD_PRELOAD cannot have: the loaders split it there, and expand $NAME (ld.so(8)). */
#define NOT_IN_PRELOAD " :\t\n$"

/* Where the object may be: relative to the folder of the program or of the library (self_dir), or absolute. */
static const char *const places[] = {
	"src/agent/" OBJECT,		/* in the build folder */
	"agent/" OBJECT,		/* of the library there */
	DTAP_LIBDIR "/dtap/" OBJECT,
	DTAP_AGENTDIR "/" OBJECT,	/* for another project's program that uses the library */
};

int agents_object(struct strbuf *path, struct strbuf *why)
{
	char dir[PATH_MAX], real[PATH_MAX];
	struct strbuf tried = { 0 };
	size_t i;

	if (!self_dir(dir, sizeof(dir)))
		*dir = '\0';
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

/* Find the object @path; NULL: the one of agents_object(). */
static int find_object(struct agents *a, const char *path, struct strbuf *why)
{
	struct strbuf own = { 0 };
	struct stat st;
	char real[PATH_MAX];
	int err = path ? 0 : agents_object(&own, why);

	if (err)
		goto out;
	a->object = realpath(path ? path : strbuf_str(&own), NULL);
	if (!a->object || stat(a->object, &st)) {
		err = target_fail_errno(why, -errno, "dtap's agent %s", path ? path : strbuf_str(&own));
		goto out;
	}
	if (!geteuid() && self_is_writable(a->object, real, sizeof(real))) {
		err = target_fail(why, -EPERM, "dtap's agent is refused for root: others can write %s: chmod go-w it", real);
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
	a->epoll = a->listener = a->timer = a->signals = -1;
	a->fn = fn;
	a->ctx = ctx;
	err = find_object(a, object, why);
	if (!err)
		err = listen_open(a, why);
	if (err) {
		agents_free(a);
		return err;
	}
	snprintf(a->env, sizeof(a->env), "%s=%s", ABI_AGENT_ENV, a->address);
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
	permits_fini(&a->permits);
	free(a->object);
	free(a);
}

const struct target_preload *agents_preload(const struct agents *a)
{
	return &a->preload;
}
