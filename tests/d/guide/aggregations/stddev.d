/* stddev(): the standard deviation, in integers: of 2 4 4 4 5 5 7 9 it is 2.
   @@blanks: any */
BEGIN
{
	@ = stddev(2);
	@ = stddev(4);
	@ = stddev(4);
	@ = stddev(4);
	@ = stddev(5);
	@ = stddev(5);
	@ = stddev(7);
	@ = stddev(9);
	exit(0);
}
/* @@output
2
*/
