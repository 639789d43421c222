/* Variables can be declared outside of clauses; they are zero then. */
int x;
string s;
char c;
long l;
BEGIN
{
	printf("%d [%s] %d %d ", x, s, c, l);
	x = 123;
	c = 300;
	printf("%d %d %d", x, c, sizeof (l));
	exit(0);
}
/* @@output
0 [] 0 0 123 44 8
*/
