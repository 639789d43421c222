/*
 * The environment that a SystemTap script is compiled for (stp/preproc.h): this machine and this process.
 */
#ifndef DTAP_LIB_STP_ENV_H
#define DTAP_LIB_STP_ENV_H

#include "stp/preproc.h"

/* Initialise with the newest SystemTap version that dtap follows and no arguments; texts are in @a. */
void stp_env_init(struct stp_env *env, struct arena *a);

#endif
