/* sum(): the total.
   @@blanks: any */
BEGIN
{
	@ = sum(5);
	@ = sum(-7);
	@ = sum(40);
	exit(0);
}
/* @@output
38
*/
