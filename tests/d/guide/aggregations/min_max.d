/* min() and max().
   @@blanks: any */
BEGIN
{
	@a = min(5);
	@a = min(-3);
	@a = min(7);
	@b = max(5);
	@b = max(-3);
	@b = max(7);
	exit(0);
}
/* @@output
-3
7
*/
