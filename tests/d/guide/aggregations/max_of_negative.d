/* The largest of negative values is negative.
   @@blanks: any */
BEGIN
{
	@a = max(-5);
	@a = max(-3);
	@b = min(5);
	@b = min(3);
	exit(0);
}
/* @@output
-3
3
*/
