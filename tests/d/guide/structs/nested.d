/* Structures in structures, and arrays of them. */
struct in { short a, b; };
struct out { char tag; struct in in[2]; };
struct out o;
BEGIN
{
	o.tag = 'x';
	o.in[1].b = 9;
	printf("%c %d %d %d", o.tag, o.in[0].b, o.in[1].b, sizeof (o));
	exit(0);
}
/* @@output
x 0 9 10
*/
