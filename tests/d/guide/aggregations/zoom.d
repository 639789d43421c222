/* aggzoom: the longest bar fills 95 hundredths of its place.
   @@blanks: any
   @@options: -q -x aggzoom */
BEGIN
{
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(1);
	@ = quantize(2);
	exit(0);
}
/* @@output
value ------------- Distribution ------------- count
0 | 0
1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 3
2 |@@@@@@@@@@@@@ 1
4 | 0
*/
