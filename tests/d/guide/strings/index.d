/* index() and rindex(): where a string is in another, from a position on; -1: nowhere. */
BEGIN
{
	printf("%d %d %d %d ", index("abcabc", "c"), index("abcabc", "x"), index("abcabc", "c", 3), index("abc", ""));
	printf("%d %d %d", rindex("abcabc", "c"), rindex("abcabc", "x"), rindex("abcabc", "c", 4));
	exit(0);
}
/* @@output
2 -1 5 0 5 -1 2
*/
