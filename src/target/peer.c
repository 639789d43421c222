#include "target/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/priv.h"

/* --- domains -------------------------------------------------------------------------------------------- */

/* The four numbers after "@name:". */
static bool read_ids(const char *status, const char *name, uint32_t ids[DOMAIN_IDS])
{
	const char *s = proc_status_field(status, name);
	char *end;

	for (int i = 0; i < DOMAIN_IDS; i++) {
		if (!s)
			return false;
		ids[i] = (uint32_t)strtoul(s, &end, 10);
		if (end == s)
			return false;
		s = end;
	}
	return true;
}

static bool read_caps(const char *status, uint64_t caps[DOMAIN_CAPS])
{
	static const char *const names[DOMAIN_CAPS] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

	for (int i = 0; i < DOMAIN_CAPS; i++) {
		const char *s = proc_status_field(status, names[i]);

		if (!s)
			return false;
		caps[i] = strtoull(s, NULL, 16);
	}
	return true;
}

static bool read_spaces(pid_t pid, struct domain *d)
{
	static const char *const names[DOMAIN_SPACES] = { "user", "pid", "mnt" };

	for (int i = 0; i < DOMAIN_SPACES; i++) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, names[i]);
		if (stat(path, &st))
			return false;
		d->spaces[i].dev = st.st_dev;
		d->spaces[i].ino = st.st_ino;
	}
	return true;
}

/* proc(5), /proc/PID/attr/current: without a security module reading fails with EINVAL, or there is no such file. */
static bool read_label(pid_t pid, char label[DOMAIN_LABEL])
{
	struct strbuf text = { 0 };
	int err = proc_read(pid, "attr/current", &text);
	bool ret = err == -EINVAL || err == -ESRCH || (!err && text.len < DOMAIN_LABEL);

	memset(label, 0, DOMAIN_LABEL);
	if (!err && ret && text.len)
		memcpy(label, text.s, text.len);
	strbuf_fini(&text);
	return ret;
}

/* @start is when process @pid started. */
static int read_domain(pid_t pid, uint64_t start, struct domain *ret)
{
	struct strbuf status = { 0 };
	int err = proc_read(pid, "status", &status);

	memset(ret, 0, sizeof(*ret));
	if (!err && (!read_ids(status.s, "Uid", ret->uids) || !read_ids(status.s, "Gid", ret->gids) ||
		     !read_caps(status.s, ret->caps) || !read_spaces(pid, ret) || !read_label(pid, ret->label))) {
		ret->own_pid = (uint64_t)pid;
		ret->own_start = start;
	}
	strbuf_fini(&status);
	return err;
}

static int read_start(pid_t pid, uint64_t *ret)
{
	struct strbuf stat = { 0 };
	int err = proc_read(pid, "stat", &stat);

	if (!err)
		*ret = proc_stat_field(stat.s, STAT_START_TIME);
	strbuf_fini(&stat);
	return err;
}

int domain_of(pid_t pid, struct domain *ret)
{
	uint64_t start;
	int err = read_start(pid, &start);

	return err ? err : read_domain(pid, start, ret);
}

bool domain_same(const struct domain *a, const struct domain *b)
{
	if (a->own_pid || b->own_pid)
		return a->own_pid == b->own_pid && a->own_start == b->own_start;
	return !memcmp(a->uids, b->uids, sizeof(a->uids)) && !memcmp(a->gids, b->gids, sizeof(a->gids)) &&
	       !memcmp(a->spaces, b->spaces, sizeof(a->spaces)) && !memcmp(a->caps, b->caps, sizeof(a->caps)) &&
	       !strcmp(a->label, b->label);
}

const char *domain_differs(const struct domain *d, const struct domain *from, char *buf, size_t size)
{
	static const char *const spaces[DOMAIN_SPACES] = { "another user namespace", "another pid namespace",
							   "another mount namespace" };

	if (d->own_pid)
		return "a process that cannot be looked at";
	if (memcmp(d->uids, from->uids, sizeof(d->uids))) {
		snprintf(buf, size, "user %u", (unsigned)d->uids[1]);
		return buf;
	}
	for (int i = 0; i < DOMAIN_SPACES; i++)
		if (memcmp(&d->spaces[i], &from->spaces[i], sizeof(d->spaces[i])))
			return spaces[i];
	if (memcmp(d->gids, from->gids, sizeof(d->gids))) {
		snprintf(buf, size, "group %u", (unsigned)d->gids[1]);
		return buf;
	}
	return strcmp(d->label, from->label) ? "another security label" : "other capabilities";
}

/* --- peers ---------------------------------------------------------------------------------------------- */

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

int peer_prove(pid_t pid, int pidfd, struct peer *ret, struct strbuf *why)
{
	struct peer p = { .pid = pid, .pidfd = pidfd < 0 ? target_pidfd(pid) : fcntl(pidfd, F_DUPFD_CLOEXEC, 3) };
	int err = p.pidfd < 0 ? -errno : read_start(pid, &p.start);

	if (!err)
		err = read_domain(pid, p.start, &p.domain);
	/* If the pidfd's process has not ended yet, everything was read from that process. */
	if (!err && has_ended(p.pidfd))
		err = -ESRCH;
	if (err) {
		peer_fini(&p);
		return target_fail_errno(why, err, "process %d", (int)pid);
	}
	*ret = p;
	return 0;
}

void peer_fini(struct peer *p)
{
	if (p->pid && p->pidfd >= 0)
		close(p->pidfd);
	*p = (struct peer){ 0 };
}

bool peer_lives(const struct peer *p)
{
	return !has_ended(p->pidfd);
}

bool peer_is_ending(const struct peer *p)
{
	struct strbuf stat = { 0 };
	int err = proc_read(p->pid, "stat", &stat);
	bool ending = err ? err == -ESRCH : (proc_stat_field(stat.s, STAT_FLAGS) & PROCESS_EXITING) != 0;

	strbuf_fini(&stat);
	return ending || has_ended(p->pidfd);
}

bool peer_is_same(const struct peer *p)
{
	struct domain now;

	return !read_domain(p->pid, p->start, &now) && !has_ended(p->pidfd) && domain_same(&now, &p->domain);
}
