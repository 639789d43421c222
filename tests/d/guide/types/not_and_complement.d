/* ! and ~ bind tighter than anything binary. */
BEGIN
{
	printf("%d %d %d", !1 == 0, ~0 == -1, -1 + ~0);
	exit(0);
}
/* @@output
1 1 -2
*/
