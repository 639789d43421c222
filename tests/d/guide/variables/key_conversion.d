/* A part of a key is converted to the type that the first use gave it. */
BEGIN
{
	a[(char)1] = 5;
	printf("%d %d", a[257], a[1]);
	exit(0);
}
/* @@output
5 5
*/
