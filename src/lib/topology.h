/*
 * The location of the machine's CPUs as a D library: sched.d uses it for the current CPU.
 */
#ifndef DTAP_LIB_TOPOLOGY_H
#define DTAP_LIB_TOPOLOGY_H

struct dtap;

/* "inline int _cpu_chip[int c] = ...", "inline int _cpu_lgrp[int c] = ...", in the run's arena. */
const char *lib_topology(struct dtap *t);

#endif
