/*
 * The target place: programs run in the traced processes themselves, called by the agent there, and use shared memory
 * that this process has created (abi/segment.h).  There is no system call per event, and no privilege is needed but
 * that of the target's user.
 *
 * Programs that the tracer fires (BEGIN, END, ERROR, tick) run here, in the same engine and with the same memory.  Only
 * markers of the agent can be armed; the caller sends the segment to the agents.
 */
#ifndef DTAP_PLACE_TARGET_H
#define DTAP_PLACE_TARGET_H

#include "place/place.h"

struct domain;
struct strbuf;

/*
 * Create the memory for @unit, which must outlive the place.  state is ABI_STATE_OFF.  @wait: processes wait for room
 * for their records.  @processes: the largest number of processes that have events; 0: any number.
 */
int target_place_new(const struct ebpf_unit *unit, bool wait, unsigned int processes, struct place **ret,
		     struct strbuf *err);

/*
 * Create memory that has only the patterns of functions by name and the values for programs elsewhere (place_ops.arm_marker with
 * PLACE_AWAY): the agents find the functions, and fire a marker for them.  @values, @tasks: values are of Python's objects, of its
 * tasks.  It owns what it needs.
 */
enum { PLACE_AWAY = -1 };
int target_place_away(bool values, bool tasks, struct place **ret, struct strbuf *err);

/* Can @unit's programs also be run for an event that is over (agent/early.h)? */
bool target_place_runs_later(const struct ebpf_unit *unit);

/* What an agent needs: descriptors, which the place owns. */
struct target_place_fds {
	int image, data, wake;
};

/*
 * The memory for processes of @domain, once the place is ready: one for each domain, created on the first request.
 * @alone: the session's programs have data that all processes must share, so there can be one domain only.  Records of
 * a domain that is not this process's own are marked as foreign (struct record).  0; -EXDEV: @alone, and another
 * domain came first; -ENOSPC and others with a line in @why.
 */
int target_place_segment(struct place *p, const struct domain *domain, bool alone, struct target_place_fds *ret,
			 struct strbuf *why);

/* A random number that only this place's segments have. */
uint64_t target_place_id(const struct place *p);

/* Has process @pid mapped the memory in which the tracer's own programs run? */
bool target_place_is_home(const struct place *p, uint32_t pid);

#endif
