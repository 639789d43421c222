/* A distribution for each key, under its key.
   @@blanks: any */
BEGIN
{
	@["b"] = quantize(1);
	@["a"] = quantize(1);
	@["a"] = quantize(1);
	exit(0);
}
/* @@output
b
value ------------- Distribution ------------- count
0 | 0
1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1
2 | 0
a
value ------------- Distribution ------------- count
0 | 0
1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2
2 | 0
*/
