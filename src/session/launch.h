/*
 * Which image of a held target is the one to trace.
 *
 * A command such as "chroot ROOT python3 x.py", "env python3" or "sh -c 'exec python3'" becomes the traced
 * program only at its last exec.  So while some probe description finds nothing, a held target that could
 * still exec is let on to its next exec, and looked at again; one whose libraries are not mapped yet is
 * first let on to its entry point, where the dynamic loader has done its work.  A program that does nothing but
 * start another (chroot, env) is passed over where what it has could be mistaken for what is asked for: functions of
 * libraries, and patterns that other processes match.
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
 * Move the held target @t on until each of the @n descriptions matches a probe, or it is certain that the
 * rest never will; it stays held.  0 either way: the compilation says which description matches nothing.
 * @later: functions of libraries need not be there yet (-Z).
 * -ESRCH with a line in @err when the target ended before.
 */
int launch_find(struct target *t, struct probe_set *set, const struct probe_desc *descs, size_t n, bool later,
		struct strbuf *err);

#endif
