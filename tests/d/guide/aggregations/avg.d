/* avg(): the average, in integers.
   @@blanks: any */
BEGIN
{
	@ = avg(5);
	@ = avg(6);
	@ = avg(9);
	exit(0);
}
/* @@output
6
*/
