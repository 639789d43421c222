/* The last divisor counts.
   @@blanks: any */
BEGIN
{
	@ = sum(100);
	normalize(@, 10);
	normalize(@, 50);
	exit(0);
}
/* @@output
2
*/
