/* quantize(): a power-of-two distribution; rows from one before to one behind.
   @@blanks: any */
BEGIN
{
	@ = quantize(1);
	@ = quantize(2);
	@ = quantize(3);
	@ = quantize(4);
	@ = quantize(5);
	@ = quantize(6);
	@ = quantize(7);
	@ = quantize(8);
	exit(0);
}
/* @@output
value  ------------- Distribution ------------- count
    0 |                                         0
    1 |@@@@@                                    1
    2 |@@@@@@@@@@                               2
    4 |@@@@@@@@@@@@@@@@@@@@                     4
    8 |@@@@@                                    1
   16 |                                         0
*/
