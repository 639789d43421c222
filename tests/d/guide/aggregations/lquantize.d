/* lquantize(): steps of a width between two bounds, what is below and what is above.
   @@blanks: any */
BEGIN
{
	@ = lquantize(-3, 0, 10, 5);
	@ = lquantize(0, 0, 10, 5);
	@ = lquantize(4, 0, 10, 5);
	@ = lquantize(5, 0, 10, 5);
	@ = lquantize(9, 0, 10, 5);
	@ = lquantize(10, 0, 10, 5);
	@ = lquantize(400, 0, 10, 5);
	exit(0);
}
/* @@output
value ------------- Distribution ------------- count
< 0 |@@@@@@ 1
0 |@@@@@@@@@@@ 2
5 |@@@@@@@@@@@ 2
>= 10 |@@@@@@@@@@@ 2
*/
