/*
 * Names in SystemTap's tapset that belong to subsystems of the kernel (subsystems.def): the message when a script
 * uses one.
 */
#ifndef DTAP_STP_SUBSYSTEM_H
#define DTAP_STP_SUBSYSTEM_H

#include <stdbool.h>

struct stp_subsystem {
	const char *what;	/* "the kernel's terminals" */
	const char *instead;	/* what to use instead, a sentence without its full stop; NULL: there is nothing to
				 * trace, so scripts may name it */
};

/* The subsystem of the function @name, or of the probe point @name ("tty.read"); NULL: none. */
const struct stp_subsystem *stp_subsystem_of(const char *name, bool function);

#endif
