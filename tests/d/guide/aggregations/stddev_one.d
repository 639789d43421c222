/* Of one value it is 0.
   @@blanks: any */
BEGIN
{
	@ = stddev(1000);
	exit(0);
}
/* @@output
0
*/
