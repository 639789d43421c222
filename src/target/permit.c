#include "target/permit.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/priv.h"
#include "target/seccomp.h"

enum { UNKNOWN = UINT32_MAX, ANCESTORS = 64, PERMITS_MAX = 1024 };

/* --- counting ------------------------------------------------------------------------------------------ */

/* The number of a thread's filters; UNKNOWN also before Linux 5.9, which does not show it. */
static uint32_t filters_in(const char *status)
{
	const char *mode = proc_status_field(status, "Seccomp"), *n = proc_status_field(status, "Seccomp_filters");

	if (mode && strtoul(mode, NULL, 10) == 0)
		return 0;
	return mode && n ? (uint32_t)strtoul(n, NULL, 10) : UNKNOWN;
}

/* The largest number of filters that any thread of the process has; @known: those of thread @tid, or @tid is 0. */
static uint32_t filters_beside(pid_t pid, pid_t tid, uint32_t known)
{
	struct strbuf text = { 0 };
	uint32_t most = tid ? known : 0, some = tid != 0;
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		uint32_t n;

		if (entry->d_name[0] == '.' || (tid && strtol(entry->d_name, NULL, 10) == tid))
			continue;
		snprintf(path, sizeof(path), "task/%.20s/status", entry->d_name);
		if (proc_read(pid, path, &text))
			continue;	/* it has ended */
		n = filters_in(text.s);
		most = n > most ? n : most;
		some++;
		strbuf_clear(&text);
	}
	strbuf_fini(&text);
	if (tasks)
		closedir(tasks);
	return some ? most : UNKNOWN;
}

static uint32_t filters_of(pid_t pid)
{
	return filters_beside(pid, 0, 0);
}

static pid_t parent_of(pid_t pid)
{
	struct strbuf text = { 0 };
	const char *parent = proc_read(pid, "status", &text) ? NULL : proc_status_field(text.s, "PPid");
	pid_t ret = parent ? (pid_t)strtol(parent, NULL, 10) : 0;

	strbuf_fini(&text);
	return ret;
}

/* --- checking ------------------------------------------------------------------------------------------ */

void permit_learn(struct permits *p, pid_t pid, pid_t tid, const char *status)
{
	int forbids = seccomp_forbids_memory(pid, tid);
	struct permit one = { pid, filters_beside(pid, tid, filters_in(status)), forbids > 0 }, *more;

	for (size_t k = 0; k < p->n; k++)
		if (p->v[k].pid == pid)
			p->v[k--] = p->v[--p->n];	/* from before an exec, or of an earlier process with this id */
	if (!one.filters || forbids < 0)
		return;
	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 8;

		more = cap <= PERMITS_MAX ? realloc(p->v, cap * sizeof(*p->v)) : NULL;
		if (!more)
			return;		/* not known: the answer will be no */
		p->v = more;
		p->cap = cap;
	}
	p->v[p->n++] = one;
}

/* Does a child process survive the calls? */
static bool try_own(void)
{
	bool alive = false;
	int ends[2];
	char byte;
	pid_t pid;

	if (pipe(ends))
		return false;
	pid = fork();
	if (!pid) {
		char from = 1, to = 0;
		struct iovec local = { &to, 1 }, remote = { &from, 1 };

		syscall(SYS_process_vm_readv, (long)getpid(), &local, 1L, &remote, 1L, 0L);
		syscall(SYS_process_vm_writev, (long)getpid(), &local, 1L, &remote, 1L, 0L);
		syscall(SYS_write, ends[1], "", 1);
		_exit(0);
	}
	close(ends[1]);
	alive = pid > 0 && read(ends[0], &byte, 1) == 1;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return alive;
}

bool permit_memory(struct permits *p, pid_t pid)
{
	uint32_t filters = filters_of(pid);
	pid_t at = pid;

	if (!filters)
		return true;
	for (int k = 0; filters != UNKNOWN && at > 1 && k < ANCESTORS; k++, at = parent_of(at)) {
		for (size_t i = 0; i < p->n; i++)
			if (p->v[i].pid == at && p->v[i].filters == filters)
				return !p->v[i].is_fatal;
		if (at != getpid())
			continue;
		if (filters_of(at) != filters)
			return false;
		if (p->own == PERMIT_UNTRIED)
			p->own = try_own() ? PERMIT_ALIVE : PERMIT_DEAD;
		return p->own == PERMIT_ALIVE;
	}
	return false;
}

void permits_fini(struct permits *p)
{
	free(p->v);
	*p = (struct permits){ .v = NULL };
}
