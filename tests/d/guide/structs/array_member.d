/* An array of char as a string. */
struct named { int id; char name[8]; };
struct named n;
BEGIN
{
	n.name[0] = 'a';
	n.name[1] = 'b';
	printf("%s %d %d", stringof(n.name), strlen(stringof(n.name)), sizeof (n));
	exit(0);
}
/* @@output
ab 2 12
*/
