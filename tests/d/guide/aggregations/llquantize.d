/* llquantize(): linear steps inside each power of the factor.
   @@blanks: any */
BEGIN
{
	@ = llquantize(0, 10, 0, 3, 10);
	@ = llquantize(7, 10, 0, 3, 10);
	@ = llquantize(50, 10, 0, 3, 10);
	@ = llquantize(55, 10, 0, 3, 10);
	@ = llquantize(999, 10, 0, 3, 10);
	@ = llquantize(1000, 10, 0, 3, 10);
	exit(0);
}
/* @@output
value ------------- Distribution ------------- count
-1 | 0
0 |@@@@@@@ 1
1 | 0
2 | 0
3 | 0
4 | 0
5 | 0
6 | 0
7 |@@@@@@@ 1
8 | 0
9 | 0
10 | 0
20 | 0
30 | 0
40 | 0
50 |@@@@@@@@@@@@@ 2
60 | 0
70 | 0
80 | 0
90 | 0
100 | 0
200 | 0
300 | 0
400 | 0
500 | 0
600 | 0
700 | 0
800 | 0
900 |@@@@@@@ 1
1000 |@@@@@@@ 1
2000 | 0
*/
