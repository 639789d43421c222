/* The expression may have variables, whose values are those of the moment. */
int x;
inline int next = x + 1;
BEGIN
{
	x = 5;
	printf("%d ", next);
	x = 7;
	printf("%d", next);
	exit(0);
}
/* @@output
6 8
*/
