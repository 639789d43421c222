/* The step is 1 when none is given.
   @@blanks: any */
BEGIN
{
	@ = lquantize(3, 0, 5);
	@ = lquantize(3, 0, 5);
	exit(0);
}
/* @@output
value ------------- Distribution ------------- count
2 | 0
3 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2
4 | 0
*/
