/* print() shows a structure with the names and types of its members.
   @@blanks: any */
struct point { int x; int y; };
struct point p, q;
BEGIN
{
	p.x = 3;
	p.y = -1;
	print(p);
	exit(0);
}
/* @@output
struct point {
int x = 0x3
int y = 0xffffffff
}
*/
