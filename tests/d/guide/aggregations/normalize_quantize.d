/* The counts of a distribution, too.
   @@blanks: any */
BEGIN
{
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(1);
	normalize(@, 5);
	exit(0);
}
/* @@output
value ------------- Distribution ------------- count
0 | 0
1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2
2 | 0
*/
