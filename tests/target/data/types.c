/* A structure with all that SystemTap scripts read of one; work() prints what a script that is traced prints. */
#include <stdio.h>

enum color { RED, GREEN = 5 };
struct bits { unsigned a : 3; int b : 5; unsigned long c : 40; };
struct __attribute__((packed)) packed { unsigned char before; unsigned p : 13, q : 19, r : 7; long s : 33; };
struct inner { int x, y; };
struct whole {
	int n;
	char name[8], full[4];
	struct inner arr[2];
	short matrix[2][3];
	union { int i; unsigned char bytes[4]; } u;
	enum color color;
	struct bits bits;
	struct packed packed;
	struct whole *next;
};

static struct whole second = { .n = 9, .name = "second" };
static struct whole first = {
	7, "first", "full", { { 1, 2 }, { 3, 4 } }, { { 1, 2, 3 }, { 4, -5, 6 } }, { 0x41424344 }, GREEN,
	{ 5, -3, 0x1234567890 }, { 1, 4321, 400000, 99, -4000000000 }, &second,
};

__attribute__((noinline)) int work(struct whole *w, int i)
{
	printf("%d %d %d %d %ld\n", w->n, w->arr[1].y, w->bits.a, w->bits.b, (long)w->bits.c);
	printf("%d %d %d %ld\n", w->packed.p, w->packed.q, w->packed.r, (long)w->packed.s);
	printf("%d %d %d %d %s\n", w->matrix[1][i], w->matrix[0][2], w->color, w->u.bytes[1], w->next->name);
	return 0;
}

__attribute__((noinline)) int negative(int n) { return -n; }
__attribute__((noinline)) signed char narrow(int n) { return (signed char)(n + 200); }
__attribute__((noinline)) struct whole *other(struct whole *w) { second.n++; return w->next; }
__attribute__((noinline)) void nothing(int n) { second.n += n; }
__attribute__((noinline)) double real(int n) { return n * 1.5; }

int main(void)
{
	work(&first, 1);
	nothing(negative(5) + narrow(1) + other(&first)->n + (int)real(3));
	return 0;
}
