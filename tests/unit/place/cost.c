/* ns per firing of a script's program in the target place, without the agent's hook; not a test. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "inside.h"

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int ignore(void *ctx, const struct record *rec)
{
	(void)ctx;
	(void)rec;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct ebpf_sizes sizes = { .bufsize = 1 << 24, .aggsize = 1 << 24, .dynvarsize = 1 << 24,
						 .nprobes = 1, .ncpus = 2 };
	const char *script = argc > 1 ? argv[1] : "python123:::function-entry { @[copyinstr(arg1)] = count(); }";
	unsigned int names = argc > 2 ? (unsigned int)atoi(argv[2]) : 1;
	char (*name)[24] = calloc(names, sizeof(*name));
	enum { N = 50000, ROUNDS = 20 };
	uint64_t best = UINT64_MAX, start;
	struct inside in;

	if (!name || !names)
		return 1;
	for (unsigned int k = 0; k < names; k++)
		snprintf(name[k], sizeof(name[k]), "function_%u", k);
	inside_make(&in, script, &sizes, true);
	for (int round = 0; round < ROUNDS; round++) {
		start = now();
		for (unsigned int k = 0; k < N; k++)
			inside_fire(&in, "/usr/lib/python3/dist-packages/some/file.py", name[k % names], (int)k);
		start = now() - start;
		best = start < best ? start : best;
		in.place->ops->drain(in.place, ignore, NULL);
	}
	printf("%.1f ns\n", (double)best / N);
	inside_free(&in);
	free(name);
	return 0;
}
