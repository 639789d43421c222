/* Who calls whom: work() is called by first() twice and by second() once, and by itself. */
#include <stdio.h>

int other(int n);	/* in another unit, of another optimization */

static volatile int sink;

__attribute__((noipa, noinline)) int work(int n)
{
	sink += n;
	if (n > 100)
		sink += work(n - 100) + 1;
	return sink;
}

static inline __attribute__((always_inline)) int copy(int n)
{
	sink += n;
	return n + 1;
}

__attribute__((noipa, noinline)) int first(int n)
{
	int sum = work(n) + work(n + 1) + other(n);

	return sum + copy(n);
}

__attribute__((noipa, noinline)) int second(int n)
{
	int sum = work(n) + 1;

	return sum + other(n) + 1;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	first(1);
	second(102);
	first(3);
	printf("done\n");
	return 0;
}
