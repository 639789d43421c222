/*
 * An object that a command loads by LD_PRELOAD.
 *
 * The object's path goes in front of the variable's old value.  The loaders split the list at blanks and colons, load
 * its objects in order, and print an error on stderr for a file that they cannot load.  A program under another root
 * would print such an error, or load another file of the same name.  So at each exec at which the target is held,
 * before the loader runs, the object's path is looked up as the program sees it; if it is not the same file there, the
 * path is overwritten with blanks on the program's stack.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch/arch.h"
#include "target/priv.h"

#define VARIABLE "LD_PRELOAD="

enum { STAT_ENV_START = 50 };

/* Do "NAME=VALUE" @v and @like set the same variable? */
static bool same_name(const char *v, const char *like)
{
	size_t n = strcspn(like, "=");

	return !strncmp(v, like, n) && v[n] == '=';
}

static bool is_replaced(const struct target_preload *p, const char *v)
{
	const char *const *e;

	if (p->path && same_name(v, VARIABLE))
		return true;
	for (e = p->environ; e && *e; e++)
		if (same_name(v, *e))
			return true;
	return false;
}

char **preload_environ(const struct target_preload *p)
{
	const char *old = getenv("LD_PRELOAD"), *const *e;
	size_t n = 2, len = sizeof(VARIABLE) + (p->path ? strlen(p->path) : 0) + 1 + (old ? strlen(old) : 0), i = 0;
	char **ret, **v;

	for (v = environ; *v; v++)
		n++;
	for (e = p->environ; e && *e; e++)
		n++;
	ret = malloc(n * sizeof(*ret) + len);
	if (!ret)
		return NULL;
	if (p->path)
		ret[i] = (char *)(ret + n);
	if (p->path)
		snprintf(ret[i++], len, "%s%s%s%s", VARIABLE, p->path, old && *old ? ":" : "", old ? old : "");
	for (v = environ; *v; v++)
		if (!is_replaced(p, *v))
			ret[i++] = *v;
	for (e = p->environ; e && *e; e++)
		ret[i++] = (char *)(uintptr_t)*e;
	ret[i] = NULL;
	return ret;
}

bool preload_loads(const struct target *t, const char *path)
{
	const struct arch *arch = arch_host();
	struct target_image image;
	struct strbuf rooted = { 0 };
	struct stat ours, theirs;
	bool ret;

	strbuf_printf(&rooted, "/proc/%d/root%s", (int)t->pid, path);
	ret = !stat(path, &ours) && !stat(strbuf_str(&rooted), &theirs) && ours.st_dev == theirs.st_dev &&
	      ours.st_ino == theirs.st_ino;
	strbuf_fini(&rooted);
	if (ret && !target_image(t, &image, NULL)) {
		ret = arch && image.machine == arch->e_machine;
		target_image_fini(&image);
	}
	return ret;
}

/* Write blanks over @len bytes at @addr. */
static void blot_out(pid_t pid, uint64_t addr, size_t len)
{
	struct strbuf blanks = { 0 };
	struct iovec there = { (void *)(uintptr_t)addr, len }, here = { NULL, len };
	size_t i;

	for (i = 0; i < len; i++)
		strbuf_putc(&blanks, ' ');
	here.iov_base = blanks.s;
	process_vm_writev(pid, &here, 1, &there, 1, 0);	/* on failure the loader just prints an error */
	strbuf_fini(&blanks);
}

bool preload_fit(const struct target *t)
{
	const char *path = t->preload->path;
	size_t len = path ? strlen(path) : 0, n, at;
	struct strbuf env = { 0 }, stat = { 0 };
	bool loads = path && preload_loads(t, path), ret = false;
	const char *v, *entry;

	if (!path || proc_read(t->pid, "environ", &env) || proc_read(t->pid, "stat", &stat))
		goto out;
	for (at = 0; at < env.len; at += strlen(env.s + at) + 1) {
		v = env.s + at;
		if (!same_name(v, VARIABLE))
			continue;
		for (entry = v + sizeof(VARIABLE) - 1; *entry; entry += n + strspn(entry + n, " :")) {
			n = strcspn(entry, " :");
			if (n != len || memcmp(entry, path, len))
				continue;
			if (loads)	/* ld.so(8): not in secure-execution mode, as for a program with capabilities */
				ret = !target_auxv(t, AT_SECURE);
			else
				blot_out(t->pid, proc_stat_field(stat.s, STAT_ENV_START) + (size_t)(entry - env.s), len);
		}
	}
out:
	strbuf_fini(&env);
	strbuf_fini(&stat);
	return ret;
}

bool target_brings(const struct target *t)
{
	return t->brings;
}
