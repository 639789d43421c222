/* Prints what its functions get, for a tracer to be compared with. */
#include <stdio.h>
#include <string.h>

struct inner { short s; unsigned char uc; };

struct node {
	int id;
	const char *name;
	struct node *next;
	struct inner in;
	long arr[4];
	union { int ux; char uy; };
};

int counter = -7;
static unsigned long total = 1UL << 40;
struct node head = { 99, "head", NULL, { -3, 200 }, { 1, 2, 3, 4 }, { 8 } };

__attribute__((noipa, noinline)) long add(int a, unsigned char b, long c, const char *s, short d, struct node *n, int g)
{
	long local = a + b;

	printf("%d %d %ld %s %d %d\n", a, b, c, s, d, g);
	printf("%d %s %d %d %ld %d\n", n->id, n->name, n->in.s, n->in.uc, n->arr[2], n->ux);
	printf("%d %lu %d\n", counter, total, head.id);
	counter++;
	total += (unsigned long)local;
	return local + d + (long)strlen(s) + g;
}

int main(void)
{
	struct node k = { 1, "first", &head, { -2, 250 }, { 10, 20, 30, 40 }, { 77 } };

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("= %ld\n", add(-5, 200, 1L << 33, "hello", -2, &k, 42));
	printf("= %ld\n", add(6, 1, -9, "world", 3, &head, 43));
	return 0;
}
