/* Structures as values of associative arrays. */
struct point { int x; int y; };
struct point p, q;
struct point at[string];
BEGIN
{
	p.x = 3;
	at["a"] = p;
	p.x = 4;
	at["b"] = p;
	printf("%d %d %d", at["a"].x, at["b"].x, at["c"].x);
	exit(0);
}
/* @@output
3 4 0
*/
