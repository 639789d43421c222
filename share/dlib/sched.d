/*
 * The CPU at hand: curcpu, and its members as variables.
 *
 * Guide: "sched Provider", "cpuinfo_t".  Linux has no processor sets; _cpu_chip and _cpu_lgrp are of the machine's
 * topology (src/lib/topology.c).
 */
typedef struct cpuinfo {
	processorid_t cpu_id;
	psetid_t cpu_pset;
	chipid_t cpu_chip;	/* the socket */
	lgrp_id_t cpu_lgrp;	/* the memory node */
} cpuinfo_t;

typedef cpuinfo_t *cpuinfo_t_p;

translator cpuinfo_t < int c > {
	cpu_id = c;
	cpu_pset = 0;
	cpu_chip = _cpu_chip[c];
	cpu_lgrp = _cpu_lgrp[c];
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> (cpu);
inline psetid_t pset = 0;
inline chipid_t chip = _cpu_chip[cpu];
inline lgrp_id_t lgrp = _cpu_lgrp[cpu];

/* Interrupts of Linux have no levels. */
inline uint_t ipl = 0;
