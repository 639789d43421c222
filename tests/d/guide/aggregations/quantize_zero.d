/* Zero and negative values.
   @@blanks: any */
BEGIN
{
	@ = quantize(0);
	@ = quantize(0);
	@ = quantize(-1);
	@ = quantize(-2);
	@ = quantize(1);
	exit(0);
}
/* @@output
value  ------------- Distribution ------------- count
   -4 |                                         0
   -2 |@@@@@@@@                                 1
   -1 |@@@@@@@@                                 1
    0 |@@@@@@@@@@@@@@@@                         2
    1 |@@@@@@@@                                 1
    2 |                                         0
*/
