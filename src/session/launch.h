/*
 * Finds the program image of a held target that is to be traced.
 *
 * A command such as "chroot ROOT python3 x.py", "env python3" or "sh -c 'exec python3'" becomes the traced
 * program only at its last exec.  So while a probe description matches nothing, a held target that can still
 * exec is run to its next exec and checked again; one whose libraries are not mapped yet is first run to its
 * entry point, where the dynamic loader has finished.  A program that only executes another one (chroot, env) is
 * skipped if descriptions may match in the wrong program (functions of libraries, and patterns that match
 * other processes), or can match in an interpreter alone (Python's).
 */
#ifndef DTAP_SESSION_LAUNCH_H
#define DTAP_SESSION_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "lang/desc.h"

struct probe_set;
struct strbuf;
struct target;

/*
 * Run the held target @t until each of the @n descriptions matches a probe, or it is certain that the others
 * never will; it stays held.  0 in both cases: the compilation reports descriptions that match nothing.
 * @later: functions of libraries may be loaded later (-Z).
 * -ESRCH with a line in @err: the target ended before.
 */
int launch_find(struct target *t, struct probe_set *set, const struct probe_desc *descs, size_t n, bool later,
		struct strbuf *err);

#endif
