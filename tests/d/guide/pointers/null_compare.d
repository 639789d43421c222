/* A pointer in a condition is compared with zero. */
BEGIN
{
	p = (int *)0;
	q = (int *)4;
	printf("%s %s %d%d", p ? "yes" : "no", q ? "yes" : "no", !p, p == NULL);
	exit(0);
}
/* @@output
no yes 11
*/
