/*
 * The socket (chip) and the memory node (lgrp) of each CPU, from /sys/devices/system.
 */
#include "lib/topology.h"

#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lib/lib.h"

enum { NODES_MAX = 1024 };

static int chip_of(int cpu)
{
	char path[96];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%d", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static int node_of(int cpu)
{
	char path[96];

	for (int n = 0; n < NODES_MAX; n++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", n);
		if (access(path, F_OK))
			return 0;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node%d", cpu, n);
		if (!access(path, F_OK))
			return n;
	}
	return 0;
}

/* "inline int NAME[int c] = c < 4 ? 0 : c < 8 ? 1 : 0;": a step for each run of CPUs. */
static void add_places(struct strbuf *b, const char *name, int (*of)(int cpu))
{
	int ncpus = (int)sysconf(_SC_NPROCESSORS_CONF), last = of(0);

	strbuf_printf(b, "inline int %s[int c] = ", name);
	for (int c = 1; c < ncpus; c++) {
		int n = of(c);

		if (n != last)
			strbuf_printf(b, "c < %d ? %d : ", c, last);
		last = n;
	}
	strbuf_printf(b, "%d;\n", last);
}

const char *lib_topology(struct dtap *t)
{
	struct strbuf b = { 0 };
	const char *text;

	add_places(&b, "_cpu_chip", chip_of);
	add_places(&b, "_cpu_lgrp", node_of);
	text = arena_strdup(t->arena, strbuf_str(&b));
	strbuf_fini(&b);
	return text;
}
