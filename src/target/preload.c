/*
 * An object that a command loads by LD_PRELOAD.
 *
 * The object's path goes in front of the variable's old value.  The loaders split the list at blanks and colons, load
 * its objects in order, and print an error on stderr for a file that they cannot load.  A program under another root
 * would print such an error, or load another file of the same name.  So at each exec at which the target is held,
 * before the loader runs, the object's path is looked up as the program sees it; if it is not the same file there, the
 * path is overwritten with blanks on the program's stack.
 *
 * A program that needs the object nevertheless can be lent it: the blanks become "/proc/PID/fd/N", a descriptor of this
 * process, if the program may open that (it has our rights and sees us by that number).  Its loader does so at once; only if
 * this process is killed before, it prints its error.
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

#include "abi/agent.h"
#include "arch/arch.h"
#include "base/strbuf.h"
#include "target/peer.h"
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

bool preload_sees(pid_t pid, const char *path, uint64_t dev, uint64_t ino)
{
	struct strbuf rooted = { 0 };
	struct stat st;
	bool ret;

	strbuf_printf(&rooted, "/proc/%d/root%s", (int)pid, path);
	ret = !stat(strbuf_str(&rooted), &st) && st.st_dev == dev && st.st_ino == ino;
	strbuf_fini(&rooted);
	return ret;
}

/* Is the program one for this machine?  True also where it cannot be read. */
static bool is_for_machine(const struct target *t)
{
	const struct arch *arch = arch_host();
	struct target_image image;
	bool ret = true;

	if (!target_image(t, &image, NULL)) {
		ret = arch && image.machine == arch->e_machine;
		target_image_fini(&image);
	}
	return ret;
}

bool preload_loads(const struct target *t, const char *path)
{
	struct stat st;

	return !stat(path, &st) && preload_sees(t->pid, path, st.st_dev, st.st_ino) && is_for_machine(t);
}

/* Write @path and blanks over @len bytes at @addr, at least as many as it has. */
static bool overwrite(pid_t pid, uint64_t addr, size_t len, const char *path)
{
	struct iovec there = { (void *)(uintptr_t)addr, len }, here = { NULL, len };
	struct strbuf text = { 0 };
	bool ret;

	strbuf_printf(&text, "%-*s", (int)len, path);
	here.iov_base = text.s;
	ret = process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)len;	/* else the loader just prints an error */
	strbuf_fini(&text);
	return ret;
}

bool preload_lent_path(const struct target_preload *p, pid_t pid, char path[PRELOAD_LENT_PATH])
{
	struct stat st;

	snprintf(path, PRELOAD_LENT_PATH, ABI_AGENT_LENT "%d/fd/%d", (int)getpid(), p->fd);
	return !fstat(p->fd, &st) && preload_sees(pid, path, st.st_dev, st.st_ino);
}

/* Has the program all our rights, which it needs to open a descriptor of ours (ptrace(2), access mode checking)? */
static bool has_our_rights(const struct target *t)
{
	struct domain own, theirs;

	return !domain_of(getpid(), &own) && !domain_of(t->pid, &theirs) && domain_same(&own, &theirs);
}

void preload_fit(struct target *t)
{
	const char *path = t->preload ? t->preload->path : NULL;
	size_t len = path ? strlen(path) : 0, n, at;
	struct strbuf env = { 0 }, stat = { 0 };
	bool loads = path && preload_loads(t, path);
	const char *v, *entry;
	uint64_t addr;

	t->brings = t->is_lent = false;
	t->blanks = 0;
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
			addr = proc_stat_field(stat.s, STAT_ENV_START) + (size_t)(entry - env.s);
			if (loads)	/* ld.so(8): not in secure-execution mode, as for a program with capabilities */
				t->brings = !target_auxv(t, AT_SECURE);
			else if (overwrite(t->pid, addr, len, "") && !t->blanks)
				t->blanks = addr;
		}
	}
out:
	strbuf_fini(&env);
	strbuf_fini(&stat);
}

bool target_lend(struct target *t)
{
	char path[PRELOAD_LENT_PATH];
	size_t room;

	if (t->state != TARGET_AT_EXEC || t->is_moving || !t->blanks || target_auxv(t, AT_SECURE) ||
	    !preload_lent_path(t->preload, t->pid, path) || !is_for_machine(t) || !has_our_rights(t))
		return false;
	room = strlen(t->preload->path);
	if (strlen(path) <= room && overwrite(t->pid, t->blanks, room, path))
		t->brings = t->is_lent = true;
	return t->is_lent;
}

bool target_brings(const struct target *t)
{
	return t->brings;
}

bool target_passes_on(const struct target *t)
{
	return t->brings && !t->is_lent;
}
