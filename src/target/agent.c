#include "target/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/self.h"
#include "target/agent_priv.h"

#define SUFFIX ".so"
#define MUSL_SUFFIX "-musl.so"
#define OBJECT "dtap-agent" SUFFIX

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

/* Take the object @path, if others than root and its owner cannot write it. */
static int take_file(struct agents_file *f, const char *path, struct strbuf *why)
{
	char real[PATH_MAX];
	struct stat st;

	f->path = realpath(path, NULL);
	if (!f->path || stat(f->path, &st))
		return target_fail_errno(why, -errno, "dtap's agent %s", path);
	if (!geteuid() && self_is_writable(f->path, real, sizeof(real)))
		return target_fail(why, -EPERM, "dtap's agent is refused for root: others can write %s: chmod go-w it", real);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return 0;
}

bool agents_object_musl(const char *object, struct strbuf *path)
{
	const char *suffix = strrchr(object, '.');

	if (!suffix || strcmp(suffix, SUFFIX))
		return false;
	strbuf_printf(path, "%.*s" MUSL_SUFFIX, (int)(suffix - object), object);
	return !access(strbuf_str(path), F_OK);
}

static int take_musl(struct agents *a, struct strbuf *why)
{
	struct strbuf path = { 0 };
	int err = agents_object_musl(a->object.path, &path) ? take_file(&a->musl, strbuf_str(&path), why) : 0;

	strbuf_fini(&path);
	return err;
}

/* Find the objects: @path, NULL: the one of agents_object(); and that for musl. */
static int find_objects(struct agents *a, const char *path, struct strbuf *why)
{
	struct strbuf own = { 0 };
	int err = path ? 0 : agents_object(&own, why);

	if (!err)
		err = take_file(&a->object, path ? path : strbuf_str(&own), why);
	if (!err)
		err = take_musl(a, why);
	strbuf_fini(&own);
	return err;
}

const struct agents_file *agents_file_for(const struct agents *a, bool is_musl)
{
	return is_musl ? &a->musl : &a->object;
}

/* A descriptor of the file that was taken, not of what has come to its path since; -1: there is none. */
static int open_taken(const struct agents_file *f)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || st.st_dev != f->dev || st.st_ino != f->ino)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int agents_new(struct agents **ret, const char *object, agents_fn *fn, void *ctx, struct strbuf *why)
{
	struct agents *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return target_fail_errno(why, -ENOMEM, "cannot listen for agents");
	a->epoll = a->listener = a->timer = a->signals = a->preload.fd = -1;
	a->fn = fn;
	a->ctx = ctx;
	err = find_objects(a, object, why);
	if (!err)
		err = listen_open(a, why);
	if (err) {
		agents_free(a);
		return err;
	}
	snprintf(a->env, sizeof(a->env), "%s=%s", ABI_AGENT_ENV, a->address);
	a->environ[0] = a->env;
	a->preload = (struct target_preload){
		.path = strpbrk(a->object.path, NOT_IN_PRELOAD) ? NULL : a->object.path, .environ = a->environ,
		.fd = open_taken(&a->object),
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
	if (a->preload.fd >= 0)
		close(a->preload.fd);
	free(a->object.path);
	free(a->musl.path);
	free(a);
}

const struct target_preload *agents_preload(const struct agents *a)
{
	return &a->preload;
}
