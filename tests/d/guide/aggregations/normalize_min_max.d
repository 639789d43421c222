/* min(), max() and avg().
   @@blanks: any */
BEGIN
{
	@a = min(100);
	@b = max(100);
	@c = avg(100);
	normalize(@a, 3);
	normalize(@b, 3);
	normalize(@c, 3);
	exit(0);
}
/* @@output
33
33
33
*/
