#include "session/launch.h"

#include <errno.h>

#include "base/strbuf.h"
#include "probe/probe.h"
#include "target/target.h"

static bool matches(struct probe_set *set, const struct probe_desc *desc)
{
	struct probe_list found = { 0 };

	return probe_find(set, desc, PROBE_ENABLE, &found) > 0;
}

/* Does @desc's provider exist?  Then this is the right image, and the rest of the name is wrong. */
static bool has_provider(struct probe_set *set, const struct probe_desc *desc)
{
	struct probe_desc any = { .prov = desc->prov, .mod = "", .func = "", .name = "" };

	return *desc->prov && !probe_wants_libraries(desc) && matches(set, &any);
}

enum look { LOOK_ALL_FOUND, LOOK_HOPELESS, LOOK_SOME_MISSING };

static enum look look(struct probe_set *set, const struct probe_desc *descs, size_t n, bool later)
{
	enum look seen = LOOK_ALL_FOUND;
	size_t i;

	for (i = 0; i < n; i++) {
		if ((later && probe_wants_libraries(&descs[i])) || matches(set, &descs[i]))
			continue;
		if (has_provider(set, &descs[i]) || probe_has_module(&descs[i]))
			return LOOK_HOPELESS;
		seen = LOOK_SOME_MISSING;
	}
	return seen;
}

/*
 * Is a program like chroot, which only execs another, certainly not the target?  A description that matches probes of other
 * processes, or a library function that chroot has like the target, does not tell which program is; what only an
 * interpreter has is not there.
 */
static bool wants_another(const struct target *t, const struct probe_desc *descs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (desc_is_glob(descs[i].prov) || probe_wants_libraries(&descs[i]) ||
		    probe_wants_python(&descs[i], (uint32_t)target_pid(t)))
			return true;
	return false;
}

/* -EINTR means that the command shall end, which frees the target. */
static int ended(struct target *t, struct strbuf *err)
{
	if (target_state(t) != TARGET_EXITED)
		return 0;
	strbuf_puts(err, "the command ended before it started a program with the probes asked for");
	return -ESRCH;
}

int launch_find(struct target *t, struct probe_set *set, const struct probe_desc *descs, size_t n, bool later,
		struct strbuf *err)
{
	bool libraries = false;
	size_t i;
	int e;

	for (i = 0; i < n; i++)
		libraries |= probe_wants_libraries(&descs[i]);
	while (wants_another(t, descs, n) && target_state(t) == TARGET_AT_EXEC && target_image_only_execs(t)) {
		e = target_next_exec(t, err);
		if (e)
			return e;
	}
	for (;;) {
		bool early = libraries && target_state(t) == TARGET_AT_EXEC;

		if (!early && look(set, descs, n, later) != LOOK_SOME_MISSING)
			return 0;
		if (target_state(t) == TARGET_AT_EXEC) {
			/*
			 * A static program need not run to its entry point; one that another tracer holds (-EBUSY)
			 * cannot.
			 */
			e = target_to_entry(t, err);
			if (e && e != -EBUSY)
				return e;
			if (!e && !ended(t, err) && target_state(t) == TARGET_AT_ENTRY)
				continue;
			if (early && target_state(t) == TARGET_AT_EXEC) {
				libraries = e != -EBUSY;
				continue;
			}
		}
		if (target_state(t) != TARGET_EXITED) {
			if (!target_image_can_exec(t))
				return 0;
			e = target_next_exec(t, err);
			if (e)
				return e;
		}
		e = ended(t, err);
		if (e)
			return e;
	}
}
