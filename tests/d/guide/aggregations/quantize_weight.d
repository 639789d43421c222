/* A second argument of quantize() counts the value so often.
   @@blanks: any */
BEGIN
{
	@ = quantize(4, 3);
	@ = quantize(5);
	exit(0);
}
/* @@output
value  ------------- Distribution ------------- count
    2 |                                         0
    4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 4
    8 |                                         0
*/
