/* Functions that are inlined, labels, calls of libraries, threads; it prints what a script that traces it prints. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const int answer = 42;	/* may be in no memory */

static inline __attribute__((always_inline)) long twice(long q)
{
	printf("twice %ld\n", q);
told: __attribute__((unused));
	return q * 2 * (answer == 42);
}

/* Compiled into its caller, of which no instruction may be its own. */
static int checked(int v)
{
	__asm__("");
	return v == answer;
}

__attribute__((noinline)) long work(long a, char **heap)
{
	long r = twice(a);

	*heap = malloc((size_t)r);
	printf("malloc %ld\n", r);
again:
	puts("again");
	r += twice(r + 1);
	if (r < 100)
		goto again;
	free(*heap);
	return r;
}

static void *thread(void *p)
{
	return p;
}

int main(void)
{
	pthread_t t;
	char *heap;

	setvbuf(stdout, NULL, _IOLBF, 0);
	work(10, &heap);
	if (!checked((int)(heap != NULL) * 42))
		return 1;
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	return 0;
}
