/*
 * What the debug information of the seeds of debug_fuzz.c describes: each kind of type, variables in registers, in
 * frames, by base and displacement and in pieces, inlined functions, labels.
 */
typedef unsigned long long number;

enum colour { RED, GREEN = 7, BLUE = -1 };

struct inner {
	short s;
	union { int i; float f; };
};

struct node {
	struct node *next;
	const char *name;
	volatile char text[12];
	int grid[3][4];
	unsigned low : 3, high : 5;
	enum colour colour;
	struct inner inner, *many[2];
	number (*call)(struct node *n, int i);
};

struct node head = { &head, "head" };
static number counted;
__thread int mine;

static inline __attribute__((always_inline)) int twice(int x)
{
	int both = x + x;

	return both + head.grid[1][x & 3];
}

__attribute__((noinline)) int walk(struct node *n, int depth)
{
	number sum = 0;
	struct inner copy = n->inner;

	while (n && depth-- > 0) {
		int here = twice(depth);

		sum += (number)here + copy.s;
		n = n->next;
		if (here == 5)
			goto out;
	}
out:
	counted += sum;
	return (int)sum + mine;
}

int seed_start(int argc, char **argv);
int seed_start(int argc, char **argv)
{
	char buf[16] = { 0 };

	buf[argc & 15] = argv[0][0];
	return walk(&head, argc) + buf[0];
}
