/* The data stay as they are: later values count in full.
   @@blanks: any */
BEGIN
{
	@ = sum(100);
	normalize(@, 10);
	@ = sum(5);
	@ = sum(5);
	exit(0);
}
/* @@output
11
*/
