/* Sums are 64 bits wide.
   @@blanks: any */
BEGIN
{
	@ = sum(0x7fffffffffffffff);
	@ = sum(1);
	exit(0);
}
/* @@output
-9223372036854775808
*/
