/* Arrays of integers as variables. */
int a[4];
BEGIN
{
	a[0] = 1;
	a[3] = 4;
	a[3] += a[0];
	a[2]++;
	printf("%d %d %d %d %d", a[0], a[1], a[2], a[3], sizeof (a));
	exit(0);
}
/* @@output
1 0 1 5 16
*/
