/*
 * What programs have to know of processes to walk their stacks: tables for native frames (abi/unwind.h), and where a
 * Python has its own (abi/python.h).  It is told beforehand of the targets and of what is a Python by its name, of others
 * when a program meets one and asks.
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
#include "target/target.h"

/* How often programs may ask again about processes that are no Python. */
enum { PYTHON_ASKED = 1000 };

/* How often to look whether a process has loaded its libraries. */
enum { LOADING_TRIES = 50 };

/* Where process @pid, which programs know by @key, has its frames of Python. */
static void tell_python(struct session *s, uint32_t pid, const struct abi_process_key *key, bool asked)
{
	struct abi_python python;

	if (!names_python(s->names, pid, &python)) {
		s->place->ops->map_set(s->place, EBPF_MAP_PYTHONS, key, &python);
	} else if (asked && s->nasked < PYTHON_ASKED) {
		/* It may load one later: let it be asked about again, some times. */
		s->nasked++;
		s->place->ops->map_delete(s->place, EBPF_MAP_PYTHONS, key);
	}
}

static bool has_map(const struct session *s, uint32_t map)
{
	/* In the target place a Python looks for its frames by itself. */
	return s->names && !(s->place->in_target && map == EBPF_MAP_PYTHONS) &&
	       s->unit->maps[map].type != BPF_MAP_TYPE_UNSPEC;
}

/* Tell the programs what they need to walk the stacks of process @pid. */
static void tell_process(struct session *s, uint32_t pid, const struct abi_process_key *key, bool asked)
{
	const struct place_ops *ops = s->place->ops;
	struct abi_unwind *tables = has_map(s, EBPF_MAP_RANGES) ? ops->map_memory(s->place, EBPF_MAP_UNWIND) : NULL;
	struct abi_ranges ranges;

	if (has_map(s, EBPF_MAP_PYTHONS))
		tell_python(s, pid, key, asked);
	if (tables && !names_unwind(s->names, pid, &ranges, tables))
		s->place->ops->map_set(s->place, EBPF_MAP_RANGES, key, &ranges);
}

/* Is @pid, or what started it, one of the targets? */
static bool is_target(const struct session *s, uint32_t pid)
{
	for (int generations = 0; pid > 1 && generations < 32; generations++) {
		for (size_t i = 0; i < s->nsources; i++)
			if (s->sources[i]->target && (uint32_t)target_pid(s->sources[i]->target) == pid)
				return true;
		pid = procs_parent(pid);
	}
	return false;
}

/*
 * A process has called exec: what it will need is told now, as far as it is traced for certain; the others will ask.
 * It loads its libraries in no time, and Python takes some to start behind that.
 */
static void tell_starting(struct session *s, uint32_t pid, const struct abi_process_key *key)
{
	static const struct timespec pause = { 0, 200000 };

	if (is_target(s, pid)) {
		for (int tries = 0; tries < LOADING_TRIES && names_is_loading(s->names, pid); tries++)
			nanosleep(&pause, NULL);
		tell_process(s, pid, key, true);
		return;
	}
	if (has_map(s, EBPF_MAP_RANGES))
		s->place->ops->map_delete(s->place, EBPF_MAP_RANGES, key);
	if (!s->targets && has_map(s, EBPF_MAP_PYTHONS))
		tell_python(s, pid, key, true);
	else if (has_map(s, EBPF_MAP_PYTHONS))
		s->place->ops->map_delete(s->place, EBPF_MAP_PYTHONS, key);
}

/* The same for a process that is known from the start, before anything of it is traced. */
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

/* Of other processes, programs ask when they meet them; those that say that they are Python are known at once. */
void session_know_pythons(struct session *s)
{
	if (!s->targets && has_map(s, EBPF_MAP_PYTHONS))
		procs_each(know_if_python, s);
}

void session_know_pid(struct session *s, uint32_t pid)
{
	if (!s->names)
		return;
	names_watch(s->names, pid);
	know_process(s, pid);
}

void session_know(struct session *s, struct target *t)
{
	if (!s->names)
		return;
	if (target_state(t) == TARGET_AT_EXEC)
		target_to_entry(t, NULL);
	if (target_state(t) != TARGET_EXITED)
		session_know_pid(s, (uint32_t)target_pid(t));
}

/* What is not carried out but known: at once, while its process lives. */
int session_name_record(struct session *s, const void *rec, size_t size)
{
	const struct abi_record *hdr = rec;
	const struct abi_ask *ask = rec;

	if (!s->names)
		return 0;
	switch (hdr->rec) {
	case ABI_REC_STACK:
		return names_add(s->names, rec, size);
	case ABI_REC_CODE:
		/* Any process can be named where a target writes records. */
		return names_add_code(s->names, rec, size, !s->place->in_target || is_target(s, hdr->pid));
	default:
		if (size < sizeof(*ask))
			return -EINVAL;
		if (s->place->in_target)
			know_process(s, hdr->pid);
		else if (ask->starts)
			tell_starting(s, hdr->pid, &ask->key);
		else
			tell_process(s, hdr->pid, &ask->key, true);
		return 0;
	}
}
