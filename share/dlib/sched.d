/*
 * The CPU at hand: curcpu.
 *
 * Guide: "sched Provider", "cpuinfo_t".  Linux has no processor sets and latency groups of Solaris.
 */
typedef struct cpuinfo {
	processorid_t cpu_id;
} cpuinfo_t;

translator cpuinfo_t < int c > {
	cpu_id = c;
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> (cpu);
