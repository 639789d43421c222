/* + shows the sign of positive numbers, a blank keeps its place. */
BEGIN
{
	printf("%+d %+d % d % d", 5, -5, 5, -5);
	exit(0);
}
/* @@output
+5 -5  5 -5
*/
