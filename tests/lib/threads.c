/* threads PID: what dtap_threads() gives, a line a frame of Python's, or why not. */
#include <stdio.h>
#include <stdlib.h>

#include <dtap.h>

static int thread(void *ctx, const struct dtap_thread *t)
{
	(void)ctx;
	for (size_t i = 0; i < t->nframes; i++)
		if (t->frames[i].is_python)
			printf("%u %s:%u %d\n", t->tid, t->frames[i].function, t->frames[i].line, t->is_exact);
	return 7;
}

int main(int argc, char **argv)
{
	char why[200];
	int ret = argc == 2 ? dtap_threads((uint32_t)atoi(argv[1]), false, why, sizeof(why), thread, NULL) : -1;

	printf("%d %s\n", ret, ret < 0 ? why : "");
	return 0;
}
