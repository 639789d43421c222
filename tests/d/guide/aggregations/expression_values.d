/* What is aggregated is any expression.
   @@blanks: any */
BEGIN
{
	x = 3;
	@ = sum(x * x + 1);
	@ = sum(x > 2);
	exit(0);
}
/* @@output
11
*/
