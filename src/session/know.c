/*
 * The data about processes with which programs walk stacks: tables for native frames (abi/unwind.h), and the layout
 * of a Python's frames (abi/python.h).  It is sent beforehand for targets and for processes that have the name of a
 * Python, for others when a program requests it.
 */
#include "session/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/python.h"
#include "out/names.h"
#include "probe/procs.h"
#include "probe/symbols.h"
#include "probe/walks.h"
#include "target/target.h"

/* How many repeated requests about processes that are not Python are served. */
enum { PYTHON_ASKED = 1000 };

/* How often to look whether a process has loaded its libraries. */
enum { LOADING_TRIES = 50 };

/* Send the layout of the Python frames of process @pid, whose key is @key. */
static void tell_python(struct session *s, uint32_t pid, const struct abi_process_key *key, bool asked)
{
	struct abi_python python;

	if (!walks_python(s->known.symbols, pid, &python)) {
		s->place->ops->map_set(s->place, EBPF_MAP_PYTHONS, key, &python);
	} else if (asked && s->known.nasked < PYTHON_ASKED) {
		/* It may load Python later: allow some more requests. */
		s->known.nasked++;
		s->place->ops->map_delete(s->place, EBPF_MAP_PYTHONS, key);
	}
}

static bool has_map(const struct session *s, uint32_t map)
{
	/* In the target place the agent finds the frames by itself. */
	return s->known.names && !(s->place->in_target && map == EBPF_MAP_PYTHONS) &&
	       s->unit->maps[map].type != BPF_MAP_TYPE_UNSPEC;
}

static int write_table(void *session, size_t off, const void *bytes, size_t n)
{
	struct session *s = session;

	return s->place->ops->map_write(s->place, EBPF_MAP_UNWIND, off, bytes, n);
}

/* Send the data for walking the stacks of process @pid. */
static void tell_process(struct session *s, uint32_t pid, const struct abi_process_key *key, bool asked)
{
	struct abi_ranges ranges;

	if (has_map(s, EBPF_MAP_PYTHONS))
		tell_python(s, pid, key, asked);
	if (has_map(s, EBPF_MAP_RANGES) && !walks_unwind(s->known.symbols, pid, &ranges, write_table, s))
		s->place->ops->map_set(s->place, EBPF_MAP_RANGES, key, &ranges);
}

/* Is @pid a target or a descendant of one? */
static bool is_target(const struct event_loop *l, uint32_t pid)
{
	for (int generations = 0; pid > 1 && generations < 32; generations++) {
		for (size_t i = 0; i < l->n; i++)
			if (l->sources[i]->target && (uint32_t)target_pid(l->sources[i]->target) == pid)
				return true;
		pid = procs_parent(pid);
	}
	return false;
}

/*
 * A process has called exec: if it is certainly traced, its data is sent now; others are served on request.  It loads
 * its libraries at once; Python then takes some time to start.
 */
static void tell_starting(struct session *s, uint32_t pid, const struct abi_process_key *key)
{
	static const struct timespec pause = { 0, 200000 };

	if (is_target(&s->loop, pid)) {
		for (int tries = 0; tries < LOADING_TRIES && walks_is_loading(s->known.symbols, pid); tries++)
			nanosleep(&pause, NULL);
		tell_process(s, pid, key, true);
		return;
	}
	if (has_map(s, EBPF_MAP_RANGES))
		s->place->ops->map_delete(s->place, EBPF_MAP_RANGES, key);
	if (!s->loop.targets && has_map(s, EBPF_MAP_PYTHONS))
		tell_python(s, pid, key, true);
	else if (has_map(s, EBPF_MAP_PYTHONS))
		s->place->ops->map_delete(s->place, EBPF_MAP_PYTHONS, key);
}

/* The same for a process that is known from the start, before it is traced. */
static void know_process(struct session *s, uint32_t pid)
{
	struct abi_process_key key;

	if ((has_map(s, EBPF_MAP_RANGES) || has_map(s, EBPF_MAP_PYTHONS)) && !procs_key(pid, &key))
		tell_process(s, pid, &key, false);
}

static void know_if_python(void *session, uint32_t pid)
{
	char link[64], exe[256];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", pid);
	n = readlink(link, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	if (strstr(exe, "python"))
		know_process(session, pid);
}

/* Programs request the data of other processes; that of processes with Python's name is sent at once. */
void session_know_pythons(struct session *s)
{
	if (!s->loop.targets && has_map(s, EBPF_MAP_PYTHONS))
		procs_each(know_if_python, s);
}

void session_know_pid(struct session *s, uint32_t pid)
{
	if (!s->known.names)
		return;
	symbols_watch(s->known.symbols, pid);
	know_process(s, pid);
}

void session_follow(struct session *s)
{
	s->known.log_fd = symbols_follow(s->known.symbols);
}

void session_followed(struct session *s)
{
	symbols_followed(s->known.symbols);
}

int session_know(struct session *s, struct target *t)
{
	if (!s->known.names)
		return 0;
	if (target_state(t) == TARGET_AT_EXEC && target_to_entry(t, NULL) == -EINTR)
		return -EINTR;
	if (target_state(t) != TARGET_EXITED)
		session_know_pid(s, (uint32_t)target_pid(t));
	return 0;
}

/* A stack or code object for whose names there is no room is counted, and shown without names. */
static int name_or_not(struct session *s, int e)
{
	if (e != -ENOSPC)
		return e;
	s->losses.nnameless++;
	return 0;
}

/* Records of stacks and code objects are handled at once, while their process is alive. */
int session_name_record(struct session *s, const struct record *rec)
{
	const struct abi_record *hdr = rec->hdr;
	const struct abi_ask *ask = (const struct abi_ask *)(const void *)hdr;

	if (!s->known.names)
		return 0;
	switch (hdr->rec) {
	case ABI_REC_STACK:
		return name_or_not(s, names_add(s->known.names, rec));
	case ABI_REC_CODE:
		/* A target's record can name any process. */
		return name_or_not(s, names_add_code(s->known.names, rec,
						     !s->place->in_target || is_target(&s->loop, hdr->pid)));
	default:
		if (rec->size < sizeof(*ask))
			return -EINVAL;
		if (s->place->in_target && s->place->ops->is_inside(s->place, hdr->pid))
			know_process(s, hdr->pid);
		else if (s->place->in_target)
			return -EINVAL;
		else if (ask->starts)
			tell_starting(s, hdr->pid, &ask->key);
		else
			tell_process(s, hdr->pid, &ask->key, true);
		return 0;
	}
}
