/* Members lie as the C compiler puts them: sizeof and offsetof. */
struct s { char a; int b; char c; double d; short e[3]; };
struct t { char a; char b; short c; };
union u { char a; long b; };
BEGIN
{
	printf("%d %d %d %d %d %d ", offsetof(struct s, a), offsetof(struct s, b), offsetof(struct s, c),
	    offsetof(struct s, d), offsetof(struct s, e), sizeof (struct s));
	printf("%d %d %d", sizeof (struct t), sizeof (union u), offsetof(union u, b));
	exit(0);
}
/* @@output
0 4 8 16 24 32 4 8 0
*/
