/* Averages of negative values.
   @@blanks: any */
BEGIN
{
	@ = avg(-5);
	@ = avg(-6);
	@ = avg(-10);
	exit(0);
}
/* @@output
-7
*/
