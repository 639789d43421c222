/*
 * Names of SystemTap's tapset that are about subsystems of the kernel (subsystems.def): what to say when a script
 * uses one.
 */
#ifndef DTAP_STP_SUBSYSTEM_H
#define DTAP_STP_SUBSYSTEM_H

#include <stdbool.h>

struct stp_subsystem {
	const char *what;	/* "the kernel's terminals" */
	const char *instead;	/* what to use instead, a sentence without its full stop */
};

/* What the function @name, or the probe point @name ("tty.read"), is about; NULL: nothing of the kind. */
const struct stp_subsystem *stp_subsystem_of(const char *name, bool function);

#endif
