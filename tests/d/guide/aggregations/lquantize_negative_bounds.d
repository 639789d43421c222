/* The bounds can be negative.
   @@blanks: any */
BEGIN
{
	@ = lquantize(-15, -20, 0, 10);
	@ = lquantize(-5, -20, 0, 10);
	exit(0);
}
/* @@output
value ------------- Distribution ------------- count
< -20 | 0
-20 |@@@@@@@@@@@@@@@@@@@@ 1
-10 |@@@@@@@@@@@@@@@@@@@@ 1
>= 0 | 0
*/
